"""Bounds of a tree ensemble over boxes of counterparts, in integers."""

from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property

import numpy as np

from feta.arrays import Vector
from feta.checker.box import Box
from feta.checker.exact_forest import CUT, LEAF, StoredForest
from feta.checker.network_bounds import BoxBounds
from feta.checker.sensitive_axis import SensitiveAxis
from feta.scorer.protocol import Objective

# People that agree with one counterpart on the columns of one axis, by axis.
Values = list[list[list[float]]]


@dataclass(frozen=True, eq=False)
class ForestBounds:
    """An ensemble on the counterparts of one person."""

    forest: StoredForest
    axes: tuple[SensitiveAxis, ...]
    person: Vector

    def over(self, box: Box, objective: Objective) -> BoxBounds:
        """Bound an objective over a box: add the largest value of each tree's reachable leaves."""
        values = self._values(box)
        leaves = [self._leaves(int(root), values) for root in self.forest.nodes["roots"]]
        offsets = objective.offsets.fractions()
        rows = objective.directions.tolist()
        offsets = offsets * len(rows) if len(offsets) == 1 else offsets
        pairs = zip(rows, offsets, strict=True)
        bounds = [self._largest(row, leaves) + offset for row, offset in pairs]
        largest = min(bounds) if objective.least else max(bounds)
        constant = self._is_constant(box)
        sides = [
            Fraction(0 if axis.real else side)
            for axis, side in zip(box.axes, box.sides, strict=True)
        ]
        # An ensemble is not affine where a cut is at the end of a box, but it has no other scores.
        return BoxBounds(
            agrees=largest < Fraction(objective.level),
            is_affine=False,
            influences=tuple(sides),
            is_constant=constant,
        )

    @cached_property
    def _axis_of(self) -> dict[int, int]:
        return {column: n for n, axis in enumerate(self.axes) for column in axis.columns}

    def _values(self, box: Box) -> Values:
        """Return the person with each value of an axis; of real numbers, with the two ends."""
        result: Values = []
        for axis, low, high, side in zip(box.axes, box.lower, box.upper, box.sides, strict=True):
            rows = [self.person.copy() for _ in range(side)]
            codes = axis.codes(low, high, np.arange(side))
            for row, code in zip(rows, codes, strict=True):
                row[list(axis.columns)] = code
            result.append([row.tolist() for row in rows])
        return result

    def _leaves(self, node: int, values: Values) -> list[int]:
        """Return the leaves that some counterpart may reach; each test is considered alone."""
        stack, found = [node], []
        own = self.person.tolist()
        while stack:
            at = stack.pop()
            if self.forest.nodes["kind"][at] == LEAF:
                found.append(at)
                continue
            axis = self._axis_read(at)
            people = [own] if axis is None else values[axis]
            sides = {self.forest.goes_left(at, person) for person in people}
            if True in sides:
                stack.append(int(self.forest.nodes["left"][at]))
            if False in sides:
                stack.append(int(self.forest.nodes["right"][at]))
        return found

    def _axis_read(self, node: int) -> int | None:
        """Return the axis that a test reads; tests read one attribute each."""
        source = int(self.forest.nodes["source"][node])
        if self.forest.nodes["kind"][node] == CUT:
            return self._axis_of.get(source)
        domain = self.forest.domains[source]
        return self._axis_of.get(int(domain["first" if "first" in domain else "column"]))

    def _largest(self, direction: list[float], leaves: list[list[int]]) -> Fraction:
        """Return the largest value of direction · scores over one reachable leaf per tree."""
        forest = self.forest
        exponent = min(forest.values.exponent, forest.base.exponent)
        values, base = forest.values.at(exponent), forest.base.at(exponent)
        signs = [
            sum(
                int(factor) * row[k]
                for factor, row in zip(direction, forest.directions, strict=True)
            )
            for k in range(len(base))
        ]

        def total(sums: list[int]) -> int:
            return sum(sign * number for sign, number in zip(signs, sums, strict=True))

        largest = total(list(base)) + sum(
            max(total(list(values[leaf])) for leaf in reached) for reached in leaves
        )
        return Fraction(largest) * Fraction(2) ** exponent / forest.denominator

    def _is_constant(self, box: Box) -> bool:
        """Return whether no cut lies strictly inside the box along a real-valued axis.

        A number goes left if it is at most the cut. So numbers above the lower end get the score
        of the upper end.
        """
        for axis, low, high in zip(box.axes, box.lower, box.upper, strict=True):
            if axis.real and any(low < cut < high for cut in self._cuts(axis.columns[0])):
                return False
        return True

    def _cuts(self, column: int) -> list[float]:
        nodes = self.forest.nodes
        tests = zip(nodes["kind"], nodes["source"], nodes["cut"], strict=True)
        return [cut for kind, source, cut in tests if kind == CUT and source == column]
