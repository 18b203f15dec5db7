import numpy as np
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from feta import Argmax, FeatureSpace, Integer, Model, Network, Real, Threshold, Tolerance
from feta.rounding import SOURCE_FLOAT32
from feta.scorer.network.error_bounds import largest_error
from feta.train.task import Task
from feta.train.violation import violations
from feta.train.worst_counterparts import Numbers
from tests import oracle
from tests.strategies import random_case


@given(st.integers(0, 2**32 - 1), st.sampled_from(("free", "tie", "ulp")))
@settings(max_examples=150, deadline=None)
def test_counterexamples_are_the_oracles(seed: int, edge: str) -> None:
    case = random_case(np.random.default_rng(seed), edge, plain=False)  # type: ignore[arg-type]  # an edge
    model: Model = case.model
    if not isinstance(model.rule, Threshold | Argmax | Tolerance):
        return
    found = violations(model.space, model.network, Task(model.rule), case.people, numbers="integer")
    for row, person in enumerate(case.people):
        if not isinstance(model.rule, Tolerance):
            assert found.decisions[row] == oracle.decide(model, person)
        worst = oracle.worst_gap(model, person)
        assert found.differs[row] == (worst is not None)
        if worst is not None:
            gap = oracle.gap(model, person, found.counterparts[row])
            if isinstance(model.rule, Tolerance):  # the end of the span farther from the person
                others = oracle.counterparts(model, person)
                assert gap == max(oracle.gap(model, person, other) for other in others)
            else:
                assert gap == worst
            assert abs(found.gaps[row] - float(worst)) <= 1e-9 * (1 + abs(float(worst)))
        else:
            assert found.gaps[row] == 0.0


@given(st.integers(0, 2**32 - 1), st.sampled_from(("free", "tie", "ulp")))
@example(10867, "tie")
@settings(max_examples=150, deadline=None)
def test_nearly_is_exact_about_who_and_near_about_how_far(seed: int, edge: str) -> None:
    case = random_case(np.random.default_rng(seed), edge, plain=False)  # type: ignore[arg-type]  # an edge
    model: Model = case.model
    if not isinstance(model.rule, Threshold | Argmax | Tolerance):
        return
    task = Task(model.rule)
    exact = violations(model.space, model.network, task, case.people, numbers="integer")
    near = violations(model.space, model.network, task, case.people, numbers="integer", nearly=True)
    assert (near.differs == exact.differs).all()
    assert (near.decisions == exact.decisions).all()
    sizes = 1 + np.abs(model.network(exact.counterparts)).max(axis=1)
    assert (near.gaps <= exact.gaps + 1e-9 * sizes).all()
    # Large terms that cancel make the rounding of float32 large compared with the scores.
    rounding = largest_error(model.network, model.space.magnitudes, SOURCE_FLOAT32)
    assert (near.gaps >= exact.gaps - 2 * rounding - 1e-6 * sizes).all()


def plateau(bias: float) -> Network:
    """Give a score of max(0, age − 60) + bias: the same for most ages."""
    return Network.from_layers([([[1.0, 0.0]], [-60.0]), ([[1.0]], [bias])])


@pytest.mark.parametrize("numbers", ["integer", "real"])
@pytest.mark.parametrize(("bias", "apart"), [(-0.5, True), (0.0, False), (0.5, False)])
def test_a_plateau_of_one_score_is_on_one_side(bias: float, apart: bool, numbers: Numbers) -> None:
    space = FeatureSpace((Integer("age", 18, 90, sensitive=True), Real("income", 0, 9)))
    people = space.encode([{"age": 90, "income": 1}, {"age": 70, "income": 2}])
    for nearly in (False, True):
        found = violations(
            space, plateau(bias), Task(Threshold(0.0)), people, numbers=numbers, nearly=nearly
        )
        assert found.decisions.tolist() == [1.0, 1.0]
        assert found.differs.tolist() == [apart] * 2
        if apart:
            assert found.gaps.tolist() == [30.0, 10.0]
