"""A cache of lists of assignment ids in which equal lists are one array.

Engines group people by the list of their counterparts, and compare lists by identity.
"""

import hashlib
from collections.abc import Hashable

from feta.arrays import Counts

# Numbers that are cached, of lists and of keys together.
MAX_CACHED = 2**24


class ListedIds:
    """Lists by any key; cleared when it grows too large."""

    def __init__(self) -> None:
        self.by_key: dict[Hashable, Counts] = {}
        self._arrays: dict[bytes, Counts] = {}
        self._size = 0

    def add(self, key: Hashable, ids: Counts) -> Counts:
        """Add a list of ids; return the array that is cached."""
        if self._size > MAX_CACHED:
            self.by_key.clear()
            self._arrays.clear()
            self._size = 0
        digest = hashlib.sha256(ids.tobytes()).digest()
        if digest not in self._arrays:
            ids.setflags(write=False)
            self._arrays[digest] = ids
            self._size += len(ids)
        self._size += 16  # a dictionary entry
        self.by_key[key] = known = self._arrays[digest]
        return known
