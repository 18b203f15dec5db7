"""Networks passed to the compiled kernel in `src/native/`."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING
from weakref import WeakKeyDictionary

import numpy as np

from feta.arrays import Answers, Counts, Matrix, Vector
from feta.scorer.kernel import (
    KernelCounts,
    KernelRule,
    KernelSearch,
    KernelVote,
    Limits,
    References,
)
from feta.scorer.native import native
from feta.scorer.network.error_bounds import largest_activations
from feta.scorer.network.smooth.activation import Smooth
from feta.scorer.network.smooth.native_smooth import native_smooth
from feta.scorer.protocol import Objective
from feta.space.feature_space import FeatureSpace
from feta.space.vote_weights import VoteWeights

if TYPE_CHECKING:
    from feta._native import Kernel, MeanVote, Results
    from feta.scorer.network.evaluation import Tabulated
    from feta.scorer.network.network import Network

# Limits of the kernel. It would take seconds to split longer axes. Counts have 64 bits, and so do
# sums of two counts.
LONGEST_AXIS = 4096
MAX_COUNTERPARTS = 2**62

# The kernel uses float32, which ends at 3e38; sums of products must be much smaller.
LARGEST_ACTIVATION = 1e30

# Lattices up to this size are enumerated once bounding has cost a large part of that. Larger ones
# are decided by bounds alone, or remain undecided.
ENUMERABLE = 10**7

# Bounding a node costs about as much as scoring this many counterparts.
NODE_COST = 5

# Majorities over smaller lattices are found faster by whole nodes and dense batches of points.
FORMS_FROM = 4096

# The codes of comparisons in spec.hpp.
CODES = {"threshold": 0, "argmax": 1, "one_vs_rest": 2, "band": 3}


@dataclass(frozen=True, slots=True, eq=False)
class RealTerms:
    """A real-valued sensitive attribute: its range, and its slopes in the first layer."""

    low: float
    high: float
    slopes: Vector


# The first-layer terms of one sensitive attribute: each value's terms and sizes, or slopes.
AxisTerms = tuple[Matrix, Matrix] | RealTerms


def fits(network: "Network", magnitudes: Vector) -> bool:
    """Return whether the kernel's float32 can represent all values of a network over a space."""
    sizes = [largest.max() for largest in largest_activations(network, magnitudes)]
    weights = [np.abs(layer.weight).max() for layer in network.layers]
    slopes = np.abs(network.first.slopes).max(initial=0.0)
    magnitudes_cancelled = [
        network.first.cancelled_magnitude.max(),
        *(layer.cancelled_magnitude.max() for layer in network.layers),
    ]
    largest_values = (*sizes, *weights, *magnitudes_cancelled, slopes)
    return all(value < LARGEST_ACTIVATION for value in largest_values)


def fits_line(low: float, high: float) -> bool:
    """Return whether the kernel can split the range of a real-valued attribute."""
    return high - low < LARGEST_ACTIVATION


def kernel_of(
    network: "Network", axes: Sequence[AxisTerms], *, source_error: float = 0.0
) -> "Kernel":
    """Return a kernel with the layers of a network.

    The caller sets a rule, if any, and calls `finish`.
    """
    first, arithmetic = network.first, network.arithmetic
    kernel = native.Kernel(
        first.bias, first.cancelled_magnitude + np.zeros(first.outputs), first.width
    )
    for axis in axes:
        if isinstance(axis, RealTerms):
            kernel.add_real_axis(axis.low, axis.high, np.ascontiguousarray(axis.slopes))
        else:
            kernel.add_axis(*map(np.ascontiguousarray, axis))
    for activation, layer in network.steps:
        cancelled = layer.cancelled_magnitude + np.zeros_like(layer.bias)
        affine = (layer.weight, layer.bias, cancelled)
        if isinstance(activation, Smooth):
            kernel.add_smooth_layer(*native_smooth(activation), *affine)
        else:
            pieces = (activation.breaks, activation.slopes, activation.intercepts)
            kernel.add_layer(*pieces, *affine)
    kernel.set_source(
        arithmetic.unit, arithmetic.tiny, arithmetic.huge, arithmetic.extra, source_error
    )
    return kernel


