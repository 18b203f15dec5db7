"""QuickCheck: whether rows lie in a space, in a few array operations instead of some an attribute.

It may say no to a good row, never yes to a bad one; the slow way then finds out, and says what is
wrong.
"""

from collections.abc import Sequence

import numpy as np

from feta.arrays import Matrix
from feta.space.attribute import Attribute, Categorical, Derived, Integer, Real


class QuickCheck:
    """The limits of all columns at once; attributes of other kinds make it say no."""

    def __init__(self, attributes: Sequence[Attribute], indices: Sequence[slice]) -> None:
        self.able = bool(attributes)
        self.columns = np.array(
            [column for one in indices for column in range(one.start, one.stop)], dtype=np.int64
        )
        lows: list[float] = []
        highs: list[float] = []
        whole: list[bool] = []
        members = np.zeros((len(self.columns), 0))  # which columns make up which category
        for attribute in attributes:
            width = attribute.width
            if not isinstance(attribute, Categorical | Derived) and attribute.missing:
                self.able = False  # a flag has limits of its own
            match attribute:
                case Categorical():
                    member = np.zeros((len(self.columns), 1))
                    member[len(lows) : len(lows) + width] = 1.0
                    members = np.hstack([members, member])
                    low, high, is_whole = 0.0, 1.0, True
                case Integer():
                    low, high, is_whole = float(attribute.low), float(attribute.high), True
                case Real():
                    low, high, is_whole = attribute.low, attribute.high, False
                case _:
                    low, high, is_whole = 0.0, 0.0, False
                    self.able = False
            lows += [low] * width
            highs += [high] * width
            whole += [is_whole] * width
        self.lows, self.highs = np.array(lows), np.array(highs)
        self.whole, self.members = np.array(whole, dtype=bool), members

    def passes(self, people: Matrix) -> bool:
        """Say whether every row surely lies in the space."""
        if not self.able:
            return False
        rows = people[:, self.columns]
        if not ((rows >= self.lows) & (rows <= self.highs)).all():  # NaN is neither
            return False
        if (np.floor(rows) != rows)[:, self.whole].any():
            return False
        # Every cell of a category is 0 or 1 by now, so their sum is exact.
        return bool((rows @ self.members == 1.0).all())
