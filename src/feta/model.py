"""Model: a space, a network and a rule; the one place where a decision is made.

A score nearer the threshold than float64's own rounding error is settled in exact arithmetic. So a
decision never depends on the batch, the machine or the number of threads.
"""

import hashlib
import time
import warnings
from collections.abc import Collection
from dataclasses import InitVar, dataclass, replace
from functools import cached_property

import numpy as np

from feta.arrays import Answers, Flags, Matrix, Vector
from feta.errors import NetworkError, SchemaError
from feta.rounding import FLOAT64, LARGEST_ACTIVATION
from feta.rule import (
    UNDECIDED,
    Argmax,
    Comparator,
    Decisions,
    OneVsRest,
    Outcome,
    Rule,
    Threshold,
    Tolerance,
)
from feta.scorer.network.embedding import expanded
from feta.scorer.network.error_bounds import Bounded, largest_activations
from feta.scorer.network.evaluation import Points, Rows, Tabulated
from feta.scorer.network.exact import ExactNetwork
from feta.scorer.network.network import Network
from feta.space.feature_space import FeatureSpace

# Points settled exactly between two looks at the clock.
EXACT_CHUNK = 2**13


@dataclass(frozen=True, slots=True, eq=False)
class DecisionBatch:
    """Decisions, and which of them the source's own runtime is sure to share (S6)."""

    decisions: Decisions  # OPEN only where time ran out
    runtime_safe: Flags


