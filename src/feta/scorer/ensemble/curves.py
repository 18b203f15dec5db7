"""Piecewise-linear curves: interpolation between points, votes, and one of several scores."""

from bisect import bisect_right
from collections.abc import Mapping
from dataclasses import dataclass
from fractions import Fraction

import numpy as np

from feta.arrays import Array, Matrix, Vector, frozen
from feta.dyadic import Dyadic
from feta.errors import NetworkError
from feta.rounding import FLOAT64, Arithmetic, upward
from feta.scorer.ensemble.curve import Ends, enclosing, from_ends, interval_ends, monotone
from feta.scorer.exact_scores import ExactScores
from feta.scorer.protocol import Enclosure, Side

# Relative error of a linear interpolation between two values: six roundings, times four.
INTERPOLATION_ULPS = 24


@dataclass(frozen=True, eq=False)
class Interpolation:
    """Straight lines between ascending points; constant before the first and after the last."""

    at: Vector
    values: Vector  # ascending
    kind = "interpolation"
    inputs = 1
    outputs = 1

    def __post_init__(self) -> None:
        at, values = frozen(self.at), frozen(self.values)
        valid = (
            at.ndim == 1
            and at.shape == values.shape
            and len(at) > 0
            and bool(np.isfinite(at).all() and np.isfinite(values).all())
            and bool((np.diff(at) > 0).all() and (np.diff(values) >= 0).all())
        )
        if not valid:
            raise NetworkError(
                f"invalid points of an interpolation: got {len(at)} places and {len(values)} "
                "values; expected as many values as places, both ascending; fit the model again"
            )
        object.__setattr__(self, "at", at)
        object.__setattr__(self, "values", values)

    @property
    def limits(self) -> tuple[float, float]:
        """The first and the last value."""
        return float(self.values[0]), float(self.values[-1])

    @property
    def numbers(self) -> Mapping[str, Array]:
        """The points."""
        return {"at": self.at, "values": self.values}

    def enclose(self, scores: Enclosure, arithmetic: Arithmetic) -> Enclosure:
        """Return values with error bounds, which also cover the given arithmetic."""
        with np.errstate(invalid="ignore", over="ignore"):
            lows = np.nextafter(scores.values - scores.errors * upward(1), -np.inf)
            highs = np.nextafter(scores.values + scores.errors * upward(1), np.inf)
            low, high = self._at(lows), self._at(highs)
        source = 0.0 if arithmetic is FLOAT64 else arithmetic.unit
        rounding = INTERPOLATION_ULPS * (FLOAT64.unit + source) * float(np.abs(self.values).max())
        errors = (high - low) / 2 * upward(4) + rounding + FLOAT64.tiny
        return Enclosure((low + high) / 2, np.where(np.isnan(errors), np.inf, errors))

    def exactly(self, scores: ExactScores) -> ExactScores:
        """Return the values, rounded outward to multiples of 2^-SCALE."""
        return monotone(scores, self._ends)

    def _at(self, scores: Matrix) -> Matrix:
        return np.interp(scores.ravel(), self.at, self.values).reshape(scores.shape)

    def _ends(self, score: Fraction) -> Ends:
        after = bisect_right(self.at.tolist(), score)
        if after == 0:
            return enclosing(Fraction(float(self.values[0])))
        start = Fraction(float(self.values[after - 1]))
        if after == len(self.at):
            return enclosing(start)
        left, right = Fraction(float(self.at[after - 1])), Fraction(float(self.at[after]))
        rise = Fraction(float(self.values[after])) - start
        return enclosing(start + rise * (score - left) / (right - left))


@dataclass(frozen=True, slots=True)
class SideVote:
    """1 for a score above 0, 0 below it; on a tie, the side that wins it in the source."""

    ties: Side | None
    kind = "side vote"
    inputs = 1
    outputs = 1
    limits = (0.0, 1.0)

    @property
    def numbers(self) -> Mapping[str, Array]:
        """The side of ties: −1 if it is not known."""
        return {"ties": np.array(-1 if self.ties is None else int(self.ties == "above"))}

    def enclose(self, scores: Enclosure, arithmetic: Arithmetic) -> Enclosure:
        """Return 0, 1, or 1/2 ± 1/2 where the side is not known."""
        del arithmetic
        known = np.abs(scores.values) > scores.errors
        votes = np.where(known, scores.values > 0, 0.5)
        return Enclosure(votes.astype(np.float64), np.where(known, 0.0, 0.5))

    def exactly(self, scores: ExactScores) -> ExactScores:
        """Return 0 or 1, or both as an interval where the side is not known."""
        return monotone(scores, self._ends)

    def _ends(self, score: Fraction) -> Ends:
        if score == 0 and self.ties is None:
            return enclosing(Fraction(1, 2), Fraction(1, 2))
        return enclosing(Fraction(int(score > 0 or (score == 0 and self.ties == "above"))))


