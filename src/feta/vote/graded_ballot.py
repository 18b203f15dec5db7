"""The graded ballot: a mean of probabilities that integers decide.

A probability is a transcendental function of a score, so a mean of probabilities cannot be compared
exactly with a cut-off. On a graded ballot, each counterpart has a grade: a step function of its
score, with stored thresholds and integer grades. The sum of grades is an integer.
"""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from fractions import Fraction
from functools import cache, lru_cache
from itertools import pairwise
from math import ceil, floor
from typing import Self

import numpy as np

from feta.arrays import Counts, Vector, frozen
from feta.errors import SchemaError
from feta.scorer.exact_scores import ExactScores
from feta.scorer.protocol import CounterpartPoints, Link, Side
from feta.vote.probability import score_of
from feta.vote.totals import ExactTotals, Steps, Totals, score_range

# The grade of probability 1.
UNIT = 2**20

# Cells between the thresholds of a ballot that is not fitted.
EVEN_CELLS = 1024

# Ballots with different cut-offs that are kept in memory.
MAX_CACHED = 64


@dataclass(frozen=True, slots=True)
class Edge:
    """A cut-off as a threshold of a ballot: all grades are on the sides of their scores."""

    score: float  # the lowest on the upper side
    probability: float
    favors: Side = "above"  # a mean that equals the probability is on this side

    def among(self, cells: Mapping[float, float]) -> dict[float, float]:
        """Return the probabilities by score with this one, without those that contradict it."""
        before = {s: p for s, p in cells.items() if s < self.score and p < self.probability}
        after = {s: p for s, p in cells.items() if s > self.score and p > self.probability}
        return before | {self.score: self.probability} | after

    def separated(self, thresholds: Vector, grades: Counts) -> Counts:
        """Return the grades, those below the cut-off lower than it, and those above higher."""
        cut = Fraction(self.probability) * UNIT
        below = ceil(cut) - 1 if self.favors == "above" else floor(cut)
        upper = np.concatenate([[-np.inf], thresholds]) >= self.score
        return np.where(upper, np.maximum(grades, below + 1), np.minimum(grades, below))


@dataclass(frozen=True, slots=True, eq=False)
class GradedBallot:
    """Thresholds on the score, ascending, and the grades of the cells between them."""

    thresholds: Vector
    grades: Counts  # one more than thresholds, ascending, from 0 to UNIT

    unit = UNIT

    def __post_init__(self) -> None:
        thresholds = frozen(np.asarray(self.thresholds, dtype=np.float64))
        grades = np.array(self.grades)
        valid = (
            thresholds.ndim == 1
            and len(thresholds) > 0
            and bool(np.isfinite(thresholds).all())
            and bool((np.diff(thresholds) > 0).all())
            and grades.dtype.kind in "iu"
            and grades.shape == (len(thresholds) + 1,)
            and bool((np.diff(grades) >= 0).all())
            and bool(((grades >= 0) & (grades <= UNIT)).all())
        )
        if not valid:
            raise SchemaError(
                f"invalid ballot: got {len(self.thresholds)} thresholds and {len(self.grades)} "
                f"grades; expected ascending thresholds, and one grade more, from 0 to {UNIT}, "
                "ascending; fit the votes again"
            )
        grades = grades.astype(np.int64)
        grades.setflags(write=False)
        object.__setattr__(self, "thresholds", thresholds)
        object.__setattr__(self, "grades", grades)

    @classmethod
    @lru_cache(maxsize=MAX_CACHED)
    def even(cls, link: Link, edge: Edge | None = None) -> Self:
        """Return the ballot whose cells have the same width as probabilities, and an edge."""
        return cls._of(_even_cells(link), edge)

    @classmethod
    def at(cls, link: Link, probabilities: Iterable[float], edge: Edge | None = None) -> Self:
        """Return the ballot with thresholds at these probabilities; a grade is a cell's middle."""
        return cls._of(_cells(link, probabilities), edge)

    @classmethod
    def _of(cls, cells: Mapping[float, float], edge: Edge | None) -> Self:
        """Return the ballot with these probabilities, by the score at which each is reached."""
        if edge is not None:
            cells = edge.among(cells)
        edges = [0.0, *cells.values(), 1.0]
        middles = [
            round(UNIT * (Fraction(low) + Fraction(high)) / 2) for low, high in pairwise(edges)
        ]
        thresholds, grades = np.array(list(cells)), np.array(middles, dtype=np.int64)
        return cls(thresholds, grades if edge is None else edge.separated(thresholds, grades))

    @property
    def steps(self) -> Steps:
        """Thresholds and grades."""
        return self.thresholds, self.grades

    def totals(self, points: CounterpartPoints, votes: Counts) -> Totals:
        """Sum the grades of each person's counterparts; float64 holds such integers exactly."""
        lows, highs = score_range(points)
        first = np.searchsorted(self.thresholds, lows, side="right")
        last = np.searchsorted(self.thresholds, highs, side="right")
        near = np.flatnonzero(first != last)
        if near.size:
            first[near], last[near] = self._cells(points.exact_scores(near))
        shape = (len(points.people), -1)
        return Totals(
            (self.grades[first].reshape(shape) @ votes).astype(np.float64)[:, None],
            (self.grades[last].reshape(shape) @ votes).astype(np.float64)[:, None],
        )

    def exact_totals(self, points: CounterpartPoints, votes: Counts) -> ExactTotals | None:
        """Return the sum for one person; None if intervals of scores leave it open."""
        first, last = self._cells(points.exact_scores(np.arange(len(points))))
        if (first != last).any():
            return None
        return (Fraction(int(self.grades[first] @ votes)),)

    def _cells(self, scores: ExactScores) -> tuple[Counts, Counts]:
        """Return the lowest and the highest cell that each score may be in."""
        centers = scores.centers.fractions()
        radii = scores.radius.fractions()
        pairs = list(zip(centers, radii, strict=True))
        first = [self._cell(center - radius) for center, radius in pairs]
        last = [self._cell(center + radius) for center, radius in pairs]
        return np.array(first, dtype=np.int64), np.array(last, dtype=np.int64)

    def _cell(self, score: Fraction) -> int:
        """Return the number of thresholds that a score reaches."""
        bound = Fraction(UNIT**2)  # a float64; beyond it, the loops below find the cell
        nearest = float(max(-bound, min(score, bound)))
        index = int(np.searchsorted(self.thresholds, nearest, side="right"))
        while index > 0 and Fraction(float(self.thresholds[index - 1])) > score:
            index -= 1
        while index < len(self.thresholds) and Fraction(float(self.thresholds[index])) <= score:
            index += 1
        return index


def _cells(link: Link, probabilities: Iterable[float]) -> dict[float, float]:
    """Return probabilities between 0 and 1 by the score at which a link gives them."""
    return {score_of(p, link): p for p in sorted({p for p in probabilities if 0 < p < 1})}


@cache
def _even_cells(link: Link) -> Mapping[float, float]:
    return _cells(link, (number / EVEN_CELLS for number in range(1, EVEN_CELLS)))
