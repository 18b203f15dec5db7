"""Points of an ensemble: the members' points through curves, added with weights."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from feta.arrays import Counts, Matrix
from feta.cells.cells import Cells
from feta.dyadic import Dyadic
from feta.relation.protocol import Relation
from feta.rounding import FLOAT64, Arithmetic, upward
from feta.scorer.cell_bounds import CellBounds
from feta.scorer.exact_scores import ExactScores
from feta.scorer.kernel import KernelRule, LatticeKernel, LineKernel
from feta.scorer.program_encoder import LpSession, ProgramBounds, ProgramEncoder
from feta.scorer.protocol import CounterpartPoints, Enclosure, Objective, Points, Restricted
from feta.scorer.restricted_rows import RestrictedRows
from feta.space.feature_space import FeatureSpace

if TYPE_CHECKING:
    from feta.arrays import Vector
    from feta.scorer.ensemble.ensemble import Ensemble


@dataclass(frozen=True, slots=True, eq=False)
class EnsembleRows:
    """People, one per row, as points of every member."""

    ensemble: "Ensemble"
    members: Sequence[Points]

    def __len__(self) -> int:
        return len(self.members[0])

    def scores(self, arithmetic: Arithmetic, chosen: Counts | None = None) -> Enclosure:
        """Compute float64 scores; the error bound also covers the given arithmetic."""
        return add(self.ensemble, self.members, arithmetic, chosen)

    def exact_scores(self, chosen: Counts) -> ExactScores:
        """Compute exact scores, or intervals where a member's curve is smooth."""
        return add_exactly(self.ensemble, self.members, chosen)


@dataclass(frozen=True, slots=True, eq=False)
class EnsembleCounterparts:
    """Counterparts with these assignments of the first person, then of the second, and so on."""

    ensemble: "Ensemble"
    members: Sequence[CounterpartPoints]

    def __len__(self) -> int:
        return len(self.members[0])

    @property
    def people(self) -> Matrix:
        """The people whose counterparts these are."""
        return self.members[0].people

    @property
    def assignment_ids(self) -> Counts:
        """The assignments of each person's counterparts."""
        return self.members[0].assignment_ids

    def scores(self, arithmetic: Arithmetic, chosen: Counts | None = None) -> Enclosure:
        """Compute float64 scores; the error bound also covers the given arithmetic."""
        return add(self.ensemble, self.members, arithmetic, chosen)

    def exact_scores(self, chosen: Counts) -> ExactScores:
        """Compute exact scores, or intervals where a member's curve is smooth."""
        return add_exactly(self.ensemble, self.members, chosen)


@dataclass(frozen=True, slots=True, eq=False)
class RestrictedEnsemble:
    """The members on people's counterparts; each member caches what it can."""

    ensemble: "Ensemble"
    members: Sequence[Restricted]
    rows: RestrictedRows

    @classmethod
    def of(cls, ensemble: "Ensemble", relation: Relation) -> "RestrictedEnsemble":
        """Restrict every member."""
        members = tuple(member.scorer.restrict(relation) for member in ensemble.members)
        return cls(ensemble, members, RestrictedRows(ensemble, relation))

    def counterparts(self, people: Matrix, assignment_ids: Counts) -> EnsembleCounterparts:
        """Return the counterparts of each person with these assignments."""
        points = tuple(member.counterparts(people, assignment_ids) for member in self.members)
        return EnsembleCounterparts(self.ensemble, points)

    @property
    def bounds_cells(self) -> bool:
        """False: an ensemble is only evaluated."""
        return False

    def over(
        self, person: "Vector", cells: Cells, objective: Objective, *, source_error: float
    ) -> CellBounds:
        """Raise: an ensemble is only evaluated."""
        return self.rows.over(person, cells, objective, source_error=source_error)

    def influence(self, cells: Cells) -> Matrix:
        """Raise: an ensemble is only evaluated."""
        return self.rows.influence(cells)

    def encoder(
        self, space: FeatureSpace, bounds: ProgramBounds, lp_session: Callable[[], LpSession]
    ) -> ProgramEncoder:
        """Raise: an ensemble is only evaluated."""
        return self.rows.encoder(space, bounds, lp_session)

    def fits_kernel(self, space: FeatureSpace) -> bool:
        """Return False: there is no kernel for ensembles."""
        return self.rows.fits_kernel(space)

    def kernel(
        self, space: FeatureSpace, rule: KernelRule, *, source_error: float, simd: bool
    ) -> LatticeKernel:
        """Raise: there is no kernel for ensembles."""
        return self.rows.kernel(space, rule, source_error=source_error, simd=simd)

    def fits_line(self, space: FeatureSpace) -> bool:
        """Return False: real-valued attributes are not searched."""
        return self.rows.fits_line(space)

    def line(self, *, source_error: float, simd: bool) -> LineKernel:
        """Raise: real-valued attributes are not searched."""
        return self.rows.line(source_error=source_error, simd=simd)


def add(
    ensemble: "Ensemble", points: Sequence[Points], arithmetic: Arithmetic, chosen: Counts | None
) -> Enclosure:
    """Add the members' values with their weights."""
    parts = []
    for member, own in zip(ensemble.members, points, strict=True):
        exact = arithmetic is FLOAT64
        scores = own.scores(FLOAT64 if exact else member.scorer.arithmetic, chosen)
        for curve in member.curves:
            scores = curve.enclose(scores, arithmetic)
        parts.append(scores)
    values = np.hstack([part.values for part in parts])
    errors = np.hstack([part.errors for part in parts])
    weights, sizes = ensemble.weights.T, np.abs(ensemble.weights).T
    n_terms = len(weights) + 2  # the bias, and the division
    rounding = FLOAT64.gamma(n_terms)
    if arithmetic is not FLOAT64:
        rounding += arithmetic.gamma(n_terms)
    totals = (values @ weights + ensemble.bias) / ensemble.denominator
    with np.errstate(invalid="ignore"):  # inf · 0 where nothing is known
        size = np.abs(values) @ sizes + np.abs(ensemble.bias)
        widths = (rounding * size + errors @ sizes) / ensemble.denominator
    return Enclosure(totals, widths * upward(n_terms) + FLOAT64.tiny * n_terms)


def add_exactly(ensemble: "Ensemble", points: Sequence[Points], chosen: Counts) -> ExactScores:
    """Add the members' exact values with their weights."""
    total = ExactScores(Dyadic.of(np.tile(ensemble.bias, (len(chosen), 1))))
    start = 0
    for member, own in zip(ensemble.members, points, strict=True):
        scores = own.exact_scores(chosen)
        for curve in member.curves:
            scores = curve.exactly(scores)
        weights = ensemble.weights[:, start : start + member.outputs]
        total = _sum(total, scores.combined(weights))
        start += member.outputs
    return total.over(ensemble.denominator)


def _sum(left: ExactScores, right: ExactScores) -> ExactScores:
    centers = left.centers + right.centers
    if left.radii is None and right.radii is None:
        return ExactScores(centers)
    return ExactScores(centers, left.radius + right.radius)
