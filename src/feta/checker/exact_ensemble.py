"""Exact scores of an ensemble, from its stored numbers alone: one person at a time, in fractions.

Sigmoids are enclosed by decimal arithmetic. A person whose scores are closer than that cannot be
re-checked.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from decimal import Decimal, localcontext
from fractions import Fraction
from itertools import pairwise
from typing import Protocol

import numpy as np

from feta.arrays import Array, Matrix
from feta.dyadic import Dyadic
from feta.errors import CertificateError
from feta.scorer.exact_scores import ExactScores
from feta.scorer.protocol import StoredScorer

ENSEMBLE = "ensemble"

# Ends of intervals are rounded outward to multiples of 2^-BITS; every float64 is such a multiple.
BITS = 1100

# Digits of sigmoids, and a bound on their error; e^-600 is below it.
DIGITS = 130
ERROR = Fraction(1, 10**120)
FAR = 600

Interval = tuple[Fraction, Fraction]
Numbers = Mapping[str, list[float]]


class MemberScores(Protocol):
    """A member as the checker evaluates it."""

    def scores(self, people: Matrix) -> ExactScores:
        """Compute the exact scores of people, or intervals that contain them."""
        ...


@dataclass(frozen=True, slots=True, eq=False)
class StoredMember:
    """A member, and its curves: names and numbers."""

    evaluator: MemberScores
    curves: tuple[tuple[str, Numbers], ...]

    def values(self, people: Matrix) -> list[list[Interval]]:
        """Return what each person's scores become."""
        scores = self.evaluator.scores(people)
        rows = _intervals(scores)
        for kind, numbers in self.curves:
            rows = [_curve(kind)(row, numbers) for row in rows]
        return rows


@dataclass(frozen=True, slots=True, eq=False)
class StoredEnsemble:
    """Members, weights, bias and denominator as fractions."""

    members: tuple[StoredMember, ...]
    weights: list[list[Fraction]]
    bias: list[Fraction]
    denominator: int

    @classmethod
    def of(
        cls, stored: StoredScorer, evaluator_of: Callable[[StoredScorer], MemberScores]
    ) -> "StoredEnsemble":
        """Convert the arrays that `Ensemble.stored` describes."""
        arrays = stored.arrays
        members: list[StoredMember] = []
        while f"member{len(members)}.kind" in arrays:
            members.append(_member(arrays, f"member{len(members)}.", evaluator_of))
        weights = [[Fraction(number) for number in row] for row in arrays["weights"].tolist()]
        bias = [Fraction(number) for number in arrays["bias"].tolist()]
        return cls(tuple(members), weights, bias, int(_text(arrays["denominator"])))

    def scores(self, people: Matrix) -> ExactScores:
        """Compute intervals that contain the scores of one or more people, (people, outputs)."""
        parts = [member.values(people) for member in self.members]
        rows = [[value for part in parts for value in part[row]] for row in range(len(people))]
        return _scores([self._combined(row) for row in rows], (len(people), len(self.bias)))

    def _combined(self, values: Sequence[Interval]) -> list[Interval]:
        combined = []
        for weights, bias in zip(self.weights, self.bias, strict=True):
            low = high = bias
            for weight, (least, most) in zip(weights, values, strict=True):
                low += weight * (least if weight > 0 else most)
                high += weight * (most if weight > 0 else least)
            combined.append((low / self.denominator, high / self.denominator))
        return combined


def _member(
    arrays: Mapping[str, Array],
    prefix: str,
    evaluator_of: Callable[[StoredScorer], MemberScores],
) -> StoredMember:
    inside = prefix + "scorer."
    own = {name.removeprefix(inside): a for name, a in arrays.items() if name.startswith(inside)}
    curves: list[tuple[str, Numbers]] = []
    while f"{prefix}curve{len(curves)}.kind" in arrays:
        start = f"{prefix}curve{len(curves)}."
        numbers = {
            name.removeprefix(start): np.atleast_1d(array).tolist()
            for name, array in arrays.items()
            if name.startswith(start) and name != f"{start}kind"
        }
        curves.append((_text(arrays[f"{start}kind"]), numbers))
    evaluator = evaluator_of(StoredScorer(_text(arrays[f"{prefix}kind"]), own))
    return StoredMember(evaluator, tuple(curves))


def _text(name: Array) -> str:
    return bytes(name.tolist()).decode()


def _intervals(scores: ExactScores) -> list[list[Interval]]:
    shape = scores.centers.numerators.shape
    centers, radii = scores.centers.fractions(), scores.radius.fractions()
    ends = [(c - r, c + r) for c, r in zip(centers, radii, strict=True)]
    return [ends[start : start + shape[1]] for start in range(0, len(ends), shape[1])]


