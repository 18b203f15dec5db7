"""A network on counterparts whose descendants move along, tabulated over the sensitive columns.

Each sensitive column adds its own amount to each descendant (`feta.relation.separated`). So the
first layer has one more column per sensitive column and descendant, with the slope of the
descendant, and people's rows hold the noise instead of the descendants.
"""

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from types import SimpleNamespace
from typing import TYPE_CHECKING, cast

import numpy as np

from feta.arrays import Answers, Counts, Matrix, Vector
from feta.relation.protocol import Relation
from feta.relation.separated import Separated
from feta.scorer.kernel import (
    KernelCounts,
    KernelRule,
    KernelSearch,
    KernelVote,
    LatticeKernel,
    Limits,
    References,
)
from feta.scorer.network.evaluation import Counterparts, Tabulated
from feta.scorer.network.native_kernel import MAX_COUNTERPARTS
from feta.scorer.protocol import Objective
from feta.scorer.restricted_rows import RestrictedRows
from feta.space.feature_space import FeatureSpace
from feta.space.vote_weights import VoteWeights

if TYPE_CHECKING:
    from feta.scorer.network.network import Network


@dataclass(frozen=True, eq=False)
class SeparatedNetwork(RestrictedRows):
    """Counterparts in a tabulated first layer, by noise instead of rows."""

    sums: Separated = field(kw_only=True)
    tabulated: Tabulated = field(kw_only=True)

    @classmethod
    def of(cls, network: "Network", relation: Relation) -> "SeparatedNetwork | None":
        """Return the network on the counterparts of a relation, if its first layer has slopes."""
        sums = relation.separated
        first = network.first
        if sums is None or np.isin(first.tabled, sums.columns).any():
            return None
        slopes = np.hstack([first.slopes, first.slopes[:, sums.repeated]])
        extended = replace(network, first=replace(first, slopes=slopes))
        # Lattices and tables read the axes only.
        tabulated = Tabulated(extended.exact, cast("Relation", sums))
        return cls(network, relation, sums=sums, tabulated=tabulated)

    def counterparts(self, people: Matrix, assignment_ids: Counts) -> Counterparts:  # type: ignore[override]  # the same protocol
        """Return the counterparts of each person with these assignments."""
        return self.tabulated.counterparts(self.sums.people(people), assignment_ids)

    def fits_kernel(self, space: FeatureSpace) -> bool:
        """Return whether the kernel accepts the lengths of the axes and the sizes of values."""
        return space.lattice.size < MAX_COUNTERPARTS and self.tabulated.fits_kernel(self._space)

    def kernel(
        self, space: FeatureSpace, rule: KernelRule, *, source_error: float, simd: bool
    ) -> LatticeKernel:
        """Return the network and a rule in the compiled kernel."""
        del space
        inner = self.tabulated.kernel(self._space, rule, source_error=source_error, simd=simd)
        return _SeparatedKernel(inner, self.sums)

    @property
    def _space(self) -> FeatureSpace:
        """What kernels read of a space: sizes of values; rows are not checked."""
        no_check = SimpleNamespace(usable=False)
        known = SimpleNamespace(magnitudes=self.sums.magnitudes, quick_check=no_check)
        return cast("FeatureSpace", known)


@dataclass(frozen=True, slots=True, eq=False)
class _SeparatedKernel:
    """A kernel that gets noise instead of people."""

    inner: LatticeKernel
    sums: Separated

    def tally(
        self,
        people: Matrix,
        *,
        majority: bool,
        weights: VoteWeights | None,
        limits: Limits,
        threads: int,
    ) -> KernelCounts:
        """Count decisions; with `majority`, stop once the majority is certain."""
        rows = self.sums.people(people)
        return self.inner.tally(
            rows, majority=majority, weights=weights, limits=limits, threads=threads
        )

    def majority(self, people: Matrix, *, threads: int) -> Answers | None:
        """Return None: rows are not checked."""
        del people, threads
        return None

    def mean_decisions(self, people: Matrix, vote: KernelVote, *, threads: int) -> Counts | None:
        """Return None: rows are not checked."""
        del people, vote, threads
        return None

    def find(self, people: Matrix, references: References, limits: Limits) -> KernelSearch:
        """Find counterparts that differ from their person's reference."""
        return self.inner.find(self.sums.people(people), references, limits)

    def worst(
        self,
        people: Matrix,
        objectives: Sequence[Objective],
        floors: Vector,
        *,
        approximate: bool,
        limits: Limits,
        threads: int,
    ) -> KernelSearch:
        """Find the counterparts that may have the largest objective, above each floor."""
        return self.inner.worst(
            self.sums.people(people),
            objectives,
            floors,
            approximate=approximate,
            limits=limits,
            threads=threads,
        )
