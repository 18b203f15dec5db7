"""Populations: who counts, and how often. Every share belongs to one of them."""

import hashlib
from dataclasses import dataclass, replace
from fractions import Fraction
from typing import Literal, Protocol

import numpy as np

from feta.arrays import Counts, Flags, Matrix, frozen
from feta.conditions.condition import AllOf, Compared, Condition
from feta.conditions.evaluate import attribute_cells, evaluate
from feta.errors import SchemaError
from feta.everybody.where import Where, by_column
from feta.space.attribute import Attribute, Derived, Finite, Real
from feta.space.feature_space import FeatureSpace
from feta.space.sampling import MISSING_SHARE

# The share of missing cells of a real-valued column among uniform people.
MISSING = Fraction(str(MISSING_SHARE))

# Values that one column may have in a table of weights.
LONGEST = 2**22

# Candidates that are drawn before a condition counts as one that nobody meets.
MOST_CANDIDATES = 2**20

Kind = Literal["uniform", "marginals", "rows"]


class Population(Protocol):
    """People of a space, each with a share."""

    @property
    def name(self) -> str:
        """The population in words, for every sentence about a share."""
        ...

    @property
    def digest(self) -> str:
        """What distinguishes it from other populations."""
        ...

    @property
    def where(self) -> Where:
        """The condition that its people meet."""
        ...

    def draw(self, rng: np.random.Generator, n_people: int) -> Matrix:
        """Draw people independently."""
        ...


@dataclass(frozen=True, slots=True, eq=False)
class Listed:
    """A column with listed values, as the codes of an attribute, and the weight of each value."""

    attribute: Attribute
    codes: Matrix
    weights: tuple[int, ...]

    @property
    def total(self) -> int:
        """The sum of the weights."""
        return sum(self.weights)

    def draw(self, rng: np.random.Generator, n_people: int) -> Matrix:
        """Draw values by their weights, exactly."""
        ends = np.cumsum(np.array(self.weights, dtype=np.int64))
        return self.codes[np.searchsorted(ends, rng.integers(0, ends[-1], n_people), side="right")]


@dataclass(frozen=True, slots=True)
class Span:
    """A real-valued column: an interval of numbers, and the share of missing cells."""

    attribute: Real
    low: float
    high: float
    missing: Fraction

    def draw(self, rng: np.random.Generator, n_people: int) -> Matrix:
        """Draw numbers: 53 random bits between the ends, rounded to float64."""
        share = rng.random(n_people)
        numbers = np.clip(self.low * (1 - share) + self.high * share, self.low, self.high)
        codes = numbers[:, None]
        if self.attribute.missing:
            absent = rng.integers(0, self.missing.denominator, n_people) < self.missing.numerator
            numbers = np.where(absent, self.attribute.lowest, numbers)
            codes = np.stack([numbers, absent.astype(np.float64)], axis=1)
        return codes


Column = Listed | Span


@dataclass(frozen=True, slots=True, eq=False)
class Independent:
    """People whose columns are independent of each other: uniform, or with a table's shares."""

    space: FeatureSpace
    kind: Kind
    columns: tuple[Column, ...]  # one per attribute that is not derived
    where: Where
    linked: tuple[str, ...] = ()  # columns of a condition that links several of them

    @property
    def name(self) -> str:
        """The population in words."""
        people = "all people whom the schema allows"
        if self.where.text:
            people += f" where {self.where.text}"
        if self.kind == "uniform":
            return f"{people}, all values counted equally"
        return f"{people}, each column as often as in the table, independently"

    @property
    def digest(self) -> str:
        """What distinguishes it from other populations."""
        parts = [self.kind, self.space.fingerprint, self.where.text]
        parts += [_column_text(column) for column in self.columns]
        return hashlib.sha256("\n".join(parts).encode()).hexdigest()

    def draw(self, rng: np.random.Generator, n_people: int) -> Matrix:
        """Draw people independently; those who do not meet the condition are drawn again."""
        if self.where.condition is None and not _has_bands_of_reals(self.space):
            return self._draw(rng, n_people)
        found: list[Matrix] = []
        n_found = n_candidates = 0
        while n_found < n_people:
            people = self._draw(rng, max(n_people, 1024))
            people = people[self.where.holds(self.space, people) & _in_bands(self.space, people)]
            found.append(people)
            n_found += len(people)
            n_candidates += max(n_people, 1024)
            if not n_found and n_candidates >= MOST_CANDIDATES:
                raise SchemaError(
                    f"nobody found: got the condition {self.where.text!r}, which none of "
                    f"{n_candidates:,} random people meets; expected a condition that some people "
                    "meet; conditions on single columns, joined by 'and', are drawn directly"
                )
        return np.concatenate(found)[:n_people]

    def _draw(self, rng: np.random.Generator, n_people: int) -> Matrix:
        people = np.zeros((n_people, self.space.width))
        for column in self.columns:
            people[:, self.space.columns_of(column.attribute)] = column.draw(rng, n_people)
        return with_derived(self.space, people)