def _scores(rows: list[list[Interval]], shape: tuple[int, int]) -> ExactScores:
    """Return intervals as centers and radii; a number that is no such multiple is widened."""
    lows = [(low * 2**BITS).__floor__() for row in rows for low, _ in row]
    highs = [(high * 2**BITS).__ceil__() for row in rows for _, high in row]
    centers = [low + high for low, high in zip(lows, highs, strict=True)]
    radii = [high - low for low, high in zip(lows, highs, strict=True)]
    exponent = -BITS - 1
    return ExactScores(
        Dyadic(np.array(centers, dtype=object).reshape(shape), exponent),
        Dyadic(np.array(radii, dtype=object).reshape(shape), exponent),
    )


def _curve(kind: str) -> Callable[[list[Interval], Numbers], list[Interval]]:
    if kind not in CURVES:
        raise CertificateError(
            f"unknown curve in what is re-checked: got {kind!r}; expected one of "
            f"{', '.join(map(repr, CURVES))}"
        )
    return CURVES[kind]


def _sigmoid(row: list[Interval], numbers: Numbers) -> list[Interval]:
    slope, offset = Fraction(numbers["slope"][0]), Fraction(numbers["offset"][0])
    ends = sorted(slope * score + offset for score in row[0])
    return [(_logistic(ends[0])[0], _logistic(ends[1])[1])]


def _logistic(argument: Fraction) -> Interval:
    if argument == 0:
        return Fraction(1, 2), Fraction(1, 2)
    if abs(argument) > FAR:
        return (1 - ERROR, Fraction(1)) if argument > 0 else (Fraction(0), ERROR)
    with localcontext() as context:
        context.prec = DIGITS
        power = (Decimal(argument.numerator) / Decimal(argument.denominator)).exp()
        value = Fraction(power / (power + 1))
    return value - ERROR, value + ERROR


def _softmax(row: list[Interval], numbers: Numbers) -> list[Interval]:
    """Return e^z / Σ e^z with the lowest own score and the highest others, and the reverse."""
    factor = Fraction(numbers["factor"][0])
    ends = [tuple(sorted(factor * score for score in pair)) for pair in row]
    shares = []
    for index in range(len(ends)):
        low = _share([pair[0 if n == index else 1] for n, pair in enumerate(ends)], index)
        high = _share([pair[1 if n == index else 0] for n, pair in enumerate(ends)], index)
        shares.append((low - ERROR, high + ERROR))
    return shares


def _share(scores: list[Fraction], index: int) -> Fraction:
    highest = max(scores)
    with localcontext() as context:
        context.prec = DIGITS
        powers = []
        for score in scores:
            distance = max(score - highest, Fraction(-FAR))
            powers.append((Decimal(distance.numerator) / Decimal(distance.denominator)).exp())
        return Fraction(powers[index] / sum(powers))


def _interpolation(row: list[Interval], numbers: Numbers) -> list[Interval]:
    points = [(Fraction(x), Fraction(y)) for x, y in zip(numbers["at"], numbers["values"])]  # noqa: B905 - both have one length
    return [(_line(points, row[0][0]), _line(points, row[0][1]))]


def _line(points: list[tuple[Fraction, Fraction]], score: Fraction) -> Fraction:
    if score <= points[0][0]:
        return points[0][1]
    for (left, start), (right, end) in pairwise(points):
        if score <= right:
            return start + (end - start) * (score - left) / (right - left)
    return points[-1][1]


def _side_vote(row: list[Interval], numbers: Numbers) -> list[Interval]:
    ties = numbers["ties"][0]
    low, high = row[0]
    least = low > 0 or (low == 0 and ties == 1)
    most = high > 0 or (high == 0 and ties != 0)
    return [(Fraction(int(least)), Fraction(int(most)))]


def _class_vote(row: list[Interval], numbers: Numbers) -> list[Interval]:
    del numbers
    if all(low == high for low, high in row):
        scores = [low for low, _ in row]
        winner = scores.index(max(scores))
        return [(Fraction(int(n == winner)),) * 2 for n in range(len(row))]
    votes = []
    for index, (low, high) in enumerate(row):
        others = [pair for n, pair in enumerate(row) if n != index]
        wins = all(low > most for _, most in others)
        loses = any(high < least for least, _ in others)
        votes.append((Fraction(int(wins)), Fraction(int(not loses))))
    return votes


def _chosen(row: list[Interval], numbers: Numbers) -> list[Interval]:
    return [row[int(numbers["index"][0])]]


def _pair(row: list[Interval], numbers: Numbers) -> list[Interval]:
    del numbers
    low, high = row[0]
    return [(1 - high, 1 - low), (low, high)]


CURVES: dict[str, Callable[[list[Interval], Numbers], list[Interval]]] = {
    "sigmoid": _sigmoid,
    "softmax": _softmax,
    "interpolation": _interpolation,
    "side vote": _side_vote,
    "class vote": _class_vote,
    "chosen": _chosen,
    "pair": _pair,
}
