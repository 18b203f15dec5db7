"""The protocol of scorers: exact real functions of an encoded person."""

from dataclasses import dataclass, field
from typing import Literal, Protocol

import numpy as np

from feta.arrays import Counts, Matrix, Vector
from feta.dyadic import Dyadic
from feta.relation.protocol import Relation
from feta.rounding import DIFFERENCE, Arithmetic
from feta.space.attribute import Attribute
from feta.space.feature_space import FeatureSpace

# The side of a threshold.
Side = Literal["above", "below"]

# "sampled": part of the preprocessing is unknown code that was tested on samples only.
Provenance = Literal["proved", "sampled"]


@dataclass(frozen=True, slots=True, eq=False)
class Enclosure:
    """Numbers with error bounds; nothing is known where an error bound is not finite."""

    values: Matrix  # (points, outputs)
    errors: Matrix

    def __getitem__(self, chosen: Counts) -> "Enclosure":
        return Enclosure(self.values[chosen], self.errors[chosen])


class Points(Protocol):
    """Points of a scorer's domain, indexed from 0."""

    def __len__(self) -> int: ...

    def scores(self, arithmetic: Arithmetic, chosen: Counts | None = None) -> Enclosure:
        """Compute float64 scores; the error bound also covers the given arithmetic."""
        ...

    def exact_scores(self, chosen: Counts) -> Dyadic:
        """Compute exact scores, (points, outputs)."""
        ...


class CounterpartPoints(Points, Protocol):
    """Counterparts with the same assignments of the first person, then of the second, and so on.

    The sensitive columns of `people` are never read and may contain anything.
    """

    @property
    def people(self) -> Matrix:
        """The people whose counterparts these are."""
        ...

    @property
    def assignment_ids(self) -> Counts:
        """The assignments of each person's counterparts."""
        ...


class Restricted(Protocol):
    """A scorer on the counterparts of people; what does not depend on the person is cached."""

    def counterparts(self, people: Matrix, assignment_ids: Counts) -> CounterpartPoints:
        """Return the counterparts of each person with these assignments."""
        ...


class Scorer(Protocol):
    """An exact real function of an encoded person, and what is known about its source."""

    @property
    def width(self) -> int:
        """The number of columns."""
        ...

    @property
    def outputs(self) -> int:
        """The number of scores."""
        ...

    @property
    def fingerprint(self) -> str:
        """A sha256 of the function."""
        ...

    @property
    def arithmetic(self) -> Arithmetic:
        """The arithmetic of the user's runtime, whose rounding may change decisions."""
        ...

    @property
    def source(self) -> str:
        """The number format of the user's runtime."""
        ...

    @property
    def equality(self) -> Side | None:
        """The side of ties in the source, if known."""
        ...

    @property
    def sigmoid(self) -> bool:
        """Whether the runtime compares σ(score) instead of the score."""
        ...

    @property
    def provenance(self) -> Provenance:
        """How the function was read."""
        ...

    @property
    def cost(self) -> int:
        """The largest number of float64 numbers per point that an evaluation needs at once."""
        ...

    def reads(self, attribute: Attribute, space: FeatureSpace) -> bool:
        """Return whether a score can depend on the columns of an attribute."""
        ...

    def __call__(self, people: Matrix) -> Matrix:
        """Compute scores in float64, (people, outputs), for display only."""
        ...

    def difference(self) -> "Scorer":
        """Return the scorer whose score is the second output minus the first."""
        ...

    def over(self, space: FeatureSpace) -> "Scorer":
        """Return the scorer for the columns of a space; raise if it may overflow there."""
        ...

    def points(self, people: Matrix) -> Points:
        """Return people as points, one per row."""
        ...

    def restrict(self, relation: Relation) -> Restricted:
        """Return the scorer on people's counterparts: only the sensitive columns vary."""
        ...


@dataclass(frozen=True, slots=True, eq=False)
class Objective:
    """The largest of directions · scores + offsets, or the smallest of them with `least`.

    A counterpart gets a different decision above `level` and the same decision below it. On the
    level, the rule's tie-breaking decides.
    """

    directions: Matrix  # (directions, outputs), entries −1, 0 and 1
    offsets: Dyadic = field(default_factory=lambda: Dyadic.of(np.zeros(1)))
    least: bool = False
    level: float = 0.0

    def range(self, scores: Enclosure) -> tuple[Vector, Vector, Vector]:
        """Return a lower bound, an upper bound and an estimate of the objective at each point."""
        sizes = np.abs(self.directions).T
        offsets = self.offsets.floats()
        middles = scores.values @ self.directions.T + offsets
        size = np.abs(scores.values) @ sizes + np.abs(offsets)
        with np.errstate(invalid="ignore"):  # inf − inf and 0 · inf where nothing is known
            radius = scores.errors @ sizes * (1 + DIFFERENCE) + DIFFERENCE * size
            lows = np.nan_to_num(middles - radius, nan=-np.inf, posinf=np.inf, neginf=-np.inf)
            highs = np.nan_to_num(middles + radius, nan=np.inf, posinf=np.inf, neginf=-np.inf)
        if self.least:
            return lows.min(axis=1), highs.min(axis=1), middles.min(axis=1)
        return lows.max(axis=1), highs.max(axis=1), middles.max(axis=1)
