"""Tree ensembles passed to the compiled kernel in `src/native/`.

The kernel adds integers, so all its decisions are exact. It replays the library's own sum where
its rounding could change a decision.
"""

import math
from collections.abc import Sequence
from fractions import Fraction
from importlib import import_module
from typing import TYPE_CHECKING, Any

import numpy as np

from feta.arrays import Answers, Array, Counts, Matrix, Vector
from feta.errors import DomainError
from feta.rounding import FLOAT64, upward
from feta.scorer.forest.axis_groups import AxisGroups, SensitiveNodes
from feta.scorer.forest.trees import CUT, LEAF, SET, OneHot
from feta.scorer.forest.units import WIDE
from feta.scorer.kernel import (
    KernelCounts,
    KernelRule,
    KernelSearch,
    KernelVote,
    Limits,
    References,
)
from feta.scorer.protocol import Objective
from feta.space.feature_space import FeatureSpace
from feta.space.vote_weights import VoteWeights

if TYPE_CHECKING:
    from feta._forest import ForestResults
    from feta.scorer.forest.restricted import RestrictedForest

try:
    native: Any = import_module("feta._forest")
except ImportError:  # installed without a compiler
    native = None

# Limits of the kernel: axes, sums in one table (64 MB), and counts of 64 bits.
MAX_AXES = 8
MAX_CELLS = 2**22
MAX_COUNTERPARTS = 2**62

# Bytes of the sets of leaves by shared value; larger ensembles are followed tree by tree.
MAX_SET_BYTES = 2**27

# The codes of comparisons in spec.hpp, and of tests in forest_spec.hpp.
CODES = {"threshold": 0, "argmax": 1, "one_vs_rest": 2, "band": 3}
ON_AXIS = 3
ROW_DIMENSIONS = 2

# The center of a band is rounded, and so is half its width: relative to the sizes of scores.
BAND_ROUNDING = Fraction(1, 2**50)


def is_built() -> bool:
    """Return whether the kernel was compiled."""
    return native is not None


