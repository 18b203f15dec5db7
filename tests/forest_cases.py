"""Random tree ensembles near their decision boundaries, by seed, and their form as `Forest`."""

from collections.abc import Callable
from dataclasses import dataclass, replace

import numpy as np

from feta.arrays import Matrix
from feta.model import Model
from feta.rule import Argmax, OneVsRest, Rule, Threshold, Tolerance
from feta.scorer.forest.builder import CutTest, NodeTest, SetTest, TreesBuilder
from feta.scorer.forest.forest import Forest
from feta.scorer.forest.summation import Summation
from feta.scorer.forest.trees import Numbers, OneHot
from feta.scorer.protocol import Side
from feta.space.attribute import Attribute, Categorical, Derived, Integer, Levels, Real, Value
from feta.space.feature_space import FeatureSpace
from feta.space.vote_weights import VoteWeights
from tests import oracle
from tests.forest_oracle import (
    Answers,
    AtMost,
    Ensemble,
    Leaf,
    Node,
    OneOf,
    Record,
    Split,
    row_of,
    with_bands,
)
from tests.strategies import Edge, random_rule

# Lattices of about this size at most; the oracle visits every counterpart in fractions.
MAX_COUNTERPARTS = 700

# Leaf values that tie, that no short sum represents, and that differ by one unit in the last place.
DRAWS: dict[str, Callable[[np.random.Generator, int], np.ndarray]] = {
    "eighths": lambda rng, n: rng.integers(-8, 9, n) / 8,
    "rough": lambda rng, n: rng.normal(size=n),
    "neighbors": lambda rng, n: rng.choice([1.0, 1.0 + 2**-52, 1.0 - 2**-53, -1.0], n),
    "tiny and huge": lambda rng, n: rng.integers(-8, 9, n) * 2.0 ** rng.choice([-40, 0, 30], n),
    "far apart": lambda rng, n: rng.normal(size=n) * 10.0 ** rng.choice([-30, 0, 30], n),
    "tiny": lambda rng, n: rng.integers(-8, 9, n) * 2.0**-1000,
    "subnormal": lambda rng, n: rng.integers(-8, 9, n) * 2.0**-149,  # in float32
}
DRAW_SHARES = (0.45, 0.25, 0.1, 0.1, 0.04, 0.03, 0.03)


@dataclass(frozen=True)
class ForestCase:
    """A model by its definition, as FETA represents it, and records."""

    space: FeatureSpace
    ensemble: Ensemble
    rule: Rule
    model: Model
    records: tuple[Record, ...]
    edge: Edge
    values: str  # how leaf values were drawn
    weights: VoteWeights | None

    @property
    def people(self) -> Matrix:
        """The records, encoded."""
        return np.stack([row_of(self.space, record) for record in self.records])

    def answers(self, record: Record) -> Answers:
        """Return the correct answers about a record."""
        return Answers(self.space, self.ensemble, self.rule, record)


def random_space(rng: np.random.Generator) -> FeatureSpace:
    """Draw categories, integers, levels and real numbers, some of them sensitive or missing."""

    def chance(share: float) -> bool:
        return bool(rng.random() < share)

    def categories(name: str, most: int, *, sensitive: bool) -> Categorical:
        values = tuple(f"{name}{n}" for n in range(rng.integers(1, most + 1)))
        other = not sensitive and chance(0.2)
        return Categorical(name, values, sensitive=sensitive, missing=chance(0.3), other=other)

    ages = int(rng.choice([1, 2, 5, 17, 80], p=[0.1, 0.2, 0.4, 0.2, 0.1]))
    age = Integer("age", 20, 19 + ages, sensitive=True, missing=chance(0.3))
    attributes: list[Attribute] = [age, Real("income", -8.0, 8.0, missing=chance(0.3))]
    if chance(0.6):
        attributes.append(categories("sex", 3, sensitive=True))
    if chance(0.25):
        attributes.append(categories("country", 70 if ages < 5 else 8, sensitive=True))
    if chance(0.5):
        numbers = (-3.0, -0.5, 0.0, 0.5, 3.0)[: rng.integers(1, 6)]
        attributes.append(Levels("hours", numbers, sensitive=chance(0.5), missing=chance(0.3)))
    if chance(0.5):
        attributes.append(categories("town", 5, sensitive=False))
    if chance(0.5):
        attributes.append(Integer("rooms", 0, int(rng.integers(0, 9)), missing=chance(0.3)))
    if chance(0.3) and not age.missing:
        bands = (("young", 20, 21), ("middle", 22, 30), ("old", 31, 120))
        attributes.append(Derived("band", "age", bands))
    order = rng.permutation(len(attributes))
    space = FeatureSpace(tuple(attributes[index] for index in order))
    return space if space.lattice.size <= MAX_COUNTERPARTS else random_space(rng)


