"""Engines compared with the oracle, with thresholds on scores and one step away."""

from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.typing import NDArray

import feta
from campaigns.core import disagreements
from feta.arrays import Vector
from feta.checker.prove import prove
from feta.engine.milp.engine import MilpEngine
from feta.engine.registry import engines
from feta.rounding import FLOAT64
from tests import oracle
from tests.examples import rescaled
from tests.strategies import Case, cases

# These decide every finite lattice; the MILP engines are tested by `campaigns.milp`.
NAMES = sorted(name for name, engine in engines().items() if not isinstance(engine, MilpEngine))


@pytest.mark.parametrize("engine", NAMES)
@given(case=cases())
@settings(max_examples=60, deadline=None)
def test_answers_match_the_oracle(engine: str, case: Case) -> None:
    for person in case.people:
        assert disagreements(case.model, person, engine, case.weights) == []
        _prove_verdicts(case.model, person, engine)


def _prove_verdicts(model: feta.Model, person: Vector, engine: str) -> None:
    """Re-check the evidence of each verdict with the checker's own arithmetic."""
    for query in (feta.FairAt(model, person), feta.WorstAt(model, person)):
        prove(feta.verify(query, engine=engine), query)


@pytest.mark.parametrize("engine", NAMES)
@given(case=cases(plain=False))
@settings(max_examples=60, deadline=None)
def test_answers_match_the_oracle_for_every_rule_activation_and_weighting(
    engine: str, case: Case
) -> None:
    for person in case.people:
        assert disagreements(case.model, person, engine, case.weights) == []
        _prove_verdicts(case.model, person, engine)


@pytest.mark.parametrize("engine", NAMES)
@given(case=cases(plain=False), power=st.sampled_from([1, 20, 30]), seed=st.integers(0, 2**16))
@settings(max_examples=60, deadline=None)
def test_rescaling_and_permuting_neurons_changes_no_answer(
    engine: str, case: Case, power: int, seed: int
) -> None:
    model = case.model
    other = feta.Model(
        model.space, rescaled(model.network, np.random.default_rng(seed), power), model.rule
    )
    for person in case.people:
        assert oracle.scores(model, person) == oracle.scores(other, person)
        first, second = (feta.worst(m, person, engine=engine) for m in (model, other))
        assert type(first) is type(second)
        if isinstance(first, feta.Unfair) and isinstance(second, feta.Unfair):
            assert (first.counterexample.counterpart == second.counterexample.counterpart).all()
        prove(second, feta.WorstAt(other, person))
    if not isinstance(model.rule, feta.Tolerance):
        counts, others = (feta.tally(m, case.people, engine=engine) for m in (model, other))
        np.testing.assert_array_equal(counts.by_class, others.by_class)


@given(case=cases())
@settings(max_examples=60, deadline=None)
def test_the_error_bound_covers_the_error_of_float64(case: Case) -> None:
    model = case.model
    scores = model.points(case.people).scores(FLOAT64)
    for row, person in enumerate(case.people):
        off = abs(Fraction(float(scores.values[row, 0])) - oracle.score(model, person))
        assert off <= Fraction(float(scores.errors[row, 0]))


@given(case=cases())
@settings(max_examples=60, deadline=None)
def test_the_float32_bound_covers_float32_arithmetic_in_any_order(case: Case) -> None:
    model = case.model
    scores = model.points(case.people).scores(model.network.arithmetic)
    for row, person in enumerate(case.people):
        for reverse in (False, True):
            score = _float32_score(model, person, reverse=reverse)
            off = abs(Fraction(score) - oracle.score(model, person))
            assert off <= Fraction(float(scores.errors[row, 0]))


Float32 = NDArray[np.float32]


def _float32_score(model: feta.Model, person: Vector, *, reverse: bool) -> float:
    """Score one person in float32, adding the terms one by one, forwards or backwards."""
    first = model.network.first
    terms = list((_single(first.slopes) * _single(person)).T)
    rows = [_single(t.rows[t.indices(person[[t.column]])[0]]) for t in first.tables]
    values = _summed([*terms, *rows, _single(first.bias)], reverse=reverse)
    for activation, layer in model.network.steps:
        activated = _single(activation(values[None, :].astype(np.float64))[0])
        products = list((_single(layer.weight) * activated).T)
        values = _summed([*products, _single(layer.bias)], reverse=reverse)
    return float(values[0])


def _single(values: Vector) -> Float32:
    return values.astype(np.float32)


def _summed(terms: list[Float32], *, reverse: bool) -> Float32:
    total = np.zeros_like(terms[0])
    for term in reversed(terms) if reverse else terms:
        total = total + term
    return total


@given(case=cases())
@settings(max_examples=60, deadline=None)
def test_a_fair_decision_never_reads_the_sensitive_columns(case: Case) -> None:
    model = case.model
    hidden = np.array(case.people)
    hidden[:, model.space.sensitive_columns] = np.nan
    others = np.stack(oracle.counterparts(model, case.people[0]))
    predictor = feta.FairPredictor(model)
    np.testing.assert_array_equal(predictor.decide(hidden), predictor.decide(case.people))
    assert len(set(predictor.decide(others).tolist())) == 1
