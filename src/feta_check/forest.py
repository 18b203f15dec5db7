"""Tree ensembles in integers: every leaf is a box of sensitive values with a number to add."""

import math
from collections.abc import Iterator, Sequence
from fractions import Fraction
from itertools import product
from typing import Any

from feta_check.model_file import ModelFile, exponent_of
from feta_check.people import Space
from feta_check.reading import Refuted, Unreadable
from feta_check.segments import Box, Number, Segment

LEAF, CUT, SET = 0, 1, 2

# By axis, the set of values that reach a leaf, as the bits of an integer; and the leaf's values.
Leaf = tuple[dict[int, int], list[int]]


class Forest:
    """The nodes of all trees, and the values of all axes."""

    def __init__(self, file: ModelFile, space: Space, levels: Sequence[Fraction]) -> None:
        facts = file.description["forest"]
        self.space, self.denominator = space, facts["denominator"]
        names = ("kind", "source", "flag", "missing_left", "start", "left", "right")
        nodes = {name: file.tensor(name, 1).numbers for name in (*names, "roots", "members")}
        self.nodes = list(zip(*(nodes[name] for name in names), file.raw("cut"), strict=True))
        self.roots, self.members = nodes["roots"], nodes["members"]
        values, base = file.tensor("values", 2), file.tensor("base", 1)
        self.exponent = min(values.exponent, base.exponent, *map(exponent_of, levels))
        self.values, self.base = values.rows(self.exponent), base.at(self.exponent)
        directions = file.tensor("directions", 2)
        self.directions = directions.rows(0) if directions.exponent == 0 else []
        self.outputs = directions.shape[0]
        self.domains = [
            (entry, self._numbers(file, index, entry))
            for index, entry in enumerate(facts["domains"])
        ]
        self._check(values.shape, directions.shape)
        self.axis_of = {
            place: index for index, axis in enumerate(space.axes) for place in axis.moved
        }
        self.counts = [axis.column.count for axis in space.axes]
        self._masks: dict[int, int] = {}

    @staticmethod
    def _numbers(file: ModelFile, index: int, entry: Any) -> list[Fraction]:
        if "width" in entry:
            return []
        tensor = file.tensor(f"domain{index}.numbers", 1)
        return [number * Fraction(1, 1 << -tensor.exponent) for number in tensor.numbers]

    def _check(self, values: tuple[int, ...], directions: tuple[int, ...]) -> None:
        """Raise unless trees end, and every index is inside its list."""
        count, width = len(self.nodes), self.space.width
        valid = type(self.denominator) is int and self.denominator > 0 and bool(self.roots)
        valid &= values == (count, len(self.base)) and bool(self.directions)
        valid &= directions[1] == len(self.base) and all(0 <= r < count for r in self.roots)
        for node, (kind, source, flag, _, start, left, right, cut) in enumerate(self.nodes):
            if kind == LEAF or not valid:
                continue
            valid &= kind in (CUT, SET) and node < left < count and node < right < count
            if kind == CUT:
                valid &= 0 <= source < width and -1 <= flag < width and not math.isnan(cut)
            elif valid and 0 <= source < len(self.domains):
                valid &= 0 <= start <= len(self.members) - self._length(source)
            else:
                valid = False
        for entry, _ in self.domains:
            first, length = entry.get("first", entry.get("column")), entry.get("width", 1)
            valid &= 0 <= first <= width - length and -1 <= entry.get("flag", -1) < width
        if not valid:
            raise Unreadable("the model has invalid trees")

    def _length(self, domain: int) -> int:
        entry, numbers = self.domains[domain]
        return entry["width"] if "width" in entry else len(numbers) + (entry["flag"] >= 0)

    def axis(self, node: int) -> int | None:
        """Return the axis that a node tests; None if it tests what counterparts share."""
        kind, source, *_ = self.nodes[node]
        if kind == SET:
            entry = self.domains[source][0]
            source = entry.get("first", entry.get("column"))
        return self.axis_of.get(source)

    def goes_left(self, node: int, row: Sequence[Fraction]) -> bool:
        """Return where a row goes at a test."""
        kind, source, flag, missing_left, start, _, _, cut = self.nodes[node]
        if kind == CUT:
            return bool(missing_left) if flag >= 0 and row[flag] == 1 else row[source] <= cut
        return bool(self.members[start + self._index(source, row)])

    def _index(self, domain: int, row: Sequence[Fraction]) -> int:
        entry, numbers = self.domains[domain]
        if "width" in entry:
            codes = list(row[entry["first"] : entry["first"] + entry["width"]])
            if codes.count(Fraction(1)) != 1:
                raise Refuted("the person has no value, or two, of a category of the trees")
            return codes.index(Fraction(1))
        if entry["flag"] >= 0 and row[entry["flag"]] == 1:
            return len(numbers)
        if row[entry["column"]] not in numbers:
            raise Refuted("the person has a number that the trees do not list")
        return numbers.index(row[entry["column"]])

    def mask(self, node: int, axis: int) -> int:
        """Return the values of an axis that go left at a node."""
        if node not in self._masks:
            row, bits = [Fraction(0)] * self.space.width, 0
            for value in range(self.counts[axis]):
                for place, code in self.space.axes[axis].codes(value):
                    row[place] = code
                bits |= self.goes_left(node, row) << value
            self._masks[node] = bits
        return self._masks[node]

    def restrict(self, row: list[Fraction]) -> "RestrictedForest":
        """Fix the columns of a person that counterparts share."""
        return RestrictedForest(self, row)


