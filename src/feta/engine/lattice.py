"""Lattice: the same answers as `exhaustive`, from the compiled kernel in src/native/.

The kernel counts whole parts of the lattice at once where proved bounds allow it, and hands back the
few counterparts that float64 cannot settle; those go through exact arithmetic here.
"""

import math
import os
import time
from dataclasses import replace
from typing import Any, ClassVar
from weakref import WeakKeyDictionary

import numpy as np

from feta.arrays import Answers, Counts, Flags, Matrix
from feta.bounds.first_layer import tabulable
from feta.engine.lattice_span import SpanSearch, open_numbers
from feta.engine.order_statistics import spread_of
from feta.engine.protocol import Budget, Until
from feta.engine.query_state import QueryState
from feta.engine.real_axis import RealAxisSearch, real_attribute
from feta.errors import EngineError
from feta.model import EXACT_CHUNK, Model
from feta.query import Query, WorstAt
from feta.rule import Argmax, Deciding, Objective, OneVsRest, Threshold, Tolerance
from feta.scorer.network import native_kernel
from feta.scorer.network.evaluation import Rows
from feta.scorer.network.native_kernel import LONGEST_AXIS, MAX_COUNTERPARTS, fits_line, kernel_of
from feta.space.attribute import Derived, Real
from feta.space.vote_weights import VoteWeights
from feta.verdict.spread import Spread
from feta.verdict.tally import Tally
from feta.verdict.verdict import Fair, Reason, Unknown, Verdict

# Lattices up to this size are enumerated once bounding has cost a good part of that; larger ones
# are answered by bounds alone, or not in time.
ENUMERABLE = 10**7

# People are counted so many at a time that their undecided counterparts take at most 1 GB: eight bytes
# each, and twice that while a list of them grows.
OPEN_AT_A_TIME = 2**26

# The kernel gives up on a person who leaves more counterparts undecided (`most_open` in search.hpp).
MAX_OPEN = 2**24

# A bounded node costs about as much as this many scored counterparts.
NODE_COST = 5

RULES: dict[type[object], int] = {Threshold: 0, Argmax: 1, OneVsRest: 2, Tolerance: 3}


class LatticeEngine:
    """Bound and count over the sensitive lattice, compiled."""

    name: ClassVar[str] = "lattice"
    about: ClassVar[str] = (
        "the same as exhaustive, compiled: proved bounds, exact where they fail"
        if native_kernel.native is not None
        else f"not built: exhaustive is used instead, {native_kernel.SLOWER}"
    )

    def __init__(self, *, threads: int | None = None, simd: bool = True) -> None:
        self.threads = threads or min(8, os.cpu_count() or 1)
        self.simd = simd
        self._kernels: WeakKeyDictionary[Model, _Kernel] = WeakKeyDictionary()
        self._lines: WeakKeyDictionary[Model, RealAxisSearch] = WeakKeyDictionary()

    @staticmethod
    def available() -> bool:
        """Say whether the kernel was built."""
        return native_kernel.native is not None

    def accepts(self, model: Model) -> bool:
        """Take lattices of moderate axes, on networks that float32 can hold.

        One sensitive attribute may be real-valued where there is one score; several are left to milp.
        """
        if native_kernel.native is None:
            return False
        if not model.space.finite:
            return model in self._lines or _has_a_line(model)
        lattice = model.space.lattice
        if lattice.size >= MAX_COUNTERPARTS or max(map(len, lattice.axes)) > LONGEST_AXIS:
            return False
        return model in self._kernels or native_kernel.fits(model.network, model.space.magnitudes)

    def solve(self, query: Query, budget: Budget) -> Verdict:
        """Answer one question."""
        if not query.model.space.finite:
            along = self._lines.get(query.model)
            if along is None:
                along = self._lines[query.model] = RealAxisSearch(query.model, simd=self.simd)
            return along.solve(QueryState(query, budget, self.name))
        search = _LatticeSearch(self._kernel(query.model), query, budget)
        worst = isinstance(query, WorstAt)
        if search.state.span is not None:
            return SpanSearch(search, search.state.span).solve(worst=worst)
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
        """Count the counterparts' decisions, over threads."""
        _refuse_real(model)
        if weights is not None:
            weights.check(model.space)
        return self._kernel(model).tally(people, budget, until, weights, self.threads)

    def majority(self, model: Model, people: Matrix) -> Answers | None:
        """Decide by the majority, all in compiled code, the check of the rows included.

        None where it takes more than that: a row outside the space, a tie that only exact arithmetic
        tells, a column that has a table.
        """
        _refuse_real(model)
        kernel = self._kernel(model)
        if not kernel.reads_rows or not people.flags.c_contiguous:
            return None
        found: Answers | None = kernel.native.majority(
            people, kernel.of_two, kernel.ties_to_last, kernel.nodes, self.threads
        )
        return found

    def spread(
        self, model: Model, people: Matrix, budget: Budget, *, weights: VoteWeights | None = None
    ) -> Spread:
        """Find each person's median, lowest and highest counterpart score: all of them are needed."""
        _refuse_real(model)
        return spread_of(model, people, budget, weights)

    def _kernel(self, model: Model) -> "_Kernel":
        kernel = self._kernels.get(model)
        if kernel is None:
            kernel = self._kernels[model] = _Kernel(model, simd=self.simd)
        return kernel


