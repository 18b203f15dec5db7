"""Proved shares of boxes against enumeration by the oracle, and against people drawn in boxes."""

from fractions import Fraction

import numpy as np
import pytest

import feta
from feta.arrays import Flags
from feta.cells.cells import Cells
from feta.everybody.boxes import Boxes
from feta.everybody.listing import Listing
from feta.everybody.population import marginals, uniform
from feta.everybody.where import Where
from tests import oracle
from tests.everybody_cases import small_case
from tests.strategies import random_network


@pytest.mark.parametrize("seed", range(25))
def test_proved_shares_bracket_enumeration(seed: int) -> None:
    case = small_case(seed)
    for few in (1, 8):
        boxes = Boxes.of(case.model, case.population, few=few)
        assert isinstance(boxes, Boxes)
        for _ in range(200):
            if boxes.done:
                break
            boxes.step()
            assert boxes.fair <= case.fair
            assert boxes.unfair <= case.unfair
        assert boxes.done
        assert boxes.fair + boxes.unfair + boxes.stuck == 1


@pytest.mark.parametrize("seed", range(100, 112))
def test_listing_equals_enumeration(seed: int) -> None:
    case = small_case(seed)
    listing = Listing.of(case.model, case.population)
    assert isinstance(listing, Listing)
    while not listing.done:
        listing.step()
    assert (listing.fair, listing.unfair) == (case.fair, case.unfair)


class Recorded(Boxes):
    """Boxes that keep which of them were claimed."""

    def _fair(self, index: int, cells: Cells) -> Flags:
        fair = super()._fair(index, cells)
        self.__dict__.setdefault("claims", []).append((index, cells[np.flatnonzero(fair)], True))
        return fair

    def _unfair(self, index: int, cells: Cells) -> Flags:
        unfair = super()._unfair(index, cells)
        claim = (index, cells[np.flatnonzero(unfair)], False)
        self.__dict__.setdefault("claims", []).append(claim)
        return unfair


@pytest.mark.parametrize("seed", range(6))
def test_people_in_boxes_of_real_numbers_are_as_claimed(seed: int) -> None:
    rng = np.random.default_rng(seed)
    space = feta.FeatureSpace(
        (
            feta.Integer("age", 20, 23, sensitive=True),
            feta.Real("income", -4.0, 4.0, missing=True),
            feta.Categorical("town", ("a", "b"), other=True, missing=True),
            feta.Integer("years", 0, 200),
        )
    )
    model = feta.Model(space, random_network(rng, space), threshold=0.0)
    population = uniform(space, Where())
    if seed % 2:  # the frequencies of a table, in which numbers and cells are missing
        population = marginals(space, population.draw(rng, 40), Where())
    boxes = Recorded.of(model, population, few=1)
    assert isinstance(boxes, Recorded)
    for _ in range(6):
        boxes.step()
    n_checked = 0
    for index, cells, fair in boxes.__dict__["claims"]:
        part = boxes.parts[index]
        for lower, upper in zip(cells.lower, cells.upper, strict=True):
            share = rng.choice([0.0, 0.5, 1.0, rng.random()], (2, len(lower)))
            points = lower + (upper - lower) * share
            real = np.array([axis.real for axis in part.axes])
            people = part.at(np.where(real, points, np.floor(points)))
            for person in people[: 2 if n_checked < 400 else 0]:
                n_checked += 1
                assert oracle.is_fair(model, person) is fair
    if seed == 0:
        assert n_checked > 10


def test_a_dead_neuron_blocks_the_path_exactly() -> None:
    """The neuron that reads age is inactive below 50; elsewhere it flips nobody or somebody."""
    space = feta.FeatureSpace(
        (feta.Integer("age", 0, 1, sensitive=True), feta.Integer("x", 0, 10**6))
    )
    layers = [([[1.0, 1.0], [0.0, 1.0]], [-50.0, 0.0]), ([[1.0, 0.0]], [-1e9])]
    model = feta.Model(space, feta.Network.from_layers(layers), threshold=-1e9)
    boxes = Boxes.of(model, uniform(space, Where()), few=1)
    assert isinstance(boxes, Boxes)
    while not boxes.done:
        boxes.step()
    # The score is relu(age + x − 50) − 1e9, and ties are favorable: everybody is.
    assert boxes.fair + boxes.stuck == 1
    unfair = feta.Model(space, feta.Network.from_layers(layers), feta.Threshold(-1e9 + 1.0))
    boxes = Boxes.of(unfair, uniform(space, Where()), few=1)
    assert isinstance(boxes, Boxes)
    while not boxes.done:
        boxes.step()
    assert boxes.unfair == Fraction(1, 10**6 + 1)  # x = 50
    assert boxes.n_boxes < 200
    assert boxes.witness is not None
    assert boxes.witness[1] == 50


def test_a_linked_condition_is_refused_by_name() -> None:
    space = feta.FeatureSpace(
        (feta.Integer("age", 0, 1, sensitive=True), feta.Real("x", 0, 1), feta.Real("y", 0, 1))
    )
    model = feta.Model(space, feta.Network.from_layers([([[1.0, 1.0, 1.0]], [0.0])]), threshold=0.0)
    refusal = Boxes.of(model, uniform(space, Where.of("x + y < 1", space)))
    assert isinstance(refusal, str)
    assert "'x', 'y'" in refusal


def test_people_drawn_from_undecided_boxes_belong_to_the_population() -> None:
    space = feta.FeatureSpace(
        (
            feta.Integer("age", 0, 9, sensitive=True),
            feta.Integer("x", 0, 99),
            feta.Real("y", 0.0, 9.0),
        )
    )
    network = feta.Network.from_layers([([[1.0, 1.0, 3.0]], [-60.0])])
    model = feta.Model(space, network, threshold=0.0)
    where = Where.of("x in (3, 50, 97) and y < 4", space)
    boxes = Boxes.of(model, uniform(space, where), few=1)
    assert isinstance(boxes, Boxes)
    boxes.step()
    people = boxes.draw(np.random.default_rng(0), 500)
    assert len(people) == 500
    assert where.holds(space, people).all()
    assert set(people[:, 1]) == {3.0, 50.0, 97.0}
