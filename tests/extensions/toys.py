"""Scorers, a relation and a report section, written against the protocols alone."""

import hashlib
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np

from feta.arrays import Counts, Flags, Matrix, Vector
from feta.auditing.report_data import ReportData
from feta.auditing.section import SectionContent
from feta.dyadic import Dyadic
from feta.relation.protocol import Relation
from feta.rounding import FLOAT64, Arithmetic
from feta.scorer.exact_scores import ExactScores
from feta.scorer.protocol import (
    Enclosure,
    Link,
    Points,
    Provenance,
    Restricted,
    Side,
    StoredScorer,
)
from feta.scorer.raw_columns import check_unscaled
from feta.scorer.restricted_rows import RestrictedRows
from feta.space.attribute import Attribute
from feta.space.axis import Axis
from feta.space.feature_space import FeatureSpace


@dataclass(frozen=True)
class Square:
    """The score (w · x)² − c: exact in integers, but not piecewise-linear."""

    weights: tuple[float, ...]
    constant: float
    width: int = 0
    outputs: int = 1
    source: str = "float64"
    equality: Side | None = None
    link: Link = "identity"
    description: str = "The square of a sum"
    provenance: Provenance = "proved"
    cost: int = 1
    arithmetic: Arithmetic = FLOAT64

    @property
    def fingerprint(self) -> str:
        return hashlib.sha256(repr((self.weights, self.constant)).encode()).hexdigest()

    def __call__(self, people: Matrix) -> Matrix:
        return ((people @ np.array(self.weights)) ** 2 - self.constant)[:, None]

    def difference(self) -> "Square":
        raise AssertionError("it has one output")

    @property
    def output_limits(self) -> tuple[Vector, Vector]:
        return np.array([-self.constant]), np.array([np.inf])

    def output(self, index: int) -> "Square":
        raise AssertionError(index)  # it has one output

    def with_link(self, link: Link) -> "Square":
        return replace(self, link=link)

    def unscaled(
        self, space: FeatureSpace, centers: Sequence[float], scales: Sequence[float]
    ) -> "Square":
        check_unscaled(space, centers, scales)
        return self

    def over(self, space: FeatureSpace) -> "Square":
        assert len(self.weights) == space.width
        return replace(self, width=space.width)

    def obstacle(self, column: int, low: float, high: float) -> str:
        del column, low, high
        return "the formula is known only within the limits"

    def widened(self, limits: Mapping[int, tuple[float, float]], magnitudes: Vector) -> "Square":
        raise AssertionError(limits, magnitudes)  # every column has an obstacle

    def stored(self) -> StoredScorer:
        arrays = {"weights": np.array(self.weights), "constant": np.array(self.constant)}
        return StoredScorer("square", arrays)

    def reads(self, attribute: Attribute, space: FeatureSpace) -> bool:
        return bool(np.any(np.array(self.weights)[space.columns_of(attribute)]))

    def points(self, people: Matrix) -> Points:
        return SquarePoints(self, people)

    def restrict(self, relation: Relation) -> Restricted:
        return RestrictedRows(self, relation)


@dataclass(frozen=True, eq=False)
class SquarePoints:
    scorer: Square
    people: Matrix

    def __len__(self) -> int:
        return len(self.people)

    def scores(self, arithmetic: Arithmetic, chosen: Counts | None = None) -> Enclosure:
        del arithmetic
        people = self.people if chosen is None else self.people[chosen]
        values = self.scorer(people)
        size = (np.abs(people) @ np.abs(self.scorer.weights)) ** 2 + abs(self.scorer.constant)
        return Enclosure(values, (size * 1e-12)[:, None])

    def exact_scores(self, chosen: Counts) -> ExactScores:
        products = Dyadic.of(self.people[chosen]) @ Dyadic.of(np.array([self.scorer.weights])).mT
        return ExactScores(products * products + Dyadic.of(np.array([-self.scorer.constant])))


@dataclass(frozen=True)
class Blurred(Square):
    """The score w · x − c, known only to within a radius, as for a smooth function."""

    radius: float = 2.0**-40

    def __call__(self, people: Matrix) -> Matrix:
        return (people @ np.array(self.weights) - self.constant)[:, None]

    def points(self, people: Matrix) -> Points:
        return BlurredPoints(self, people)


