"""Counterparts as rows, for any scorer and relation: simple, without partial evaluation."""

from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from feta.arrays import Counts, Matrix, Vector
from feta.cells.cells import Cells
from feta.errors import EngineError
from feta.relation.protocol import Relation
from feta.rounding import Arithmetic
from feta.scorer.cell_bounds import CellBounds
from feta.scorer.exact_scores import ExactScores
from feta.scorer.kernel import KernelRule, LatticeKernel, LineKernel
from feta.scorer.program_encoder import LpSession, ProgramBounds, ProgramEncoder
from feta.scorer.protocol import Enclosure, Objective, Points, Scorer
from feta.scorer.sections import Sections
from feta.space.feature_space import FeatureSpace


@dataclass(frozen=True, eq=False)
class RestrictedRows:
    """A scorer that evaluates each counterpart as a person."""

    scorer: Scorer
    relation: Relation
    sections: Sections | None = None  # if real-valued attributes matter by intervals only

    def counterparts(self, people: Matrix, assignment_ids: Counts) -> "CounterpartRows":
        """Return the counterparts of each person with these assignments."""
        return CounterpartRows(self, people, assignment_ids)

    @property
    def bounds_cells(self) -> bool:
        """False: rows are only evaluated."""
        return False

    def over(
        self, person: Vector, cells: Cells, objective: Objective, *, source_error: float
    ) -> CellBounds:
        """Raise: rows are only evaluated."""
        raise _only_evaluated(person, cells, objective, source_error)

    def influence(self, cells: Cells) -> Matrix:
        """Raise: rows are only evaluated."""
        raise _only_evaluated(cells)

    def encoder(
        self, space: FeatureSpace, bounds: ProgramBounds, lp_session: Callable[[], LpSession]
    ) -> ProgramEncoder:
        """Raise: rows are only evaluated."""
        raise _only_evaluated(space, bounds, lp_session)

    def fits_kernel(self, space: FeatureSpace) -> bool:
        """Return False: rows are only evaluated."""
        del space
        return False

    def kernel(
        self, space: FeatureSpace, rule: KernelRule, *, source_error: float, simd: bool
    ) -> LatticeKernel:
        """Raise: rows are only evaluated."""
        raise _only_evaluated(space, rule, source_error, simd)

    def fits_line(self, space: FeatureSpace) -> bool:
        """Return False: rows are only evaluated."""
        del space
        return False

    def line(self, *, source_error: float, simd: bool) -> LineKernel:
        """Raise: rows are only evaluated."""
        raise _only_evaluated(source_error, simd)


def _only_evaluated(*arguments: object) -> EngineError:
    del arguments
    return EngineError(
        "this scorer can only be evaluated: got a query that needs bounds; expected an engine "
        "that enumerates; use the engine 'exhaustive'"
    )


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
        rows = [relation.moved(person, self.assignment_ids) for person in self.people]
        empty = np.zeros((0, self.people.shape[1]))
        return self.restricted.scorer.points(np.concatenate([empty, *rows]))

    def scores(self, arithmetic: Arithmetic, chosen: Counts | None = None) -> Enclosure:
        """Compute float64 scores; the error bound also covers the given arithmetic."""
        return self._points.scores(arithmetic, chosen)

    def exact_scores(self, chosen: Counts) -> ExactScores:
        """Compute exact scores, (points, outputs)."""
        return self._points.exact_scores(chosen)
