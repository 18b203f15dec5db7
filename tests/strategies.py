"""Random models near the decision boundary, for campaigns (by seed) and Hypothesis."""

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Literal

import numpy as np
from hypothesis import strategies as st

from feta.arrays import Matrix, Vector
from feta.model import Model
from feta.rule import Argmax, OneVsRest, Rule, Threshold, Tolerance
from feta.scorer.network.activation import (
    Maxout,
    Step,
    absolute,
    clip,
    hardsigmoid,
    identity,
    leaky_relu,
    prelu,
    relu,
    relu6,
)
from feta.scorer.network.builder import NetworkBuilder
from feta.scorer.network.layers import Affine, Columns, LookupTable
from feta.scorer.network.network import Network
from feta.space.attribute import Attribute, Categorical, Derived, Integer, Levels, Real
from feta.space.feature_space import FeatureSpace
from feta.space.vote_weights import VoteWeights
from tests import oracle

Edge = Literal["free", "tie", "ulp"]
EDGES: tuple[Edge, ...] = ("free", "free", "free", "free", "tie", "ulp")  # a third at the edge


@dataclass(frozen=True)
class Case:
    """A model, people of its space, and how the threshold was chosen."""

    model: Model
    people: Matrix
    edge: Edge
    weights: VoteWeights | None = None


def random_space(rng: np.random.Generator) -> FeatureSpace:
    def missing() -> bool:
        return bool(rng.random() < 0.25)

    age = Integer("age", 20, 20 + int(rng.integers(1, 5)), sensitive=True, missing=missing())
    attributes: list[Attribute] = [age, Real("income", -8.0, 8.0)]
    if rng.random() < 0.6:
        sex = Categorical("sex", ("female", "male"), sensitive=True, missing=missing())
        attributes.append(sex)
    if rng.random() < 0.4:
        numbers = (-1.0, 0.0, 0.5, 3.0)[: rng.integers(1, 5)]
        sensitive = bool(rng.random() < 0.5)
        attributes.append(Levels("hours", numbers, sensitive=sensitive, missing=missing()))
    if rng.random() < 0.3 and not age.missing:
        attributes.append(Derived("age_band", "age", (("young", 20, 21), ("old", 22, 24))))
    if rng.random() < 0.4:
        attributes.append(Categorical("town", ("a", "b", "c")))
    order = rng.permutation(len(attributes))
    return FeatureSpace(tuple(attributes[index] for index in order))


def random_person(rng: np.random.Generator, space: FeatureSpace) -> Vector:
    record: dict[str, object] = {}
    for attribute in space.attributes:
        if not isinstance(attribute, Derived) and attribute.missing and rng.random() < 0.3:
            record[attribute.name] = None
            continue
        match attribute:
            case Categorical(values=values):
                record[attribute.name] = values[rng.integers(len(values))]
            case Integer(low=low, high=high):
                record[attribute.name] = int(rng.integers(low, high + 1))
            case Levels(numbers=numbers):
                record[attribute.name] = numbers[rng.integers(len(numbers))]
            case Real():
                record[attribute.name] = float(rng.integers(-64, 65) / 8)
    return space.encode(record)[0]


def eighths(rng: np.random.Generator, *shape: int) -> Matrix:
    """Draw weights in eighths, a third of them zero: sums cancel exactly and ties occur."""
    return rng.integers(-16, 17, shape) / 8 * (rng.random(shape) < 0.7)


def rough(rng: np.random.Generator, *shape: int) -> Matrix:
    """Draw weights as after training: every product is rounded."""
    return rng.normal(size=shape)


def random_network(
    rng: np.random.Generator, space: FeatureSpace, outputs: int = 1, *, plain: bool = True
) -> Network:
    """Draw a network; a plain one has ReLU only, others have any activations."""
    draw = eighths if rng.random() < 0.5 else rough
    builder = NetworkBuilder()
    widths = [2 * int(rng.integers(1, 3)) for _ in range(rng.integers(0, 4))] + [outputs]
    inputs = space.width
    for index, width in enumerate(widths):
        builder.linear(draw(rng, width, inputs), draw(rng, width))
        inputs = width
        if index < len(widths) - 1:
            step = relu() if plain else random_activation(rng, width)
            builder.activate(step, "a random activation")
            inputs = builder.width or width
    return _with_tables(builder.network(), rng, space, draw)


