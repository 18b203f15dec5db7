"""Rows whose answers are known, so that no row is evaluated for another question about it."""

from collections import deque
from dataclasses import dataclass, field

import numpy as np

from feta.arrays import Counts, Matrix
from feta.scorer.counted.answers import Answers

# Rows that are remembered; about 32 MB.
MAX_ROWS = 2**17


@dataclass(eq=False)
class KnownRows:
    """Rows that were repeated with equal answers; mutable, the oldest are dropped."""

    columns: Counts  # that reach the model: rows equal in these are the same row
    _values: dict[bytes, list[float]] = field(default_factory=dict)
    _added: deque[list[bytes]] = field(default_factory=deque)

    def add(self, people: Matrix, answers: Answers) -> None:
        """Remember rows, unless one of them is in doubt."""
        if not answers.complete or answers.radii.any():
            return
        keys = self._keys(people)
        self._values.update(zip(keys, answers.values.tolist(), strict=True))
        self._added.append(keys)
        while len(self._values) > MAX_ROWS and len(self._added) > 1:
            for key in self._added.popleft():
                self._values.pop(key, None)

    def find(self, people: Matrix) -> Answers | None:
        """Return the answers to people; None unless all of them are known."""
        found = [self._values.get(key) for key in self._keys(people)]
        known = [values for values in found if values is not None]
        if not found or len(known) < len(found):
            return None
        return Answers(np.array(known, dtype=np.float64), np.zeros(len(known)))

    def clear(self) -> None:
        """Forget everything."""
        self._values.clear()
        self._added.clear()

    def _keys(self, people: Matrix) -> list[bytes]:
        rows = np.ascontiguousarray(people[:, self.columns] + 0.0)  # −0.0 equals 0.0
        return [row.tobytes() for row in rows]