class RestrictedForest:
    """A tree ensemble on the counterparts of one person."""

    def __init__(self, forest: Forest, row: list[Fraction]) -> None:
        self.forest, self.denominator = forest, forest.denominator
        self.unit = Fraction(1, (1 << -forest.exponent) * forest.denominator)
        self.full = [(1 << count) - 1 for count in forest.counts]
        self.trees = [list(self._leaves(root, row, {})) for root in forest.roots]
        self.fixed = list(forest.base)
        merged: dict[tuple[tuple[int, int], ...], list[int]] = {}
        for tree in self.trees:
            for masks, values in tree:
                key = tuple(sorted(masks.items()))
                merged[key] = _sum(merged.get(key, [0] * len(values)), values)
        self.fixed = _sum(self.fixed, merged.pop((), [0] * len(self.fixed)))
        self.boxes = [(dict(key), values) for key, values in merged.items()]

    def _leaves(self, node: int, row: list[Fraction], masks: dict[int, int]) -> Iterator[Leaf]:
        forest = self.forest
        while forest.nodes[node][0] != LEAF:
            *_, left, right, _ = forest.nodes[node]
            axis = forest.axis(node)
            if axis is None:
                node = left if forest.goes_left(node, row) else right
                continue
            before, side = masks.get(axis, self.full[axis]), forest.mask(node, axis)
            if before & side:
                yield from self._leaves(left, row, {**masks, axis: before & side})
            if not before & ~side:
                return
            masks, node = {**masks, axis: before & ~side}, right
        yield masks, forest.values[node]

    def scores(self, values: list[int]) -> list[int]:
        """Compute the scores of one counterpart."""
        bits = [1 << value for value in values]
        return self._outputs(self._added(self.fixed, self._matching(self.boxes, bits)))

    @staticmethod
    def _matching(boxes: list[Leaf], bits: list[int]) -> list[Leaf]:
        return [box for box in boxes if all(mask & bits[axis] for axis, mask in box[0].items())]

    @staticmethod
    def _added(total: list[int], boxes: list[Leaf]) -> list[int]:
        for _, values in boxes:
            total = _sum(total, values)
        return total

    def _outputs(self, sums: Sequence[int]) -> list[int]:
        return [
            sum(s * x for s, x in zip(row, sums, strict=True)) for row in self.forest.directions
        ]

    def segments(self, box: Box) -> Iterator[Segment]:
        """Yield groups of counterparts that reach the same leaves."""
        for groups, sums in self._visit(0, _bits(box), self.boxes, self.fixed):
            yield Segment(self._ids(groups), self._outputs(sums))

    def _visit(
        self, axis: int, bits: list[int], boxes: list[Leaf], total: list[int]
    ) -> Iterator[tuple[list[int], list[int]]]:
        if axis == len(bits):
            yield [], total
            return
        masks = {masks[axis] for masks, _ in boxes if axis in masks}
        groups = [bits[axis]]
        for mask in masks:
            groups = [part for group in groups for part in (group & mask, group & ~mask) if part]
        for group in groups:
            rest, after = [], total
            for masks_, values in boxes:
                if masks_.get(axis, group) & group:
                    if max(masks_) <= axis:
                        after = _sum(after, values)
                    else:
                        rest.append((masks_, values))
            for others, sums in self._visit(axis + 1, bits, rest, after):
                yield [group, *others], sums

    def _ids(self, groups: list[int]) -> list[int]:
        """Return the ids of the counterparts in a product of groups."""
        ids = [0]
        for group, count in zip(groups, self.forest.counts, strict=True):
            values = [value for value in range(count) if group >> value & 1]
            ids = [number * count + value for number, value in product(ids, values)]
        return ids

    def minimum(self, box: Box, row: Sequence[int]) -> Number:
        """Bound a linear function of the scores over a box from below, tree by tree."""
        bits = _bits(box)
        columns = zip(*self.forest.directions, strict=True)
        weights = [sum(w * s for w, s in zip(row, column, strict=True)) for column in columns]

        def value(values: list[int]) -> int:
            return sum(w * x for w, x in zip(weights, values, strict=True))

        return value(self.forest.base) + sum(
            min(value(values) for _, values in self._matching(tree, bits)) for tree in self.trees
        )


def _bits(box: Box) -> list[int]:
    """Return the values of a box on each axis, as bits."""
    return [(2 << high) - (1 << low) for low, high in box]


def _sum(left: list[int], right: list[int]) -> list[int]:
    return [a + b for a, b in zip(left, right, strict=True)]
