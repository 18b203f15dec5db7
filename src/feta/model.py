"""A space, a scorer and a rule; the only place that makes decisions.

A score closer to the threshold than the rounding error of float64 is decided in exact arithmetic.
A decision therefore never depends on the batch, the machine or the number of threads.
"""

import hashlib
import time
import warnings
from collections.abc import Collection
from dataclasses import InitVar, dataclass, replace
from functools import cached_property
from typing import Any

import numpy as np

from feta.arrays import Answers, Flags, Matrix, Vector
from feta.errors import NetworkError, SchemaError, Undecided
from feta.relation.all_sensitive_values import AllSensitiveValues
from feta.relation.protocol import Relation
from feta.rounding import FLOAT64
from feta.rule.comparator import UNDECIDED, Comparator, Decisions
from feta.rule.protocol import Outcome, Rule, check_fits
from feta.rule.threshold import Threshold
from feta.scorer.exact_scores import ExactScores
from feta.scorer.protocol import Enclosure, Points, Restricted, Scorer, doubt_at
from feta.space.feature_space import FeatureSpace

# Exponentials and Φ at 0 are accurate to a few units in the last place, and change by at least 0.4
# times as much as their argument, relative to their size; so do thresholds on predictions.
INVERSE_LINK_ULPS = 64

# Points that are decided exactly between two checks of the deadline.
EXACT_CHUNK = 2**13


@dataclass(frozen=True, slots=True, eq=False)
class DecisionBatch:
    """Decisions, and which of them the source's runtime provably shares."""

    decisions: Decisions  # UNDECIDED after the deadline, and where the scorer cannot separate
    runtime_safe: Flags


