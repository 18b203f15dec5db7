"""Bands: the groups that an attribute's values fall into; many numbers are taken together."""

from dataclasses import dataclass
from itertools import pairwise
from typing import Self, assert_never

import numpy as np

from feta.arrays import Vector
from feta.space.attribute import Attribute, Categorical, Derived, Integer, Levels, Real, Value

# Numbers of more values than this are taken together in bands, so that a group has people in it.
MAX_VALUES = 8
N_BANDS = 6
MISSING = "missing"


@dataclass(frozen=True, slots=True)
class Bands:
    """An attribute's groups in the order of its values; `edges` are the lowest number of each."""

    attribute: Attribute
    names: tuple[str, ...]
    edges: tuple[float, ...] = ()

    @classmethod
    def of(cls, attribute: Attribute) -> Self:
        """Cut an attribute's domain into groups."""
        numbers: list[tuple[float, float]]
        match attribute:
            case Categorical() | Derived():
                codes = np.eye(attribute.width)
                return cls(attribute, tuple(_named(attribute.decode(code)) for code in codes))
            case Integer(low=low, high=high):
                starts = _starts(high - low + 1)
                numbers = [(low + one, low + other - 1) for one, other in _spans(starts)]
            case Levels(numbers=levels):
                starts = _starts(len(levels))
                numbers = [(levels[one], levels[other - 1]) for one, other in _spans(starts)]
            case Real(low=low, high=high):
                ends = np.linspace(low, high, N_BANDS + 1).tolist()
                numbers = list(pairwise(ends))
            case _:
                assert_never(attribute)
        names = [f"{one:g}" if one == other else f"{one:g} to {other:g}" for one, other in numbers]
        more = (MISSING,) if attribute.missing else ()
        return cls(attribute, (*names, *more), tuple(float(one) for one, _ in numbers))

    def name(self, code: Vector) -> str:
        """Name the group of one person, from the attribute's columns."""
        value = self.attribute.decode(code)
        if not self.edges:
            return _named(value)
        if value is None:
            return MISSING
        return self.names[int(np.searchsorted(self.edges, float(value), side="right")) - 1]


def _named(value: Value) -> str:
    return MISSING if value is None else str(value)


def _starts(count: int) -> list[int]:
    """Cut so many values into bands of about the same size: where each begins, and the end."""
    n_bands = count if count <= MAX_VALUES else N_BANDS
    return [count * index // n_bands for index in range(n_bands + 1)]


def _spans(starts: list[int]) -> list[tuple[int, int]]:
    return list(pairwise(starts))
