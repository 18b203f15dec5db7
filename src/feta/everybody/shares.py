"""Shares of people in boxes, as exact fractions."""

from bisect import bisect_right
from dataclasses import dataclass
from fractions import Fraction
from itertools import accumulate, product
from math import prod

import numpy as np

from feta.arrays import Counts, Matrix, Vector
from feta.everybody.population import Column, Independent, Listed, Span
from feta.relation.all_sensitive_values import AllSensitiveValues
from feta.space.attribute import OTHER, Attribute, Categorical, Derived, Integer, Levels, Real
from feta.space.axis import Axis
from feta.space.feature_space import FeatureSpace

# A name that no column of a table has.
FLAG = "\0missing"

# Real-valued columns that may be missing: each doubles the boxes to start with.
MOST_MISSING = 6


@dataclass(frozen=True, slots=True)
class Weights:
    """The share of each range along an axis: sums of weights, or lengths."""

    ends: tuple[int, ...] | None  # cumulative weights of a finite axis, from 0
    low: Fraction = Fraction(0)
    high: Fraction = Fraction(1)

    def of(self, low: float, high: float) -> Fraction:
        """Return the share of a range, both ends included."""
        if self.ends is not None:
            return Fraction(self.ends[int(high) + 1] - self.ends[int(low)], self.ends[-1])
        if self.low == self.high:
            return Fraction(1)
        return (Fraction(high) - Fraction(low)) / (self.high - self.low)

    def each(self, low: float, high: float) -> list[int]:
        """Return the weight of each value of a range of a finite axis."""
        assert self.ends is not None
        return [self.ends[i + 1] - self.ends[i] for i in range(int(low), int(high) + 1)]


@dataclass(frozen=True, slots=True, eq=False)
class Stratum:
    """People for whom the same real-valued columns are missing: a box over all other columns."""

    relation: AllSensitiveValues  # with every column as an axis
    person: Vector  # the columns that are no axis
    shared: tuple[int, ...]  # axes on which counterparts agree
    weights: dict[int, Weights]  # of these axes
    lower: Vector
    upper: Vector
    share: Fraction

    @property
    def axes(self) -> tuple[Axis, ...]:
        """All columns but those that are missing."""
        return self.relation.axes

    def share_of(self, lower: Vector, upper: Vector) -> Fraction:
        """Return the share of the people in a box."""
        ranges = (weights.of(lower[axis], upper[axis]) for axis, weights in self.weights.items())
        return self.share * prod(ranges, start=Fraction(1))

    def people(
        self, lower: Vector, upper: Vector, most: int
    ) -> tuple[Matrix, list[Fraction]] | None:
        """List the people of a box and their shares; None if there are more than `most`."""
        axes = [self.axes[index] for index in self.shared]
        ranges = [(lower[index], upper[index]) for index in self.shared]
        fixed = [axis.real for axis in axes]
        if any(real and low < high for real, (low, high) in zip(fixed, ranges, strict=True)):
            return None
        if prod(high - low + 1 for low, high in ranges) > most:
            return None
        values: list[list[tuple[float, Fraction]]] = []
        for index, (low, high) in zip(self.shared, ranges, strict=True):
            weights = self.weights[index]
            if weights.ends is None:
                values.append([(low, weights.of(low, high))])
                continue
            each = [Fraction(one, weights.ends[-1]) for one in weights.each(low, high)]
            values.append([(low + i, one) for i, one in enumerate(each) if one])
        people, shares = [], []
        for combination in product(*values):
            people.append([value for value, _ in combination])
            shares.append(self.share * prod((one for _, one in combination), start=Fraction(1)))
        coordinates = np.zeros((len(people), len(self.axes)))
        coordinates[:] = [axis.ends[0] for axis in self.axes]
        if self.shared:
            coordinates[:, list(self.shared)] = people
        return self.at(coordinates), shares

    def member(self, lower: Vector, upper: Vector) -> Vector:
        """Return somebody in a box who has a share."""
        coordinates = lower.copy()
        for index, weights in self.weights.items():
            if weights.ends is not None:
                each = weights.each(lower[index], upper[index])
                coordinates[index] += next(i for i, one in enumerate(each) if one)
        return np.asarray(self.at(coordinates[None, :])[0])

    def draw(self, rng: np.random.Generator, axis: int, low: float, high: float) -> float:
        """Draw a coordinate of an axis in a range, by weight."""
        if self.axes[axis].real:
            return float(np.clip(rng.uniform(low, high), low, high))
        ends = self.weights[axis].ends if axis in self.weights else None
        if ends is None:  # a sensitive axis
            return float(rng.integers(int(low), int(high) + 1))
        return float(bisect_right(ends, rng.integers(ends[int(low)], ends[int(high) + 1])) - 1)

    def at(self, coordinates: Matrix) -> Matrix:
        """Return the people at these coordinates of the axes."""
        rows = np.repeat(self.person[None, :], len(coordinates), axis=0)
        for index, axis in enumerate(self.axes):
            rows[:, list(axis.columns)] = axis.codes(coordinates[:, index])
        return rows


