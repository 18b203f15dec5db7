"""Choice of the most accurate among predictors that are all fair for everybody.

All candidates are fair by construction, so the choice cannot make decisions unfair.
"""

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import ArrayLike

from feta.arrays import Matrix
from feta.errors import SchemaError
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
class Choice:
    """The chosen predictor, the accuracy of every candidate, and the reason."""

    name: str
    predictor: FairPredictor
    accuracies: dict[str, float]
    reason: str


def choose_fair(
    candidates: Mapping[str, FairPredictor], people: Matrix, labels: ArrayLike
) -> Choice:
    """Choose by accuracy, preferably on people not trained on; the first of equals."""
    if not candidates:
        raise SchemaError("no candidates: got none; expected at least one fair predictor")
    accuracies = {}
    for name, predictor in candidates.items():
        task = Task(predictor.model.rule)
        targets = task.targets(labels, len(people))
        answers = np.asarray(predictor.decide(people)).astype(np.float64)
        accuracies[name] = task.accuracy(answers, targets)
    best = max(accuracies, key=lambda name: accuracies[name])
    return Choice(best, candidates[best], accuracies, _reason(best, accuracies, len(people)))


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
