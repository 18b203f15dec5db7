"""The oracle of tree ensembles: scores and answers by their definition, in exact fractions.

Trees test the values of a record, not columns of an encoded person. This file uses nothing of
`feta.scorer`: neither its trees nor its sums nor its evaluation. It lists the counterparts from the
attributes, and encodes them itself (`tests/oracle.py`).
"""

from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property
from itertools import product
from typing import Any, Literal

import numpy as np

from feta.arrays import Matrix, Vector
from feta.rule import Argmax, Rule, Tolerance
from feta.space.attribute import Attribute, Derived, Real, Value
from feta.space.feature_space import FeatureSpace
from feta.space.vote_weights import VoteWeights
from tests import oracle

Record = dict[str, Value]


@dataclass(frozen=True)
class Leaf:
    """The values of a leaf, one per sum."""

    values: tuple[float, ...]


@dataclass(frozen=True)
class AtMost:
    """Numbers up to the cut go left; `missing_left` is where a missing number goes."""

    cut: float
    missing_left: bool = False


@dataclass(frozen=True)
class OneOf:
    """These values go left; None is the missing value."""

    values: tuple[Value, ...]


@dataclass(frozen=True)
class Split:
    """A test of one attribute of a record."""

    attribute: str
    test: AtMost | OneOf
    left: "Node"
    right: "Node"


Node = Leaf | Split


@dataclass(frozen=True)
class Ensemble:
    """Trees, and how their library adds them: (base + Σ weight · leaf) / denominator."""

    trees: tuple[Node, ...]
    base: tuple[float, ...]
    weights: tuple[float, ...] | None = None
    denominator: int = 1
    kind: Literal["float32", "float64"] = "float64"
    around_start: bool = False
    divide: bool = False

    def leaves(self, record: Record) -> list[tuple[float, ...]]:
        """Return the values of the leaf that a record reaches in each tree."""
        return [_walk(tree, record) for tree in self.trees]

    def scores(self, record: Record) -> list[Fraction]:
        """Return the exact scores."""
        totals = [Fraction(number) for number in self.base]
        weights = self.weights or (1.0,) * len(self.trees)
        for weight, values in zip(weights, self.leaves(record), strict=True):
            for index, value in enumerate(values):
                totals[index] += Fraction(weight) * Fraction(value)
        return [total / self.denominator for total in totals]

    def replay(self, record: Record) -> list[float]:
        """Return the scores as the library adds them, one rounded sum after the other."""
        number: Any = np.float32 if self.kind == "float32" else np.float64
        totals = []
        for index, start in enumerate(self.base):
            base = total = number(start)
            for tree, values in enumerate(self.leaves(record)):
                term = number(values[index])
                if self.weights is not None:
                    term = ((base + term) - base) if self.around_start else term
                    term = term * number(self.weights[tree])
                total = total + term
            divided = total / number(self.denominator) if self.divide else total
            totals.append(float(divided))
        return totals if self.divide else [total / self.denominator for total in totals]


def _walk(node: Node, record: Record) -> tuple[float, ...]:
    while isinstance(node, Split):
        node = node.left if _goes_left(node.test, record[node.attribute]) else node.right
    return node.values


def _goes_left(test: AtMost | OneOf, value: Value) -> bool:
    if isinstance(test, OneOf):
        return value in test.values
    if value is None:
        return test.missing_left
    assert isinstance(value, int | float)
    return value <= test.cut  # Python compares integers and floats exactly


def with_bands(space: FeatureSpace, record: Record) -> Record:
    """Return a record with the bands of its derived attributes."""
    complete = dict(record)
    for attribute in space.attributes:
        if isinstance(attribute, Derived):
            value = record[attribute.source]
            assert isinstance(value, int | float)
            names = [name for name, low, high in attribute.bands if low <= value <= high]
            complete[attribute.name] = names[0]
    return complete


def all_records(space: FeatureSpace, record: Record) -> list[Record]:
    """List the counterparts of a record; the first sensitive attribute changes slowest."""
    attributes = [a for a in space.attributes if not isinstance(a, Derived) and a.sensitive]
    names = [attribute.name for attribute in attributes]
    return [
        with_bands(space, record | dict(zip(names, values, strict=True)))
        for values in product(*(oracle.values_of(attribute) for attribute in attributes))
    ]


