import numpy as np
import pytest

from feta import (
    Argmax,
    Budget,
    Fair,
    FairAt,
    FeatureSpace,
    Integer,
    Model,
    Network,
    OneVsRest,
    Real,
    Reason,
    Tolerance,
    Unfair,
    Unknown,
    VoteWeights,
    WorstAt,
)
from feta.engine import counterparts
from feta.engine.exhaustive import ExhaustiveEngine
from feta.query import CountOf
from feta.rule import Rule
from tests import oracle
from tests.examples import PERSON, SPACE, linear
from tests.strategies import Edge, random_case

ENGINE = ExhaustiveEngine()
FREE = Budget()
UNFAIR = linear(age=1.0, bias=-31.0)  # from 31 on favorable


@pytest.mark.parametrize("block_numbers", [1, 7, 2**16])
@pytest.mark.parametrize("seed", range(3))
def test_the_block_size_changes_no_verdict(
    block_numbers: int, seed: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(counterparts, "BLOCK_NUMBERS", block_numbers)
    case = random_case(np.random.default_rng(seed), "tie")
    for person in case.people:
        fair = isinstance(ENGINE.solve(FairAt(case.model, person), FREE), Fair)
        assert fair == oracle.is_fair(case.model, person)
        worst = ENGINE.solve(WorstAt(case.model, person), FREE)
        assert isinstance(worst, Fair) == fair
        if isinstance(worst, Unfair):
            gap = oracle.gap(
                case.model, worst.counterexample.person, worst.counterexample.counterpart
            )
            assert gap == oracle.worst_gap(case.model, person)
    counts = ENGINE.tally(case.model, case.people, FREE, until="all")
    assert counts.by_class.tolist() == [oracle.tally(case.model, person) for person in case.people]


@pytest.mark.parametrize(
    ("model", "age", "sex"),
    [
        (UNFAIR, 90, "female"),  # both sexes have the same score: the first one
        (linear(female=-1.0, male=1.0), 18, "male"),
        (linear(age=2.0**-60, bias=-31 * 2.0**-60), 90, "female"),
    ],
)
def test_the_worst_is_the_first_of_several_equal_gaps(model: Model, age: int, sex: str) -> None:
    verdict = ENGINE.solve(WorstAt(model, PERSON), FREE)
    assert isinstance(verdict, Unfair)
    assert verdict.optimal
    assert SPACE.decode(verdict.counterexample.counterpart) == {
        "age": age,
        "sex": sex,
        "income": 50.0,
    }


def test_the_worst_is_found_below_float64s_resolution() -> None:
    """The two sexes' scores differ by 2^-80, which float64 cannot represent next to 1."""
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
def test_fair_states_whether_the_sources_runtime_provably_agrees(
    model: Model, runtime: str
) -> None:
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
    assert not counts.runtime_safe.any()


def test_a_budget_that_is_just_large_enough_suffices() -> None:
    assert isinstance(ENGINE.solve(WorstAt(UNFAIR, PERSON), Budget(evaluations=146)), Unfair)


def test_an_interrupted_search_returns_its_best(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(counterparts, "BLOCK_NUMBERS", 40)
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
    monkeypatch.setattr(counterparts, "BLOCK_NUMBERS", 10)
    model = linear(age=-1.0)  # nobody is favorable
    complete = ENGINE.tally(model, PERSON[None, :], FREE, until="all")
    early = ENGINE.tally(model, PERSON[None, :], FREE, until="majority")
    assert complete.unfavorable.tolist() == [146]
    assert early.unfavorable.tolist() == [80]
    assert early.decided.all()
    assert early.decision.tolist() == complete.decision.tolist() == [False]


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
    assert ENGINE.accepts(CountOf(UNFAIR))
    assert not ENGINE.accepts(CountOf(UNFAIR.with_sensitive(["income"])))


@pytest.mark.parametrize(("high", "accepted"), [(2**31 - 1, True), (2**31, False)])
def test_only_lattices_below_2_to_the_62_are_accepted(high: int, *, accepted: bool) -> None:
    space = FeatureSpace(tuple(Integer(f"n{n}", 1, high, sensitive=True) for n in range(2)))
    model = Model(space, Network.from_layers([([[1.0, 1.0]], [0.0])]))
    assert ENGINE.accepts(CountOf(model)) is accepted


@pytest.mark.parametrize("block_numbers", [1, 7, 2**16])
@pytest.mark.parametrize("edge", ["free", "tie", "ulp"])
@pytest.mark.parametrize("seed", range(6))
def test_every_rule_activation_and_weight_matches_the_oracle(
    seed: int, edge: Edge, block_numbers: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(counterparts, "BLOCK_NUMBERS", block_numbers)
    case = random_case(np.random.default_rng([seed, 3]), edge, plain=False)
    for person in case.people:
        fair = isinstance(ENGINE.solve(FairAt(case.model, person), FREE), Fair)
        assert fair == oracle.is_fair(case.model, person)
        worst = ENGINE.solve(WorstAt(case.model, person), FREE)
        assert isinstance(worst, Fair) == fair
        if isinstance(worst, Unfair):
            gap = oracle.gap(
                case.model, worst.counterexample.person, worst.counterexample.counterpart
            )
            assert gap == oracle.worst_gap(case.model, person)
    if isinstance(case.model.rule, Tolerance):
        spread = ENGINE.spread(case.model, case.people, FREE, weights=case.weights)
        medians = [oracle.fair_decision(case.model, row, case.weights) for row in case.people]
        assert spread.median.tolist() == [float(median) for median in medians]
        return
    counts = ENGINE.tally(case.model, case.people, FREE, until="all", weights=case.weights)
    assert counts.by_class.tolist() == [
        oracle.tally(case.model, person, case.weights) for person in case.people
    ]


def test_weights_count_only_the_assignments_they_list() -> None:
    weights = VoteWeights.of(SPACE, {(18, "female"): 3, (90, "male"): 2})
    counts = ENGINE.tally(UNFAIR, PERSON[None, :], FREE, until="all", weights=weights)
    assert counts.by_class.tolist() == [[3, 2]]
    cheap = ENGINE.tally(
        UNFAIR, PERSON[None, :], Budget(evaluations=2), until="all", weights=weights
    )
    assert cheap.undecided.tolist() == [0]
    expensive = ENGINE.tally(
        UNFAIR, PERSON[None, :], Budget(evaluations=1), until="all", weights=weights
    )
    assert expensive.undecided.tolist() == [5]


@pytest.mark.parametrize(
    ("votes", "median"),
    [
        ({18: 1}, 18.0),
        ({18: 1, 20: 1}, 18.0),  # the lower of two
        ({18: 1, 20: 1, 30: 1}, 20.0),
        ({18: 1, 20: 1, 30: 1, 40: 1}, 20.0),
        ({18: 2, 20: 1, 30: 1}, 18.0),
        ({18: 1, 20: 1, 30: 2}, 20.0),
        ({18: 1, 20: 1, 30: 3}, 30.0),
        ({90: 2**53 - 2, 18: 1}, 90.0),
        ({90: 2**52, 18: 2**52}, 18.0),
        ({90: 2**52, 18: 2**52 - 1}, 90.0),
    ],
)
def test_the_median_is_the_lower_one_of_all_votes(votes: dict[int, int], median: float) -> None:
    model = Model(SPACE, Network.from_layers([([[1.0, 0, 0, 0]], [0.0])]), Tolerance(1.0))
    weights = VoteWeights.of(SPACE, {(age, "male"): count for age, count in votes.items()})
    spread = ENGINE.spread(model, PERSON[None, :], FREE, weights=weights)
    assert spread.median.tolist() == [median]
    assert spread.lowest.tolist() == [float(min(votes))]
    assert spread.highest.tolist() == [float(max(votes))]


def test_a_median_is_chosen_below_float64s_resolution() -> None:
    """All scores are equal in float64; the median is selected exactly and rounded once."""
    space = FeatureSpace((Integer("n", -1, 1, sensitive=True), Real("x", 0, 1)))
    network = Network.from_layers([([[2.0**-80, 1.0]], [-1.0])])
    spread = ENGINE.spread(Model(space, network, Tolerance(0.0)), np.array([[0.0, 1.0]]), FREE)
    assert spread.lowest.tolist() == [-(2.0**-80)]
    assert spread.median.tolist() == [0.0]
    assert spread.highest.tolist() == [2.0**-80]


def test_no_people_have_an_empty_spread() -> None:
    assert ENGINE.spread(UNFAIR, np.zeros((0, 4)), FREE).median.shape == (0,)


def test_several_classes_stop_once_the_winner_is_certain(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(counterparts, "BLOCK_NUMBERS", 30)  # ten counterparts at a time
    network = Network.from_layers([(np.zeros((3, 4)), [0.0, 1.0, 0.0])])
    model = Model(SPACE, network, Argmax(("a", "b", "c")))
    early = ENGINE.tally(model, PERSON[None, :], FREE, until="majority")
    assert early.by_class.tolist() == [[0, 80, 0]]
    assert (early.winner.tolist(), early.decided.tolist()) == ([1], [True])


def test_the_worst_is_found_for_large_scores() -> None:
    space = FeatureSpace((Integer("n", 2**40, 2**40 + 2, sensitive=True),))
    network = Network.from_layers([([[2.0**30]], [2.0**30])])
    model = Model(space, network, Tolerance(2.0**30))
    verdict = ENGINE.solve(WorstAt(model, np.array([2.0**40])), FREE)
    assert isinstance(verdict, Unfair)
    assert verdict.counterexample.gap == 2.0**31


@pytest.mark.parametrize("rule", [Argmax(("a", "b", "c")), OneVsRest(("a", "b", "c"), "a")])
def test_a_source_that_may_overflow_makes_verdicts_sensitive_but_not_wrong(rule: Rule) -> None:
    """10^39 is beyond float32, so nothing is known of the source's first score."""
    space = FeatureSpace((Integer("n", 0, 3, sensitive=True),))
    network = Network.from_layers([([[1e39], [2.0], [-1.0]], [0.0, 1.0, 2.0])])
    model = Model(space, network, rule)
    for query in (FairAt(model, np.array([0.0])), WorstAt(model, np.array([0.0]))):
        verdict = ENGINE.solve(query, FREE)
        assert isinstance(verdict, Unfair)
        assert verdict.runtime == "sensitive"
        assert verdict.counterexample.counterpart.tolist() == [3.0 if verdict.optimal else 1.0]
    assert ENGINE.tally(model, np.zeros((1, 1)), FREE, until="all").undecided.tolist() == [0]


def test_runtime_safe_covers_the_errors_of_both_scores() -> None:
    """The source may round both scores, so a margin that covers only one of them is not safe."""
    space = FeatureSpace((Integer("age", 1, 2, sensitive=True),))
    network = Network.from_layers([([[0.1]], [3.0])])
    pair = np.array([[1.0], [2.0]])
    some = Model(space, network, Tolerance(0.0))
    bounded = some.runtime_scores(some.points(pair))
    distance = float(bounded.values[1, 0] - bounded.values[0, 0])
    one_error, both = float(bounded.errors.max()), float(bounded.errors.sum())
    for epsilon, runtime in (
        (distance + 1.5 * one_error, "sensitive"),
        (distance + 1.01 * both, "safe"),
    ):
        model = Model(space, network, Tolerance(epsilon))
        for query in (FairAt(model, pair[0]), WorstAt(model, pair[0])):
            verdict = ENGINE.solve(query, FREE)
            assert isinstance(verdict, Fair)
            assert verdict.runtime == runtime
