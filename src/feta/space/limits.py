"""Numbers outside the limits of columns that are not sensitive.

Proofs depend on the limits, but people outside them exist. With "open" limits, such numbers are
encoded, and `feta.wider_limits` then decides whether the proofs can be repeated for that person.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Literal, TypeGuard, assert_never

import numpy as np

from feta.arrays import Counts, Flags, Matrix, Vector
from feta.space.attribute import (
    LARGEST_INTEGER,
    Attribute,
    Categorical,
    Derived,
    Integer,
    Levels,
    Real,
)
from feta.space.level_grid import on_grid
from feta.space.numeric import encode_numbers

Limits = Literal["check", "open"]
Number = Integer | Levels | Real
Side = Literal["below", "above"]
# What answers rely on: a proof, sampled preprocessing, or votes counted with the model's predict.
Decided = Literal["proved", "sampled", "counted"]


@dataclass(frozen=True, slots=True)
class Outside:
    """The limit of a column that some people exceed: its minimum or its maximum."""

    column: str
    side: Side
    limit: float

    def words(self, count: int, how: Decided = "proved") -> str:
        """Return a sentence about the number of these people and how they are decided."""
        they = "this person is" if count == 1 else "they are"
        whose = "this person's" if count == 1 else "their"
        basis = {
            "proved": f", and proved for {whose} own values",
            "sampled": f", with error bounds for {whose} own values",
            "counted": " by the estimator's own predict",
        }
        return f"{self._who(count)}: {they} decided{basis[how]}"

    def fitted_words(self, count: int) -> str:
        """Return a sentence about the number of these people, if votes are fitted to them."""
        them = "this person" if count == 1 else "them"
        return f"{self._who(count)}: the votes are fitted to {them} as well"

    def _who(self, count: int) -> str:
        who = "1 person has" if count == 1 else f"{count:,} people have"
        which = "maximum" if self.side == "above" else "minimum"
        return f"{who} {self.column} {self.side} the schema's {which} {self.limit:,.10g}"


@dataclass(frozen=True, slots=True, eq=False)
class OpenLimits:
    """The limits of all columns of a space that people may exceed."""

    names: tuple[str, ...]
    columns: Counts
    lows: Vector
    highs: Vector

    @classmethod
    def of(cls, columns: Mapping[int, Number]) -> "OpenLimits":
        """Return the limits of these attributes; keys are the columns with their numbers."""
        limits = np.array([limits_of(attribute) for attribute in columns.values()]).reshape(-1, 2)
        names = tuple(attribute.name for attribute in columns.values())
        return cls(names, np.array(list(columns), dtype=np.int64), limits[:, 0], limits[:, 1])

    def outside(self, people: Matrix) -> list[tuple[Outside, Flags]]:
        """List the limits that some people exceed, each with the flags of these people."""
        numbers = people.take(self.columns, axis=1)
        below, above = numbers < self.lows, numbers > self.highs
        if not (below | above).any():
            return []
        exceeded: list[tuple[Outside, Flags]] = []
        for index, name in enumerate(self.names):
            if below[:, index].any():
                limit = Outside(name, "below", float(self.lows[index]))
                exceeded.append((limit, below[:, index]))
            if above[:, index].any():
                limit = Outside(name, "above", float(self.highs[index]))
                exceeded.append((limit, above[:, index]))
        return exceeded


def is_open(attribute: Attribute, *, sensitive: bool) -> TypeGuard[Number]:
    """Return whether people may exceed an attribute's limits.

    It must be a number, and neither sensitive nor strict.
    """
    return isinstance(attribute, Number) and not (sensitive or attribute.strict)


def limits_of(attribute: Number) -> tuple[float, float]:
    """Return the lowest and the highest number of an attribute."""
    if isinstance(attribute, Levels):
        return attribute.numbers[0], attribute.numbers[-1]
    return float(attribute.low), float(attribute.high)


def column_magnitudes(attribute: Attribute) -> list[float]:
    """Return the largest absolute value that each column of an attribute can take."""
    if isinstance(attribute, Categorical | Derived):
        return [1.0] * attribute.width
    numbers = attribute.numbers if isinstance(attribute, Levels) else limits_of(attribute)
    return [max(abs(number) for number in numbers), *[1.0] * attribute.missing]


def readable(attribute: Number, codes: Matrix) -> Flags:
    """Flag the rows with a value of the attribute's kind, inside or outside the limits."""
    low, high = limits_of(attribute)
    numbers = codes[:, 0]
    outside = (numbers < low) | (numbers > high)
    present = codes[:, 1] == 0.0 if attribute.missing else np.ones(len(codes), dtype=bool)
    match attribute:
        case Integer():
            fits = (numbers == np.floor(numbers)) & (np.abs(numbers) <= LARGEST_INTEGER)
        case Levels():
            fits = np.zeros(len(numbers), dtype=bool)
            fits[outside] = on_grid(attribute.numbers, numbers[outside])
        case Real():
            fits = np.isfinite(numbers)
        case _:
            assert_never(attribute)
    return np.asarray(attribute.valid(codes) | (outside & present & fits))


def encode_open(attribute: Number, values: Sequence[object]) -> Matrix:
    """Return the columns of these values, which may be inside or outside the limits."""
    return encode_numbers(attribute, values, valid=partial(readable, attribute))
