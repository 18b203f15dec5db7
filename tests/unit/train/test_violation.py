import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st

from feta import Argmax, Model, Threshold, Tolerance
from feta.train.task import Task
from feta.train.violation import violations
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
        assert found.apart[row] == (worst is not None)
        if worst is not None:
            assert oracle.gap(model, person, found.counterparts[row]) == worst
            assert abs(found.gaps[row] - float(worst)) <= 1e-9 * (1 + abs(float(worst)))
        else:
            assert found.gaps[row] == 0.0