@dataclass(frozen=True, eq=False)
class Model:
    """Who can exist, what scores them, and how a score becomes a decision.

    `threshold=t` is short for `rule=Threshold(t)`. A network with two outputs is given the score
    "second less first".

    Examples
    --------
    Five classes, whose scores hang on income and, a little, on age:

    >>> from feta import Argmax, FairPredictor, Integer, Real, Tolerance, tally
    >>> space = FeatureSpace((Integer("age", 18, 90, sensitive=True), Real("income", 0, 100)))
    >>> slopes = [[0.0, 0.0], [0.01, 0.5], [0.02, 1.0], [0.03, 1.5], [0.04, 2.0]]
    >>> biases = [0.0, -10.0, -30.0, -60.0, -100.0]
    >>> classes = Argmax(("none", "basic", "silver", "gold", "platinum"))
    >>> tiers = Model(space, Network.from_layers([(slopes, biases)]), classes)
    >>> people = space.encode([{"age": 30, "income": 39}, {"age": 80, "income": 39}])
    >>> [tiers.outcomes[one] for one in tiers.decide(people)]
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
    network: Network
    rule: Rule = None  # type: ignore[assignment]  # settled in __post_init__
    threshold: InitVar[float | None] = None
    outcomes: tuple[str, ...] = ()  # what the decisions are called, by class; no part of the model

    def __post_init__(self, threshold: float | None) -> None:
        given: object = self.rule
        if given is not None and not isinstance(given, Rule):
            raise SchemaError(f"rule must be a rule such as feta.Threshold(0.0), got {self.rule!r}")
        if given is not None and threshold is not None:
            raise SchemaError("give a rule or a threshold, not both")
        if threshold is not None and self.network.sigmoid and 0 < threshold < 1:
            message = f"threshold={threshold} is a score, before the network's last sigmoid; for a probability give rule=Threshold.at_probability({threshold})"
            warnings.warn(message, stacklevel=3)
        rule = self.rule or Threshold(0.0 if threshold is None else threshold)
        network = self.network
        if network.outputs == 2 and isinstance(rule, Threshold):  # noqa: PLR2004 - two classes
            network = network.difference()
        if network.outputs != rule.outputs:
            wanted = (
                "one or two outputs" if isinstance(rule, Threshold) else f"{rule.outputs} output(s)"
            )
            message = f"{type(rule).__name__} needs a network with {wanted}, got {network.outputs}"
            raise SchemaError(message)
        network = expanded(network, self.space)
        if network.width != self.space.width:
            message = f"the network must read the space's {self.space.width} columns, got {network.width}; a category takes one column a value"
            raise SchemaError(message)
        object.__setattr__(self, "network", network)
        object.__setattr__(self, "rule", rule.resolved(network.equality))
        outcomes = tuple(self.outcomes) or rule.outcomes
        if len(outcomes) != rule.n_classes or len(set(outcomes)) != len(outcomes):
            message = f"outcomes must name {rule.n_classes} different decisions, got {outcomes!r}"
            raise SchemaError(message)
        object.__setattr__(self, "outcomes", outcomes)
        self._check_size()

    def _check_size(self) -> None:
        with np.errstate(over="ignore"):
            largest = list(largest_activations(self.network, self.space.magnitudes))
        for index, sizes in enumerate(largest, start=1):
            neuron = int(np.argmax(sizes))
            if not sizes[neuron] < LARGEST_ACTIVATION:
                message = f"layer {index}, neuron {neuron} can reach {sizes[neuron]:.3g} in this space, which float64 cannot hold safely; narrow the columns' limits or rescale the weights"
                raise NetworkError(message)

    def with_sensitive(self, names: Collection[str]) -> "Model":
        """Take the same model with just these attributes sensitive."""
        return replace(self, space=self.space.with_sensitive(names), threshold=None)

    @cached_property
    def fingerprint(self) -> str:
        """A sha256 of space, network and rule."""
        parts = (self.space.fingerprint, self.network.fingerprint, repr(self.rule))
        return hashlib.sha256("\n".join(parts).encode()).hexdigest()

    @cached_property
    def wider(self) -> "dict[object, Model]":
        """The same model over wider limits, as `feta.wider_limits` made it for people outside of them."""
        return {}

    @cached_property
    def exact(self) -> ExactNetwork:
        """The network in exact numbers."""
        return ExactNetwork(self.network)

    @cached_property
    def tabulated(self) -> Tabulated:
        """The network's first layer over the sensitive lattice."""
        return Tabulated(self.exact, self.space.lattice)

    @cached_property
    def runtime_error(self) -> float:
        """How much nearer the threshold the source may err than its scores do; inf: overflow."""
        arithmetic = self.network.arithmetic
        if self.space.magnitudes.max() > arithmetic.huge:
            return float("inf")
        return self.rule.source_error(arithmetic) if self.network.sigmoid else 0.0

    def score(self, people: Matrix) -> Vector:
        """Compute float64 scores: to look at, not to decide with."""
        people = np.asarray(people, dtype=np.float64)
        self.space.check(people)
        scores = self.network(people)
        return scores[:, 0] if self.network.outputs == 1 else scores

    def decide(self, people: Matrix) -> Answers:
        """Decide each person as the model does: True is favorable; several classes: the class."""
        people = np.asarray(people, dtype=np.float64)
        self.space.check(people)
        if isinstance(self.rule, Tolerance):
            raise SchemaError("a regression model gives scores, not decisions; use model.score")
        decisions = self.resolve(Rows(self.exact, people), self.rule).decisions
        return decisions if isinstance(self.rule, Argmax) else decisions == 1

    def describe(self, outcome: Outcome | None) -> str | float:
        """Return the name of an outcome; a score stays a number, and no outcome is an empty text."""
        if outcome is None:
            return ""
        return float(outcome) if isinstance(self.rule, Tolerance) else self.outcomes[int(outcome)]

    def one_vs_rest(self, chosen: str) -> "Model":
        """Ask of a model with several classes only whether the class is the chosen one."""
        if not isinstance(self.rule, Argmax):
            raise SchemaError(f"one against the rest needs several classes, got {self.rule!r}")
        rule = OneVsRest(self.rule.classes, chosen)
        return Model(self.space, self.network, rule)

    def runtime_scores(self, points: Points) -> Bounded:
        """Compute scores with a bound that also covers the source's own runtime."""
        scores = points.scores(self.network.arithmetic)
        return Bounded(scores.values, scores.errors + self.runtime_error)

    def resolve(
        self, points: Points, comparator: Comparator, *, deadline: float = float("inf")
    ) -> DecisionBatch:
        """Judge points: by float64 and its error bound, and exactly where that is not enough.

        After the deadline (by `time.monotonic`) what needs exact arithmetic stays open.
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
