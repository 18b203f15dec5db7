"""Bands: the groups of an attribute's values; ranges if there are many numbers."""

from dataclasses import dataclass
from itertools import pairwise
from typing import Self, assert_never

import numpy as np

from feta.arrays import Counts, Matrix
from feta.space.attribute import Attribute, Categorical, Derived, Integer, Levels, Real, Value

# More numbers than this are grouped into ranges, so that each group has enough people.
MAX_VALUES = 8
N_BANDS = 6
MISSING = "missing"


@dataclass(frozen=True, slots=True)
class Bands:
    """The groups of an attribute, in the order of its values; `edges` are their lowest numbers."""

    attribute: Attribute
    names: tuple[str, ...]
    edges: tuple[float, ...] = ()

    @classmethod
    def of(cls, attribute: Attribute) -> Self:
        """Divide the domain of an attribute into groups."""
        ranges: list[tuple[float, float]]
        match attribute:
            case Categorical() | Derived():
                codes = np.eye(attribute.width)
                return cls(attribute, tuple(_value_name(attribute.decode(code)) for code in codes))
            case Integer(low=low, high=high):
                ranges = [(low + start, low + end - 1) for start, end in _spans(high - low + 1)]
            case Levels(numbers=levels):
                ranges = [(levels[start], levels[end - 1]) for start, end in _spans(len(levels))]
            case Real(low=low, high=high):
                ranges = list(pairwise(np.linspace(low, high, N_BANDS + 1).tolist()))
            case _:
                assert_never(attribute)
        names = [f"{low:g}" if low == high else f"{low:g} to {high:g}" for low, high in ranges]
        missing = (MISSING,) if attribute.missing else ()
        return cls(attribute, (*names, *missing), tuple(float(low) for low, _ in ranges))

    def indices(self, codes: Matrix) -> Counts:
        """Return the index of each person's group, from the attribute's columns."""
        if not self.edges:  # one column per value
            return np.argmax(codes, axis=1)
        bands = np.searchsorted(self.edges, codes[:, 0], side="right") - 1
        if self.names[-1] != MISSING:
            return bands
        return np.where(codes[:, 1] == 1.0, len(self.names) - 1, bands)


def _value_name(value: Value) -> str:
    return MISSING if value is None else str(value)


def _spans(count: int) -> list[tuple[int, int]]:
    """Divide indices into bands of about the same size; return start and end of each."""
    n_bands = count if count <= MAX_VALUES else N_BANDS
    return list(pairwise(count * index // n_bands for index in range(n_bands + 1)))
