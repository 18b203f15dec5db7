"""Random tree ensembles, and their scores by definition, in exact fractions."""

from dataclasses import dataclass
from fractions import Fraction

import numpy as np

from feta import Categorical, FeatureSpace, Integer, Levels, Real
from feta.arrays import Vector
from feta.scorer.forest.forest import Forest
from feta.scorer.forest.summation import Summation
from feta.scorer.forest.trees import CUT, LEAF, SET, Domain, Numbers, OneHot, Trees
from feta.space.attribute import Attribute


@dataclass
class Grower:
    """Grows random trees over a space; nodes are appended before their children."""

    rng: np.random.Generator
    space: FeatureSpace
    sums: int

    def __post_init__(self) -> None:
        self.nodes: list[dict[str, object]] = []
        self.members: list[bool] = []
        self.domains: list[Domain] = []

    def grow(self, depth: int) -> int:
        """Append a tree; return its root."""
        index = len(self.nodes)
        self.nodes.append({})
        if depth == 0 or self.rng.random() < 0.15:
            # Eighths, so that sums tie.
            values = self.rng.integers(-8, 9, self.sums) / 8
            self.nodes[index] = {"kind": LEAF, "values": values}
            return index
        test = self._test()
        left = self.grow(depth - 1)
        right = self.grow(depth - 1)
        self.nodes[index] = test | {"left": left, "right": right}
        return index

    def _test(self) -> dict[str, object]:
        attribute = self.space.attributes[self.rng.integers(len(self.space.attributes))]
        columns = self.space.columns_of(attribute)
        flag = columns.start + 1 if getattr(attribute, "missing", False) else -1
        match attribute:
            case Categorical():
                return self._set(OneHot(columns.start, attribute.width))
            case Integer(low=low, high=high) if self.rng.random() < 0.3:
                return self._set(Numbers(columns.start, np.arange(low, high + 1.0), flag))
            case _:
                cut = self._cut(attribute)
                left = bool(self.rng.random() < 0.5)
                return {
                    "kind": CUT,
                    "source": columns.start,
                    "cut": cut,
                    "flag": flag,
                    "missing_left": left,
                }

    def _cut(self, attribute: Attribute) -> float:
        match attribute:
            case Levels(numbers=numbers):
                return float(self.rng.choice(numbers))
            case Integer(low=low, high=high) | Real(low=low, high=high):
                number = float(self.rng.integers(int(low), int(high) + 1))
                return float(self.rng.choice([number, number + 0.5, np.nextafter(number, -9e9)]))
        raise AssertionError(attribute)

    def _set(self, domain: Domain) -> dict[str, object]:
        self.domains.append(domain)
        start = len(self.members)
        self.members += (self.rng.random(len(domain)) < 0.5).tolist()
        return {"kind": SET, "source": len(self.domains) - 1, "start": start}

    def trees(self, roots: list[int]) -> Trees:
        """Return everything that was grown."""

        def column(name: str, default: object) -> np.ndarray:
            return np.array([node.get(name, default) for node in self.nodes])

        zeros = np.zeros(self.sums)
        return Trees(
            np.array(roots),
            column("kind", LEAF).astype(np.int8),
            column("source", 0),
            column("cut", 0.0),
            column("flag", -1),
            column("missing_left", False),
            column("start", 0),
            column("left", 0),
            column("right", 0),
            np.array([node.get("values", zeros) for node in self.nodes]),
            np.array(self.members, dtype=bool),
            tuple(self.domains),
        )


def random_forest(
    rng: np.random.Generator, space: FeatureSpace, *, outputs: int = 1, mean: bool = False
) -> Forest:
    """Return a random ensemble of one to six trees."""
    grower = Grower(rng, space, outputs)
    roots = [grower.grow(int(rng.integers(1, 5))) for _ in range(rng.integers(1, 7))]
    base = rng.integers(-4, 5, outputs) / 8
    summation = Summation("a test", "float64", base)
    denominator = len(roots) if mean else 1
    return Forest(grower.trees(roots), base, summation, space.width, denominator=denominator)


def scores(forest: Forest, person: Vector) -> list[Fraction]:
    """Return the exact scores by walking each tree node by node."""
    trees = forest.trees
    totals = [Fraction(float(number)) for number in forest.base]
    for root in trees.roots.tolist():
        node = root
        while trees.kind[node] != LEAF:
            node = int((trees.left if goes_left(trees, node, person) else trees.right)[node])
        for index, value in enumerate(trees.values[node]):
            totals[index] += Fraction(float(value))
    return [
        sum(
            (Fraction(int(sign)) * total for sign, total in zip(row, totals, strict=True)),
            Fraction(0),
        )
        / forest.denominator
        for row in forest.directions
    ]


def goes_left(trees: Trees, node: int, person: Vector) -> bool:
    """Return the direction of one person at one node."""
    if trees.kind[node] == CUT:
        flag = int(trees.flag[node])
        if flag >= 0 and person[flag] == 1:
            return bool(trees.missing_left[node])
        return bool(Fraction(float(person[trees.source[node]])) <= Fraction(float(trees.cut[node])))
    domain = trees.domains[trees.source[node]]
    if isinstance(domain, OneHot):
        columns = person[domain.first : domain.first + domain.width].tolist()
        index = columns.index(1.0)
    elif domain.flag >= 0 and person[domain.flag] == 1:
        index = len(domain.numbers)
    else:
        index = domain.numbers.tolist().index(person[domain.column])
    return bool(trees.members[trees.start[node] + index])
