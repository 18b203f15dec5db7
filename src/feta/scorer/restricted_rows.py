"""Counterparts as rows, for any scorer and relation: simple, without partial evaluation."""

from dataclasses import dataclass
from functools import cached_property

import numpy as np

from feta.arrays import Counts, Matrix
from feta.dyadic import Dyadic
from feta.relation.protocol import Relation
from feta.rounding import Arithmetic
from feta.scorer.protocol import Enclosure, Points, Scorer


@dataclass(frozen=True, eq=False)
class RestrictedRows:
    """A scorer that evaluates each counterpart as a person."""

    scorer: Scorer
    relation: Relation

    def counterparts(self, people: Matrix, assignment_ids: Counts) -> "CounterpartRows":
        """Return the counterparts of each person with these assignments."""
        return CounterpartRows(self, people, assignment_ids)


@dataclass(frozen=True, eq=False)
class CounterpartRows:
    """Counterparts with these assignments of the first person, then of the second, and so on."""

    restricted: RestrictedRows
    people: Matrix
    assignment_ids: Counts

    def __len__(self) -> int:
        return len(self.people) * len(self.assignment_ids)

    @cached_property
    def _points(self) -> Points:
        relation = self.restricted.relation
        rows = [
            relation.counterpart(person, int(assignment_id))
            for person in self.people
            for assignment_id in self.assignment_ids
        ]
        width = self.people.shape[1]
        return self.restricted.scorer.points(np.array(rows, dtype=np.float64).reshape(-1, width))

    def scores(self, arithmetic: Arithmetic, chosen: Counts | None = None) -> Enclosure:
        """Compute float64 scores; the error bound also covers the given arithmetic."""
        return self._points.scores(arithmetic, chosen)

    def exact_scores(self, chosen: Counts) -> Dyadic:
        """Compute exact scores, (points, outputs)."""
        return self._points.exact_scores(chosen)
