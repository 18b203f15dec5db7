"""Limits: numbers outside the limits of a column that is not sensitive.

Such a person exists, but the limits are what proofs rest on. So a value may be read beyond them
("open"), and `feta.wider_limits` then decides whether the proofs can be made again for that person.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from functools import lru_cache
from typing import Literal, TypeGuard, assert_never

import numpy as np

from feta.arrays import Flags, Matrix, Vector
from feta.errors import DomainError
from feta.space.attribute import (
    LARGEST_INTEGER,
    Attribute,
    Integer,
    Levels,
    Real,
    flagged,
    missing_cells,
    numbers_of,
)

Limits = Literal["check", "open"]
Number = Integer | Levels | Real
Side = Literal["below", "above"]
# What answers rest on: a proof, sampled preprocessing, or votes counted by the model's own predict.
Decided = Literal["proved", "sampled", "counted"]


@dataclass(frozen=True, slots=True)
class Outside:
    """One side of one column's limits, beyond which there are people."""

    column: str
    side: Side
    limit: float

    def words(self, count: int, how: Decided = "proved") -> str:
        """Count the people there, and say how they are decided."""
        who = "1 person has" if count == 1 else f"{count:,} people have"
        which = "maximum" if self.side == "above" else "minimum"
        they = "this person is" if count == 1 else "they are"
        own = "this person's" if count == 1 else "their"
        rests = {
            "proved": f", and proved for {own} own values",
            "sampled": f", with error bounds for {own} own values",
            "counted": " by the estimator's own predict",
        }
        return f"{who} {self.column} {self.side} the schema's {which} {self.limit:,.10g}: {they} decided{rests[how]}"


@dataclass(frozen=True, slots=True, eq=False)
class OpenLimits:
    """The limits of a space's columns beyond which there may be people."""

    names: tuple[str, ...]
    columns: tuple[int, ...]
    lows: Vector
    highs: Vector

    @classmethod
    def of(cls, columns: Mapping[int, Number]) -> "OpenLimits":
        """Take the attributes' limits, by the column that holds their numbers."""
        limits = np.array([limits_of(one) for one in columns.values()]).reshape(-1, 2)
        names = tuple(one.name for one in columns.values())
        return cls(names, tuple(columns), limits[:, 0], limits[:, 1])

    def outside(self, people: Matrix) -> list[tuple[Outside, Flags]]:
        """List the columns beyond whose limits there are people, and flag these."""
        numbers = people[:, list(self.columns)]
        below, above = numbers < self.lows, numbers > self.highs
        if not (below.any() or above.any()):
            return []
        found: list[tuple[Outside, Flags]] = []
        for index, name in enumerate(self.names):
            if below[:, index].any():
                side = Outside(name, "below", float(self.lows[index]))
                found.append((side, below[:, index]))
            if above[:, index].any():
                side = Outside(name, "above", float(self.highs[index]))
                found.append((side, above[:, index]))
        return found


def is_open(attribute: Attribute, *, sensitive: bool) -> TypeGuard[Number]:
    """Say whether people may lie outside an attribute's limits: a number, neither sensitive nor strict."""
    return isinstance(attribute, Number) and not (sensitive or attribute.strict)


def limits_of(attribute: Number) -> tuple[float, float]:
    """Return the lowest and the highest number."""
    if isinstance(attribute, Levels):
        return attribute.numbers[0], attribute.numbers[-1]
    return float(attribute.low), float(attribute.high)


def beyond(attribute: Number, codes: Matrix) -> tuple[Flags, Flags]:
    """Flag the rows below the lowest number, and those above the highest."""
    low, high = limits_of(attribute)
    return codes[:, 0] < low, codes[:, 0] > high


def readable(attribute: Number, codes: Matrix) -> Flags:
    """Flag the rows that hold a value of the attribute's kind, inside the limits or beyond."""
    below, above = beyond(attribute, codes)
    present = codes[:, 1] == 0.0 if attribute.missing else np.ones(len(codes), dtype=bool)
    numbers = codes[:, 0]
    match attribute:
        case Integer():
            fits = (numbers == np.floor(numbers)) & (np.abs(numbers) <= LARGEST_INTEGER)
        case Levels():
            fits = np.zeros(len(numbers), dtype=bool)
            fits[below | above] = on_grid(attribute, numbers[below | above])
        case Real():
            fits = np.isfinite(numbers)
        case _:
            assert_never(attribute)
    return np.asarray(attribute.valid(codes) | ((below | above) & present & fits))


def encode_open(attribute: Number, values: Sequence[object]) -> Matrix:
    """Turn values into their columns, inside the limits or beyond."""
    column = numbers_of(values)
    absent = missing_cells(values) if attribute.missing else np.zeros(len(column), dtype=bool)
    codes = flagged(attribute, column, absent)
    bad = np.flatnonzero(~readable(attribute, codes))
    if bad.size:
        got = values[int(bad[0])]
        shown = got.item() if isinstance(got, np.generic) else got
        message = f"must be {attribute.domain()}, got {shown!r}"
        raise DomainError.at(attribute.name, int(bad[0]), message)
    return codes + 0.0


def on_grid(attribute: Levels, numbers: Vector) -> Flags:
    """Flag the numbers that continue evenly spaced levels; others miss a step."""
    step = _step(attribute.numbers)
    if step is None:
        return np.zeros(len(numbers), dtype=bool)
    first = _decimal(attribute.numbers[0])
    return np.array([_continues(first, step, number) for number in numbers.tolist()], dtype=bool)


def _continues(first: Fraction, step: Fraction, number: float) -> bool:
    return bool(np.isfinite(number)) and ((_decimal(number) - first) / step).denominator == 1


@lru_cache(maxsize=16)  # a list may have a million levels
def _step(numbers: tuple[float, ...]) -> Fraction | None:
    """Find the step between levels, in decimal as they were written; None where it is not one."""
    if len(numbers) < 2:  # noqa: PLR2004 - one level has no step
        return None
    first, step = _decimal(numbers[0]), _decimal(numbers[1]) - _decimal(numbers[0])
    even = all(_decimal(one) == first + step * index for index, one in enumerate(numbers))
    return step if even else None


def _decimal(number: float) -> Fraction:
    return Fraction(repr(number))