class NetworkKernel:
    """A network and a rule in the kernel, over a finite lattice; the engine accepts short axes."""

    def __init__(
        self,
        tabulated: "Tabulated",
        space: FeatureSpace,
        rule: KernelRule,
        *,
        source_error: float,
        simd: bool,
    ) -> None:
        self.rule, self.tabulated = rule, tabulated
        tables = [table for table in tabulated.tables if table is not None]
        assert len(tables) == len(tabulated.relation.axes)  # `fits_kernel` rejects other axes
        self._native = kernel_of(tabulated.network, tables, source_error=source_error)
        self._native.set_rule(
            CODES[rule.comparison],
            rule.value,
            rule.above,
            rule.chosen,
            rule.outputs,
            rule.classes,
        )
        self._reads_rows = self._set_shared_columns(space)
        self._of_two = rule.comparison != "argmax"
        self._native.set_forms_from(FORMS_FROM)
        self._native.finish(simd)
        self._votes: WeakKeyDictionary[KernelVote, MeanVote] = WeakKeyDictionary()
        size = tabulated.lattice.size
        self._nodes = max(16, size // (4 * NODE_COST)) if size <= ENUMERABLE else 0

    def _set_shared_columns(self, space: FeatureSpace) -> bool:
        """Let the kernel read people's rows, if the first layer has slopes for all shared columns.

        Return whether it can.
        """
        check = space.quick_check
        if self.rule.comparison == "band" or not check.usable:
            return False
        first, shared = self.tabulated.network.first, self.tabulated.shared
        if np.isin(first.tabled, shared).any():
            return False
        assert check.columns.tolist() == shared.tolist()
        group = np.full(len(check.columns), -1, dtype=np.int32)
        indices, groups = np.nonzero(check.members)
        group[indices] = groups
        self._native.set_shared(
            space.width,
            check.columns.astype(np.int32),
            np.ascontiguousarray(first.slopes[:, shared].T),
            check.lows,
            check.highs,
            check.integral.astype(np.uint8),
            group,
        )
        return True

    def _constants(self, people: Matrix) -> tuple[Matrix, Matrix]:
        """Sum the first-layer terms of people's shared columns; return also the terms' sizes."""
        values, sizes = self.tabulated.shared_terms(people)
        return np.ascontiguousarray(values), np.ascontiguousarray(sizes)

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
        constants = self._constants(people)
        bounds = (limits.seconds, limits.evaluations)
        if weights is None:
            result = self._native.tally(*constants, majority, *bounds, self._nodes, threads)
        else:
            listed = (weights.assignment_ids.astype(np.uint64), weights.votes.astype(np.uint64))
            result = self._native.tally_listed(*constants, *listed, majority, *bounds, threads)
        counts, runtime_safe = result.counts.astype(np.int64), result.runtime_safe.astype(bool)
        return KernelCounts(counts, runtime_safe, _undecided(result))

    def majority(self, people: Matrix, *, threads: int) -> Answers | None:
        """Decide each row by majority; None if a row is invalid or needs exact arithmetic."""
        if not self._reads_rows or not people.flags.c_contiguous:
            return None
        decisions: Answers | None = self._native.majority(
            people, self._of_two, self.rule.ties_to_last, self._nodes, threads
        )
        return decisions

    def mean_decisions(self, people: Matrix, vote: KernelVote, *, threads: int) -> Counts | None:
        """Decide each row by a mean; None if the kernel cannot read the row."""
        if not self._reads_rows or not people.flags.c_contiguous:
            return None
        if vote not in self._votes:
            self._votes[vote] = self._native.mean_vote(
                vote.assignment_ids.astype(np.uint64),
                vote.votes.astype(np.uint64),
                vote.thresholds,
                vote.grades.astype(np.float64),
                vote.above,
                vote.edge,
            )
        decisions = self._native.means(people, self._votes[vote], threads)
        return None if decisions is None else decisions.astype(np.int64)

    def find(self, people: Matrix, references: References, limits: Limits) -> KernelSearch:
        """Find counterparts that differ from their person's reference."""
        result = self._native.find(
            *self._constants(people),
            references.decisions.astype(np.int32),
            references.centers,
            references.half,
            limits.seconds,
            limits.evaluations,
            self._nodes,
        )
        return _search(result)

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
        """Find the counterparts that may have the largest objective, above each person's floor."""
        different = list({id(objective): objective for objective in objectives}.values())
        kinds = {id(objective): kind for kind, objective in enumerate(different)}
        # The kernel takes directions by kind, and offsets by person.
        known = [
            np.broadcast_to(objective.offsets.floats(), len(objective.directions))
            for objective in different
        ]
        offsets = np.array([known[kinds[id(objective)]] for objective in objectives])
        assert offsets.shape == (len(people), len(different[0].directions))
        result = self._native.worst(
            *self._constants(people),
            np.ascontiguousarray([objective.directions for objective in different]),
            offsets,
            np.array([kinds[id(objective)] for objective in objectives], dtype=np.int32),
            floors,
            approximate,
            different[0].least,
            limits.seconds,
            limits.evaluations,
            threads,
        )
        return _search(result)


def _search(result: "Results") -> KernelSearch:
    return KernelSearch(
        found=result.has_match.astype(bool),
        assignment_ids=result.assignment_ids.astype(np.int64),
        finished=result.finished.astype(bool),
        runtime_safe=result.runtime_safe.astype(bool),
        undecided=_undecided(result),
        cost=(result.bounded_nodes + result.scored_points).astype(np.int64),
    )


def _undecided(result: "Results") -> dict[int, Counts]:
    return {row: np.sort(ids.astype(np.int64)) for row, ids in result.undecided_ids.items()}
