"""Exact scores of the few counterparts that bounds leave undecided, of many people together.

A call for one counterpart costs as much as the scores of many. A person with many counterparts is
evaluated alone: the scorer then uses what they share.
"""

import time
from collections.abc import Iterator, Mapping
from dataclasses import dataclass

import numpy as np

from feta.arrays import Counts, Matrix
from feta.engine.counterparts import counterparts_of
from feta.model import EXACT_CHUNK, Model
from feta.scorer.exact_scores import ExactScores

# A person with more counterparts to evaluate is evaluated alone. Networks group points by
# activation pattern from here on.
FEW = 256

# Counterparts evaluated together, without a deadline and with one.
TOGETHER = 2**12
BEFORE_DEADLINE = 64


@dataclass(frozen=True, slots=True, eq=False)
class ExactBlock:
    """Counterparts with their exact scores, in the order of their people's rows."""

    rows: Counts  # of the people
    assignment_ids: Counts
    scores: ExactScores

    def by_person(self) -> Iterator[tuple[int, Counts, ExactScores]]:
        """Yield each person's row, assignment ids and scores."""
        rows, starts = np.unique(self.rows, return_index=True)
        stops = [*starts[1:].tolist(), len(self.rows)]
        for row, start, stop in zip(rows.tolist(), starts.tolist(), stops, strict=True):
            part = slice(start, stop)
            yield row, self.assignment_ids[part], self.scores[part]


def together(
    model: Model, people: Matrix, ids_by_row: Mapping[int, Counts], *, deadline: float = np.inf
) -> Iterator[ExactBlock]:
    """Evaluate the counterparts of people with few; a person's are in one block.

    It stops at the deadline.
    """
    limit = TOGETHER if deadline == np.inf else BEFORE_DEADLINE
    pending: list[int] = []
    size = 0
    for row in sorted(row for row, ids in ids_by_row.items() if 0 < len(ids) <= FEW):
        if pending and size + len(ids_by_row[row]) > limit:
            if time.monotonic() > deadline:
                return
            yield _evaluated(model, people, pending, ids_by_row)
            pending, size = [], 0
        pending.append(row)
        size += len(ids_by_row[row])
    if pending and time.monotonic() <= deadline:
        yield _evaluated(model, people, pending, ids_by_row)


def alone(
    model: Model, people: Matrix, ids_by_row: Mapping[int, Counts], *, deadline: float = np.inf
) -> Iterator[ExactBlock]:
    """Evaluate the counterparts of people with many, in blocks of one person each."""
    for row, ids in ids_by_row.items():
        if len(ids) <= FEW:
            continue
        for start in range(0, len(ids), EXACT_CHUNK):
            if time.monotonic() > deadline:
                return
            chunk = ids[start : start + EXACT_CHUNK]
            points = model.restricted.counterparts(people[row : row + 1], chunk)
            scores = points.exact_scores(np.arange(len(chunk)))
            yield ExactBlock(np.full(len(chunk), row), chunk, scores)


def _evaluated(
    model: Model, people: Matrix, rows: list[int], ids_by_row: Mapping[int, Counts]
) -> ExactBlock:
    all_rows = np.repeat(rows, [len(ids_by_row[row]) for row in rows])
    ids = np.concatenate([ids_by_row[row] for row in rows])
    points = model.points(counterparts_of(model, people[all_rows], ids))
    return ExactBlock(all_rows, ids, points.exact_scores(np.arange(len(ids))))