def random_record(rng: np.random.Generator, space: FeatureSpace, cuts: list[float]) -> Record:
    """Draw a record; real numbers are often on a cut, or next to one."""
    record: Record = {}
    for attribute in space.attributes:
        if isinstance(attribute, Derived):
            continue
        if isinstance(attribute, Real):
            near = float(rng.choice([*cuts, float(rng.integers(-64, 65) / 8)]))
            number = float(rng.choice([near, np.nextafter(near, -9), np.nextafter(near, 9)]))
            inside = min(max(number, attribute.low), attribute.high)
            record[attribute.name] = None if attribute.missing and rng.random() < 0.3 else inside
        else:
            values = oracle.values_of(attribute)
            record[attribute.name] = values[rng.integers(len(values))]
    return record


@dataclass(frozen=True)
class Grower:
    """Grows random trees over a space."""

    rng: np.random.Generator
    space: FeatureSpace
    sums: int
    draw: Callable[[np.random.Generator, int], np.ndarray]

    def grow(self, depth: int) -> Node:
        """Return a random tree; one of its leaves may be 0 in all but one sum."""
        if depth == 0 or self.rng.random() < 0.15:
            values = self.draw(self.rng, self.sums)
            if self.rng.random() < 0.3:
                values = values * (np.arange(self.sums) == self.rng.integers(self.sums))
            return Leaf(tuple(values.tolist()))
        known = self.space.sensitive if self.rng.random() < 0.4 else self.space.attributes
        attribute = known[self.rng.integers(len(known))]
        left, right = self.grow(depth - 1), self.grow(depth - 1)
        return Split(attribute.name, self._test(attribute), left, right)

    def _test(self, attribute: Attribute) -> AtMost | OneOf:
        if isinstance(attribute, Derived):
            return self._set([name for name, _, _ in attribute.bands])
        listed = isinstance(attribute, Integer | Levels) and self.rng.random() < 0.3
        if isinstance(attribute, Categorical) or listed:
            return self._set(oracle.values_of(attribute))
        return AtMost(self._cut(attribute), bool(self.rng.random() < 0.5))

    def _set(self, values: list[Value]) -> OneOf:
        share = self.rng.choice([0.1, 0.5, 0.9])
        return OneOf(tuple(value for value in values if self.rng.random() < share))

    def _cut(self, attribute: Attribute) -> float:
        if isinstance(attribute, Real):
            number = float(self.rng.integers(-64, 65) / 8)
        else:
            numbers = [value for value in oracle.values_of(attribute) if value is not None]
            number = float(numbers[self.rng.integers(len(numbers))])
        if self.rng.random() < 0.05:
            return float(self.rng.choice([-np.inf, np.inf]))
        return float(self.rng.choice([number, number + 0.5, np.nextafter(number, -9e9)]))


def cuts_of(ensemble: Ensemble, name: str) -> list[float]:
    """Return the finite cuts of an attribute."""
    cuts: list[float] = []
    nodes = list(ensemble.trees)
    while nodes:
        node = nodes.pop()
        if isinstance(node, Split):
            nodes += [node.left, node.right]
            if node.attribute == name and isinstance(node.test, AtMost):
                cuts.append(node.test.cut)
    return [cut for cut in cuts if np.isfinite(cut)]


def random_ensemble(
    rng: np.random.Generator, space: FeatureSpace, *, sums: int, values: str
) -> Ensemble:
    """Draw an ensemble: a sum or a mean, in float32 or float64, with weights or without."""
    single = bool(rng.random() < 0.5)

    def draw(rng: np.random.Generator, count: int) -> np.ndarray:
        numbers = np.asarray(DRAWS[values](rng, count), dtype=np.float64)
        return numbers.astype(np.float32).astype(np.float64) if single else numbers

    grower = Grower(rng, space, sums, draw)
    depths = rng.integers(0, 5, rng.integers(1, 9))
    trees = tuple(grower.grow(int(depth)) for depth in depths)
    base = tuple(draw(rng, sums).tolist())
    weights = None
    if single and values in ("eighths", "rough") and rng.random() < 0.4:
        # Drawn in float32, one of them often 0: the product with a leaf is exact in float64.
        drawn = rng.choice([0.0, 0.5, 1.0, float(np.float32(0.7)), 1.25], len(trees))
        weights = tuple(drawn.tolist())
    mean = bool(rng.random() < 0.4)
    return Ensemble(
        trees,
        base,
        weights,
        denominator=int(rng.choice([len(trees), 3, 7])) if mean else 1,
        kind="float32" if single else "float64",
        around_start=weights is not None and bool(rng.random() < 0.5),
        divide=mean and bool(rng.random() < 0.5),
    )


def forest_of(
    ensemble: Ensemble, space: FeatureSpace, *, equality: Side | None = None, sigmoid: bool = False
) -> Forest:
    """Return the ensemble as FETA represents it."""
    builder = TreesBuilder(len(ensemble.base))
    for index, tree in enumerate(ensemble.trees):
        weight = 1.0 if ensemble.weights is None else ensemble.weights[index]
        builder.root(_add(builder, tree, space, weight))
    base = np.array(ensemble.base)
    summation = Summation(
        "a test",
        ensemble.kind,
        base,
        None if ensemble.weights is None else np.array(ensemble.weights),
        divide=ensemble.divide,
        around_start=ensemble.around_start,
    )
    return Forest(
        builder.build(),
        base,
        summation,
        space.width,
        denominator=ensemble.denominator,
        equality=equality,
        link="logit" if sigmoid else "identity",
    )


