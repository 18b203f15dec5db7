"""The protocol of scorers: exact real functions of an encoded person."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Literal, Protocol

import numpy as np

from feta.arrays import Array, Counts, Flags, Matrix, Vector
from feta.cells.cells import Cells
from feta.dyadic import Dyadic
from feta.relation.protocol import Relation
from feta.rounding import DIFFERENCE, Arithmetic
from feta.scorer.exact_scores import ExactScores
from feta.space.attribute import Attribute
from feta.space.feature_space import FeatureSpace

if TYPE_CHECKING:
    from feta.scorer.cell_bounds import CellBounds
    from feta.scorer.kernel import KernelRule, LatticeKernel, LineKernel
    from feta.scorer.program_encoder import LpSession, ProgramBounds, ProgramEncoder

# The side of a threshold.
Side = Literal["above", "below"]

# "counted": every answer was computed by the model's own code. "sampled": part of the
# preprocessing is unknown code that was tested on samples only.
Provenance = Literal["proved", "counted", "sampled"]

# The link between a score and the source's own prediction y: y itself, ln(y / (1 − y)) (of several
# classes the softmax), ln y, the quantile Φ⁻¹(y), y as a share of votes, which is a probability, or
# the share of the second class minus that of the first, 2y − 1.
Link = Literal["identity", "logit", "log", "probit", "share", "share_margin"]

# The links of a scorer whose prediction is a share of votes.
SHARES: tuple[Link, ...] = ("share", "share_margin")


def link_of_difference(link: Link) -> Link:
    """Return the link of the second score minus the first."""
    return "share_margin" if link == "share" else link


@dataclass(frozen=True, slots=True, eq=False)
class Enclosure:
    """Numbers with error bounds; nothing is known where an error bound is not finite."""

    values: Matrix  # (points, outputs)
    errors: Matrix

    def __getitem__(self, chosen: Counts) -> "Enclosure":
        return Enclosure(self.values[chosen], self.errors[chosen])


# What is wrong with an answer of a counted model.
DoubtKind = Literal["nondeterministic", "no answer", "budget"]


@dataclass(frozen=True, slots=True, eq=False)
class Doubt:
    """Why an answer of a counted model cannot be used."""

    kind: DoubtKind
    row: Vector  # the encoded person
    message: str  # the raw row and what the model answered


@dataclass(frozen=True, slots=True, eq=False)
class StoredScorer:
    """A scorer as plain arrays, from which the checker evaluates it without the scorer's code."""

    kind: str  # which arrays there are, and what they mean
    arrays: Mapping[str, Array]


class Points(Protocol):
    """Points of a scorer's domain, indexed from 0."""

    def __len__(self) -> int: ...

    def scores(self, arithmetic: Arithmetic, chosen: Counts | None = None) -> Enclosure:
        """Compute float64 scores; the error bound also covers the given arithmetic."""
        ...

    def exact_scores(self, chosen: Counts) -> ExactScores:
        """Compute exact scores, or intervals as narrow as the scorer can, (points, outputs)."""
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
    """A scorer on the counterparts of people; what does not depend on the person is cached.

    Every scorer evaluates counterparts. A scorer may also bound cells of them, pass itself to a
    kernel, or write programs; engines that need this ask first.
    """

    def counterparts(self, people: Matrix, assignment_ids: Counts) -> CounterpartPoints:
        """Return the counterparts of each person with these assignments."""
        ...

    @property
    def bounds_cells(self) -> bool:
        """Whether it can bound cells and write programs."""
        ...

    def over(
        self, person: Vector, cells: Cells, objective: "Objective", *, source_error: float
    ) -> "CellBounds":
        """Bound an objective over cells of a person's counterparts, rounded outward.

        `source_error` is the error that the source adds after its scores.
        """
        ...

    def influence(self, cells: Cells) -> Matrix:
        """Estimate how much each axis changes the scores in each cell, (cells, axes)."""
        ...

    def encoder(
        self,
        space: FeatureSpace,
        bounds: "ProgramBounds",
        lp_session: "Callable[[], LpSession]",
    ) -> "ProgramEncoder":
        """Return the scorer as mixed-integer programs."""
        ...

    def fits_kernel(self, space: FeatureSpace) -> bool:
        """Return whether a compiled kernel can search all assignments; this must be cheap."""
        ...

    def kernel(
        self, space: FeatureSpace, rule: "KernelRule", *, source_error: float, simd: bool
    ) -> "LatticeKernel":
        """Return the scorer and a rule in a compiled kernel."""
        ...

    def fits_line(self, space: FeatureSpace) -> bool:
        """Return whether a compiled kernel can search along one real-valued axis."""
        ...

    def line(self, *, source_error: float, simd: bool) -> "LineKernel":
        """Return the scorer in a compiled kernel with one real-valued axis."""
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
    def link(self) -> Link:
        """What the source's own prediction is, in terms of the score."""
        ...

    @property
    def provenance(self) -> Provenance:
        """How the function was read."""
        ...

    @property
    def description(self) -> str:
        """What the scorer consists of, in words, as the start of a sentence."""
        ...

    @property
    def output_limits(self) -> tuple[Vector, Vector]:
        """Bounds on each score that hold for all people; infinite if none is known."""
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

    def stored(self) -> StoredScorer:
        """Return all numbers that define the score."""
        ...

    def difference(self) -> "Scorer":
        """Return the scorer whose score is the second output minus the first."""
        ...

    def output(self, index: int) -> "Scorer":
        """Return the scorer of one output; ties at a threshold on it have no known side."""
        ...

    def with_link(self, link: Link) -> "Scorer":
        """Return the same scores, of which the source's prediction is another function."""
        ...

    def unscaled(
        self, space: FeatureSpace, centers: Sequence[float], scales: Sequence[float]
    ) -> "Scorer":
        """Return the scorer of columns x of a space, from one that expects (x − center) / scale.

        Raise if the scorer does not fit the space, or cannot be rescaled.
        """
        ...

    def over(self, space: FeatureSpace) -> "Scorer":
        """Return the scorer for the columns of a space; raise if it may overflow there."""
        ...

    def obstacle(self, column: int, low: float, high: float) -> str:
        """Return why a column must not leave the limits of the space; empty if it may."""
        ...

    def widened(self, limits: Mapping[int, tuple[float, float]], magnitudes: Vector) -> "Scorer":
        """Return the scorer for wider limits of columns; raise if the source may overflow there.

        `magnitudes` are the largest absolute values of all columns within the wider limits.
        """
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