def row_of(space: FeatureSpace, record: Record) -> Vector:
    """Encode a record."""
    columns: list[float] = []
    for attribute in space.attributes:
        if isinstance(attribute, Derived):
            columns += oracle.columns_of_band(attribute, record[attribute.source])
        else:
            columns += _columns(attribute, record[attribute.name])
    return np.array(columns)


def _columns(attribute: Attribute, value: Value) -> list[float]:
    if not isinstance(attribute, Real):
        return oracle.columns_of_value(attribute, value)
    number = float(attribute.low if value is None else value)
    return [number, float(value is None)] if attribute.missing else [number]


@dataclass(frozen=True, eq=False)
class Answers:
    """The correct answers about one record."""

    space: FeatureSpace
    ensemble: Ensemble
    rule: Rule
    record: Record

    @cached_property
    def records(self) -> list[Record]:
        """All counterparts."""
        return all_records(self.space, self.record)

    @cached_property
    def rows(self) -> Matrix:
        """All counterparts, encoded."""
        return np.stack([row_of(self.space, record) for record in self.records])

    @cached_property
    def own(self) -> int:
        """The place of the record itself."""
        return self.records.index(with_bands(self.space, self.record))

    def seen(self, values: list[Any]) -> list[Any]:
        """Return the scores that the rule reads: of two classes, often the difference."""
        return [values[1] - values[0]] if len(values) == self.rule.outputs + 1 else values

    @cached_property
    def scores(self) -> list[list[Fraction]]:
        """The exact scores of all counterparts."""
        return [self.seen(self.ensemble.scores(record)) for record in self.records]

    @cached_property
    def decisions(self) -> list[int]:
        """The decisions of all counterparts."""
        return [oracle.decision(self.rule, values) for values in self.scores]

    @cached_property
    def replayed(self) -> list[int]:
        """The decisions of all counterparts by the scores that the library adds."""
        totals = (self.seen(self.ensemble.replay(record)) for record in self.records)
        return [oracle.decision(self.rule, [Fraction(t) for t in values]) for values in totals]

    @property
    def span(self) -> Fraction:
        """The highest score minus the lowest."""
        values = [score[0] for score in self.scores]
        return max(values) - min(values)

    @property
    def fair(self) -> bool:
        """Whether all counterparts get the same decision, or scores within the tolerance."""
        if isinstance(self.rule, Tolerance):
            return self.span <= Fraction(self.rule.epsilon)
        return len(set(self.decisions)) == 1

    @property
    def worst_gap(self) -> Fraction | None:
        """The largest gap to a counterpart with another decision."""
        if isinstance(self.rule, Tolerance):
            return None if self.fair else self.span
        own = self.scores[self.own]
        others = zip(self.decisions, self.scores, strict=True)
        gaps = [
            oracle.margin(self.rule, own, theirs)
            for decision, theirs in others
            if decision != self.decisions[self.own]
        ]
        return max(gaps, default=None)

    def gap(self, person: Vector, counterpart: Vector) -> Fraction:
        """Return the gap between two encoded counterparts."""
        rows = [row.tolist() for row in self.rows]
        first, second = (rows.index(row.tolist()) for row in (person, counterpart))
        return oracle.margin(self.rule, self.scores[first], self.scores[second])

    def tally(self, weights: VoteWeights | None = None) -> list[int]:
        """Count the votes for each decision."""
        counts = [0] * self.rule.n_classes
        for assignment_id, decision in enumerate(self.decisions):
            counts[decision] += oracle.votes_of(assignment_id, weights)
        return counts

    def fair_decision(self, weights: VoteWeights | None = None) -> int | Fraction:
        """Return the majority, or the lower median of a regression."""
        if isinstance(self.rule, Tolerance):
            ordered = sorted(
                score[0]
                for assignment_id, score in enumerate(self.scores)
                for _ in range(oracle.votes_of(assignment_id, weights))
            )
            return ordered[(len(ordered) - 1) // 2]
        counts = self.tally(weights)
        if isinstance(self.rule, Argmax):
            return counts.index(max(counts))
        return int(counts[1] >= counts[0])
