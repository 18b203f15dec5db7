import numpy as np
import pytest

import feta
from feta import (
    Argmax,
    Budget,
    Categorical,
    DomainError,
    EngineError,
    FairPredictor,
    FeatureSpace,
    Integer,
    Model,
    Network,
    SchemaError,
    Tolerance,
    Undecided,
    VoteWeights,
)
from feta.engine import counterparts
from feta.engine.protocol import UNLIMITED
from feta.engine.registry import choose
from feta.query import CountOf
from tests import oracle
from tests.examples import PERSON, SPACE, linear
from tests.strategies import random_case

TIE = linear(female=-1.0, male=1.0)
OLD = linear(age=1.0, bias=-54.0)  # 37 of the 73 ages are favorable


def test_a_tie_is_favorable_for_everyone() -> None:
    people = SPACE.encode([{"age": 40, "sex": sex, "income": 1} for sex in ("female", "male")])
    assert TIE.decide(people).tolist() == [False, True]
    assert FairPredictor(TIE).decide(people).tolist() == [True, True]


@pytest.mark.parametrize(("bias", "decision"), [(-54.0, True), (-55.0, False)])
def test_one_more_counterpart_gives_the_majority(bias: float, *, decision: bool) -> None:
    predictor = FairPredictor(linear(age=1.0, bias=bias))
    assert predictor.decide(PERSON[None, :]).tolist() == [decision]


def test_duplicates_are_counted_once() -> None:
    """The budget is enough for the counterparts of one person only."""
    people = np.repeat(PERSON[None, :], 5, axis=0)
    people[:, 0] = (18, 30, 30, 50, 90)
    predictor = FairPredictor(OLD, "exhaustive", budget=Budget(evaluations=146))
    assert predictor.decide(people).tolist() == [True] * 5
    people[4, 3] = 51.0
    with pytest.raises(Undecided):
        predictor.decide(people)


def test_negative_zero_is_the_same_person() -> None:
    people = np.array([[30.0, 1.0, 0.0, 0.0], [30.0, 1.0, 0.0, -0.0]])
    predictor = FairPredictor(OLD, "exhaustive", budget=Budget(evaluations=146))
    assert predictor.decide(people).tolist() == [True, True]


def test_answers_are_in_the_order_of_the_rows() -> None:
    network = Network.from_layers([([[0.0, 0.0, 0.0, 1.0]], [-50.0])])
    people = np.repeat(PERSON[None, :], 5, axis=0)
    people[:, 3] = (60, 40, 50, 40, 100)
    decisions = FairPredictor(Model(SPACE, network)).decide(people)
    assert decisions.tolist() == [True, False, True, False, True]


@pytest.mark.parametrize("budget", [Budget(seconds=0), Budget(evaluations=0)])
def test_undecided_rows_are_named_and_not_guessed(budget: Budget) -> None:
    people = np.repeat(PERSON[None, :], 3, axis=0)
    people[1, 3] = 7.0
    message = r"3 people could not be decided \(rows 0, 1, 2\): the .*budget.* ran out"
    with pytest.raises(Undecided, match=message) as refused:
        FairPredictor(OLD, "exhaustive", budget=budget).decide(people)
    assert refused.value.rows == (0, 1, 2)


def test_only_undecided_rows_are_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(counterparts, "BLOCK_NUMBERS", 146)  # one person at a time
    people = np.repeat(PERSON[None, :], 4, axis=0)
    people[:, 3] = (2, 1, 2, 1)
    with pytest.raises(Undecided) as refused:
        FairPredictor(OLD, "exhaustive", budget=Budget(evaluations=146)).decide(people)
    assert refused.value.rows == (1, 3)


@pytest.mark.parametrize(
    ("income", "message"),
    [
        (np.nan, r"'income' is invalid: got nan; expected a number from 0 to 100 \(row 1\)"),
        (np.inf, "got inf"),
        (1e300, "is outside the schema's limits: got 1e.300; expected a number from 0 to 100"),
    ],
)
def test_an_invalid_shared_column_is_rejected(income: float, message: str) -> None:
    people = np.stack([PERSON, PERSON])
    people[1, 3] = income
    with pytest.raises(DomainError, match=message):
        FairPredictor(OLD).decide(people)


