"""The MILP engine compared with the oracle; `campaigns.milp` runs more cases."""

from collections import Counter

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from campaigns.milp import KINDS, hard_problems, real_problems, run, wrong_counts, wrong_verdicts
from feta.engine.milp.backends.highs import Highs
from feta.engine.milp.engine import MilpEngine
from feta.engine.registry import engines
from feta.rule import Tolerance
from tests import oracle
from tests.strategies import Case, cases

ENGINES = (
    engines()["milp"],
    MilpEngine("intervals", Highs(), bounds="interval", max_cells=1),
    MilpEngine("programs", Highs(), bounds="lp", max_cells=1),
)


@pytest.mark.parametrize("engine", ENGINES, ids=lambda engine: str(engine.name))
@given(case=cases(plain=False))
@settings(max_examples=12, deadline=None)
def test_answers_match_the_oracle(engine: MilpEngine, case: Case) -> None:
    model, person = case.model, case.people[0]
    others, counts = oracle.counterparts(model, person), Counter[str]()
    assert wrong_verdicts(model, person, engine, others, counts) == []
    if not isinstance(model.rule, Tolerance):
        assert wrong_counts(model, person, engine, others, counts) == []


@given(case=cases(plain=False))
@settings(max_examples=15, deadline=None)
def test_small_finite_queries_are_all_decided(case: Case) -> None:
    counts = Counter[str]()
    others = oracle.counterparts(case.model, case.people[0])
    assert wrong_verdicts(case.model, case.people[0], engines()["milp"], others, counts) == []
    assert not any("Unknown" in name for name in counts)


@given(seed=st.integers(0, 10**6))
@settings(max_examples=3, deadline=None)
def test_programs_that_mislead_solvers_give_no_wrong_answer(seed: int) -> None:
    counts = run(hard_problems(len(KINDS), seed), [engines()["milp"]], seed)
    assert not [name for name in counts if name.startswith("WRONG")]


@given(seed=st.integers(0, 10**6))
@settings(max_examples=4, deadline=None)
def test_real_valued_attributes_give_no_wrong_answer(seed: int) -> None:
    counts = run(real_problems(2, seed), [engines()["milp"]], seed)
    assert not [name for name in counts if name.startswith("WRONG")]
    assert np.sum(list(counts.values())) > 0