def _with_tables(
    network: Network,
    rng: np.random.Generator,
    space: FeatureSpace,
    draw: Callable[..., Matrix],
) -> Network:
    """Replace some slopes of finite columns by tables."""
    slopes, tables = np.array(network.first.slopes), []
    for attribute in space.attributes:
        if isinstance(attribute, Integer | Levels) and rng.random() < 0.3:
            column = space.columns_of(attribute).start
            slopes[:, column] = 0.0
            numbers = np.unique(attribute.codes(np.arange(attribute.n_values))[:, 0])
            tables.append(LookupTable(column, numbers, draw(rng, len(numbers), len(slopes))))
    return replace(network, first=Columns(network.first.bias, slopes, tuple(tables)))


def random_activation(rng: np.random.Generator, width: int) -> Step:
    low, high = sorted(rng.choice([-2.0, -0.5, 0.0, 0.25, 1.5], 2, replace=False).tolist())
    steps: list[Step] = [
        relu(),
        leaky_relu(0.125),
        leaky_relu(0.01),
        prelu(rng.integers(-8, 9, width) / 8),
        clip(low, high),
        clip(-np.inf, high),
        relu6(),
        absolute(),
        hardsigmoid(),
        identity(),
        Maxout(2),
    ]
    return steps[rng.integers(len(steps))]


def random_rule(rng: np.random.Generator) -> Rule:
    kind = rng.integers(4)
    if kind == 0:
        return Argmax(("a", "b", "c")[: rng.integers(2, 4)])
    if kind == 1:
        return OneVsRest(("a", "b", "c"), "abc"[rng.integers(3)])
    if kind == 2:
        return Tolerance(float(rng.integers(0, 17) / 8))
    return random_threshold(rng)


def random_threshold(rng: np.random.Generator) -> Threshold:
    return Threshold(
        float(rng.integers(-8, 9) / 8),
        favors="above" if rng.random() < 0.7 else "below",
        equality=(None, "favorable", "unfavorable")[rng.integers(3)],
    )


def random_weights(rng: np.random.Generator, model: Model) -> VoteWeights | None:
    if rng.random() < 0.5:
        return None
    size = model.space.lattice.size
    numbers = rng.permutation(size)[: rng.integers(1, size + 1)]
    return VoteWeights(numbers, rng.integers(1, 4, len(numbers)), model.space)


def random_case(rng: np.random.Generator, edge: Edge, *, plain: bool = True) -> Case:
    """Draw a model.

    With "tie", the rule is exactly at a counterpart's score or at the span; with "ulp", it is one
    float64 away.
    """
    space = random_space(rng)
    rule = random_threshold(rng) if plain else random_rule(rng)
    network = random_network(rng, space, rule.outputs, plain=plain)
    people = np.stack([random_person(rng, space) for _ in range(2)])
    model = Model(space, network, rule)
    if edge != "free":
        model = _at_the_edge(rng, model, people[0], edge)
    return Case(model, people, edge, random_weights(rng, model))


def _at_the_edge(rng: np.random.Generator, model: Model, person: Vector, edge: Edge) -> Model:
    others = oracle.counterparts(model, person)
    other = others[rng.integers(len(others))]
    match model.rule:
        case Threshold():
            value = _near(rng, float(oracle.score(model, other)), edge)
            return replace(model, rule=replace(model.rule, value=value), threshold=None)
        case Tolerance():
            epsilon = max(0.0, _near(rng, float(oracle.span(model, person)), edge))
            return replace(model, rule=Tolerance(epsilon), threshold=None)
        case _:
            # Move one class's bias so that it ties with another at this counterpart.
            first, second = rng.permutation(model.network.outputs)[:2]
            scores = oracle.scores(model, other)
            move = _near(rng, float(scores[first] - scores[second]), edge)
            return replace(
                model, scorer=_shift_bias(model.network, int(second), move), threshold=None
            )


def _near(rng: np.random.Generator, value: float, edge: Edge) -> float:
    return float(np.nextafter(value, rng.choice([-np.inf, np.inf]))) if edge == "ulp" else value


def _shift_bias(network: Network, output: int, move: float) -> Network:
    if not network.layers:
        bias = np.array(network.first.bias)
        bias[output] += move
        return replace(network, first=replace(network.first, bias=bias))
    *rest, last = network.layers
    bias = np.array(last.bias)
    bias[output] += move
    return replace(network, layers=(*rest, Affine(last.weight, bias, last.cancelled_magnitude)))


def cases(*, plain: bool = True) -> st.SearchStrategy[Case]:
    """Draw cases for Hypothesis; plain ones are ReLU networks with a threshold."""
    return st.builds(
        lambda seed, edge: random_case(np.random.default_rng(seed), edge, plain=plain),
        st.integers(0, 2**32 - 1),
        st.sampled_from(("free", "tie", "ulp")),
    )