@dataclass(frozen=True, eq=False)
class Model:
    """A space of people, a scorer, and a rule that turns scores into decisions.

    `threshold=t` is short for `rule=Threshold(t)`. With a threshold, the score of a scorer with two
    outputs is the second output minus the first.

    Examples
    --------
    Five classes, whose scores depend on income and, a little, on age:

    >>> from feta import Argmax, FairPredictor, Integer, Network, Real, Tolerance, tally
    >>> space = FeatureSpace((Integer("age", 18, 90, sensitive=True), Real("income", 0, 100)))
    >>> slopes = [[0.0, 0.0], [0.01, 0.5], [0.02, 1.0], [0.03, 1.5], [0.04, 2.0]]
    >>> biases = [0.0, -10.0, -30.0, -60.0, -100.0]
    >>> classes = Argmax(("none", "basic", "silver", "gold", "platinum"))
    >>> tiers = Model(space, Network.from_layers([(slopes, biases)]), classes)
    >>> people = space.encode([{"age": 30, "income": 39}, {"age": 80, "income": 39}])
    >>> [tiers.outcomes[decision] for decision in tiers.decide(people)]
    ['basic', 'silver']
    >>> tally(tiers, people[:1]).by_class.tolist()
    [[0, 32, 41, 0, 0]]
    >>> tiers.outcomes[FairPredictor(tiers).decide(people)[0]]
    'silver'

    A credit limit that may differ by 500 between any two counterparts:

    >>> limits = Network.from_layers([([[20.0, 50.0]], [400.0])])
    >>> credit = Model(space, limits, Tolerance(500.0))
    >>> credit.score(people).tolist(), FairPredictor(credit).decide(people).tolist()
    ([2950.0, 3950.0], [3430.0, 3430.0])
    """

    space: FeatureSpace
    scorer: Scorer
    rule: Rule = None  # type: ignore[assignment]  # set in __post_init__
    threshold: InitVar[float | None] = None
    outcomes: tuple[str, ...] = ()  # names of the decisions; not part of the fingerprint
    relation: Relation = None  # type: ignore[assignment]  # set in __post_init__

    def __post_init__(self, threshold: float | None) -> None:
        source: object = self.scorer
        if not hasattr(source, "restrict"):  # an estimator or a module
            raise NetworkError(
                f"invalid network: got {type(source).__name__}; expected a Network; use "
                "feta.read_sklearn(estimator, space), feta.read_torch(module) or "
                "feta.read_onnx(path)"
            )
        argument: object = self.rule
        if argument is not None and not hasattr(argument, "comparator"):
            raise SchemaError(
                f"invalid rule: got {argument!r}; expected a rule such as feta.Threshold(0.0)"
            )
        if argument is not None and threshold is not None:
            raise SchemaError(
                f"conflicting arguments: got rule={argument!r} and threshold={threshold!r}; "
                "expected one of them"
            )
        if threshold is not None and self.scorer.link == "logit" and 0 < threshold < 1:
            message = (
                f"threshold={threshold} is compared with the score, before the network's last "
                f"sigmoid; for a probability, use rule=Threshold.at_probability({threshold})"
            )
            warnings.warn(message, stacklevel=3)
        if threshold is not None and self.scorer.link == "log":
            message = (
                f"threshold={threshold} is compared with the score, whose exponential the model "
                f"predicts; for a prediction, use rule=Threshold.at_prediction({threshold})"
            )
            warnings.warn(message, stacklevel=3)
        if threshold is not None and self.scorer.link == "share" and self.scorer.outputs > 1:
            message = (
                f"threshold={threshold} is compared with the difference of two shares; for a "
                f"probability, use rule=Threshold.at_probability({threshold})"
            )
            warnings.warn(message, stacklevel=3)
        rule = self.rule or Threshold(0.0 if threshold is None else threshold)
        _check_outputs(rule, self.scorer)
        scorer, rule = rule.on_scores_of(self.scorer)
        scorer = _fit_scorer(scorer, rule, self.space)
        object.__setattr__(self, "scorer", scorer)
        relation = AllSensitiveValues(self.space) if self.relation is None else self.relation
        object.__setattr__(self, "relation", relation.over(self.space))
        object.__setattr__(self, "rule", rule.resolved(scorer.equality))
        outcomes = tuple(self.outcomes) or rule.outcomes
        if len(outcomes) != rule.n_classes or len(set(outcomes)) != len(outcomes):
            raise SchemaError(
                f"invalid outcomes: got {outcomes!r}; expected {rule.n_classes} different names"
            )
        object.__setattr__(self, "outcomes", outcomes)

    @property
    def network(self) -> Any:  # noqa: ANN401 - any scorer; most are networks
        """The scorer; most scorers are networks."""
        return self.scorer

    def with_sensitive(self, names: Collection[str]) -> "Model":
        """Return the model with exactly these attributes sensitive."""
        return replace(self, space=self.space.with_sensitive(names), threshold=None)

    @cached_property
    def fingerprint(self) -> str:
        """A sha256 of space, scorer and rule."""
        parts = [self.space.fingerprint, self.scorer.fingerprint, repr(self.rule)]
        parts += [self.relation.fingerprint] if self.relation.fingerprint else []
        return hashlib.sha256("\n".join(parts).encode()).hexdigest()

    @cached_property
    def wider(self) -> "dict[object, Model]":
        """A cache of this model over wider limits, filled by `feta.wider_limits`."""
        return {}

    def points(self, people: Matrix) -> Points:
        """Return people as points, one per row."""
        return self.scorer.points(people)

    def exact_scores(self, people: Matrix) -> ExactScores:
        """Compute the exact scores of people, (people, outputs)."""
        return self.points(people).exact_scores(np.arange(len(people)))

    @cached_property
    def restricted(self) -> Restricted:
        """The scorer on people's counterparts."""
        return self.scorer.restrict(self.relation)

    @cached_property
    def runtime_error(self) -> float:
        """The error that the source adds after its scores; infinite if it may overflow."""
        arithmetic = self.scorer.arithmetic
        if self.space.magnitudes.max() > arithmetic.huge:
            return float("inf")
        match self.scorer.link:
            case "logit":
                return self.rule.source_error(arithmetic)
            case "log" | "probit":  # as a rounded exponential or Φ of a score
                return INVERSE_LINK_ULPS * arithmetic.unit * (1 + abs(self.rule.threshold or 0.0))
            case "identity" | "share" | "share_margin":
                return 0.0

    def score(self, people: Matrix) -> Vector:
        """Compute float64 scores, for display only: decisions need an error bound."""
        people = np.asarray(people, dtype=np.float64)
        self.space.check(people)
        scores = self.scorer(people)
        return scores[:, 0] if self.scorer.outputs == 1 else scores

    def decide(self, people: Matrix) -> Answers:
        """Return the decision for each person: True is favorable; with Argmax, class indices."""
        people = np.asarray(people, dtype=np.float64)
        self.space.check(people)
        decisions = self.resolve(self.points(people), self.rule).decisions
        undecided = np.flatnonzero(decisions == UNDECIDED)
        if undecided.size:
            doubt = doubt_at(self.restricted, people[undecided[0]])
            reason = "their scores may tie exactly" if doubt is None else doubt.message
            raise Undecided(tuple(undecided.tolist()), reason)
        return self.rule.answers(decisions)

    def describe(self, outcome: Outcome | None) -> str | float:
        """Return the name of an outcome; a score is returned as a number, None as an empty text."""
        if outcome is None:
            return ""
        return self.rule.describe(outcome, self.outcomes)

    def one_vs_rest(self, chosen: str) -> "Model":
        """Return the model that decides only between the chosen class and all others."""
        rule = self.rule.one_vs_rest(chosen)
        return Model(self.space, self.scorer, rule, relation=self.relation)

    def runtime_scores(self, points: Points) -> Enclosure:
        """Compute scores with an error bound that also covers the source's runtime."""
        scores = points.scores(self.scorer.arithmetic)
        return Enclosure(scores.values, scores.errors + self.runtime_error)

    def resolve(
        self, points: Points, comparator: Comparator, *, deadline: float = float("inf")
    ) -> DecisionBatch:
        """Decide points by float64 and its error bound, and exactly where that is not enough.

        After the deadline (by `time.monotonic`), points that need exact arithmetic remain
        undecided.
        """
        decisions = comparator.decide(self.runtime_scores(points))
        runtime_safe = decisions != UNDECIDED
        rest = np.flatnonzero(~runtime_safe)
        if rest.size:
            decisions[rest] = comparator.decide(points.scores(FLOAT64, rest))
            rest = rest[decisions[rest] == UNDECIDED]
        for start in range(0, rest.size, EXACT_CHUNK):
            if time.monotonic() > deadline:
                break
            chunk = rest[start : start + EXACT_CHUNK]
            decisions[chunk] = comparator.decide_exactly(points.exact_scores(chunk))
        return DecisionBatch(decisions, runtime_safe)


def _check_outputs(rule: Rule, scorer: Scorer) -> None:
    """Raise unless the scorer has the outputs that a rule needs."""
    problem = check_fits(rule, scorer.outputs)
    if problem:
        raise SchemaError(f"wrong number of network outputs: {problem}")


def _fit_scorer(scorer: Scorer, rule: Rule, space: FeatureSpace) -> Scorer:
    """Return the scorer with the outputs of a rule and the columns of a space."""
    if scorer.outputs != rule.outputs:  # two classes, one score
        scorer = scorer.difference()
    # A counted model refuses answers in doubt then, because a span needs scores, not intervals.
    for_regression = getattr(scorer, "for_regression", None)
    if rule.tolerance is not None and for_regression is not None:
        scorer = for_regression()
    return scorer.over(space)