@pytest.mark.parametrize("junk", [np.nan, np.inf, -1e9, 0.5])
def test_sensitive_columns_may_contain_anything(junk: float) -> None:
    people = np.stack([PERSON, PERSON])
    people[1, :3] = junk
    assert FairPredictor(OLD).decide(people).tolist() == [True, True]


@pytest.mark.parametrize("shape", [(4,), (1, 3)])
def test_people_of_the_wrong_shape_are_rejected(shape: tuple[int, ...]) -> None:
    with pytest.raises(DomainError, match="expected a matrix with 4 columns"):
        FairPredictor(OLD).decide(np.zeros(shape))


def test_no_people_give_no_decisions() -> None:
    assert FairPredictor(OLD).decide(np.zeros((0, 4))).shape == (0,)


def test_if_every_column_is_sensitive_everyone_gets_the_same_decision() -> None:
    space = FeatureSpace((Integer("age", 0, 9, sensitive=True),))
    model = Model(space, Network.from_layers([([[1.0]], [-7.0])]))
    assert FairPredictor(model).decide(np.array([[1.0], [9.0]])).tolist() == [False, False]


ABC = Argmax(("a", "b", "c"))
# a below 54, b from 54 on; c never wins
BY_AGE = Network.from_layers([([[0.0] * 4, [1.0, 0, 0, 0], [0.0] * 4], [53.5, 0.0, 0.0])])
SCORES = Network.from_layers([([[1.0, 0, 0, 0.5]], [0.0])])


def weighted(*votes: int) -> VoteWeights:
    """Return the votes of women of 18, men of 18, women of 19, and so on."""
    counts = [(number, count) for number, count in enumerate(votes) if count]
    return VoteWeights(np.array([n for n, _ in counts]), np.array([c for _, c in counts]), SPACE)


def test_the_class_with_most_votes_is_chosen() -> None:
    predictor = FairPredictor(Model(SPACE, BY_AGE, ABC))
    assert predictor.decide(PERSON[None, :]).tolist() == [1]  # 36 ages are below 54, 37 are not
    counts = predictor.votes(PERSON[None, :])
    assert counts.decided.tolist() == [True]
    assert counts.by_class[0, 2] == 0


@pytest.mark.parametrize("chosen", ["a", "b", "c"])
def test_one_class_against_the_rest_is_decided_by_the_majority(chosen: str) -> None:
    model = Model(SPACE, BY_AGE, ABC).one_vs_rest(chosen)
    assert FairPredictor(model).decide(PERSON[None, :]).tolist() == [chosen == "b"]


@pytest.mark.parametrize(
    ("votes", "first", "favorable"),
    [
        ((1, 1), 0, True),  # a tie: the first class, and favorable
        ((1, 2), 1, True),
        ((2, 1), 0, False),
        ((2**52, 2**52), 0, True),
        ((2**52, 2**52 - 1), 0, False),
        ((1, 0), 0, False),
        ((0, 1), 1, True),
    ],
)
def test_votes_are_weighted_and_ties_follow_the_rule(
    votes: tuple[int, int], first: int, *, favorable: bool
) -> None:
    by_sex = Network.from_layers([([[0, 1.0, 0, 0], [0, 0, 1.0, 0], [0.0] * 4], [0.0] * 3)])
    several = FairPredictor(Model(SPACE, by_sex, ABC), weights=weighted(*votes))
    assert several.decide(PERSON[None, :]).tolist() == [first]
    predictor = FairPredictor(TIE, weights=weighted(*votes))
    assert predictor.decide(PERSON[None, :]).tolist() == [favorable]


