"""Strategies: random models aimed at the edge; campaigns draw them by seed, Hypothesis by choice."""

from dataclasses import dataclass
from itertools import pairwise
from typing import Literal

import numpy as np
from hypothesis import strategies as st

from feta.arrays import Matrix, Vector
from feta.model import Model
from feta.network.activation import Activation, identity, relu
from feta.network.network import Affine, Columns, Network, Table
from feta.rule import Threshold
from feta.space.attribute import Attribute, Categorical, Derived, Integer, Levels, Real
from feta.space.feature_space import FeatureSpace
from tests import oracle

Edge = Literal["free", "tie", "ulp"]
EDGES: tuple[Edge, ...] = ("free", "free", "free", "free", "tie", "ulp")  # a third at the edge


@dataclass(frozen=True)
class Case:
    """A model, some people of it, and how the threshold was placed."""

    model: Model
    people: Matrix
    edge: Edge


def random_space(rng: np.random.Generator) -> FeatureSpace:
    attributes: list[Attribute] = [
        Integer("age", 20, 20 + int(rng.integers(1, 5)), sensitive=True),
        Real("income", -8.0, 8.0),
    ]
    if rng.random() < 0.6:
        attributes.append(Categorical("sex", ("female", "male"), sensitive=True))
    if rng.random() < 0.4:
        attributes.append(
            Levels(
                "hours",
                (-1.0, 0.0, 0.5, 3.0)[: rng.integers(1, 5)],
                sensitive=bool(rng.random() < 0.5),
            )
        )
    if rng.random() < 0.3:
        attributes.append(Derived("age_band", "age", (("young", 20, 21), ("old", 22, 24))))
    if rng.random() < 0.4:
        attributes.append(Categorical("town", ("a", "b", "c")))
    order = rng.permutation(len(attributes))
    return FeatureSpace(tuple(attributes[place] for place in order))


def random_person(rng: np.random.Generator, space: FeatureSpace) -> Vector:
    record: dict[str, object] = {}
    for attribute in space.attributes:
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
    """Weights in eighths, a third of them zero: sums cancel exactly and ties happen."""
    return rng.integers(-16, 17, shape) / 8 * (rng.random(shape) < 0.7)


def rough(rng: np.random.Generator, *shape: int) -> Matrix:
    """Weights as training leaves them: every product rounds."""
    return rng.normal(size=shape)


def random_network(rng: np.random.Generator, space: FeatureSpace) -> Network:
    draw = eighths if rng.random() < 0.5 else rough
    widths = [int(rng.integers(1, 5)) for _ in range(rng.integers(0, 4))] + [1]
    slopes, tables = draw(rng, widths[0], space.width), []
    for attribute in space.attributes:
        if isinstance(attribute, Integer | Levels) and rng.random() < 0.3:
            column = space.columns_of(attribute).start
            slopes[:, column] = 0.0
            numbers = attribute.codes(np.arange(attribute.n_values))[:, 0]
            tables.append(Table(column, numbers, draw(rng, len(numbers), widths[0])))
    first = Columns(draw(rng, widths[0]), slopes, tuple(tables))
    layers = tuple(
        Affine(draw(rng, outputs, inputs), draw(rng, outputs))
        for inputs, outputs in pairwise(widths)
    )
    return Network(first, tuple(random_activation(rng) for _ in layers), layers)


def random_activation(rng: np.random.Generator) -> Activation:
    return relu() if rng.random() < 0.9 else identity()


def random_case(rng: np.random.Generator, edge: Edge) -> Case:
    """Draw a model; "tie" puts the threshold on a counterpart's score, "ulp" one step beside it."""
    space = random_space(rng)
    network = random_network(rng, space)
    people = np.stack([random_person(rng, space) for _ in range(2)])
    rule = Threshold(
        float(rng.integers(-8, 9) / 8),
        favors="above" if rng.random() < 0.7 else "below",
        equality=(None, "favorable", "unfavorable")[rng.integers(3)],
    )
    model = Model(space, network, rule)
    if edge != "free":
        others = oracle.counterparts(model, people[0])
        value = float(oracle.score(model, others[rng.integers(len(others))]))
        if edge == "ulp":
            value = float(np.nextafter(value, rng.choice([-np.inf, np.inf])))
        model = Model(space, network, Threshold(value, rule.favors, rule.equality))
    return Case(model, people, edge)


def cases(edges: tuple[Edge, ...] = ("free", "tie", "ulp")) -> st.SearchStrategy[Case]:
    """Draw cases for Hypothesis."""
    seeds = st.integers(0, 2**32 - 1)
    return st.builds(
        lambda seed, edge: random_case(np.random.default_rng(seed), edge),
        seeds,
        st.sampled_from(edges),
    )
