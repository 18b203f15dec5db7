"""Calls of counted models: limits, progress, budgets, hanging and replaced functions."""

from dataclasses import replace
from typing import Any

import numpy as np
import pandas as pd
import pytest

import feta
from feta import FairAt, FairPredictor, Model, Unknown
from feta.errors import ModelChanged, ModelTimeout, SchemaError
from feta.readers.callable.read import read_callable
from feta.scorer.counted.calls import equal_sizes, fastest_batch, other_sizes
from feta.scorer.counted.evaluator import distinct_rows
from feta.scorer.counted.options import CountingOptions, CountingProgress
from feta.scorer.counted.timed_call import TookTooLong, call_within
from feta.scorer.protocol import doubt_at
from tests.counted import (
    OPTIONS,
    SPACE,
    Broken,
    Counting,
    Hanging,
    Random,
    Replaced,
    approve,
    merit,
    people,
    with_two_columns,
)

PEOPLE = SPACE.encode(people())


def test_a_replaced_model_is_an_error_with_row_and_answers() -> None:
    function = Replaced(after=10**9)
    scorer = read_callable(function, SPACE, options=OPTIONS)
    model = Model(SPACE, scorer)
    before = feta.tally(model, PEOPLE).by_class
    scorer.confirm()
    function.after = 0
    expected = (
        r"^the model changed during the work: row \(age \d+, .*\): the model answered .*, and then "
        r".* for the same row in another batch; expected the answer that it gave at the start; "
        r"the last \d+ evaluated rows may mix two models"
    )
    with pytest.raises(ModelChanged, match=expected):
        scorer.confirm()
    # The cache was cleared, so nothing of the old model is mixed with the new one.
    assert (feta.tally(model, PEOPLE).by_class != before).any()


