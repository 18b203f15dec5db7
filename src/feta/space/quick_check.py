"""Fast check of whether rows are in a space, with few array operations for all attributes.

It may reject a valid row, but never accepts an invalid one. The slow check then decides, and finds
what is wrong.
"""

from collections.abc import Sequence

import numpy as np

from feta.arrays import Matrix
from feta.space.attribute import Attribute, Categorical, Derived, Integer, Real


class QuickCheck:
    """The limits of all columns; not usable if an attribute of another kind is among them."""

    def __init__(self, attributes: Sequence[Attribute], columns: Sequence[slice]) -> None:
        self.usable = bool(attributes)
        self.columns = np.array(
            [column for part in columns for column in range(part.start, part.stop)],
            dtype=np.int64,
        )
        lows: list[float] = []
        highs: list[float] = []
        integral: list[bool] = []
        members = np.zeros((len(self.columns), 0))  # which columns belong to which category
        for attribute in attributes:
            width = attribute.width
            if not isinstance(attribute, Categorical | Derived) and attribute.missing:
                self.usable = False  # the flag of a missing number has other limits
            match attribute:
                case Categorical():
                    member = np.zeros((len(self.columns), 1))
                    member[len(lows) : len(lows) + width] = 1.0
                    members = np.hstack([members, member])
                    low, high, is_integral = 0.0, 1.0, True
                case Integer():
                    low, high, is_integral = float(attribute.low), float(attribute.high), True
                case Real():
                    low, high, is_integral = attribute.low, attribute.high, False
                case _:
                    low, high, is_integral = 0.0, 0.0, False
                    self.usable = False
            lows += [low] * width
            highs += [high] * width
            integral += [is_integral] * width
        start = int(self.columns[0]) if len(self.columns) else 0
        adjacent = np.array_equal(self.columns, np.arange(start, start + len(self.columns)))
        # A view of adjacent columns costs less than a copy.
        self._chosen = slice(start, start + len(self.columns)) if adjacent else self.columns
        self.lows, self.highs = np.array(lows), np.array(highs)
        self.integral, self.members = np.array(integral, dtype=bool), members

    def passes(self, people: Matrix) -> bool:
        """Return whether every row is provably in the space."""
        if not self.usable:
            return False
        rows = people[:, self._chosen]
        if not ((rows >= self.lows) & (rows <= self.highs)).all():  # false for NaN
            return False
        whole = rows if self.integral.all() else rows[:, self.integral]
        if (np.floor(whole) != whole).any():
            return False
        # Every cell of a category is 0 or 1 here, so the sum is exact.
        return not self.members.size or bool((rows @ self.members == 1.0).all())
