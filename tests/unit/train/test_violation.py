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
def test_counterexamples_match_the_oracle(seed: int, edge: str) -> None:
    case = random_case(np.random.default_rng(seed), edge, plain=False)  # type: ignore[arg-type]  # an edge
    model: Model = case.model
    if not isinstance(model.rule, Threshold | Argmax | Tolerance):
        return
    result = violations(
        model.space, model.network, Task(model.rule), case.people, numbers="integer"
    )
    for row, person in enumerate(case.people):
        if not isinstance(model.rule, Tolerance):
            assert result.decisions[row] == oracle.decide(model, person)
        worst = oracle.worst_gap(model, person)
        assert result.differs[row] == (worst is not None)
        if worst is not None:
            gap = oracle.gap(model, person, result.counterparts[row])
            if isinstance(model.rule, Tolerance):  # the end of the span with the larger gap
                others = oracle.counterparts(model, person)
                assert gap == max(oracle.gap(model, person, other) for other in others)
            else:
                assert gap == worst
            assert abs(result.gaps[row] - float(worst)) <= 1e-9 * (1 + abs(float(worst)))
        else:
            assert result.gaps[row] == 0.0


@given(st.integers(0, 2**32 - 1), st.sampled_from(("free", "tie", "ulp")))
@example(10867, "tie")
@settings(max_examples=150, deadline=None)
def test_nearly_finds_the_same_people_and_approximate_gaps(seed: int, edge: str) -> None:
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
    """Return a network with the score max(0, age − 60) + bias, equal for most ages."""
    return Network.from_layers([([[1.0, 0.0]], [-60.0]), ([[1.0]], [bias])])


@pytest.mark.parametrize("numbers", ["integer", "real"])
@pytest.mark.parametrize(("bias", "differs"), [(-0.5, True), (0.0, False), (0.5, False)])
def test_a_plateau_of_equal_scores_has_one_decision(
    bias: float, differs: bool, numbers: Numbers
) -> None:
    space = FeatureSpace((Integer("age", 18, 90, sensitive=True), Real("income", 0, 9)))
    people = space.encode([{"age": 90, "income": 1}, {"age": 70, "income": 2}])
    for nearly in (False, True):
        result = violations(
            space, plateau(bias), Task(Threshold(0.0)), people, numbers=numbers, nearly=nearly
        )
        assert result.decisions.tolist() == [1.0, 1.0]
        assert result.differs.tolist() == [differs] * 2
        if differs:
            assert result.gaps.tolist() == [30.0, 10.0]
