"""One real-valued sensitive attribute in the lattice engine."""

from fractions import Fraction

import numpy as np
import pytest

import feta
from campaigns.milp import real_problems, sample_counterparts
from feta.engine.lattice import LatticeEngine
from feta.engine.registry import choose
from feta.errors import EngineError
from feta.query import CountOf

PROBLEMS = [
    (number, model, person)
    for number, (_, model, person) in enumerate(real_problems(80, 5))
    if LatticeEngine().accepts(CountOf(model)) and not model.space.finite
]


def test_there_are_problems_of_every_kind() -> None:
    assert len(PROBLEMS) > 10
    assert {type(model.rule).__name__ for _, model, _ in PROBLEMS} >= {"Threshold", "Tolerance"}


@pytest.mark.parametrize(("number", "model", "person"), PROBLEMS)
def test_neither_sampled_counterparts_nor_milp_contradict_the_verdict(
    number: int, model: feta.Model, person: np.ndarray
) -> None:
    verdict = feta.worst(model, person, engine="lattice")
    rng = np.random.default_rng(number)
    gaps = [
        pair.gap
        for other in sample_counterparts(model, person, rng)
        if (pair := feta.Counterexample.witness(model, person, other)) is not None
    ]
    # One of the problems takes a solver half a minute; an answer in time must agree.
    second = feta.worst(model, person, engine="milp", budget=feta.Budget(seconds=3))
    if isinstance(verdict, feta.Fair):
        assert not gaps
        assert not isinstance(second, feta.Unfair)
    if isinstance(verdict, feta.Unfair):
        assert not isinstance(second, feta.Fair)
        gap = verdict.counterexample.gap
        if verdict.optimal:
            assert max(gaps, default=0.0) <= gap * (1 + 1e-9)
            if isinstance(second, feta.Unfair) and second.optimal:
                assert second.counterexample.gap == pytest.approx(gap, rel=4e-9)


def peaked(peak: float) -> feta.Model:
    """Return a model whose score rises up to one age and then falls: 1 − |age − peak|."""
    space = feta.FeatureSpace(
        (feta.Real("age", 20, 70, sensitive=True), feta.Real("income", 0, 10))
    )
    layers = [
        ([[1.0, 0.0], [-1.0, 0.0]], [-peak, peak]),
        ([[-1.0, -1.0]], [1.0]),
    ]
    return feta.Model(space, feta.Network.from_layers(layers), threshold=0.0)


def test_the_maximum_at_a_kink_is_found_precisely() -> None:
    peak = 33.3
    model = peaked(peak)
    verdict = feta.worst(model, model.space.encode({"age": 60, "income": 1})[0], engine="lattice")
    assert isinstance(verdict, feta.Unfair)
    assert verdict.optimal
    age = verdict.counterexample.counterpart[0]
    assert abs(Fraction(float(age)) - Fraction(peak)) <= Fraction(1, 10**9)


def test_a_kink_that_only_touches_the_threshold_is_never_called_fair() -> None:
    # At the peak the score is exactly 1, the threshold: favorable there, and nowhere else.
    model = peaked(32.0)
    model = feta.Model(model.space, model.network, threshold=1.0)
    verdict = feta.verify(feta.FairAt(model, model.space.encode({"age": 60, "income": 1})[0]))
    assert not isinstance(verdict, feta.Fair)


def test_auto_chooses_lattice_for_one_real_attribute_and_milp_for_several() -> None:
    assert choose(CountOf(peaked(33.0))).name == "lattice"
    two = feta.FeatureSpace(
        (feta.Real("age", 20, 70, sensitive=True), feta.Real("income", 0, 10, sensitive=True))
    )
    assert not LatticeEngine().accepts(CountOf(feta.Model(two, peaked(33.0).network)))
    assert choose(CountOf(feta.Model(two, peaked(33.0).network))).name == "milp"


def test_counting_names_the_real_attribute() -> None:
    model = peaked(33.0)
    people = model.space.encode([{"age": 60, "income": 1}])
    with pytest.raises(EngineError, match="got 'age', which has uncountably many values"):
        feta.tally(model, people)
    with pytest.raises(EngineError, match="got 'age', which has uncountably many values"):
        feta.FairPredictor(model).decide(people)
