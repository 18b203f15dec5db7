"""Evaluation of counterparts by the user's model: each row twice, in fixed batches, cached.

The counterparts of a person are evaluated in chunks of fixed assignments, in their order, and in
fixed batches that contain nobody else. The answers are therefore a function of what the
counterparts share, even if the model's answers depend on the batch, unless it has state.
"""

import hashlib
import threading
from collections import OrderedDict, deque
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from feta.arrays import Counts, Matrix
from feta.errors import ModelFailure
from feta.scorer.counted.answers import Answers
from feta.scorer.counted.calls import ModelCalls, equal_sizes, other_sizes
from feta.scorer.counted.known_rows import KnownRows
from feta.scorer.counted.repetition import Repetition
from feta.scorer.counted.sentinels import Sentinels
from feta.scorer.protocol import Doubt

# Assignments per chunk, and the largest batch.
CHUNK = 2**14

# Rows of a counterexample.
PAIR = 2

# Doubts that are remembered for messages.
MAX_REMEMBERED = 256

# A person's key, and what else determines the rows: the relation and the number of the chunk.
ChunkKey = tuple[str, bytes, int]


@dataclass(eq=False)
class Evaluator:
    """A model, its batch and its cache; it is mutable, and shared by all views of a scorer."""

    calls: ModelCalls
    sentinels: Sentinels
    batch: int
    repeated: int = 0  # rows that were evaluated twice
    doubts: deque[Doubt] = field(default_factory=lambda: deque(maxlen=MAX_REMEMBERED))
    _cache: "OrderedDict[ChunkKey, Answers]" = field(default_factory=OrderedDict)
    _cached_bytes: int = 0
    _known: KnownRows = field(init=False)
    _lock: Any = field(default_factory=threading.RLock)

    def __post_init__(self) -> None:
        self._known = KnownRows(self.calls.ask.columns)

    def __getstate__(self) -> dict[str, Any]:
        """Leave out the cache and the lock, which cannot be pickled."""
        left_out = ("_cache", "_cached_bytes", "_known", "_lock")
        return {name: value for name, value in vars(self).items() if name not in left_out}

    def __setstate__(self, state: dict[str, Any]) -> None:
        vars(self).update(state, _cache=OrderedDict(), _cached_bytes=0, _lock=threading.RLock())
        self._known = KnownRows(self.calls.ask.columns)

    def people(self, people: Matrix) -> Answers:
        """Evaluate people in their order, and repeat all of them in another order.

        Two people are evaluated anew, in both orders and alone: they may be a counterexample. Other
        rows that were counterparts before have their answers.
        """
        with self._lock:
            known = None if len(people) == PAIR else self._known.find(people)
            if known is not None:
                return known
            seed = people.tobytes()
            answers = self._evaluate(people, seed, together=False)
            self.doubts.extend(answers.doubts)
            self._check_sentinels()
            return answers

    def chunk(self, key: ChunkKey, rows: Callable[[], Matrix]) -> Answers:
        """Return the answers to one chunk of a person's counterparts, from the cache if known."""
        with self._lock:
            answers = self._cache.get(key)
            if answers is None:
                people = rows()
                answers = self._known.find(people)
                if answers is None:
                    answers = self._evaluate(people, repr(key).encode(), together=True)
                    self._check_sentinels()
                    self._known.add(people, answers)
                if answers.complete:
                    self._store(key, answers)
            else:
                self._cache.move_to_end(key)
            self.doubts.extend(answers.doubts)
            return answers

    def confirm(self) -> None:
        """Raise `ModelChanged` if the model was replaced since the last confirmation.

        Call it before results are stored: those since the last confirmation may mix two models.
        """
        with self._lock:
            self._check_sentinels(always=True)

    def _check_sentinels(self, *, always: bool = False) -> None:
        if not always and not self.sentinels.due:
            return
        try:
            self.sentinels.check()
        except ModelFailure:
            self._cache.clear()
            self._cached_bytes = 0
            self._known.clear()
            raise

    def _store(self, key: ChunkKey, answers: Answers) -> None:
        self._cache[key] = answers
        self._cached_bytes += answers.size
        while self._cached_bytes > self.calls.options.cache_bytes and len(self._cache) > 1:
            _, dropped = self._cache.popitem(last=False)
            self._cached_bytes -= dropped.size

    def _evaluate(self, people: Matrix, seed: bytes, *, together: bool) -> Answers:
        people = people + 0.0  # −0.0 becomes 0.0, so that equal people are equal rows
        first, inverse = distinct_rows(people[:, self.calls.ask.columns])
        rows = people[first]
        answers = self.calls.evaluate(rows, equal_sizes(len(rows), self.batch))
        checked = Answers(answers.values, np.zeros(len(rows)))
        for order, sizes in self._repetitions(len(rows), seed, pair=not together):
            second = self.calls.evaluate(rows[order], sizes)
            self.repeated += len(order)
            rounding = self.calls.options.rounding
            repetition = Repetition(
                rows, answers, second, order, self.calls.describe, rounding, self.calls.ask.show
            )
            checked = checked.and_repeated(repetition.answers(together=together))
        return checked.rows(inverse)

    def _repetitions(
        self, n_rows: int, seed: bytes, *, pair: bool
    ) -> list[tuple[Counts, list[int]]]:
        """Return orders of rows and sizes of batches: two people are swapped, and also alone."""
        if pair and n_rows == PAIR:
            return [(np.array([1, 0]), [2]), (np.array([0, 1]), [1, 1])]
        order = self._repeated_rows(n_rows, seed)
        return [(order, other_sizes(len(order), self.batch))]

    def _repeated_rows(self, n_rows: int, seed: bytes) -> Counts:
        """Return the rows that are repeated, shuffled; the same ones for the same rows."""
        digest = hashlib.sha256(seed).digest()
        rng = np.random.default_rng(int.from_bytes(digest[:8], "little"))
        n_repeated = int(np.ceil(self.calls.options.repeat * n_rows))
        return rng.permutation(n_rows)[:n_repeated]


def distinct_rows(rows: Matrix) -> tuple[Counts, Counts]:
    """Return the first of all equal rows, in their order, and the place of each row among them."""
    content = np.ascontiguousarray(rows)
    if not content.shape[1]:  # nothing reaches the model: all rows are equal
        return np.arange(min(1, len(rows))), np.zeros(len(rows), dtype=np.int64)
    cells = content.view(np.dtype((np.void, content.dtype.itemsize * content.shape[1])))
    _, first, inverse = np.unique(cells[:, 0], return_index=True, return_inverse=True)
    order = np.argsort(first)
    places = np.empty(len(order), dtype=np.int64)
    places[order] = np.arange(len(order))
    return first[order], places[inverse.reshape(-1)]