def may_be_log_odds(scorer: Scorer) -> bool:
    """Return whether nothing is known about the scores, so that they may be log-odds.

    The outputs of a network before its sigmoid are such scores if a program applies the sigmoid.
    """
    return bool(getattr(scorer, "may_be_log_odds", False))


def has_scores(scorer: Scorer) -> bool:
    """Return whether gaps between scores mean something; False for a model of labels only."""
    return bool(getattr(scorer, "has_scores", True))


def has_exact_scores(scorer: Scorer) -> bool:
    """Return whether exact scores are numbers; those of smooth networks are narrow intervals."""
    return bool(getattr(scorer, "piecewise_linear", True))


def balls_of(scorer: Scorer) -> Callable[[Matrix, int], ExactScores] | None:
    """Return what encloses people's scores in balls of so many bits, if exact scores are balls."""
    balls: Callable[[Matrix, int], ExactScores] | None = getattr(scorer, "balls", None)
    return balls


def doubt_at(restricted: Restricted, person: Vector) -> Doubt | None:
    """Return why a counterpart of a person is undecided, if the model itself is the reason."""
    doubt: Callable[[Vector], Doubt | None] | None = getattr(restricted, "doubt", None)
    return None if doubt is None else doubt(person)


def may_depend(bounds: "CellBounds", axes: Sequence[int]) -> Flags:
    """Return the cells in which a score may depend on these axes; all, if nothing is known."""
    depends: Callable[[Sequence[int]], Flags] | None = getattr(bounds, "depends", None)
    return np.ones(len(bounds.cells), dtype=bool) if depends is None else depends(axes)


def gains(bounds: "CellBounds") -> Matrix | None:
    """Estimate how much each axis widens a bound, (cells, axes); None if it is not known."""
    widths: Callable[[], Matrix] | None = getattr(bounds, "gains", None)
    return None if widths is None else widths()


def guides(scorer: Scorer, people: Matrix, columns: Counts) -> Matrix | None:
    """Return numbers by which some columns first enter a score, in float64, (people, numbers).

    They guide a search and prove nothing. None if a scorer has none.
    """
    entries: Callable[[Matrix, Counts], Matrix] | None = getattr(scorer, "guides", None)
    return None if entries is None else entries(people, columns)


def confirm(scorer: Scorer) -> None:
    """Raise `ModelChanged` if a counted model was replaced since the last confirmation."""
    confirm_model: Callable[[], None] | None = getattr(scorer, "confirm", None)
    if confirm_model is not None:
        confirm_model()


def expect(scorer: Scorer, people: Matrix, relation: Relation) -> int | None:
    """State whose counterparts a counted model will evaluate; return the number of rows.

    Return None for other scorers, whose cost is not the number of rows.
    """
    rows: Callable[[Matrix, Relation], int] | None = getattr(scorer, "expect", None)
    return None if rows is None else rows(people, relation)


def prepare(restricted: Restricted, person: Vector) -> None:
    """Let a counted model evaluate a person's counterparts together, before single rows."""
    work: Callable[[Vector], None] | None = getattr(restricted, "prepare", None)
    if work is not None:
        work(person)
