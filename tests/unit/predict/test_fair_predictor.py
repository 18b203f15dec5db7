import numpy as np
import pytest

from feta import (
    Budget,
    DomainError,
    FairPredictor,
    FeatureSpace,
    Integer,
    Model,
    Network,
    Undecided,
)
from tests.examples import PERSON, SPACE, linear

TIE = linear(female=-1.0, male=1.0)
OLD = linear(age=1.0, bias=-54.0)  # 37 of the 73 ages are favorable


def test_a_tie_is_favorable_for_both_halves_alike() -> None:
    people = SPACE.encode([{"age": 40, "sex": sex, "income": 1} for sex in ("female", "male")])
    assert TIE.decide(people).tolist() == [False, True]
    assert FairPredictor(TIE).decide(people).tolist() == [True, True]


@pytest.mark.parametrize(("bias", "decision"), [(-54.0, True), (-55.0, False)])
def test_one_counterpart_more_makes_the_majority(bias: float, *, decision: bool) -> None:
    predictor = FairPredictor(linear(age=1.0, bias=bias))
    assert predictor.decide(PERSON[None, :]).tolist() == [decision]


def test_duplicates_are_counted_once() -> None:
    """The budget is enough for one person's counterparts, and no more."""
    people = np.repeat(PERSON[None, :], 5, axis=0)
    people[:, 0] = (18, 30, 30, 50, 90)
    predictor = FairPredictor(OLD, budget=Budget(evaluations=146))
    assert predictor.decide(people).tolist() == [True] * 5
    people[4, 3] = 51.0
    with pytest.raises(Undecided):
        predictor.decide(people)


def test_negative_zero_is_no_other_person() -> None:
    people = np.array([[30.0, 1.0, 0.0, 0.0], [30.0, 1.0, 0.0, -0.0]])
    predictor = FairPredictor(OLD, budget=Budget(evaluations=146))
    assert predictor.decide(people).tolist() == [True, True]


def test_answers_come_in_the_order_of_the_rows() -> None:
    network = Network.from_layers([([[0.0, 0.0, 0.0, 1.0]], [-50.0])])
    people = np.repeat(PERSON[None, :], 5, axis=0)
    people[:, 3] = (60, 40, 50, 40, 100)
    decisions = FairPredictor(Model(SPACE, network)).decide(people)
    assert decisions.tolist() == [True, False, True, False, True]


@pytest.mark.parametrize("budget", [Budget(seconds=0), Budget(evaluations=0)])
def test_undecided_rows_are_named_and_nobody_is_guessed(budget: Budget) -> None:
    people = np.repeat(PERSON[None, :], 3, axis=0)
    people[1, 3] = 7.0
    message = r"3 people could not be decided \(rows 0, 1, 2\): the .*budget.* ran out"
    with pytest.raises(Undecided, match=message) as refused:
        FairPredictor(OLD, budget=budget).decide(people)
    assert refused.value.rows == (0, 1, 2)


def test_only_the_rows_left_open_are_named(monkeypatch: pytest.MonkeyPatch) -> None:
    from feta.engine import exhaustive  # noqa: PLC0415

    monkeypatch.setattr(exhaustive, "BLOCK_NUMBERS", 146)  # one person at a time
    people = np.repeat(PERSON[None, :], 4, axis=0)
    people[:, 3] = (2, 1, 2, 1)
    with pytest.raises(Undecided) as refused:
        FairPredictor(OLD, budget=Budget(evaluations=146)).decide(people)
    assert refused.value.rows == (0, 2)


@pytest.mark.parametrize(
    ("income", "message"),
    [
        (np.nan, r"'income' must be a number from 0 to 100, got nan \(row 1\)"),
        (np.inf, "got inf"),
        (-5e-324, "got -5e-324"),
        (np.nextafter(100.0, 101), r"got 100\.0000000"),
    ],
)
def test_what_is_not_sensitive_must_be_inside_the_space(income: float, message: str) -> None:
    people = np.stack([PERSON, PERSON])
    people[1, 3] = income
    with pytest.raises(DomainError, match=message):
        FairPredictor(OLD).decide(people)


@pytest.mark.parametrize("junk", [np.nan, np.inf, -1e9, 0.5])
def test_sensitive_columns_may_hold_anything(junk: float) -> None:
    people = np.stack([PERSON, PERSON])
    people[1, :3] = junk
    assert FairPredictor(OLD).decide(people).tolist() == [True, True]


@pytest.mark.parametrize("shape", [(4,), (1, 3)])
def test_people_of_the_wrong_shape_are_refused(shape: tuple[int, ...]) -> None:
    with pytest.raises(DomainError, match="people must be a matrix with 4 columns"):
        FairPredictor(OLD).decide(np.zeros(shape))


def test_nobody_gets_no_decision() -> None:
    assert FairPredictor(OLD).decide(np.zeros((0, 4))).shape == (0,)


def test_where_every_column_is_sensitive_all_are_decided_alike() -> None:
    space = FeatureSpace((Integer("age", 0, 9, sensitive=True),))
    model = Model(space, Network.from_layers([([[1.0]], [-7.0])]))
    assert FairPredictor(model).decide(np.array([[1.0], [9.0]])).tolist() == [False, False]
