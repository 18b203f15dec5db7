"""Distillation: one network that imitates the fair decisions and reads no sensitive column.

The slopes of the sensitive columns are exactly 0, so all counterparts have the same score: no
counterexample exists, whatever else the network has learned.
"""

import warnings
from dataclasses import dataclass, replace
from math import ceil

import numpy as np
from numpy.typing import ArrayLike

from feta.arrays import Answers, Counts, Matrix, Vector
from feta.errors import DomainError, SchemaError
from feta.model import Model
from feta.predict.fair_predictor import FairPredictor
from feta.rule import Rule, Threshold
from feta.scorer.network.network import Network
from feta.space.feature_space import FeatureSpace
from feta.train.distil_report import DistilReport
from feta.train.plain import PlainTrainer, Progress
from feta.train.split import HELD_OUT, Split
from feta.train.task import Task

# A smaller training set or test set says nothing about new people.
MIN_PEOPLE = 20

# Steps of Adam and epochs that suffice on German, Law and Adult; see VERIFICATION.md.
STEPS, MIN_EPOCHS = 4000, 15
BATCH_SIZE = 128
LEARNING_RATES = (3e-3,)

# The unit of distances from the cut-off, relative to the median of the people on its smaller side.
# Where few are favorable, the network then learns who they are, and not how far away the rest is.
UNIT = 0.5

# Float64 scores that differ by less, relative to the largest, may belong to equal people.
SAME_SCORE = 1e-9


@dataclass(frozen=True, slots=True, eq=False)
class Distilled:
    """A model that is fair for everybody, and its report on held-out people."""

    model: Model
    report: DistilReport


def distil(
    predictor: FairPredictor,
    people: Matrix,
    *,
    hidden: tuple[int, ...] = (32, 32),
    labels: ArrayLike | None = None,
    held_out: float = 0.2,
    epochs: int | None = None,
    seed: int = 0,
    progress: Progress | None = None,
) -> Distilled:
    """Train a network that reads no sensitive column to decide as a fair predictor does.

    With two decisions, the network is favorable at scores on the favorable side of 0, and as many
    training people are favorable as by the vote.

    Parameters
    ----------
    predictor
        The vote to imitate, over any scorer.
    people
        Encoded people; their sensitive columns are not read and may be NaN.
    hidden
        The widths of the hidden layers.
    labels
        What is correct for each person, for the accuracy in the report; never trained on.
    held_out
        The share of people for the report, on whom nothing is trained or chosen.
    epochs
        The most epochs; the best one on validation people is taken. None: by the number of people.
    seed
        Equal seeds and people give the same network on the same kind of processor.
    progress
        Called with the share of the training that is done.
    """
    rule = _rule(predictor.model)
    people = _without_sensitive(predictor.model.space, people)
    parts = _Parts.of(len(people), held_out, seed)
    correct = None if labels is None else Task(rule).targets(labels, len(people))
    trainer = _trainer(
        predictor.model.space, rule, hidden, parts.enough_epochs if epochs is None else epochs, seed
    )
    fair, targets = _imitated(predictor, people)
    split = parts.split(people, targets)
    network = trainer.train_folds([split], progress=progress)[0].network
    if rule.threshold is not None:
        network = _at_level(network, people[parts.trained], fair[parts.trained], rule)
    model = _blind_model(predictor.model, network, rule)
    report = DistilReport.of(
        model.decide(people[parts.held]),
        fair[parts.held],
        None if correct is None else correct[parts.held],
        n_trained=len(parts.trained),
        two_sided=rule.two_sided,
    )
    if report.warning:
        warnings.warn(report.warning, stacklevel=2)
    return Distilled(model, report)


@dataclass(frozen=True, slots=True, eq=False)
class _Parts:
    """Rows of the people to train on, in random order, and of those for the report."""

    trained: Counts
    held: Counts

    @classmethod
    def of(cls, n_people: int, held_out: float, seed: int) -> "_Parts":
        """Divide people at random."""
        if isinstance(held_out, bool) or not 0 < held_out < 1:
            raise SchemaError(
                f"invalid held_out: got {held_out!r}; expected a number above 0 and below 1"
            )
        n_held = max(1, round(held_out * n_people))
        if n_people < MIN_PEOPLE or n_people - n_held < MIN_PEOPLE // 2:
            raise DomainError(
                f"too few people: got {n_people} with held_out={held_out!r}; expected at least "
                f"{MIN_PEOPLE}, and {MIN_PEOPLE // 2} of them for training"
            )
        order = np.random.default_rng([seed, 5]).permutation(n_people)
        return cls(order[n_held:], np.sort(order[:n_held]))

    @property
    def enough_epochs(self) -> int:
        """The number of epochs that makes enough steps."""
        return max(MIN_EPOCHS, ceil(STEPS * BATCH_SIZE / len(self.trained)))

    def split(self, people: Matrix, targets: Vector) -> Split:
        """Return the people to train on, and a tenth of them for validation."""
        n_validation = max(1, round(HELD_OUT * len(self.trained)))
        held, rest = np.sort(self.trained[:n_validation]), np.sort(self.trained[n_validation:])
        return Split(people[rest], targets[rest], people[held], targets[held])