def test_a_regression_is_decided_by_the_lower_median() -> None:
    predictor = FairPredictor(Model(SPACE, SCORES, Tolerance(1.0)))
    people = np.repeat(PERSON[None, :], 3, axis=0)
    people[:, 0] = (18, 90, np.nan)
    people[2, 3] = 0.0
    assert predictor.decide(people).tolist() == [79.0, 79.0, 54.0]
    assert predictor.medians(people).span.tolist() == [72.0] * 3
    weights = weighted(1, 0, 1, 0, 1, 1)  # 18, 19, 20, 20
    predictor = FairPredictor(Model(SPACE, SCORES, Tolerance(1.0)), weights=weights)
    assert predictor.decide(people).tolist() == [44.0, 44.0, 19.0]


@pytest.mark.parametrize("seed", range(8))
def test_fair_decisions_match_the_oracle_for_every_rule(seed: int) -> None:
    case = random_case(np.random.default_rng([seed, 9]), "tie", plain=False)
    predictor = FairPredictor(case.model, weights=case.weights)
    expected = [oracle.fair_decision(case.model, person, case.weights) for person in case.people]
    assert predictor.decide(case.people).tolist() == [float(answer) for answer in expected]


@pytest.mark.parametrize(
    ("budget", "reason"),
    [(Budget(seconds=0), "the time budget ran out"), (Budget(evaluations=1), "of evaluations ran")],
)
@pytest.mark.parametrize(
    "model", [Model(SPACE, SCORES, Tolerance(1.0)), Model(SPACE, BY_AGE, ABC), OLD]
)
def test_a_spent_budget_decides_nobody_for_every_rule(
    model: Model, budget: Budget, reason: str
) -> None:
    message = rf"1 person could not be decided \(rows 0\): .*{reason}"
    with pytest.raises(Undecided, match=message):
        FairPredictor(model, budget=budget).decide(PERSON[None, :])


@pytest.mark.parametrize("model", [Model(SPACE, SCORES, Tolerance(1.0)), Model(SPACE, BY_AGE, ABC)])
def test_no_people_give_no_answers_for_every_rule(model: Model) -> None:
    assert FairPredictor(model).decide(np.zeros((0, 4))).shape == (0,)


def test_a_regression_has_no_votes() -> None:
    message = "^votes are for decisions: got a regression model; .*; use medians$"
    with pytest.raises(EngineError, match=message):
        FairPredictor(Model(SPACE, SCORES, Tolerance(1.0))).votes(PERSON[None, :])


def test_several_scores_have_no_median() -> None:
    message = "^medians are for regression: got a model with decisions; .*; use votes$"
    with pytest.raises(EngineError, match=message):
        FairPredictor(Model(SPACE, BY_AGE, ABC)).medians(PERSON[None, :])


def test_weights_of_another_space_are_rejected() -> None:
    sexes = Categorical("sex", ("male", "female"), sensitive=True)  # in another order
    ages = Integer("age", 17, 89, sensitive=True)  # the same number of other values
    for changed in (sexes, ages):
        attributes = [changed if a.name == changed.name else a for a in SPACE.attributes]
        other = VoteWeights(np.array([1]), np.array([1]), FeatureSpace(tuple(attributes)))
        with pytest.raises(
            SchemaError, match=r"vote weights belong to another space: .* expected 'age' \("
        ):
            FairPredictor(OLD, weights=other)
        for engine in ("exhaustive", "lattice"):
            with pytest.raises(SchemaError, match="vote weights belong to another space"):
                choose(CountOf(OLD), engine).tally(
                    OLD, PERSON[None, :], UNLIMITED, until="all", weights=other
                )
        with pytest.raises(SchemaError, match="vote weights belong to another space"):
            feta.audit(OLD, [{"age": 30, "sex": "male", "income": 5.0}], weights=other)


def test_weights_are_valid_for_every_space_with_the_same_sensitive_attributes() -> None:
    other = FeatureSpace((*SPACE.sensitive, Integer("children", 0, 9)))
    weights = VoteWeights(np.array([1]), np.array([1]), other)
    assert FairPredictor(OLD, weights=weights).decide(PERSON[None, :]).tolist() == [False]


def test_raw_records_are_rejected() -> None:
    message = r"^people are not encoded: got dict; expected an array of rows; use space\.encode"
    with pytest.raises(DomainError, match=message):
        FairPredictor(OLD).decide({"income": 5})  # type: ignore[arg-type]  # the mistake itself