def _add(builder: TreesBuilder, node: Node, space: FeatureSpace, weight: float) -> int:
    if isinstance(node, Leaf):
        return builder.leaf(np.array(node.values) * weight)
    index = builder.inner(_node_test(node, space))
    left = _add(builder, node.left, space, weight)
    right = _add(builder, node.right, space, weight)
    builder.link(index, left=left, right=right)
    return index


def _node_test(node: Split, space: FeatureSpace) -> NodeTest:
    attribute = space.attribute(node.attribute)
    columns = space.columns_of(attribute)
    flag = columns.start + 1 if getattr(attribute, "missing", False) else -1
    if isinstance(node.test, AtMost):
        return CutTest(columns.start, node.test.cut, flag, node.test.missing_left)
    if isinstance(attribute, Derived):
        names = [name for name, _, _ in attribute.bands]
        listed = np.array([name in node.test.values for name in names])
        return SetTest(OneHot(columns.start, len(names)), listed)
    values = oracle.values_of(attribute)
    members = np.array([value in node.test.values for value in values])
    if isinstance(attribute, Categorical):
        return SetTest(OneHot(columns.start, len(values)), members)
    numbers = np.array([float(value) for value in values if value is not None])
    return SetTest(Numbers(columns.start, numbers, flag), members)


def random_case(rng: np.random.Generator, edge: Edge, *, n_records: int = 2) -> ForestCase:
    """Draw a model.

    With "tie", the rule is exactly at a counterpart's score or at the span; with "ulp", it is one
    float64 away.
    """
    space, rule = random_space(rng), random_rule(rng)
    two = isinstance(rule, Threshold) and rng.random() < 0.2
    values = str(rng.choice(list(DRAWS), p=DRAW_SHARES))
    ensemble = random_ensemble(rng, space, sums=2 if two else rule.outputs, values=values)
    cuts = cuts_of(ensemble, "income")
    records = tuple(random_record(rng, space, cuts) for _ in range(n_records))
    sides: tuple[Side | None, ...] = (None, "above", "below")
    side = sides[rng.integers(3)]
    rule = rule.resolved(side) if isinstance(rule, Threshold) else rule
    answers = Answers(space, ensemble, rule, records[0])
    if edge != "free":
        ensemble, rule = _at_the_edge(rng, answers, edge)
    elif rng.random() < 0.8:
        rule = _between(rng, answers)
    sigmoid = isinstance(rule, Threshold) and bool(rng.random() < 0.2)
    model = Model(space, forest_of(ensemble, space, equality=side, sigmoid=sigmoid), rule)
    weights = _random_weights(rng, space)
    return ForestCase(space, ensemble, rule, model, records, edge, values, weights)


def _between(rng: np.random.Generator, answers: Answers) -> Rule:
    """Return the rule at a number between two scores, or a part of the span."""
    rule, scores = answers.rule, answers.scores
    if isinstance(rule, Threshold):
        first, second = (float(scores[place][0]) for place in rng.integers(0, len(scores), 2))
        return replace(rule, value=first / 2 + second / 2)
    if isinstance(rule, Tolerance):
        return Tolerance(float(answers.span) * float(rng.choice([0.5, 0.75, 1.25])))
    return rule


def _at_the_edge(rng: np.random.Generator, answers: Answers, edge: Edge) -> tuple[Ensemble, Rule]:
    """Move the rule, or the base of one class, to a counterpart's score."""

    def near(value: float) -> float:
        away = float(rng.choice([-np.inf, np.inf]))
        return float(np.nextafter(value, away)) if edge == "ulp" else value

    ensemble, rule = answers.ensemble, answers.rule
    scores = answers.scores[rng.integers(len(answers.scores))]
    match rule:
        case Threshold():
            return ensemble, replace(rule, value=near(float(scores[0])))
        case Tolerance():
            return ensemble, Tolerance(max(0.0, near(float(answers.span))))
        case Argmax() | OneVsRest():
            first, second = rng.permutation(len(scores))[:2]
            move = near(float(scores[first] - scores[second])) * ensemble.denominator
            base = list(ensemble.base)
            base[second] = float(base[second] + move)
            if ensemble.kind == "float32":
                base[second] = float(np.float32(base[second]))
            return replace(ensemble, base=tuple(base)), rule
    raise AssertionError(rule)


def _random_weights(rng: np.random.Generator, space: FeatureSpace) -> VoteWeights | None:
    if rng.random() < 0.5:
        return None
    size = space.lattice.size
    numbers = rng.permutation(size)[: rng.integers(1, size + 1)]
    return VoteWeights(numbers, rng.integers(1, 4, len(numbers)), space)


def move_sensitive(rng: np.random.Generator, case: ForestCase, record: Record) -> Record:
    """Return a random counterpart."""
    moved = dict(record)
    for attribute in case.space.attributes:
        if not isinstance(attribute, Derived) and attribute.sensitive:
            values = oracle.values_of(attribute)
            moved[attribute.name] = values[rng.integers(len(values))]
    return with_bands(case.space, moved)