def _trainer(
    space: FeatureSpace, rule: Rule, hidden: tuple[int, ...], epochs: int, seed: int
) -> PlainTrainer:
    """Return the trainer of a network that reads no sensitive column."""
    if not hidden:
        raise SchemaError("invalid hidden: got (); expected the width of one hidden layer or more")
    trainer = PlainTrainer(
        space,
        hidden=tuple(hidden),
        rule=rule,
        blind=True,
        learning_rates=LEARNING_RATES,
        batch_sizes=(BATCH_SIZE,),
        epochs=epochs,
        seed=seed,
    )
    assert len(trainer.columns)  # raises if all columns are sensitive
    return trainer


def _rule(model: Model) -> Rule:
    """Return the rule of the distilled model: a threshold at 0, or the same classes."""
    if model.rule.tolerance is not None:
        raise SchemaError(
            f"distillation is for decisions: got a regression, {model.rule!r}; expected a "
            "threshold or classes; train PlainTrainer(space, blind=True, rule=…) on "
            "predictor.decide(people)"
        )
    if not model.relation.complete:
        raise SchemaError(
            f"distillation needs counterparts that differ in the sensitive columns only: got the "
            f"relation {model.relation!r}; expected one that is complete; decide by the vote itself"
        )
    if model.rule.two_sided:
        return Threshold(0.0, model.rule.favors, "favorable")
    return model.rule


def _without_sensitive(space: FeatureSpace, people: Matrix) -> Matrix:
    """Return people of the space who have the first value of every sensitive attribute."""
    people = np.array(people, dtype=np.float64)
    space.check(people, sensitive="ignore")
    for axis in space.axes:
        people[:, list(axis.columns)] = axis.codes(np.array([axis.ends[0]]))
    return people


def _imitated(predictor: FairPredictor, people: Matrix) -> tuple[Answers, Vector]:
    """Return the fair decisions, and targets from 0 to 1 for the favorable one, or the class.

    A majority has no margin that is comparable between people, so its targets are its decisions.
    """
    if predictor.vote == "majority" or predictor.model.rule.threshold is None:
        decisions = predictor.decide(people)
        return decisions, np.asarray(decisions, dtype=np.float64)
    means = predictor.means(people)
    if not means.decided.all():
        predictor.decide(people[~means.decided])  # raises, and says why
    favors_above = predictor.model.rule.favors == "above"
    return means.outcomes, _targets(means.means if favors_above else -means.means, means.outcomes)


def _targets(means: Vector, favorable: Answers) -> Vector:
    """Return the sigmoid of the distance from the cut-off, in units of the smaller side."""
    if favorable.all() or not favorable.any():
        return np.asarray(favorable, dtype=np.float64)
    cut = means[favorable].min() / 2 + means[~favorable].max() / 2
    distances = means - cut
    smaller = favorable if 2 * favorable.sum() <= len(favorable) else ~favorable
    unit = UNIT * float(np.median(np.abs(distances[smaller])))
    if unit == 0:
        return np.asarray(favorable, dtype=np.float64)
    with np.errstate(over="ignore"):  # exp of a large distance
        return np.asarray(1 / (1 + np.exp(-distances / unit)))


def _at_level(network: Network, people: Matrix, fair: Answers, rule: Rule) -> Network:
    """Shift the scores so that at 0 as many people are favorable as by the vote."""
    sign = 1.0 if rule.favors == "above" else -1.0
    shift = sign * _cut(sign * network(people)[:, 0], int(fair.sum()))
    last = network.layers[-1]
    layers = (*network.layers[:-1], replace(last, bias=last.bias - shift))
    return replace(network, layers=layers)


def _cut(scores: Vector, n_favorable: int) -> float:
    """Return the cut-off that the number of scores nearest to this one reaches.

    Of two that are equally near, it is the lower one. It lies between scores that differ by more
    than rounding.
    """
    ordered = np.sort(scores)[::-1]
    beyond = 1.0 + np.abs(ordered).max()
    ends = np.concatenate([[ordered[0] + beyond], ordered, [ordered[-1] - beyond]])
    middles, gaps = ends[:-1] / 2 + ends[1:] / 2, ends[:-1] - ends[1:]
    distances = np.abs(np.arange(len(middles)) - n_favorable).astype(np.float64)
    distances[gaps <= SAME_SCORE * np.abs(ends).max()] = np.inf
    return float(middles[np.flatnonzero(distances == distances.min())[-1]])


def _blind_model(model: Model, network: Network, rule: Rule) -> Model:
    """Return the model of a network that reads no sensitive column."""
    assert not network.first.tables
    assert not network.first.slopes[:, model.space.sensitive_columns].any()
    return Model(model.space, network, rule, outcomes=model.outcomes, relation=model.relation)
