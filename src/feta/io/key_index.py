"""Index of the rows of a journal by their keys, in memory: 16 bytes per row.

A table that is sorted by random keys, or an index in the file, would rewrite a page per row. The
journal therefore appends its rows, and this index knows where they are.
"""

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from feta.arrays import Counts

Starts = NDArray[np.uint64]

# Bytes of a key in the index. Different keys that start alike are confused, so whoever reads a row
# compares its whole key.
KEY_START = 8

# A sorted part is merged with the next one when that is not smaller by this factor.
GROWTH = 4


class KeyIndex:
    """The numbers of rows by the start of their keys; the row added last counts."""

    def __init__(self) -> None:
        self._parts: list[tuple[Starts, Counts]] = []  # each sorted; the oldest and largest first

    def __len__(self) -> int:
        return sum(len(starts) for starts, _ in self._parts)

    def add(self, keys: Sequence[bytes], numbers: Sequence[int]) -> None:
        """Add rows with new keys."""
        if not keys:
            return
        part = _sorted(_starts(keys), np.asarray(numbers, dtype=np.int64))
        while self._parts and len(self._parts[-1][0]) <= GROWTH * len(part[0]):
            starts, places = self._parts.pop()
            part = _sorted(np.concatenate([starts, part[0]]), np.concatenate([places, part[1]]))
        self._parts.append(part)

    def find(self, keys: Sequence[bytes]) -> list[int | None]:
        """Return the number of each key's row; None if there is none."""
        found = np.full(len(keys), -1, dtype=np.int64)
        wanted = _starts(keys)
        for starts, numbers in self._parts:
            places = np.searchsorted(starts, wanted, side="right") - 1
            hits = starts[places] == wanted  # −1 is the last place, which is too large to hit
            found[hits] = numbers[places[hits]]
        return [None if number < 0 else number for number in found.tolist()]


def _starts(keys: Sequence[bytes]) -> Starts:
    return np.frombuffer(b"".join(key[:KEY_START] for key in keys), dtype=np.uint64)


def _sorted(starts: Starts, numbers: Counts) -> tuple[Starts, Counts]:
    """Sort by key; of equal keys, the last one stays last."""
    order = np.argsort(starts, kind="stable")
    return starts[order], numbers[order]
