"""Axes: the sensitive attributes as coordinates, finite or real."""

from dataclasses import dataclass
from functools import cached_property

import numpy as np

from feta.arrays import Counts, Matrix, Vector, frozen
from feta.space.attribute import Derived, Finite, Real


@dataclass(frozen=True)
class Axis:
    """One sensitive attribute and the attributes derived from it.

    A coordinate is the index of a value if the attribute is finite, and the number itself if it is
    real.
    """

    attribute: Finite | Real
    derived: tuple[Derived, ...]
    columns: tuple[int, ...]  # of the attribute, then of each derived one, then of the moves
    # Numbers that follow from the value, one tuple per column (`feta.relation.separated`).
    moves: tuple[tuple[float, ...], ...] = ()

    @property
    def real(self) -> bool:
        """Whether it has uncountably many values."""
        return isinstance(self.attribute, Real)

    @property
    def ends(self) -> tuple[float, float]:
        """The first and the last coordinate."""
        if isinstance(self.attribute, Real):
            return self.attribute.low, self.attribute.high
        return 0.0, float(self.attribute.n_values - 1)

    def __len__(self) -> int:
        return self._n_values

    @cached_property
    def _n_values(self) -> int:
        assert not isinstance(self.attribute, Real)  # it has uncountably many values
        return self.attribute.n_values

    def codes(self, coordinates: Counts | Vector) -> Matrix:
        """Return the columns at these coordinates."""
        if isinstance(self.attribute, Real):
            return np.array(coordinates, dtype=np.float64)[:, None]
        indices = np.asarray(coordinates).astype(np.int64, copy=False)
        codes = self.attribute.codes(indices)
        moves = [np.array(column)[indices, None] for column in self.moves]
        return np.hstack([codes, *(band.derive(codes[:, 0]) for band in self.derived), *moves])

    @cached_property
    def every_code(self) -> Matrix:
        """The columns of all values, cached; for finite axes that are not too long."""
        return frozen(self.codes(np.arange(len(self))))

    def indices(self, people: Matrix) -> Counts:
        """Return the index of each person's value; for finite axes."""
        assert not isinstance(self.attribute, Real)  # a number has no index
        return self.attribute.indices(people[:, list(self.columns[: self.attribute.width])])