@dataclass(frozen=True, slots=True, eq=False)
class Rows:
    """The people of a table, each row once."""

    space: FeatureSpace
    people: Matrix  # different people, those who meet the condition
    weights: Counts  # how many rows each of them has
    where: Where

    @property
    def name(self) -> str:
        """The population in words."""
        where = f" where {self.where.text}" if self.where.text else ""
        return f"the {int(self.weights.sum()):,} people of the table{where}"

    @property
    def digest(self) -> str:
        """What distinguishes it from other populations."""
        text = f"rows\n{self.space.fingerprint}\n{self.where.text}\n".encode()
        return hashlib.sha256(text + self.people.tobytes() + self.weights.tobytes()).hexdigest()

    def draw(self, rng: np.random.Generator, n_people: int) -> Matrix:
        """Draw rows independently, with replacement."""
        ends = np.cumsum(self.weights)
        return self.people[np.searchsorted(ends, rng.integers(0, ends[-1], n_people), side="right")]


def uniform(space: FeatureSpace, where: Where) -> Independent:
    """Return everybody: all values of a column are equally frequent."""
    columns = [
        _every_value(attribute)
        for attribute in space.attributes
        if not isinstance(attribute, Derived)
    ]
    return _restricted(Independent(space, "uniform", tuple(columns), where))


def marginals(space: FeatureSpace, people: Matrix, where: Where) -> Independent:
    """Return people whose columns have the shares of a table, independently of each other."""
    _check_people(people)
    columns = []
    for attribute in space.attributes:
        if not isinstance(attribute, Derived):
            codes = people[:, space.columns_of(attribute)] + 0.0  # no −0.0
            values, counts = np.unique(codes, axis=0, return_counts=True)
            columns.append(Listed(attribute, frozen(values), tuple(counts.tolist())))
    return _restricted(Independent(space, "marginals", tuple(columns), where))


def rows(space: FeatureSpace, people: Matrix, where: Where) -> Rows:
    """Return the people of a table who meet a condition."""
    _check_people(people)
    chosen = people[where.holds(space, people)] + 0.0
    if not len(chosen):
        raise SchemaError(
            f"nobody found: got the condition {where.text!r}, which no row of the table meets; "
            "expected a condition that some rows meet"
        )
    values, counts = np.unique(chosen, axis=0, return_counts=True)
    return Rows(space, frozen(values), counts.astype(np.int64), where)


def with_derived(space: FeatureSpace, people: Matrix) -> Matrix:
    """Fill in the columns of derived attributes."""
    for attribute in space.attributes:
        if isinstance(attribute, Derived):
            source = people[:, space.columns_of(space.attribute(attribute.source)).start]
            people[:, space.columns_of(attribute)] = attribute.derive(source)
    return people


def _has_bands_of_reals(space: FeatureSpace) -> bool:
    return any(
        isinstance(attribute, Derived) and isinstance(space.attribute(attribute.source), Real)
        for attribute in space.attributes
    )


def _in_bands(space: FeatureSpace, people: Matrix) -> Flags:
    """Flag the people of whom each derived attribute has exactly one band."""
    inside = np.ones(len(people), dtype=bool)
    for attribute in space.attributes:
        if isinstance(attribute, Derived):
            inside &= people[:, space.columns_of(attribute)].sum(axis=1) == 1.0
    return inside