@dataclass(frozen=True, slots=True)
class ClassVote:
    """1 for the class with the largest score, the first on a tie; 0 for the others."""

    classes: int
    kind = "class vote"
    limits = (0.0, 1.0)

    @property
    def inputs(self) -> int:
        """One score per class."""
        return self.classes

    @property
    def outputs(self) -> int:
        """One vote per class."""
        return self.classes

    @property
    def numbers(self) -> Mapping[str, Array]:
        """The number of classes."""
        return {"classes": np.array(self.classes)}

    def enclose(self, scores: Enclosure, arithmetic: Arithmetic) -> Enclosure:
        """Return 0, 1, or 1/2 ± 1/2 for classes that may have the largest score."""
        del arithmetic
        with np.errstate(invalid="ignore"):
            errors = scores.errors * upward(2)
            lows = np.nan_to_num(scores.values - errors, nan=-np.inf)
            highs = np.nan_to_num(scores.values + errors, nan=np.inf)
        possible = np.nextafter(highs, np.inf) >= np.nextafter(
            lows.max(axis=1, keepdims=True), -np.inf
        )
        certain = possible.sum(axis=1, keepdims=True) == 1
        votes = np.where(possible, np.where(certain, 1.0, 0.5), 0.0)
        return Enclosure(votes, np.where(possible & ~certain, 0.5, 0.0))

    def exactly(self, scores: ExactScores) -> ExactScores:
        """Return 0 or 1, or both as an interval where intervals of scores overlap."""
        lows, highs = interval_ends(scores)
        ends: list[Ends] = []
        for start in range(0, len(lows), self.classes):
            row = slice(start, start + self.classes)
            ends += _votes(lows[row], highs[row])
        return from_ends(ends, scores.centers.numerators.shape)


@dataclass(frozen=True, slots=True)
class Chosen:
    """One of several scores."""

    index: int
    inputs: int
    kind = "chosen"
    outputs = 1
    limits = (-np.inf, np.inf)

    @property
    def numbers(self) -> Mapping[str, Array]:
        """The index, and the number of scores."""
        return {"index": np.array(self.index), "inputs": np.array(self.inputs)}

    def enclose(self, scores: Enclosure, arithmetic: Arithmetic) -> Enclosure:
        """Return the score."""
        del arithmetic
        column = slice(self.index, self.index + 1)
        return Enclosure(scores.values[:, column], scores.errors[:, column])

    def exactly(self, scores: ExactScores) -> ExactScores:
        """Return the score."""
        return scores.output(self.index)


@dataclass(frozen=True, slots=True)
class Pair:
    """1 − p and p, the shares of two classes."""

    kind = "pair"
    inputs = 1
    outputs = 2
    limits = (0.0, 1.0)  # p is a probability or a vote

    @property
    def numbers(self) -> Mapping[str, Array]:
        """None."""
        return {}

    def enclose(self, scores: Enclosure, arithmetic: Arithmetic) -> Enclosure:
        """Return both shares; 1 − p is rounded here and in the source."""
        source = 0.0 if arithmetic is FLOAT64 else arithmetic.unit
        rounded = (scores.errors + FLOAT64.unit + source) * upward(2)
        return Enclosure(
            np.hstack([1.0 - scores.values, scores.values]), np.hstack([rounded, scores.errors])
        )

    def exactly(self, scores: ExactScores) -> ExactScores:
        """Return both shares without rounding."""
        return scores.combined(np.array([[-1.0], [1.0]]), Dyadic.of(np.array([1.0, 0.0])))


def _votes(lows: list[Fraction], highs: list[Fraction]) -> list[Ends]:
    """Return the votes of one person."""
    best = max(lows)
    possible = [index for index, high in enumerate(highs) if high >= best]
    if all(lows[index] == highs[index] == best for index in possible):
        possible = possible[:1]
    vote = (1, 1) if len(possible) == 1 else (0, 1)
    return [
        enclosing(Fraction(sum(vote), 2), Fraction(vote[1] - vote[0], 2))
        if index in possible
        else (0, 0)
        for index in range(len(lows))
    ]