class ForestKernel:
    """An ensemble and a rule in the kernel, over a finite lattice."""

    def __init__(
        self,
        restricted: "RestrictedForest",
        space: FeatureSpace,
        rule: KernelRule,
        *,
        source_error: float,
    ) -> None:
        self.rule, self.space, self.restricted = rule, space, restricted
        self.forest, self.units = restricted.forest, restricted.units
        assert restricted.sensitive is not None  # the engine asked `fits_kernel`
        self._groups = restricted.sensitive.groups
        self._native = native.ForestKernel(self.forest.width, self.units.bits == WIDE)
        self._add_nodes(restricted.sensitive)
        self._add_axes()
        self._set_leaves()
        self._set_rule(source_error)
        self._checks_rows = self._set_limits()
        self._native.finish(MAX_SET_BYTES)

    def _add_nodes(self, sensitive: SensitiveNodes) -> None:
        """Pass the nodes; those on sensitive attributes have masks."""
        trees = self.forest.trees
        on_axis = sensitive.axis >= 0
        test = np.where(on_axis, ON_AXIS, trees.kind)
        source = np.where(on_axis, sensitive.mask, trees.source)
        leaf_ids = np.zeros(len(trees.kind), dtype=np.int64)
        leaf_ids[self.units.leaves] = np.arange(len(self.units.leaves))
        source = np.where(trees.kind == LEAF, leaf_ids, source)
        sets = (trees.kind == SET) & ~on_axis
        numbers = self._add_domains(np.unique(trees.source[sets]))
        source[sets] = numbers[trees.source[sets]]
        extra = np.where(trees.kind == CUT, trees.flag, trees.start)
        links = np.stack([source, extra, trees.left, trees.right, sensitive.axis], axis=1)
        self._native.add_nodes(
            trees.roots.astype(np.int32),
            test.astype(np.uint8),
            np.ascontiguousarray(trees.cut, dtype=np.float64),
            np.ascontiguousarray(links, dtype=np.int32),
            trees.missing_left.astype(np.uint8),
            trees.members.astype(np.uint8),
        )

    def _add_domains(self, used: Counts) -> Counts:
        """Pass the domains of shared attributes, each once; return the numbers of all domains."""
        domains = self.forest.trees.domains
        numbers, known = np.zeros(max(1, len(domains)), dtype=np.int64), dict[object, int]()
        for index in used.tolist():
            domain = domains[index]
            if isinstance(domain, OneHot):
                facts = (domain.first, domain.width, -1, np.zeros(0))
            else:
                facts = (domain.column, 1, domain.flag, np.array(domain.numbers, dtype=np.float64))
            key = (*facts[:3], facts[3].tobytes())
            if key not in known:
                known[key] = len(known)
                self._native.add_domain(*facts)
            numbers[index] = known[key]
        return numbers

    def _add_axes(self) -> None:
        stride = self.restricted.lattice.size
        for axis, groups in zip(self.restricted.relation.axes, self._groups, strict=True):
            stride //= len(axis)
            sizes, first = groups.sizes.astype(np.uint64), groups.first.astype(np.uint64)
            self._native.add_axis(groups.ordered, stride, sizes, first, _words(groups))

    def _set_leaves(self) -> None:
        """Pass the leaf values as integers, and the library's own sum."""
        forest, units, summation = self.forest, self.units, self.forest.summation
        unit = float(Fraction(2) ** units.exponent / forest.denominator)
        self._native.set_leaves(units.pairs(units.values), units.pairs(units.base), unit)
        self._native.set_replay(
            summation.format == "float32",
            summation.divide,
            units.terms,
            np.abs(forest.trees.values[units.leaves]),
            np.array(summation.start, dtype=np.float64),
            np.abs(forest.base),
            np.array(forest.directions, dtype=np.float64),
            float(forest.denominator),
            FLOAT64.gamma(units.n_terms) * upward(units.n_terms),
        )

    def _set_rule(self, source_error: float) -> None:
        rule, threshold = self.rule, self.units.of(self.rule.value)
        # A tie counts as above the threshold if that is the side it is decided for.
        ties_above = rule.ties_favorable == rule.above
        least_above = math.ceil(threshold) if ties_above else math.floor(threshold) + 1
        self._radius = self._in_units(self.units.radius + source_error)
        bounds = [
            least_above,
            math.floor(threshold) - self._radius,
            math.ceil(threshold) + self._radius,
            2 * self._radius,
        ]
        self._native.set_rule(
            CODES[rule.comparison],
            rule.value,
            rule.above,
            rule.chosen,
            rule.classes,
            self.units.pairs(bounds),
            source_error,
        )

    def _set_limits(self) -> bool:
        """Pass the valid values of shared columns; return whether the kernel can check rows."""
        check = self.space.quick_check
        if not check.usable:
            return False
        # The columns of a category are adjacent.
        groups = check.members @ np.arange(1, check.members.shape[1] + 1) - 1
        self._native.set_limits(
            check.columns.astype(np.int32),
            check.lows.astype(np.float64),
            check.highs.astype(np.float64),
            check.integral.astype(np.uint8),
            groups.astype(np.int32),
        )
        return True

    def _in_units(self, size: float) -> int:
        """Round a size up to units; one that is not finite, to more than any score."""
        return math.ceil(self.units.of(size)) if math.isfinite(size) else 1 << self.units.bits

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
        rows, bounds = _rows(people), (limits.seconds, limits.evaluations, threads)
        if weights is None:
            result = self._native.tally(rows, majority, *bounds)
        else:
            result = self._native.tally_listed(rows, *self._listed(weights), *bounds)
        counts, runtime_safe = result.counts.astype(np.int64), result.runtime_safe.astype(bool)
        return KernelCounts(counts, runtime_safe, {})

    def _listed(self, weights: VoteWeights) -> tuple[Array, Array]:
        """Return the groups of listed assignments, (listed, axes), and their votes."""
        coordinates = self.restricted.lattice.coordinates(weights.assignment_ids)
        pairs = zip(self._groups, coordinates, strict=True)
        groups = np.stack([groups.group[values] for groups, values in pairs], axis=1)
        return groups.astype(np.int32), weights.votes.astype(np.uint64)

    def mean_decisions(self, people: Matrix, vote: KernelVote, *, threads: int) -> Counts | None:
        """Return None: this kernel computes no means."""
        del people, vote, threads
        return None

    def majority(self, people: Matrix, *, threads: int) -> Answers | None:
        """Decide each row by majority; None for a regression, or if a row may be invalid."""
        if self.rule.comparison == "band" or people.ndim != ROW_DIMENSIONS:
            return None
        if not len(people) or people.shape[1] != self.forest.width:
            return None
        if not self._checks_rows and not self._is_valid(people):
            return None
        rule, of_two = self.rule, self.rule.comparison != "argmax"
        winners: Answers | None = self._native.majority(
            _rows(people), of_two, rule.ties_to_last, threads
        )
        return winners

    def _is_valid(self, people: Matrix) -> bool:
        try:
            self.space.check(people, sensitive="ignore")
        except DomainError:
            return False
        return True

    def find(self, people: Matrix, references: References, limits: Limits) -> KernelSearch:
        """Find the first counterparts that differ from their person's reference."""
        bands: list[int] = []
        if self.rule.comparison == "band":
            for center in references.centers.tolist():
                bands += self._band(Fraction(center), Fraction(references.half))
        result = self._native.find(
            _rows(people),
            references.decisions.astype(np.int32),
            self.units.pairs(bands),
            np.ascontiguousarray(references.centers, dtype=np.float64),
            references.half,
            limits.seconds,
            limits.evaluations,
        )
        return _search(result)

    def _band(self, center: Fraction, half: Fraction) -> list[int]:
        """Return the ends of a band in units: inside, not outside, and inside in the runtime."""
        largest = Fraction(float(self.units.sizes.sum())) + abs(center) + half
        slack = BAND_ROUNDING * largest
        of, radius = self.units.of, self._radius
        low, high = math.ceil(of(center - half + slack)), math.floor(of(center + half - slack))
        outer = math.ceil(of(center - half - slack)), math.floor(of(center + half + slack))
        return [low, high, *outer, low + radius, high - radius]

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
        del approximate  # the largest one costs no more
        different = list({id(objective): objective for objective in objectives}.values())
        kinds = {id(objective): kind for kind, objective in enumerate(different)}
        offsets = [
            self.units.of(offset)
            for objective in different
            for offset in _repeated(objective.offsets.fractions(), len(objective.directions))
        ]
        pairs = self.units.pairs
        result = self._native.worst(
            _rows(people),
            np.ascontiguousarray([objective.directions for objective in different]),
            np.array([kinds[id(objective)] for objective in objectives], dtype=np.int32),
            pairs([math.floor(offset) for offset in offsets]),
            pairs([math.ceil(offset) for offset in offsets]),
            pairs([math.floor(self.units.of(objective.level)) for objective in different]),
            pairs([self._floor(floor) for floor in floors.tolist()]),
            different[0].least,
            limits.seconds,
            limits.evaluations,
            threads,
        )
        return _search(result)

    def _floor(self, floor: float) -> int:
        if math.isinf(floor):
            return int(math.copysign(1 << self.units.bits, floor))
        return math.ceil(self.units.of(floor))


def _repeated(numbers: list[Fraction], count: int) -> list[Fraction]:
    return numbers * count if len(numbers) == 1 else numbers


def _rows(people: Matrix) -> Matrix:
    return np.ascontiguousarray(people, dtype=np.float64)


def _words(groups: AxisGroups) -> Array:
    """Return masks as bits in words of 64, (masks, words)."""
    n_masks, n_groups = groups.masks.shape
    bits = np.zeros((n_masks, -(-n_groups // 64) * 64), dtype=np.uint8)
    bits[:, :n_groups] = groups.masks
    packed = np.packbits(bits, axis=1, bitorder="little")
    return np.ascontiguousarray(packed).view("<u8").astype(np.uint64)


def _search(result: "ForestResults") -> KernelSearch:
    return KernelSearch(
        found=result.has_match.astype(bool),
        assignment_ids=result.assignment_ids.astype(np.int64),
        finished=result.finished.astype(bool),
        runtime_safe=result.runtime_safe.astype(bool),
        undecided={row: ids.astype(np.int64) for row, ids in result.undecided_ids.items()},
        cost=result.costs.astype(np.int64),
    )
