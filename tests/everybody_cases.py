"""Random models over few people, and their true shares by the oracle's enumeration."""

from collections.abc import Iterator
from dataclasses import dataclass, replace
from fractions import Fraction
from itertools import product

import numpy as np

from feta.arrays import Matrix, Vector
from feta.everybody.population import Independent, marginals, uniform
from feta.everybody.where import Where
from feta.model import Model
from feta.rule import Tolerance
from feta.space.attribute import Attribute, Derived, Levels, Real, Value
from feta.space.feature_space import FeatureSpace
from tests import oracle
from tests.strategies import EDGES, random_case, random_person


@dataclass(frozen=True)
class SmallCase:
    """A model without real-valued columns, a population, and the true shares."""

    model: Model
    population: Independent
    fair: Fraction
    unfair: Fraction
    words: str


def small_case(seed: int) -> SmallCase:
    """Draw a model, a third of them at a tie or one float64 away, and a population."""
    rng = np.random.default_rng(seed)
    edge = EDGES[rng.integers(len(EDGES))]
    while True:
        case = random_case(rng, edge, plain=bool(rng.random() < 0.3))
        if not isinstance(case.model.rule, Tolerance):
            break
    model = replace(case.model, space=_finite(rng, case.model.space, case.people), threshold=None)
    space = model.space
    people = np.stack([random_person(rng, space) for _ in range(12)])
    # "" asks about everybody; the columns are shared in every random space.
    levels = next(a for a in space.attributes if a.name == "income")
    assert isinstance(levels, Levels)
    limit = float(levels.numbers[rng.integers(len(levels.numbers))])
    text = ["", "", f"income <= {limit!r}", f"income >= {limit!r}"][rng.integers(4)]
    where = Where.of(text, space)
    kind = rng.integers(2)
    try:
        population = uniform(space, where) if kind else marginals(space, people[:, :], where)
    except ValueError:  # no row of the table meets the condition
        population = uniform(space, where)
    weighted = population.kind == "marginals"
    fair = unfair = total = 0
    for person, values in _people(space):
        weight = 1
        if weighted:
            for attribute, value in values:
                weight *= _count(space, people, attribute, value)
        income = next(value for attribute, value in values if attribute.name == "income")
        if text and not _meets(text, limit, income):
            weight = 0
        if not weight:
            continue
        total += weight
        if oracle.is_fair(model, person):
            fair += weight
        else:
            unfair += weight
    return SmallCase(
        model, population, Fraction(fair, total), Fraction(unfair, total), f"{edge}, {text!r}"
    )


def _meets(text: str, limit: float, income: Value) -> bool:
    assert isinstance(income, float)
    return income <= limit if "<=" in text else income >= limit


def _finite(rng: np.random.Generator, space: FeatureSpace, people: Matrix) -> FeatureSpace:
    """Replace the real-valued column by a few numbers, among them those of the people."""
    attributes: list[Attribute] = []
    for attribute in space.attributes:
        if isinstance(attribute, Real):
            column = space.columns_of(attribute).start
            numbers = {*people[:, column].tolist(), *rng.integers(-8, 9, 3).astype(float).tolist()}
            attributes.append(Levels(attribute.name, tuple(sorted(numbers))))
        else:
            attributes.append(attribute)
    return FeatureSpace(tuple(attributes))


def _people(space: FeatureSpace) -> Iterator[tuple[Vector, list[tuple[Attribute, Value]]]]:
    """List one person for each combination of the shared values."""
    own = [a for a in space.attributes if not isinstance(a, Derived)]
    each = [oracle.values_of(a)[:1] if space.is_sensitive(a) else oracle.values_of(a) for a in own]
    for values in product(*each):
        record = {a.name: value for a, value in zip(own, values, strict=True)}
        shared: list[tuple[Attribute, Value]] = [
            (a, v) for a, v in zip(own, values, strict=True) if not space.is_sensitive(a)
        ]
        yield space.encode([record])[0], shared


def _count(space: FeatureSpace, people: Matrix, attribute: Attribute, value: Value) -> int:
    assert not isinstance(attribute, Derived)
    code = oracle.columns_of_value(attribute, value)
    return int((people[:, space.columns_of(attribute)] == np.array(code)).all(axis=1).sum())
