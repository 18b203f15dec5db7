"""The check: every leaf of the tree is bounded again, and the shares are added."""

from collections.abc import Iterator
from fractions import Fraction
from itertools import product
from math import fsum
from typing import Any

import numpy as np

from feta_people_check.bounds import Bounds, least_over
from feta_people_check.counting import Term, positive
from feta_people_check.reading import Array, Claim, expect

CUT, EACH, LISTED, FEWEST_BINS = 128, 8, 16, 7  # bytes of the tree
MOST_LISTED, MOST_NUMBERS = 2**12, 2**21


class Check:
    """One certificate; `fair` and `unfair` are lower bounds of what the leaves prove."""

    def __init__(self, claim: Claim) -> None:
        self.claim, self.bounds = claim, Bounds(claim)
        self.not_fair, self.proved = list[float](), list[float]()
        self.n_leaves = 0

    def run(self, sample: int | None = None) -> None:
        """Check all leaves; a sample is compared with nothing, and proves nothing."""
        waiting: dict[int, list[tuple[Array, Array, float]]] = {}
        widest = max([1, *(layer[3].size for layer in self.claim.layers)])
        batch = max(8, min(512, MOST_NUMBERS // (widest + 64 * len(self.claim.combinations))))
        every = 1 if sample is None else max(1, len(self.claim.tree) // (2 * sample))
        for low, high, code in self._leaves():
            self.n_leaves += 1
            if self.n_leaves % every:
                continue
            boxes = waiting.setdefault(code, [])
            boxes.append((low, high, self._mass(low, high)))
            if len(boxes) == batch:
                self._examine(code, waiting.pop(code))
        for code, boxes in waiting.items():
            self._examine(code, boxes)

    @property
    def fair(self) -> Fraction:
        """The share that is treated fairly, at least."""
        return max(Fraction(0), 1 - Fraction(fsum(self.not_fair)) * (1 + Fraction(1, 2**50)))

    @property
    def unfair(self) -> Fraction:
        """The share that is treated unfairly, at least."""
        return Fraction(fsum(self.proved)) * (1 - Fraction(1, 2**50))

    def _leaves(self) -> Iterator[tuple[Array, Array, int]]:
        """Yield the boxes of the leaves with their codes; boxes without people are left out."""
        axes = self.claim.axes
        boxes = [(np.array([axis.low for axis in axes]), np.array([axis.high for axis in axes]))]
        for byte in self.claim.tree:
            expect(bool(boxes), "the tree has nodes that belong to no box")
            low, high = boxes.pop()
            if byte >= CUT:
                if (low <= high).all():
                    yield low, high, byte - CUT
                continue
            expect(byte < len(axes), "the tree cuts a column that does not exist")
            axis, start, end = axes[byte], low[byte], high[byte]
            at = start + (end - start) / 2
            real = axis.ends is None
            at = at if real else np.floor(at)
            expect(start < at < end if real else start < end, "the tree cuts a single value")
            for first, last in (((at if real else at + 1), end), (start, at)):
                lower, upper = low.copy(), high.copy()
                lower[byte], upper[byte] = axis.trim(first, last)
                boxes.append((lower, upper))
        expect(not boxes, "the tree ends early")

    def _mass(self, low: Array, high: Array) -> float:
        mass = 1.0
        for axis, start, end in zip(self.claim.axes, low, high, strict=True):
            if axis.ends is not None:
                part = int(axis.ends[int(end) + 1]) - int(axis.ends[int(start)])
                mass *= part / int(axis.ends[-1])
            elif axis.low < axis.high:
                mass *= (end - start) / (axis.high - axis.low)
        return mass

    def _add(self, mass: float, fair: float, unfair: float) -> None:
        error = (len(self.claim.axes) + 4) * 2.0**-51
        self.not_fair.append(min(1.0, mass * (1 + error) * (1 - fair)) if fair < 1 else 0.0)
        self.proved.append(mass * (1 - error) * unfair)

    def _examine(self, code: int, boxes: list[tuple[Array, Array, float]]) -> None:
        if code == LISTED:
            for low, high, mass in boxes:
                self._add(mass, *self._listed(low, high))
            return
        expect(code < LISTED, "a leaf of unknown kind")
        low, high = (np.stack([box[side] for box in boxes]) for side in (0, 1))
        bins = 2 ** (code % EACH + FEWEST_BINS)
        shares = self._each(low, high, bins) if code & EACH else self._joint(low, high, bins)
        for (_, _, mass), (fair, unfair) in zip(boxes, shares, strict=True):
            self._add(mass, fair, unfair)

    def _joint(self, low: Array, high: Array, bins: int) -> Iterator[tuple[float, float]]:
        """Yield the shares of boxes, bounded with all combinations of sensitive values at once."""
        rows = self.claim.combinations
        steps, lines = self.bounds.over(low, high, rows)
        whole = (self.bounds.lowest[0] > 0) | (self.bounds.lowest[1] > 0)
        whole |= ~self.bounds.may_depend([s.low for s in steps], [s.high for s in steps])
        for box in range(len(low)):
            fair = 1.0 if whole[box] else 0.0
            for weights, constants in lines if not whole[box] else ():
                total = constants[box] + (rows @ weights[box]).min()
                fair += positive(self._terms(weights[box], low[box], high[box]), total, bins)
            yield min(fair, 1.0), 0.0

    def _each(self, low: Array, high: Array, bins: int) -> Iterator[tuple[float, float]]:
        """Yield the shares of boxes, bounded with each combination of sensitive values."""
        rows = self.claim.combinations
        found, starts, ends = list[Any](), list[Any](), list[Any]()
        signs = np.zeros((2, len(rows), len(low)), dtype=bool)
        for index, row in enumerate(rows):
            steps, lines = self.bounds.over(low, high, row[None])
            signs[:, index] = [value > 0 for value in self.bounds.lowest]
            found.append([(weights, total + weights @ row) for weights, total in lines])
            starts.append([step.low for step in steps])
            ends.append([step.high for step in steps])
        hull = [np.min(each, axis=0) for each in zip(*starts, strict=True)]
        free = ~self.bounds.may_depend(hull, [np.max(e, axis=0) for e in zip(*ends, strict=True)])
        whole = signs.all(axis=1).any(axis=0) | np.broadcast_to(free, len(low))
        mixed: Array = signs.any(axis=1).all(axis=0)
        for box in range(len(low)):
            if whole[box] or mixed[box]:
                yield (1.0, 0.0) if whole[box] else (0.0, 1.0)
            else:
                fair, unfair = self._counted(
                    found, low[box : box + 1], high[box : box + 1], box, bins
                )
                yield min(fair, 1.0), min(unfair, 1.0 - min(fair, 1.0))

    def _counted(
        self, found: list[Any], low: Array, high: Array, box: int, bins: int
    ) -> tuple[float, float]:
        """Count the people of a box on one side of the threshold, and on both."""
        margin, fair = float(self.bounds.margins[-1].max()), 0.0
        middles, sides = [], []
        for side in (0, 1):
            weights = np.stack([lines[side][0][box] for lines in found])
            totals = np.array([lines[side][1][box] for lines in found])
            middle = (
                totals + (self._least(weights, low, high) - self._least(-weights, low, high)) / 2
            )
            lowest = int(np.argmin(middle))
            gaps = -self._least(weights - weights[lowest], low, high) + totals[lowest] - totals
            constant = totals[lowest] - max(0.0, float(gaps.max())) - margin
            fair += positive(self._terms(weights[lowest], low[0], high[0]), constant, bins)
            middles.append(middle)
            sides.append((weights, totals))
        best, worst = (int(np.argmax(middle)) for middle in middles)
        (up, up_total), (down, down_total) = (
            (w[i], t[i]) for (w, t), i in zip(sides, (best, worst), strict=True)
        )
        # −down bounds the other score from above, so −down − up is its distance.
        gap = -float(self._least((down + up)[None], low, high)[0]) - down_total - up_total + margin
        if gap >= 0:
            return fair, 0.0
        terms = self._terms(up, low[0], high[0])
        return fair, positive(terms, float(up_total), bins, until=gap)

    def _least(self, weights: Array, low: Array, high: Array) -> Array:
        total = np.zeros(len(weights))
        for index, axis in enumerate(self.claim.axes):
            total += least_over(axis, weights[None], low[:, index], high[:, index])[0]
        return total

    def _terms(self, weights: Array, low: Array, high: Array) -> list[Term]:
        axes = zip(self.claim.axes, low.tolist(), high.tolist(), strict=True)
        return [Term(axis, weights, start, end) for axis, start, end in axes if start < end] + [
            Term(axis, weights, start, end)
            for axis, start, end in zip(self.claim.axes, low.tolist(), high.tolist(), strict=True)
            if start == end
        ]

    def _listed(self, low: Array, high: Array) -> tuple[float, float]:
        """Decide the people of a small box one by one, in fractions where float64 does not."""
        axes = self.claim.axes
        values = [
            [start] if axis.ends is None else np.arange(start, end + 1).tolist()
            for axis, start, end in zip(axes, low, high, strict=True)
        ]
        one = all(
            axis.ends is not None or start == end
            for axis, start, end in zip(axes, low, high, strict=True)
        )
        count = np.prod([float(len(each)) for each in values])
        expect(one and bool(count <= MOST_LISTED), "a leaf lists too many people")
        sums = [0, 0]
        for chosen in product(*values):
            weight = 1
            for axis, value in zip(axes, chosen, strict=True):
                weight *= (
                    1
                    if axis.ends is None
                    else int(axis.ends[int(value) + 1] - axis.ends[int(value)])
                )
            if weight:
                sums[self._is_unfair(chosen)] += weight
        total = sum(sums)
        fair = 1.0 if not sums[1] else sums[0] / total * (1 - 2.0**-50)
        return fair, 1.0 if not sums[0] else sums[1] / total * (1 - 2.0**-50)

    def _is_unfair(self, chosen: tuple[float, ...]) -> bool:
        claim, rows = self.claim, list[Any]()
        for axis, value in zip(claim.axes, chosen, strict=True):
            rows.append(
                axis.slope * (value + axis.start) if axis.rows is None else axis.rows[int(value)]
            )
        values = sum(rows, claim.constant) + claim.combinations
        for breaks, slopes, starts, weight, bias in claim.layers:
            piece = sum(((values >= at).astype(int) for at in breaks), np.zeros(values.shape, int))
            column = np.broadcast_to(np.arange(values.shape[1]) % slopes.shape[1], values.shape)
            values = (slopes[piece, column] * values + starts[piece, column]) @ weight.T + bias
        scores = values[:, 0] - claim.threshold
        if (np.abs(scores) <= self.bounds.margins[-1]).any():
            return len({self._exact_side(chosen, row) for row in claim.exact_combinations}) > 1
        return bool((scores > 0).any() and (scores < 0).any())

    def _exact_side(self, chosen: tuple[float, ...], row: list[Fraction]) -> bool:
        """Return the decision about one person in fractions; a tie belongs to one of the sides."""
        claim = self.claim
        values = [Fraction(x) + y for x, y in zip(claim.constant.tolist(), row, strict=True)]
        for axis, value in zip(claim.axes, chosen, strict=True):
            values = [x + y for x, y in zip(values, axis.exact(value), strict=True)]
        for breaks, slopes, starts, weight, bias in claim.layers:
            active = list[Fraction]()
            for index, number in enumerate(values):
                column = index % slopes.shape[1]
                piece = sum(number >= Fraction(at) for at in breaks[:, column].tolist())
                slope, start = (Fraction(float(part[piece, column])) for part in (slopes, starts))
                active.append(slope * number + start)
            values = [
                sum((Fraction(w) * x for w, x in zip(line, active, strict=True)), Fraction(shift))
                for line, shift in zip(weight.tolist(), bias.tolist(), strict=True)
            ]
        side = values[0] - Fraction(claim.threshold)
        return side > 0 or (side == 0 and claim.ties_above)
