import numpy as np
import pytest

from feta import (
    Budget,
    Fair,
    FairAt,
    FeatureSpace,
    Integer,
    Model,
    Network,
    Real,
    Reason,
    Unfair,
    Unknown,
    WorstAt,
)
from feta.engine import exhaustive
from feta.engine.exhaustive import Exhaustive
from tests import oracle
from tests.examples import PERSON, SPACE, linear
from tests.strategies import random_case

ENGINE = Exhaustive()
FREE = Budget()
UNFAIR = linear(age=1.0, bias=-31.0)  # from 31 on favorable


@pytest.mark.parametrize("numbers", [1, 7, 2**16])
@pytest.mark.parametrize("seed", range(3))
def test_the_blocks_size_changes_no_answer(
    numbers: int, seed: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(exhaustive, "BLOCK_NUMBERS", numbers)
    case = random_case(np.random.default_rng(seed), "tie")
    for person in case.people:
        fair = isinstance(ENGINE.solve(FairAt(case.model, person), FREE), Fair)
        assert fair == oracle.is_fair(case.model, person)
        worst = ENGINE.solve(WorstAt(case.model, person), FREE)
        assert isinstance(worst, Fair) == fair
        if isinstance(worst, Unfair):
            mine, other = oracle.all_scores(
                case.model, np.stack([person, worst.counterexample.counterpart])
            )
            assert abs(other - mine) == oracle.worst_gap(case.model, person)
    counts = ENGINE.tally(case.model, case.people, FREE, until="all")
    assert [
        (int(yes), int(no)) for yes, no in zip(counts.favorable, counts.unfavorable, strict=True)
    ] == [oracle.tally(case.model, person) for person in case.people]


@pytest.mark.parametrize(
    ("model", "age", "sex"),
    [
        (UNFAIR, 90, "female"),  # both sexes score alike: the first of them
        (linear(female=-1.0, male=1.0), 18, "male"),
        (linear(age=2.0**-60, bias=-31 * 2.0**-60), 90, "female"),
    ],
)
def test_the_farthest_is_the_first_of_those_that_tie(model: Model, age: int, sex: str) -> None:
    verdict = ENGINE.solve(WorstAt(model, PERSON), FREE)
    assert isinstance(verdict, Unfair)
    assert verdict.optimal
    assert SPACE.decode(verdict.counterexample.counterpart) == {
        "age": age,
        "sex": sex,
        "income": 50.0,
    }


def test_the_farthest_is_found_below_float64s_resolution() -> None:
    """The two sexes' scores differ by 2^-80, which float64 cannot see beside 1."""
    model = linear(age=1.0, male=2.0**-80, bias=-31.0)
    verdict = ENGINE.solve(WorstAt(model, PERSON), FREE)
    assert isinstance(verdict, Unfair)
    assert SPACE.decode(verdict.counterexample.counterpart)["sex"] == "male"


@pytest.mark.parametrize(
    ("model", "runtime"),
    [
        (linear(age=1.0), "safe"),
        (linear(age=1.0, bias=-18.0), "sensitive"),  # the youngest are on the threshold
        (linear(), "sensitive"),
    ],
)
def test_fair_says_whether_the_source_is_sure_to_agree(model: Model, runtime: str) -> None:
    for query in (FairAt(model, PERSON), WorstAt(model, PERSON)):
        verdict = ENGINE.solve(query, FREE)
        assert isinstance(verdict, Fair)
        assert verdict.runtime == runtime
        assert verdict.effort.evaluations == 146
        assert verdict.certificate.query_digest == query.digest


@pytest.mark.parametrize(
    ("budget", "reason"),
    [
        (Budget(seconds=0), Reason.OUT_OF_TIME),
        (Budget(evaluations=0), Reason.OUT_OF_NODES),
        (Budget(evaluations=145), Reason.OUT_OF_NODES),
    ],
)
def test_a_spent_budget_is_unknown_with_its_reason(budget: Budget, reason: Reason) -> None:
    for query in (FairAt(UNFAIR, PERSON), WorstAt(UNFAIR, PERSON)):
        verdict = ENGINE.solve(query, budget)
        assert isinstance(verdict, Unknown)
        assert verdict.reason == reason
    counts = ENGINE.tally(UNFAIR, PERSON[None, :], budget, until="all")
    assert counts.undecided.tolist() == [146]
    assert not counts.safe.any()


def test_a_budget_that_just_suffices_suffices() -> None:
    assert isinstance(ENGINE.solve(WorstAt(UNFAIR, PERSON), Budget(evaluations=146)), Unfair)


def test_a_half_spent_search_keeps_its_best(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(exhaustive, "BLOCK_NUMBERS", 40)
    verdict = ENGINE.solve(WorstAt(UNFAIR, PERSON), Budget(evaluations=80))
    assert isinstance(verdict, Unknown)
    assert verdict.best is not None
    assert SPACE.decode(verdict.best.counterpart)["age"] == 18 + 39
    assert verdict.effort.evaluations == 80
    early = ENGINE.solve(FairAt(UNFAIR, PERSON), Budget(evaluations=40))
    assert isinstance(early, Unfair)
    assert not early.optimal
    too_early = ENGINE.solve(WorstAt(linear(age=1.0, bias=-80.0), PERSON), Budget(evaluations=80))
    assert isinstance(too_early, Unknown)
    assert too_early.best is None


def test_counting_may_stop_once_the_majority_is_certain(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(exhaustive, "BLOCK_NUMBERS", 10)
    model = linear(age=-1.0)  # nobody is favorable
    whole = ENGINE.tally(model, PERSON[None, :], FREE, until="all")
    early = ENGINE.tally(model, PERSON[None, :], FREE, until="majority")
    assert whole.unfavorable.tolist() == [146]
    assert early.unfavorable.tolist() == [80]
    assert early.settled.all()
    assert early.decision.tolist() == whole.decision.tolist() == [False]


def test_no_people_have_an_empty_tally() -> None:
    counts = ENGINE.tally(UNFAIR, np.zeros((0, 4)), FREE, until="all")
    assert counts.by_class.shape == (0, 2)


def test_a_lattice_beyond_64_bits_is_unknown_within_its_budget() -> None:
    space = FeatureSpace(tuple(Integer(f"n{n}", 1, 2**40, sensitive=True) for n in range(2)))
    model = Model(space, Network.from_layers([([[1.0, 1.0]], [-1.0])]))
    verdict = ENGINE.solve(FairAt(model, np.ones(2)), Budget(evaluations=10))
    assert isinstance(verdict, Unknown)
    assert verdict.reason == Reason.OUT_OF_NODES


def test_a_single_counterpart_is_always_fair() -> None:
    space = FeatureSpace((Integer("age", 5, 5, sensitive=True), Real("income", 0, 9)))
    model = Model(space, Network.from_layers([([[1.0, 1.0]], [-5.0])]))
    for query in (FairAt(model, np.array([5.0, 0.0])), WorstAt(model, np.array([5.0, 0.0]))):
        assert isinstance(ENGINE.solve(query, FREE), Fair)


def test_only_finite_lattices_are_accepted() -> None:
    assert ENGINE.accepts(UNFAIR)
    assert not ENGINE.accepts(UNFAIR.with_sensitive(["income"]))
