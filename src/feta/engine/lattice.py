"""Lattice engine: the answers of `exhaustive` from the native kernel in src/native/.

Where proved bounds allow it, the kernel counts whole regions of the lattice at once. It returns the
few counterparts that float64 cannot decide; those are decided in exact arithmetic here.
"""

import math
import os
from typing import ClassVar
from weakref import WeakKeyDictionary

from feta.arrays import Answers, Matrix
from feta.bounds.first_layer import tabulable
from feta.engine.lattice_kernel import LatticeKernel
from feta.engine.lattice_search import LatticeSearch
from feta.engine.lattice_span import SpanSearch
from feta.engine.order_statistics import spread_of
from feta.engine.protocol import Budget, Until, uncountable
from feta.engine.query_state import QueryState
from feta.engine.real_axis import RealAxisSearch, real_attribute
from feta.model import Model
from feta.query import Query, WorstAt
from feta.scorer.network import native_kernel
from feta.scorer.network.native_kernel import LONGEST_AXIS, MAX_COUNTERPARTS, fits_line
from feta.space.attribute import Derived, Real
from feta.space.vote_weights import VoteWeights
from feta.verdict.spread import Spread
from feta.verdict.tally import Tally
from feta.verdict.verdict import Verdict


class LatticeEngine:
    """Bounds and counts over the sensitive lattice, in native code."""

    name: ClassVar[str] = "lattice"
    about: ClassVar[str] = (
        "the same as exhaustive, compiled: proved bounds, exact where they fail"
        if native_kernel.native is not None
        else f"not built: exhaustive is used instead, {native_kernel.SLOWER}"
    )

    def __init__(self, *, threads: int | None = None, simd: bool = True) -> None:
        self.threads = threads or min(8, os.cpu_count() or 1)
        self.simd = simd
        self._kernels: WeakKeyDictionary[Model, LatticeKernel] = WeakKeyDictionary()
        self._real_axes: WeakKeyDictionary[Model, RealAxisSearch] = WeakKeyDictionary()

    @staticmethod
    def available() -> bool:
        """Return whether the kernel was built."""
        return native_kernel.native is not None

    def accepts(self, model: Model) -> bool:
        """Accept lattices of moderate axes, on networks that fit in float32.

        One sensitive attribute may be real-valued if there is one score. Models with several
        real-valued attributes need the engine `milp`.
        """
        if native_kernel.native is None or not model.relation.complete:
            return False
        if not model.space.finite:
            return model in self._real_axes or _has_one_real_axis(model)
        lattice = model.space.lattice
        if lattice.size >= MAX_COUNTERPARTS or max(map(len, lattice.axes)) > LONGEST_AXIS:
            return False
        return model in self._kernels or native_kernel.fits(model.scorer, model.space.magnitudes)

    def solve(self, query: Query, budget: Budget) -> Verdict:
        """Answer one query."""
        if not query.model.space.finite:
            return self._real_axis(query.model).solve(QueryState(query, budget, self.name))
        kernel = self._kernel(query.model)  # building it is not charged to the query
        state = QueryState(query, budget, self.name)
        search = LatticeSearch(kernel, state)
        worst = isinstance(query, WorstAt)
        if state.span is not None:
            return SpanSearch(search, state.span).solve(worst=worst)
        return search.worst() if worst else search.any()

    def tally(
        self,
        model: Model,
        people: Matrix,
        budget: Budget,
        *,
        until: Until,
        weights: VoteWeights | None = None,
    ) -> Tally:
        """Count the counterparts' decisions on several threads."""
        _check_countable(model)
        if weights is not None:
            weights.check(model.space)
        return self._kernel(model).tally(
            people, budget, until=until, weights=weights, threads=self.threads
        )

    def majority(self, model: Model, people: Matrix) -> Answers | None:
        """Decide by majority in native code, which also checks the rows.

        Return None where the kernel cannot: a row outside the space, a tie that needs exact
        arithmetic, or a shared column with a table.
        """
        _check_countable(model)
        kernel = self._kernel(model)
        if not kernel.reads_rows or not people.flags.c_contiguous:
            return None
        decisions: Answers | None = kernel.native.majority(
            people, kernel.of_two, kernel.ties_to_last, kernel.nodes, self.threads
        )
        return decisions

    def spread(
        self, model: Model, people: Matrix, budget: Budget, *, weights: VoteWeights | None = None
    ) -> Spread:
        """Compute each person's median, lowest and highest counterpart score.

        A median needs every score, so this enumerates as `exhaustive` does.
        """
        _check_countable(model)
        return spread_of(model, people, budget, weights)

    def _kernel(self, model: Model) -> LatticeKernel:
        kernel = self._kernels.get(model)
        if kernel is None:
            kernel = self._kernels[model] = LatticeKernel(model, simd=self.simd)
        return kernel

    def _real_axis(self, model: Model) -> RealAxisSearch:
        search = self._real_axes.get(model)
        if search is None:
            search = self._real_axes[model] = RealAxisSearch(model, simd=self.simd)
        return search


def _has_one_real_axis(model: Model) -> bool:
    real = real_attribute(model.space)
    if real is None or model.scorer.outputs != 1 or not tabulable(model):
        return False
    lengths = [
        attribute.n_values
        for attribute in model.space.sensitive
        if not isinstance(attribute, Real | Derived)
    ]
    short = max(lengths, default=1) <= LONGEST_AXIS and math.prod(lengths) < MAX_COUNTERPARTS
    short = short and fits_line(real.low, real.high)
    return short and native_kernel.fits(model.scorer, model.space.magnitudes)


def _check_countable(model: Model) -> None:
    real = real_attribute(model.space)
    if real is not None:
        raise uncountable(real.name)