def test_a_replaced_model_is_noticed_during_long_work(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("feta.scorer.counted.sentinels.ROWS_BETWEEN", 500)
    function = Replaced(after=10**9)
    model = Model(SPACE, read_callable(function, SPACE, options=OPTIONS))
    function.after = function.rows + 400
    with pytest.raises(ModelChanged):
        feta.tally(model, SPACE.encode(people(50)))


def fail(_frame: pd.DataFrame) -> None:
    raise ConnectionError("the service is down")


def test_a_model_that_stops_answering_has_changed() -> None:
    function = Counting(merit)
    scorer = read_callable(function, SPACE, options=OPTIONS)
    function.function = fail
    with pytest.raises(ModelChanged, match=r"the model raised ConnectionError: the service is"):
        scorer.confirm()


def test_a_random_model_has_no_sentinels_and_is_not_called_replaced() -> None:
    scorer = read_callable(Random(), SPACE, answers="scores", options=OPTIONS)
    assert not len(scorer.evaluator.sentinels.people)
    scorer.confirm()
    assert len(read_callable(merit, SPACE, options=OPTIONS).evaluator.sentinels.people) == 8


def test_a_hanging_model_is_reported_and_not_called_anymore() -> None:
    function = Hanging(after=10**9)
    scorer = read_callable(function, SPACE, options=OPTIONS)
    model = Model(SPACE, scorer)
    scorer.evaluator.calls.options = replace(OPTIONS, timeout=0.2)
    function.after = function.calls
    expected = (
        r"^the model does not answer: got no answer for 13 rows within 0.2 s, the first row is "
        r"\(age 18, sex 'female', .*\); expected an answer in that time; pass a larger timeout"
    )
    with pytest.raises(ModelTimeout, match=expected):
        feta.tally(model, PEOPLE)
    calls = function.calls
    with pytest.raises(ModelTimeout):
        feta.tally(model, PEOPLE)
    assert function.calls == calls
    function.release.set()


def test_a_model_that_hangs_when_it_is_read_is_reported() -> None:
    function = Hanging(after=0)
    with pytest.raises(ModelTimeout, match=r"^the model does not answer: .* within 0.1 s; "):
        read_callable(function, SPACE, options=CountingOptions(timeout=0.1))
    function.release.set()


def test_a_call_in_time_returns_its_result_or_its_error() -> None:
    assert call_within(60.0, lambda: 3) == 3
    assert call_within(None, lambda: 3) == 3
    with np.errstate(divide="raise"), pytest.raises(FloatingPointError):
        call_within(60.0, lambda: np.float64(1.0) / np.float64(0.0))
    hanging = Hanging(after=0)
    with pytest.raises(TookTooLong):
        call_within(0.05, lambda: hanging(None))  # type: ignore[arg-type]
    hanging.release.set()


def test_a_spent_budget_leaves_people_undecided_without_an_error() -> None:
    function = with_two_columns(merit)
    used = read_callable(function, SPACE, options=OPTIONS).evaluator.calls.rows
    options = replace(OPTIONS, max_rows=used + 3 * 48)
    model = Model(SPACE, read_callable(function, SPACE, options=options))
    tally = feta.tally(model, PEOPLE)
    decided = tally.undecided == 0
    assert decided[:2].all()
    assert not decided[-1]
    verdict = feta.verify(FairAt(model, PEOPLE[-1]))
    assert isinstance(verdict, Unknown)
    doubt = doubt_at(model.restricted, PEOPLE[-1])
    assert doubt is not None
    assert doubt.kind == "budget"
    assert "the budget of the counted model is spent" in doubt.message
    with pytest.raises(feta.Undecided):
        FairPredictor(model).decide(PEOPLE)


def test_answers_that_the_budget_did_not_repeat_decide_nothing() -> None:
    function = with_two_columns(merit)
    used = read_callable(function, SPACE, options=OPTIONS).evaluator.calls.rows
    for extra in range(0, 49, 4):
        options = replace(OPTIONS, max_rows=used + extra)
        model = Model(SPACE, read_callable(function, SPACE, options=options))
        tally = feta.tally(model, PEOPLE[:1])
        # 24 rows in batches of 7 end at 28 rows at most; a row counts after its repetition.
        assert int(tally.by_class.sum()) <= max(0, extra + 7 - 24)
        assert not isinstance(feta.verify(FairAt(model, PEOPLE[0])), feta.Fair)


def test_a_budget_of_seconds_is_kept() -> None:
    options = replace(OPTIONS, max_seconds=1e6)
    scorer = read_callable(approve, SPACE, options=options)
    model = Model(SPACE, scorer)
    assert feta.tally(model, PEOPLE[:2]).undecided.tolist() == [0, 0]
    scorer.evaluator.calls.started -= 2e6
    assert feta.tally(model, PEOPLE).undecided.tolist() == [0, 0] + [24] * 10


def test_progress_reports_rows_expected_rows_and_time_left() -> None:
    seen: list[CountingProgress] = []
    options = replace(OPTIONS, progress=seen.append)
    scorer = read_callable(merit, SPACE, options=options)
    model = Model(SPACE, scorer)
    assert seen[-1].seconds_left is None
    rows = scorer.expect(PEOPLE, model.relation)
    assert rows == len(PEOPLE) * 24 * 2
    seen.clear()
    feta.tally(model, PEOPLE)
    last = seen[-1]
    assert (last.rows, last.seconds_left) == (last.expected, 0.0)
    assert all((progress.seconds_left or 0.0) >= 0 for progress in seen)
    assert [progress.rows for progress in seen] == sorted(progress.rows for progress in seen)


def test_a_share_of_the_rows_is_repeated_on_request() -> None:
    function = Counting(merit)
    options = replace(OPTIONS, repeat=0.25)
    model = Model(SPACE, read_callable(function, SPACE, options=options))
    function.batches.clear()
    feta.tally(model, PEOPLE[:1])
    assert len(function.rows) == 24 + 6


@pytest.mark.parametrize(("n_rows", "batch"), [(0, 5), (1, 5), (2, 5), (5, 5), (23, 5), (4, 1)])
def test_batches_contain_every_row_once(n_rows: int, batch: int) -> None:
    first, second = equal_sizes(n_rows, batch), other_sizes(n_rows, batch)
    assert sum(first) == sum(second) == n_rows
    assert max(first, default=0) <= batch
    if n_rows > 1 and batch > 1:
        assert first != second


def test_the_batch_grows_up_to_the_largest_one() -> None:
    scorer = read_callable(merit, SPACE, options=CountingOptions(timeout=None))
    calls = scorer.evaluator.calls
    assert 64 <= scorer.evaluator.batch <= 2**14
    assert calls.rows < 500  # the search is a small part of the work
    assert fastest_batch(calls, PEOPLE, largest=10) == 10
    assert fastest_batch(calls, PEOPLE, largest=128) in (64, 128)


def test_distinct_rows_keep_their_order() -> None:
    rows = np.array([[3.0, 1.0], [2.0, 1.0], [3.0, 1.0], [1.0, 1.0], [2.0, 1.0]])
    first, inverse = distinct_rows(rows)
    assert first.tolist() == [0, 1, 3]
    np.testing.assert_array_equal(rows[first][inverse], rows)
    first, inverse = distinct_rows(rows[:, :0])
    assert (first.tolist(), inverse.tolist()) == ([0], [0] * 5)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"repeat": 1.5}, r"^invalid share of repeated rows: got repeat=1.5; expected a number"),
        ({"batch": 0}, r"^invalid batch: got batch=0; expected 1 or more rows per call"),
        ({"timeout": -1.0}, r"^invalid timeout of a counted model: got -1.0; expected a finite"),
        ({"max_rows": -1}, r"^invalid max_rows of a counted model: got -1; expected a finite"),
        ({"max_seconds": np.inf}, r"^invalid max_seconds of a counted model: got inf; expected"),
        ({"rounding": np.nan}, r"^invalid rounding of a counted model: got nan; expected"),
    ],
)
def test_invalid_options_are_rejected(arguments: dict[str, Any], message: str) -> None:
    with pytest.raises(SchemaError, match=message):
        CountingOptions(**arguments)


def test_failing_rows_are_found_by_halving() -> None:
    function = Counting(Broken("raises"))
    scorer = read_callable(function, SPACE, options=replace(OPTIONS, batch=1000))
    everybody = SPACE.encode(people(200, seed=8))
    function.batches.clear()
    answers = scorer.evaluator.calls.evaluate(everybody, [200])
    failed = np.flatnonzero(everybody[:, 0] == 25)
    assert 0 < len(failed) < 20
    assert sorted(answers.problems) == failed.tolist()
    assert len(function.batches) < 130
    expected = merit(function.batches[0].drop(failed))
    np.testing.assert_array_equal(np.delete(answers.values[:, 0], failed), expected)


def test_a_function_that_always_fails_costs_a_limited_number_of_calls() -> None:
    function = Counting(merit)
    scorer = read_callable(function, SPACE, options=replace(OPTIONS, batch=1000))

    function.function = fail
    function.batches.clear()
    answers = scorer.evaluator.calls.evaluate(SPACE.encode(people(500)), [500])
    assert len(answers.problems) == 500
    assert len(function.batches) <= 130
