"""Choice of the most accurate among predictors that are all fair for everybody.

All candidates are fair by construction, so the choice cannot make decisions unfair. Accuracy favors
decisions that guess the sensitive columns from proxies; so the level, the gaps between groups and
the re-inference of every candidate are reported next to it.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import ArrayLike

from feta.arrays import Matrix, Vector
from feta.errors import SchemaError
from feta.metrics.decision_figures import DecisionFigures, GroupPair, widest_pairs
from feta.metrics.proxy_measures import MIN_PEOPLE, reads_sensitive
from feta.metrics.reinference import AwareScores, Reinference, SensitiveValues, reinference
from feta.model import Model
from feta.predict.fair_predictor import FairPredictor
from feta.rule import Rule
from feta.space.vote_weights import VoteWeights
from feta.train.baselines import blind_logistic, majority
from feta.train.ce_fair import CEFairTrainer
from feta.train.plain import PlainTrainer, Progress
from feta.train.split import Split
from feta.train.task import Task

if TYPE_CHECKING:
    from feta.scorer.network.network import Network

# A span penalty of 0.5 costs accuracy on German and Adult; 1 makes networks constant.
SPAN = 0.1


@dataclass(frozen=True, slots=True, eq=False)
class ChoiceFigures:
    """What else is known about a candidate with two decisions."""

    decisions: DecisionFigures
    reinference: Reinference | None  # of decisions; None: few people, or no aware model


@dataclass(frozen=True, slots=True, eq=False)
class Choice:
    """The chosen predictor, the accuracy and the figures of every candidate, and the reason."""

    name: str
    predictor: FairPredictor
    accuracies: dict[str, float]
    reason: str
    pairs: tuple[GroupPair, ...] = ()  # the groups whose gaps are in the figures
    figures: dict[str, ChoiceFigures] = field(default_factory=dict)  # empty: no two decisions


def choose_fair(
    candidates: Mapping[str, FairPredictor], people: Matrix, labels: ArrayLike
) -> Choice:
    """Choose by accuracy, preferably on people not trained on; the first of equals."""
    if not candidates:
        raise SchemaError("no candidates: got none; expected at least one fair predictor")
    accuracies, answers = {}, {}
    for name, predictor in candidates.items():
        task = Task(predictor.model.rule)
        targets = task.targets(labels, len(people))
        answers[name] = np.asarray(predictor.decide(people)).astype(np.float64)
        accuracies[name] = task.accuracy(answers[name], targets)
    best = max(accuracies, key=lambda name: accuracies[name])
    pairs, figures = _figures(candidates, people, np.asarray(labels, dtype=np.float64), answers)
    reason = _reason(best, accuracies, len(people)) + _slope_words(best, figures)
    return Choice(best, candidates[best], accuracies, reason, pairs, figures)


def _figures(
    candidates: Mapping[str, FairPredictor],
    people: Matrix,
    labels: Vector,
    answers: Mapping[str, Vector],
) -> tuple[tuple[GroupPair, ...], dict[str, ChoiceFigures]]:
    """Measure two-sided decisions of all candidates on the same people and groups."""
    models = [predictor.model for predictor in candidates.values()]
    if any(model.rule.threshold is None for model in models):
        return (), {}
    pairs = widest_pairs(models[0].space, people, next(iter(answers.values())) == 1.0)
    aware = _aware(models, people)
    return pairs, {
        name: ChoiceFigures(
            DecisionFigures.of(decisions == 1.0, labels == 1.0, pairs),
            None if aware is None else reinference(decisions, aware),
        )
        for name, decisions in answers.items()
    }


def _aware(models: list[Model], people: Matrix) -> AwareScores | None:
    """Return the decisions of the first model that reads the sensitive columns, by group."""
    aware = next((model for model in models if reads_sensitive(model)), None)
    if aware is None or len(people) < MIN_PEOPLE:
        return None
    values = SensitiveValues.of(aware.space, people)
    task = Task(aware.rule)
    return AwareScores(
        values.scores(lambda rows: task.decisions(aware.scorer(rows)), people), values
    )


def _slope_words(best: str, figures: Mapping[str, ChoiceFigures]) -> str:
    """Return the re-inference of the chosen candidate in words; empty if it is not known."""
    measured = figures[best].reinference if figures else None
    if measured is None or measured.slope is None:
        return ""
    low, high = measured.slope.interval
    return (
        f"; its decisions contain {measured.slope.value:.0%} [{low:.0%}, {high:.0%}] of what a "
        "guess of the sensitive columns adds, which accuracy does not count against it"
    )


def _reason(best: str, accuracies: dict[str, float], n_people: int) -> str:
    share = accuracies[best]
    reason = (
        f"{best!r} is right for {share:.1%} of {n_people} people; "
        "all are fair for everybody by construction, so accuracy alone decides"
    )
    others = {name: other for name, other in accuracies.items() if name != best}
    if not others:
        return reason
    second = max(others, key=lambda name: others[name])
    reason += f"; next is {second!r} with {others[second]:.1%}"
    error = np.sqrt(max(share * (1 - share), 0.0) / n_people)
    if share - others[second] <= error:
        reason += f", which may be chance: one standard error is {error:.1%}"
    return reason


def train_candidates(
    trainer: PlainTrainer,
    fair: CEFairTrainer,
    split: Split,
    *,
    progress: Progress | None = None,
) -> dict[str, FairPredictor]:
    """Train all candidates on one split of people.

    These are votes of the plain network with equal and with empirical weights, votes after
    CE-Fair training and after training with a span penalty, a blind network, a blind regression,
    and the majority label.
    """
    report = progress or (lambda _: None)
    space, rule = trainer.space, trainer.rule
    held = (split.held, split.held_targets)
    networks: dict[str, Network] = {}
    plain = trainer.train_folds([split], progress=lambda share: report(share / 5))[0]
    networks["vote"] = plain.network
    for index, (name, fair_trainer) in enumerate(_fair_trainers(fair, rule)):
        run = fair_trainer.train(
            networks["vote"],
            split.people,
            split.targets,
            validation=held,
            progress=lambda share, index=index: report((1 + index + share) / 5),  # type: ignore[misc]  # a number
        )
        networks[name] = run.network
    blind = replace(trainer, blind=True)
    blind_run = blind.train_folds([split], progress=lambda share: report((3 + share) / 5))[0]
    networks["blind network"] = blind_run.network
    networks["blind regression"] = blind_logistic(space, split.people, split.targets, rule=rule)
    networks["majority"] = majority(space, split.targets, rule=rule)
    report(1.0)
    weights = VoteWeights.from_people(space, split.people)
    models = {name: Model(space, network, rule) for name, network in networks.items()}
    predictors = {name: FairPredictor(model) for name, model in models.items()}
    predictors["vote, empirical weights"] = FairPredictor(models["vote"], weights=weights)
    return predictors


def _fair_trainers(fair: CEFairTrainer, rule: Rule) -> list[tuple[str, CEFairTrainer]]:
    trainers = [("vote after CE-Fair", replace(fair, rule=rule, span_penalty=None))]
    if rule.outputs == 1:
        span = replace(fair, rule=rule, preset=None, span_penalty=fair.span_penalty or SPAN)
        trainers.append(("vote after span training", span))
    return trainers
