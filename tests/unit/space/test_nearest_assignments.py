"""The nearest listed assignment, against a search over all of them in fractions."""

from decimal import Decimal
from fractions import Fraction

import numpy as np
import pytest

from feta import Categorical, FeatureSpace, Integer, Levels, SchemaError, VoteWeights
from feta.space.attribute import Attribute, Value
from feta.space.nearest_assignments import nearest_assignments


def oracle_rank(space: FeatureSpace, own: list[Value], other: list[Value]) -> tuple[int, Fraction]:
    """Return different categories and the distance of the numbers of two assignments."""
    n_different, distance = 0, Fraction(0)
    for attribute, left, right in zip(space.sensitive, own, other, strict=True):
        if isinstance(attribute, Categorical):
            n_different += left != right
            continue
        if left is None or right is None:
            distance += 0 if left is right else 2
            continue
        numbers = (
            [attribute.low, attribute.high] if isinstance(attribute, Integer) else attribute.numbers  # type: ignore[union-attr]
        )
        lowest, highest, a, b = (
            Fraction(Decimal(str(n))) for n in (numbers[0], numbers[-1], left, right)
        )
        distance += abs(a - b) / (highest - lowest) if highest > lowest else 0
    return n_different, distance


def values(space: FeatureSpace, number: int) -> list[Value]:
    """Return the sensitive values of an assignment id: the last attribute varies fastest."""
    chosen: list[Value] = []
    for attribute in reversed(space.sensitive):
        if isinstance(attribute, Categorical):
            own: list[Value] = list(attribute.values)
        elif isinstance(attribute, Integer):
            own = list(range(attribute.low, attribute.high + 1))
        else:
            own = list(attribute.numbers)  # type: ignore[union-attr]
        own += [None] if attribute.missing else []  # type: ignore[union-attr]
        number, index = divmod(number, len(own))
        chosen.append(own[index])
    return chosen[::-1]


def random_space(rng: np.random.Generator) -> FeatureSpace:
    return FeatureSpace(
        tuple(random_attribute(rng, f"column {n}") for n in range(int(rng.integers(1, 4))))
    )


def random_attribute(rng: np.random.Generator, name: str) -> Attribute:
    missing = bool(rng.integers(2))
    match int(rng.integers(3)):
        case 0:
            high = int(rng.integers(-2, 5))
            return Integer(name, -2, high, sensitive=True, missing=missing)
        case 1:
            listed = ("a", "b", "c")[: rng.integers(1, 4)]
            return Categorical(name, listed, sensitive=True, missing=missing)
    pool = [-7.5, -0.1, 0.0, 0.1, 0.2, 0.3, 1.0, 2.0, 50.0, 1e6]
    numbers = sorted(rng.choice(pool, int(rng.integers(1, 5)), replace=False).tolist())
    return Levels(name, tuple(numbers), sensitive=True, missing=missing)


@pytest.mark.parametrize("seed", range(60))
def test_the_nearest_is_that_of_a_search_in_fractions(seed: int) -> None:
    rng = np.random.default_rng(seed)
    space = random_space(rng)
    ids = rng.permutation(space.lattice.size)
    listed = ids[: int(rng.integers(1, len(ids) + 1))]
    found = nearest_assignments(space, ids, listed)
    for number, index in zip(ids.tolist(), found.tolist(), strict=True):
        expected = min(
            listed.tolist(),
            key=lambda other: (
                *oracle_rank(space, values(space, number), values(space, other)),
                other,
            ),
        )
        assert listed[index] == expected


def test_numbers_count_not_their_indices() -> None:
    space = FeatureSpace((Levels("income", (0.0, 90.0, 100.0, 110.0), sensitive=True),))
    # 90 is nearer to 100 than to 0; the index of both is one away.
    assert nearest_assignments(space, np.array([1]), np.array([0, 2])).tolist() == [1]
    # By index, 0 is nearer to 100 than to 110; 0.2 is as far from 0.1 as from 0.3.
    tenths = FeatureSpace((Levels("share", (0.1, 0.2, 0.3), sensitive=True),))
    assert nearest_assignments(tenths, np.array([1]), np.array([2, 0])).tolist() == [1]


def test_a_missing_number_is_near_to_a_missing_one_only() -> None:
    age = Integer("age", 0, 9, sensitive=True, missing=True)
    sex = Categorical("sex", ("f", "m"), sensitive=True)
    space = FeatureSpace((age, sex))
    nine_f, missing_f, missing_m = 18, 20, 21
    # The highest age is farther from a missing one than the lowest age.
    assert nearest_assignments(space, np.array([nine_f]), np.array([missing_f, 0])).tolist() == [1]
    # A category still counts more, and a missing one stays with a missing one.
    assert nearest_assignments(space, np.array([missing_m]), np.array([missing_f, 1])) == [1]
    two = FeatureSpace((age, Integer("size", 0, 9, sensitive=True)))
    missing_0, missing_9, zero_0 = 100, 109, 0
    assert nearest_assignments(two, np.array([missing_0]), np.array([zero_0, missing_9])) == [1]


def test_large_domains_neither_overflow_nor_are_listed() -> None:
    wide = [Integer(f"n{n}", 0, 2**30 + n, sensitive=True) for n in range(2)]
    space = FeatureSpace((*wide, Levels("share", (0.1, 1e300), sensitive=True)))
    size = 2 * (2**30 + 2)
    ids = np.array([5 * size, 2**30 * size + 1])
    assert nearest_assignments(space, ids, ids[::-1]).tolist() == [1, 0]


def test_rare_people_are_counted_with_the_nearest() -> None:
    space = FeatureSpace((Levels("income", (0.0, 90.0, 100.0), sensitive=True),))
    people = np.array([[0.0]] * 5 + [[90.0]] * 2 + [[100.0]] * 6)
    weights = VoteWeights.from_people(space, people, least=5)
    assert (weights.assignment_ids.tolist(), weights.votes.tolist()) == ([0, 2], [5, 8])
    with pytest.raises(SchemaError, match="no sensitive assignment has 7 people"):
        VoteWeights.from_people(space, people, least=7)