class _Kernel:
    """A model handed over to the compiled code, once."""

    def __init__(self, model: Model, *, simd: bool) -> None:
        self.space, self.rule = model.space, model.rule
        self.first, self.shared = model.network.first, model.tabulated.shared.tolist()
        self.tabulated = model.tabulated
        # Axes are short here, so all of them are tabulated.
        tables = [table for table in model.tabulated.tables if table is not None]
        self.native: Any = kernel_of(model.network, tables, source_error=model.runtime_error)
        self.native.set_rule(*_rule(model))
        self.reads_rows = self._read_rows(model)
        self.of_two = not isinstance(self.rule, Argmax)
        self.ties_to_last = not isinstance(self.rule, Tolerance) and self.rule.ties_to == "last"
        self.native.finish(simd)
        size = self.space.lattice.size
        self.nodes = max(16, size // (4 * NODE_COST)) if size <= ENUMERABLE else 0

    def _read_rows(self, model: Model) -> bool:
        """Let the kernel read people's shared columns itself, where the first layer has slopes for them."""
        check = model.space.quick_check
        if isinstance(self.rule, Tolerance) or not check.usable:
            return False
        if any(table.column in self.shared for table in self.first.tables):
            return False
        assert check.columns.tolist() == self.shared
        group = np.full(len(check.columns), -1, dtype=np.int32)
        indices, groups = np.nonzero(check.members)
        group[indices] = groups
        self.native.set_shared(
            model.space.width,
            check.columns.astype(np.int32),
            np.ascontiguousarray(self.first.slopes[:, self.shared].T),
            check.lows,
            check.highs,
            check.integral.astype(np.uint8),
            group,
        )
        return True

    def constants(self, people: Matrix) -> tuple[Matrix, Matrix]:
        """Add up what people's other columns contribute, and the terms' sizes."""
        values, sizes = self.first.terms(people[:, self.shared], self.shared)
        return np.ascontiguousarray(values), np.ascontiguousarray(sizes)

    def tally(
        self,
        people: Matrix,
        budget: Budget,
        until: Until,
        weights: VoteWeights | None,
        threads: int,
    ) -> Tally:
        """Count with the kernel, then settle what it left open; some people at a time."""
        asked = self.space.lattice.size if weights is None else len(weights.assignment_ids)
        deadline, many = budget.deadline(), max(1, OPEN_AT_A_TIME // max(1, min(asked, MAX_OPEN)))
        cells = []
        for start in range(0, max(1, len(people)), many):
            some = people[start : start + many]
            if budget.seconds is not None:
                budget = replace(budget, seconds=max(0.0, deadline - time.monotonic()))
            cells.append(self._tally_some(some, budget, until, weights, threads))
        return Tally.joined(cells)

    def _tally_some(
        self,
        people: Matrix,
        budget: Budget,
        until: Until,
        weights: VoteWeights | None,
        threads: int,
    ) -> Tally:
        assert not isinstance(self.rule, Tolerance)  # the front door refuses it
        deadline = budget.deadline()
        limits = _limits(budget, deadline)
        constants = self.constants(people)
        majority = until == "majority"
        if weights is None:
            total = self.space.lattice.size
            told = self.native.tally(*constants, majority, *limits, self.nodes, threads)
        else:
            total = weights.total
            listed = (weights.assignment_ids.astype(np.uint64), weights.votes.astype(np.uint64))
            told = self.native.tally_listed(*constants, *listed, majority, *limits, threads)
        counts = told["counts"].astype(np.int64)
        runtime_safe = told["safe"].astype(bool)
        for row, assignment_ids in told["open"].items():
            runtime_safe[row] = False
            if (
                majority
                and _tally(
                    self.rule, counts[row : row + 1], total, runtime_safe[row : row + 1]
                ).decided[0]
            ):
                continue
            self._settle(people[row], assignment_ids.view(np.int64), counts[row], weights, deadline)
        return _tally(self.rule, counts, total, runtime_safe)

    def _settle(
        self,
        person: Matrix,
        assignment_ids: Counts,
        counts: Counts,
        weights: VoteWeights | None,
        deadline: float,
    ) -> None:
        """Count open counterparts by exact arithmetic, until the deadline."""
        assert not isinstance(self.rule, Tolerance)
        order = None if weights is None else np.argsort(weights.assignment_ids)
        for start in range(0, len(assignment_ids), EXACT_CHUNK):
            if time.monotonic() > deadline:
                return
            chunk = assignment_ids[start : start + EXACT_CHUNK]
            points = self.tabulated.counterparts(person[None, :], chunk)
            decisions = self.rule.decide_exactly(points.exact_scores(np.arange(len(chunk))))
            votes: Counts | int = 1
            if weights is not None:
                votes = weights.votes[
                    order[np.searchsorted(weights.assignment_ids, chunk, sorter=order)]  # type: ignore[index]  # sorted above
                ]
            np.add.at(counts, decisions, votes)


class _LatticeSearch:
    """One question about one person."""

    def __init__(self, kernel: _Kernel, query: Query, budget: Budget) -> None:
        self.kernel = kernel
        self.state = QueryState(query, budget, LatticeEngine.name)
        self.model = query.model
        self.constants = kernel.constants(query.person[None, :])

    def any(self) -> Verdict:
        """Find a counterpart treated apart, or prove that there is none."""
        state = self.state
        told = self.find()
        if told["found"][0]:
            return state.unfair(int(told["number"][0]))
        if not told["finished"][0]:
            return self.spent(None)
        differs = state.differs(open_numbers(told))
        if differs is None:
            return state.unknown()
        if len(differs):
            return state.unfair(int(differs[0]))
        return state.fair(runtime_safe=bool(told["safe"][0]) and not told["open"])

    def worst(self) -> Verdict:
        """Find the counterpart farthest on the other side, the first of them on a tie."""
        state = self.state
        told = self.farthest(state.objective, state.objective.level, nearly=False)
        assignment_ids = open_numbers(told)
        if not told["finished"][0]:
            return self.spent(int(assignment_ids[0]) if len(assignment_ids) else None)
        if len(assignment_ids):  # else no counterpart reaches the level at all
            best = state.farthest(assignment_ids)
            if best is None:
                return state.unknown(int(assignment_ids[0]))
            verdict = state.worst(best, runtime_safe=False)
            if not isinstance(verdict, Fair):
                return verdict
        told = self.find()  # whether the runtime is sure of it, too, is another question
        if told["found"][0]:
            return state.unfair(int(told["number"][0]))
        sure = told["finished"][0] and told["safe"][0] and not told["open"]
        return state.fair(runtime_safe=bool(sure))

    def farthest(self, goal: Objective, floor: float, *, nearly: bool) -> dict[str, Any]:
        offsets = np.broadcast_to(goal.offsets.floats(), len(goal.directions))
        told: dict[str, Any] = self.kernel.native.worst(
            *self.constants,
            np.ascontiguousarray(goal.directions)[None],
            np.ascontiguousarray(offsets)[None],
            np.zeros(1, dtype=np.int32),
            np.array([floor]),
            nearly,
            goal.least,
            *self._limits,
            1,
        )
        self._count(told)
        return told

    def _count(self, told: dict[str, Any]) -> None:
        """Note what a search has cost; several of one question share its budget."""
        if self.state.span is not None:
            self.state.budget_tracker.evaluations += int(told["bounded"][0]) + int(
                told["scored"][0]
            )

    @property
    def _limits(self) -> tuple[float, int]:
        budget_tracker = self.state.budget_tracker
        seconds, evaluations = _limits(budget_tracker.budget, budget_tracker.deadline)
        return seconds, max(1, evaluations - budget_tracker.evaluations) if evaluations else 0

    def spent(self, number: int | None) -> Unknown:
        """Answer that the budget ran out, and which part of it."""
        budget_tracker = self.state.budget_tracker
        budget_tracker.reason = Reason.OUT_OF_NODES if budget_tracker.left() else Reason.OUT_OF_TIME
        return self.state.unknown(number)

    def find(self) -> dict[str, Any]:
        rule = self.model.rule
        reference, center, half = 0, 0.0, 0.0
        if isinstance(rule, Tolerance):
            assert self.state.span is not None
            band = rule.comparator(self.state.span.scores)
            center, half = float(band.center), band.half
        else:
            rows = Rows(self.model.exact, self.state.query.person[None, :])
            reference = int(self.model.resolve(rows, rule).decisions[0])
        told: dict[str, Any] = self.kernel.native.find(
            *self.constants,
            np.array([reference], dtype=np.int32),
            np.array([center]),
            half,
            *self._limits,
            self.kernel.nodes,
        )
        self._count(told)
        return told


def _has_a_line(model: Model) -> bool:
    real = real_attribute(model.space)
    if real is None or model.network.outputs != 1 or not tabulable(model):
        return False
    lengths = [one.n_values for one in model.space.sensitive if not isinstance(one, Real | Derived)]
    short = max(lengths, default=1) <= LONGEST_AXIS and math.prod(lengths) < MAX_COUNTERPARTS
    short = short and fits_line(real.low, real.high)
    return short and native_kernel.fits(model.network, model.space.magnitudes)


def _refuse_real(model: Model) -> None:
    """Raise where counterparts cannot be counted."""
    real = real_attribute(model.space)
    if real is not None:
        message = f"{real.name!r} has uncountably many values: declare it integer, or give a step"
        raise EngineError(message)


def _limits(budget: Budget, deadline: float) -> tuple[float, int]:
    """Tell the kernel what may be spent: seconds until the deadline, and evaluations a person.

    There 0 is no limit; the root of the lattice is bounded in any case.
    """
    seconds = -1.0 if budget.seconds is None else max(0.0, deadline - time.monotonic())
    return seconds, 0 if budget.evaluations is None else max(1, int(budget.evaluations))


def _rule(model: Model) -> tuple[int, float, bool, int, int, int]:
    """Tell the kernel the rule: kind, threshold, favors above, chosen class, outputs, classes."""
    rule = model.rule
    value, above, chosen = 0.0, True, 0
    if isinstance(rule, Threshold):
        value, above = rule.value, rule.favors == "above"
    elif isinstance(rule, OneVsRest):
        chosen = rule.index
    return RULES[type(rule)], value, above, chosen, rule.outputs, max(2, rule.n_classes)


def _tally(rule: Deciding, counts: Counts, total: int, runtime_safe: Flags) -> Tally:
    undecided = total - counts.sum(axis=1)
    return Tally(counts, undecided, runtime_safe & (undecided == 0), rule.ties_to)