@dataclass(frozen=True, eq=False)
class BlurredPoints:
    scorer: Blurred
    people: Matrix

    def __len__(self) -> int:
        return len(self.people)

    def scores(self, arithmetic: Arithmetic, chosen: Counts | None = None) -> Enclosure:
        del arithmetic
        people = self.people if chosen is None else self.people[chosen]
        values = self.scorer(people)
        return Enclosure(values, np.full_like(values, max(1e-6, self.scorer.radius)))

    def exact_scores(self, chosen: Counts) -> ExactScores:
        products = Dyadic.of(self.people[chosen]) @ Dyadic.of(np.array([self.scorer.weights])).mT
        radii = Dyadic.of(np.full((len(chosen), 1), self.scorer.radius))
        return ExactScores(products + Dyadic.of(np.array([-self.scorer.constant])), radii)


@dataclass(frozen=True, eq=False)
class Grown:
    """Only counterparts with at least the age `low` are plausible; others exist for nobody."""

    low: int
    space: FeatureSpace | None = None

    def over(self, space: FeatureSpace) -> "Grown":
        return replace(self, space=space)

    @property
    def _space(self) -> FeatureSpace:
        assert self.space is not None
        return self.space

    @property
    def fingerprint(self) -> str:
        return f"grown {self.low}"

    @property
    def axes(self) -> tuple[Axis, ...]:
        return self._space.axes

    @property
    def finite(self) -> bool:
        return self._space.finite

    @property
    def complete(self) -> bool:
        return False

    @property
    def enclosing(self) -> None:
        return None

    @property
    def has_key(self) -> bool:
        return True

    def local(self, person: Vector) -> None:
        del person

    @property
    def moving(self) -> Flags:
        return self._space.sensitive_columns

    @property
    def separated(self) -> None:
        return None

    @property
    def reads_sensitive(self) -> bool:
        return False

    def obstacle(self, column: str) -> str:
        del column
        return ""

    def reasons(self, person: Vector, counterpart: Vector) -> tuple[str, ...]:
        del person, counterpart
        return ()

    @property
    def counts_all_if_none(self) -> bool:
        return False

    @property
    def adjective(self) -> str:
        return "grown"

    @property
    def sentences(self) -> tuple[str, ...]:
        return (f"Counterparts are {self.low} or older.",)

    @property
    def stored(self) -> None:
        return None

    @property
    def size(self) -> int:
        return self._space.lattice.size

    def assignment_ids(self, person: Vector) -> Counts:
        rows = np.repeat(person[None, :], self.size, axis=0)
        ages = self._space.lattice.moved(rows, np.arange(self.size))[:, self._age]
        return np.flatnonzero(ages >= self.low)

    @property
    def _age(self) -> int:
        return self._space.columns_of(self._space.attribute("age")).start

    def count(self, person: Vector) -> int:
        return len(self.assignment_ids(person))

    def counterpart(self, person: Vector, assignment_id: int) -> Vector:
        return self._space.lattice.counterpart(person, assignment_id)

    def moved(self, person: Vector, assignment_ids: Counts) -> Matrix:
        rows = np.repeat(person[None, :], len(assignment_ids), axis=0)
        return self._space.lattice.moved(rows, assignment_ids)

    def combinations(self, assignment_ids: Counts) -> Counts:
        return assignment_ids

    def counterparts(self, person: Vector) -> Iterator[Matrix]:
        ids = self.assignment_ids(person)
        yield self._space.lattice.moved(np.repeat(person[None, :], len(ids), axis=0), ids)

    def keys(self, people: Matrix) -> list[bytes]:
        shared = people[:, ~self._space.sensitive_columns] + 0.0
        return [row.tobytes() for row in shared]

    def admits(self, people: Matrix) -> Flags:
        return np.asarray(people[:, self._age] >= self.low)

    def related(self, person: Vector, other: Vector) -> bool:
        pair = np.stack([person, other])
        first, second = self.keys(pair)
        return first == second and bool(self.admits(pair).all())


@dataclass(frozen=True)
class Oldest:
    """A report section: how many people of the table are unfair, and a table with one row."""

    title: str = "Unfair <people>"

    def content(self, report: ReportData) -> SectionContent | None:
        unfair = report.summary.statuses["unfair"]
        if not unfair:
            return None
        return SectionContent((f"{unfair} people & more",), ("status", "people"), (("<b>", "7"),))
