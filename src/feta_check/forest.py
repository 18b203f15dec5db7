"""Tree ensembles in integers: every leaf is a box of sensitive values with a number to add."""

import math
from collections.abc import Iterator, Sequence
from fractions import Fraction
from itertools import chain, product

from feta_check.model_file import ModelFile
from feta_check.people import Box, Space
from feta_check.reading import Number, checkable, holds, places, readable, scaled
from feta_check.rules import Minimum

LEAF, CUT, SET = 0, 1, 2
FACTS = {"denominator", "domains", "equality", "link", "reading", "summation", "width"}

# By axis, the set of values that reach a leaf, as the bits of an integer; and the leaf's values.
Leaf = tuple[dict[int, int], list[int]]


class Forest:
    """The nodes of all trees, and the values of all axes."""

    def __init__(self, file: ModelFile, space: Space) -> None:
        facts = file.description["forest"]
        checkable(facts.keys() <= FACTS, "these trees")
        self.space, self.denominator = space, facts["denominator"]
        names = ("kind", "source", "flag", "missing_left", "start", "left", "right")
        nodes = {name: file.vector(name) for name in (*names, "roots", "members")}
        integers = all(type(n) is int for numbers in nodes.values() for n in numbers)
        readable(integers, "the model has invalid trees")
        cuts = file.vector("cut", finite=False)
        self.nodes = list(zip(*(nodes[name] for name in names), cuts, strict=True))
        self.roots, self.members = nodes["roots"], nodes["members"]
        values, base = file.matrix("values"), file.vector("base")
        self.places = places([*base, *chain(*values)])
        self.values = [scaled(row, self.places) for row in values]
        self.base = scaled(base, self.places)
        self.directions = [scaled(row, 0) for row in file.matrix("directions")]
        self.outputs = len(self.directions)
        self.domains = [
            (entry, [] if "width" in entry else file.vector(f"domain{index}.numbers"))
            for index, entry in enumerate(facts["domains"])
        ]
        self._check()
        ends = [axis.codes(axis.at(0)) for axis in space.axes]
        self.axis_of = {place: axis for axis, codes in enumerate(ends) for place, _ in codes}
        self.counts = [axis.count for axis in space.axes]
        self._masks: dict[int, int] = {}

    def _check(self) -> None:
        """Raise unless trees end, and every index is inside its list."""
        count, width = len(self.nodes), self.space.width
        valid = type(self.denominator) is int and self.denominator > 0 and bool(self.roots)
        valid &= len(self.values) == count and all(0 <= root < count for root in self.roots)
        rows = (*self.values, *self.directions)
        valid &= all(len(row) == len(self.base) for row in rows)
        for node, (kind, source, flag, _, start, left, right, cut) in enumerate(self.nodes):
            if kind == LEAF or not valid:
                continue
            inside = 0 <= source < (width if kind == CUT else len(self.domains))
            valid = (
                inside
                and kind in (CUT, SET)
                and node < min(left, right) <= max(left, right) < count
            )
            if kind == CUT:
                valid &= -1 <= flag < width and not math.isnan(cut)
            elif valid:
                valid = 0 <= start <= len(self.members) - self._length(source)
        for entry, _ in self.domains:
            first, length = entry.get("first", entry.get("column")), entry.get("width", 1)
            valid &= 0 <= first <= width - length and -1 <= entry.get("flag", -1) < width
        readable(valid, "the model has invalid trees")

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

    def goes_left(self, node: int, row: dict[int, Number]) -> bool:
        """Return where a row goes at a test."""
        kind, source, flag, missing_left, start, _, _, cut = self.nodes[node]
        if kind == CUT:
            return bool(missing_left) if flag >= 0 and row[flag] == 1 else row[source] <= cut
        return bool(self.members[start + self._index(source, row)])

    def _index(self, domain: int, row: dict[int, Number]) -> int:
        entry, numbers = self.domains[domain]
        if "width" in entry:
            codes = [row[entry["first"] + place] for place in range(entry["width"])]
            holds(codes.count(1) == 1, "a category of the trees has no value, or two")
            return codes.index(1)
        if entry["flag"] >= 0 and row[entry["flag"]] == 1:
            return len(numbers)
        holds(row[entry["column"]] in numbers, "the person has a number that the trees do not list")
        return numbers.index(row[entry["column"]])

    def mask(self, node: int, axis: int) -> int:
        """Return the values of an axis that go left at a node."""
        if node not in self._masks:
            bits = 0
            for value in range(self.counts[axis]):
                column = self.space.axes[axis]
                row = dict(column.codes(column.at(value)))
                bits |= self.goes_left(node, row) << value
            self._masks[node] = bits
        return self._masks[node]

    def restrict(self, row: dict[int, Number]) -> "RestrictedForest":
        """Fix the columns of a person that counterparts share."""
        return RestrictedForest(self, row)


class RestrictedForest:
    """A tree ensemble on the counterparts of one person."""

    def __init__(self, forest: Forest, row: dict[int, Number]) -> None:
        self.forest, self.denominator = forest, forest.denominator
        self.unit = Fraction(1, (1 << forest.places) * forest.denominator)
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

    def _leaves(self, node: int, row: dict[int, Number], masks: dict[int, int]) -> Iterator[Leaf]:
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

    def points(self, box: Box) -> Iterator[tuple[int, list[int]]]:
        """Yield the ids and scores of all counterparts in a box."""
        for groups, sums in self._visit(0, _bits(box), self.boxes, self.fixed):
            scores = self._outputs(sums)
            for number in self._ids(groups):
                yield number, scores

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

    def bounds(self, box: Box) -> Minimum:
        """Return lower bounds, over a box, on linear functions of the scores, tree by tree."""
        bits = _bits(box)
        trees = [[values for _, values in self._matching(tree, bits)] for tree in self.trees]

        def minimum(row: Sequence[int]) -> Number:
            columns = zip(*self.forest.directions, strict=True)
            weights = [sum(w * s for w, s in zip(row, column, strict=True)) for column in columns]

            def value(values: list[int]) -> int:
                return sum(w * x for w, x in zip(weights, values, strict=True))

            return value(self.forest.base) + sum(min(map(value, tree)) for tree in trees)

        return minimum


def _bits(box: Box) -> list[int]:
    """Return the values of a box on each axis, as bits."""
    return [(2 << high) - (1 << low) for low, high in box]


def _sum(left: list[int], right: list[int]) -> list[int]:
    return [a + b for a, b in zip(left, right, strict=True)]