def strata(population: Independent) -> list[Stratum] | str:
    """Divide a population into boxes, or return why this is impossible."""
    if population.linked:
        columns = ", ".join(map(repr, population.linked))
        return (
            f"the condition is not one interval or list of values for each column ({columns}), so "
            "shares of boxes are unknown"
        )
    spans = {c.attribute.name for c in population.columns if isinstance(c, Span)}
    for attribute in population.space.attributes:
        if isinstance(attribute, Derived) and attribute.source in spans:
            return f"the real-valued column {attribute.source!r} has bands"
    absent = [
        column.attribute.name
        for column in population.columns
        if isinstance(column, Span) and column.missing
    ]
    if len(absent) > MOST_MISSING:
        return f"{len(absent)} real-valued columns may be missing; at most {MOST_MISSING} may be"
    choices = product((False, True), repeat=len(absent))
    return [
        _stratum(population, {name for name, gone in zip(absent, chosen, strict=True) if gone})
        for chosen in choices
    ]


def _stratum(population: Independent, missing: set[str]) -> Stratum:
    space = population.space
    columns = {column.attribute.name: column for column in population.columns}
    attributes: list[Attribute] = []
    share = Fraction(1)
    person = np.zeros(space.width)
    for attribute in space.attributes:
        if isinstance(attribute, Derived):
            attributes.append(attribute)
            continue
        column = columns[attribute.name]
        attributes += _axis_attributes(column, missing=attribute.name in missing)
        if isinstance(column, Span) and isinstance(attribute, Real) and attribute.missing:
            gone = attribute.name in missing
            share *= column.missing if gone else 1 - column.missing
            first = space.columns_of(attribute).start
            person[first], person[first + 1] = attribute.lowest, float(gone)
    wide = FeatureSpace(tuple(attributes))
    relation = AllSensitiveValues(wide)
    axes = relation.axes
    weights: dict[int, Weights] = {}
    lower, upper = (np.array([axis.ends[end] for axis in axes]) for end in (0, 1))
    for index, axis in enumerate(axes):
        column = columns[axis.attribute.name]
        if space.is_sensitive(space.attribute(axis.attribute.name)):
            continue
        weights[index] = _weights(column, axis)
        if isinstance(column, Span):
            lower[index], upper[index] = column.low, column.high
    shared = tuple(weights)
    return Stratum(relation, person, shared, weights, lower, upper, share)


def _axis_attributes(column: Column, *, missing: bool) -> list[Attribute]:
    """Return an attribute with the same columns, every value of which is on an axis."""
    attribute = column.attribute
    name = attribute.name
    match attribute:
        case Categorical(values=values, other=True, missing=may):
            return [Categorical(name, (*values, OTHER), sensitive=True, missing=may)]
        case Categorical(values=values, missing=may):
            return [Categorical(name, values, sensitive=True, missing=may)]
        case Integer(low=low, high=high, missing=may):
            return [Integer(name, low, high, sensitive=True, missing=may)]
        case Levels(numbers=numbers, missing=may):
            return [Levels(name, numbers, sensitive=True, missing=may)]
        case Real(low=low, high=high, missing=may):
            if isinstance(column, Listed):
                present = column.codes[:, 1] == 0.0 if may else np.ones(len(column.codes), bool)
                # A missing cell is encoded with the lowest number, so that must be the same one.
                numbers = tuple(sorted({*column.codes[present, 0].tolist(), low}))
                return [Levels(name, numbers, sensitive=True, missing=may)]
            flag: list[Attribute] = [Integer(name + FLAG, 0, 1)] if may else []
            if missing:
                return [Levels(name, (low,)), *flag]
            return [Real(name, low, high, sensitive=True), *flag]
    raise AssertionError(f"{name} is derived")


def _weights(column: Column, axis: Axis) -> Weights:
    if isinstance(column, Span):
        return Weights(None, Fraction(column.low), Fraction(column.high))
    each = [0] * len(axis)
    codes = np.zeros((len(column.codes), max(axis.columns) + 1))
    codes[:, list(axis.columns[: axis.attribute.width])] = column.codes
    indices: Counts = axis.indices(codes)
    for index, weight in zip(indices.tolist(), column.weights, strict=True):
        each[index] += weight
    return Weights((0, *accumulate(each)))
