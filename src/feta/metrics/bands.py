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

# Groups of a number that are compared with each other by their share of people.
N_QUARTERS = 4
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

    @classmethod
    def quarters(cls, attribute: Attribute, codes: Matrix) -> Self:
        """Divide numbers at the quartiles of some people; a category has one group per value."""
        if isinstance(attribute, Categorical | Derived):
            return cls.of(attribute)
        known = codes[codes[:, 1] == 0.0, 0] if attribute.missing else codes[:, 0]
        values = np.unique(known)
        if len(values) <= N_QUARTERS:
            edges = values
        else:
            cuts = np.arange(1, N_QUARTERS) / N_QUARTERS
            edges = np.unique([values[0], *np.quantile(known, cuts, method="higher")])
        # The highest value of each group that occurs; the lowest of a group is its edge.
        highest = [values[values < edge][-1] for edge in edges[1:]] + list(values[-1:])
        names = [
            f"{a:g}" if a == b else f"{a:g} to {b:g}" for a, b in zip(edges, highest, strict=True)
        ]
        missing = (MISSING,) if attribute.missing else ()
        return cls(attribute, (*names, *missing), tuple(edges.tolist()))

    def indices(self, codes: Matrix) -> Counts:
        """Return the index of each person's group, from the attribute's columns."""
        if not self.edges:  # one column per value
            return np.argmax(codes, axis=1)
        bands = np.maximum(np.searchsorted(self.edges, codes[:, 0], side="right") - 1, 0)
        if self.names[-1] != MISSING:
            return bands
        return np.where(codes[:, 1] == 1.0, len(self.names) - 1, bands)


def _value_name(value: Value) -> str:
    return MISSING if value is None else str(value)


def _spans(count: int) -> list[tuple[int, int]]:
    """Divide indices into bands of about the same size; return start and end of each."""
    n_bands = count if count <= MAX_VALUES else N_BANDS
    return list(pairwise(count * index // n_bands for index in range(n_bands + 1)))