def _check_people(people: Matrix) -> None:
    if not len(people):
        raise SchemaError("no people: got an empty table; expected at least one row")


def _every_value(attribute: Finite | Real) -> Column:
    if isinstance(attribute, Real):
        missing = MISSING if attribute.missing else Fraction(0)
        return Span(attribute, attribute.low, attribute.high, missing)
    if attribute.n_values > LONGEST:
        raise SchemaError(
            f"the column {attribute.name!r} is too long: got {attribute.n_values:,} values; "
            f"expected at most {LONGEST:,}; narrow its limits, or declare it a real number"
        )
    codes = attribute.codes(np.arange(attribute.n_values))
    return Listed(attribute, frozen(codes), (1,) * attribute.n_values)


def _restricted(population: Independent) -> Independent:
    """Apply the parts of a condition that read one column; name the columns of the others."""
    space = population.space
    parts, linked = by_column(population.where, space)
    columns, more = [], set(linked)
    for column in population.columns:
        part = parts.get(column.attribute.name)
        restricted: Column | None = column
        if part is not None and isinstance(column, Listed):
            restricted = _listed_where(column, part, space)
        elif part is not None and isinstance(column, Span):
            restricted = _span_where(column, part)
        if restricted is None:
            more.add(column.attribute.name)
        columns.append(restricted or column)
    for column in columns:
        if isinstance(column, Listed) and not column.total:
            raise SchemaError(
                f"nobody found: got the condition {population.where.text!r}, which no value of "
                f"{column.attribute.name!r} meets; expected a condition that some people meet"
            )
    return replace(population, columns=tuple(columns), linked=tuple(sorted(more)))


def _listed_where(column: Listed, condition: Condition, space: FeatureSpace) -> Listed:
    people = np.zeros((len(column.codes), space.width))
    people[:, space.columns_of(column.attribute)] = column.codes
    holds = _holds(condition, space, with_derived(space, people), column.attribute.name)
    weights = tuple(w if hold else 0 for w, hold in zip(column.weights, holds, strict=True))
    return replace(column, weights=weights)


def _holds(condition: Condition, space: FeatureSpace, people: Matrix, name: str) -> Flags:
    cells = {
        attribute.name: attribute_cells(attribute, people[:, space.columns_of(attribute)])
        for attribute in space.attributes
        if attribute.name == name or getattr(attribute, "source", None) == name
    }
    return np.asarray(np.broadcast_to(evaluate(condition, cells).true, (len(people),)))


def _span_where(column: Span, condition: Condition) -> Span | None:
    """Return the interval of a condition on a real number; None if it is no interval.

    Its ends count as inside: single numbers have no share.
    """
    assert isinstance(condition, AllOf)
    low, high = Fraction(column.low), Fraction(column.high)
    for part in condition.parts:
        edge = _edge(part, column.attribute.name)
        if edge is None:
            return None
        at, upper = edge
        low, high = (low, min(high, at)) if upper else (max(low, at), high)
    if low >= high:
        return None
    return replace(column, low=float(low), high=float(high), missing=Fraction(0))


def _edge(part: Condition, name: str) -> tuple[Fraction, bool] | None:
    """Return the limit that a comparison sets, and whether it is an upper one.

    A limit between two float64 numbers is none: people are drawn and compared exactly instead.
    """
    if not isinstance(part, Compared) or part.operator in ("==", "!="):
        return None
    if len(part.total.terms) != 1 or part.total.terms[0][0] != name:
        return None
    coefficient = part.total.terms[0][1]
    at = -part.total.constant / coefficient
    try:
        exact = Fraction(float(at)) == at
    except OverflowError:
        return None
    return (at, (part.operator in ("<", "<=")) == (coefficient > 0)) if exact else None


def _column_text(column: Column) -> str:
    if isinstance(column, Span):
        return f"{column.attribute.name} {column.low!r} {column.high!r} {column.missing}"
    codes = hashlib.sha256(column.codes.tobytes()).hexdigest()
    weights = hashlib.sha256(repr(column.weights).encode()).hexdigest()
    return f"{column.attribute.name} {codes} {weights}"
