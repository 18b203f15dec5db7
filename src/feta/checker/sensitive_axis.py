"""The values of the sensitive attributes, listed from the attributes themselves.

Nothing is shared with the lattice and the axes that engines enumerate.
"""

from dataclasses import dataclass
from functools import lru_cache
from typing import assert_never

import numpy as np

from feta.arrays import Counts, Flags, Matrix, Vector
from feta.model import Model
from feta.space.attribute import Attribute, Categorical, Derived, Finite, Integer, Levels, Real


@dataclass(frozen=True, slots=True)
class SensitiveAxis:
    """A sensitive attribute and the bands derived from it.

    A coordinate is the index of a value, or the number itself if the attribute is real-valued.
    """

    attribute: Finite | Real
    derived: tuple[Derived, ...]
    columns: tuple[int, ...]  # of the attribute, then of each derived one

    @property
    def real(self) -> bool:
        """Whether it has uncountably many values."""
        return isinstance(self.attribute, Real)

    @property
    def ends(self) -> tuple[float, float]:
        """The first and the last coordinate."""
        match self.attribute:
            case Categorical(values=values, other=other, missing=missing):
                return 0.0, float(len(values) + other + missing - 1)
            case Integer(low=low, high=high, missing=missing):
                return 0.0, float(high - low + missing)
            case Levels(numbers=numbers, missing=missing):
                return 0.0, float(len(numbers) + missing - 1)
            case Real(low=low, high=high):
                return low, high
            case _:
                assert_never(self.attribute)

    @property
    def is_line(self) -> bool:
        """Whether it has one column, which grows with the coordinate."""
        return len(self.columns) == 1 and not isinstance(self.attribute, Categorical)

    def n_values(self, low: float, high: float) -> int:
        """Count the values from one coordinate to another; of real numbers, the two ends."""
        if self.real:
            return 1 if low == high else 2
        return int(high) - int(low) + 1

    def codes(self, low: float, high: float, indices: Counts) -> Matrix:
        """Return the columns of some of these values; index 0 is the value at `low`."""
        match self.attribute:
            case Categorical():
                rows = np.zeros((len(indices), int(self.ends[1]) + 1))
                rows[np.arange(len(indices)), int(low) + indices] = 1.0
                return rows
            case Integer(low=lowest, high=highest, missing=missing):
                places = int(low) + indices
                absent = places > highest - lowest
                numbers = np.where(absent, lowest, lowest + places).astype(np.float64)
                return self._number_codes(numbers, absent if missing else None)
            case Levels(numbers=levels, missing=missing):
                places = int(low) + indices
                numbers = np.array([*levels, levels[0]])[places]  # a missing one is the lowest
                return self._number_codes(numbers, places == len(levels) if missing else None)
            case Real():
                return np.where(indices == 0, low, high)[:, None]
            case _:
                assert_never(self.attribute)

    def _number_codes(self, numbers: Vector, absent: Flags | None) -> Matrix:
        flags = [] if absent is None else [absent]
        bands = [
            (low <= numbers) & (numbers <= high)
            for derived in self.derived
            for _, low, high in derived.bands
        ]
        return np.stack([numbers, *flags, *bands], axis=1).astype(np.float64)


@lru_cache(maxsize=8)  # they are listed once per model, not once per person
def axes_of(model: Model) -> tuple[SensitiveAxis, ...]:
    """List the axes of a model: from the attributes of the space, if assignments change these."""
    if model.relation.enclosing is None:
        return tuple(
            SensitiveAxis(axis.attribute, axis.derived, axis.columns)
            for axis in model.relation.axes
        )
    columns, start = {}, 0
    for attribute in model.space.attributes:
        columns[attribute.name] = range(start, start + _width(attribute))
        start += _width(attribute)
    axes = []
    for attribute in model.space.attributes:
        if isinstance(attribute, Derived) or not attribute.sensitive:
            continue
        derived = tuple(
            other
            for other in model.space.attributes
            if isinstance(other, Derived) and other.source == attribute.name
        )
        names = [attribute.name, *(other.name for other in derived)]
        places = tuple(column for name in names for column in columns[name])
        axes.append(SensitiveAxis(attribute, derived, places))
    return tuple(axes)


def _width(attribute: Attribute) -> int:
    match attribute:
        case Categorical(values=values, other=other, missing=missing):
            return len(values) + other + missing
        case Derived(bands=bands):
            return len(bands)
        case Integer(missing=missing) | Levels(missing=missing) | Real(missing=missing):
            return 1 + missing
        case _:
            assert_never(attribute)
