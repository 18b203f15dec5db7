"""Counted models through the engines, compared with brute force over raw counterparts."""

import pickle
import re
from collections import Counter
from dataclasses import replace
from typing import Any

import numpy as np
import pandas as pd
import pytest

import feta
from feta import (
    Argmax,
    Fair,
    FairAt,
    FairPredictor,
    Model,
    Threshold,
    Tolerance,
    Unfair,
    Unknown,
    WorstAt,
)
from feta.errors import SchemaError, UnreliableAnswer
from feta.readers.callable.read import read_callable
from feta.scorer.counted.counted import Counted
from feta.scorer.protocol import doubt_at, has_scores
from feta.verdict.verdict import Reason
from tests.counted import (
    OPTIONS,
    SPACE,
    Broken,
    Counting,
    Drifting,
    Function,
    Random,
    Rounding,
    approve,
    brute_force,
    centered,
    counterparts,
    merit,
    people,
    with_two_columns,
)

RECORDS = people()
PEOPLE = SPACE.encode(RECORDS)


def counted(function: Function, **arguments: Any) -> Counted:  # noqa: ANN401 - of read_callable
    return read_callable(function, SPACE, **({"options": OPTIONS} | arguments))


def three_ways(frame: pd.DataFrame) -> np.ndarray:
    score = merit(frame)
    return np.stack([np.zeros(len(frame)), score, 2 * score - 6], axis=1)


@pytest.mark.parametrize("function", [merit, approve], ids=["scores", "labels"])
def test_verdicts_and_counts_are_those_of_brute_force(function: Function) -> None:
    scorer = counted(function)
    model = Model(SPACE, scorer, Threshold(0.0, equality="unfavorable"))
    tally = feta.tally(model, PEOPLE)
    fair = FairPredictor(model).decide(PEOPLE)
    for row, record in enumerate(RECORDS):
        decisions = brute_force(approve, SPACE, record)
        verdict = feta.verify(FairAt(model, PEOPLE[row]), engine="exhaustive")
        assert isinstance(verdict, Fair) == (len(set(decisions)) == 1)
        assert verdict.provenance == "counted"
        assert int(tally.favorable[row]) == sum(decisions)
        assert not tally.undecided.any()
        assert fair[row] == (2 * sum(decisions) >= len(decisions))
        if isinstance(verdict, Unfair):
            pair = verdict.counterexample
            both = pd.DataFrame([SPACE.decode(p) for p in (pair.person, pair.counterpart)])
            assert approve(both).tolist() == [bool(decision) for decision in pair.decisions]
            assert len(set(pair.decisions)) == 2
    assert {type(feta.verify(FairAt(model, person))) for person in PEOPLE} == {Fair, Unfair}


def test_the_worst_pair_has_the_largest_gap_of_all_counterparts() -> None:
    model = Model(SPACE, counted(merit), Threshold(0.0, equality="unfavorable"))
    for row, record in enumerate(RECORDS):
        own = float(merit(pd.DataFrame([record]))[0])
        scores = brute_force(merit, SPACE, record)
        others = [abs(score - own) for score in scores if (score > 0) != (own > 0)]
        verdict = feta.worst(model, PEOPLE[row])
        if not others:
            assert isinstance(verdict, Fair)
            continue
        assert isinstance(verdict, Unfair)
        assert verdict.optimal
        assert verdict.counterexample.gap == max(others)


def test_labels_have_a_pair_but_no_worst_one() -> None:
    scorer = counted(approve)
    model = Model(SPACE, scorer)
    assert not has_scores(scorer)
    assert has_scores(counted(merit))
    unfair = [
        verdict
        for person in PEOPLE
        if isinstance(verdict := feta.worst(model, person), Unfair)
        and feta.tally(model, person[None, :]).by_class.min() > 1
    ]
    assert unfair
    assert not any(verdict.optimal for verdict in unfair)
    assert all("the model returns labels only" in verdict.detail for verdict in unfair)
    # Indicators of the classes: 1 for the label, 0 for the other.
    assert scorer(PEOPLE).tolist() == [
        [float(not yes), float(yes)] for yes in approve(pd.DataFrame(RECORDS))
    ]


def test_several_classes_are_counted() -> None:
    model = Model(SPACE, counted(three_ways), Argmax(("no", "maybe", "yes")))
    tally = feta.tally(model, PEOPLE)
    for row, record in enumerate(RECORDS):
        scores = [three_ways(pd.DataFrame([other]))[0] for other in counterparts(SPACE, record)]
        counts = Counter(int(np.argmax(score)) for score in scores)
        assert tally.by_class[row].tolist() == [counts[index] for index in range(3)]
        verdict = feta.verify(FairAt(model, PEOPLE[row]))
        assert isinstance(verdict, Fair) == (len(counts) == 1)


def test_regression_spans_and_medians_are_those_of_brute_force() -> None:
    model = Model(SPACE, counted(merit), Tolerance(13.5))
    spread = feta.spread(model, PEOPLE)
    medians = FairPredictor(model).decide(PEOPLE)
    for row, record in enumerate(RECORDS):
        scores = sorted(brute_force(merit, SPACE, record))
        assert spread.lowest[row] == scores[0]
        assert spread.highest[row] == scores[-1]
        assert medians[row] == scores[(len(scores) - 1) // 2]
        verdict = feta.worst(model, PEOPLE[row])
        assert isinstance(verdict, Unfair)
        assert verdict.counterexample.gap == scores[-1] - scores[0]
    wide = Model(SPACE, counted(merit), Tolerance(13.625))
    assert {type(feta.verify(FairAt(wide, person))) for person in PEOPLE} == {Fair}


def test_an_audit_equals_brute_force() -> None:
    model = Model(SPACE, counted(merit), Threshold(0.0, equality="unfavorable"))
    result = feta.audit(model, RECORDS)
    for finding, record in zip(result.findings, RECORDS, strict=True):
        decisions = brute_force(approve, SPACE, record)
        assert (finding.status == "fair") == (len(set(decisions)) == 1)
        assert finding.decision == approve(pd.DataFrame([record]))[0]
        alone = [
            name
            for name in ("age", "sex")
            if len(set(brute_force(approve, SPACE.with_sensitive([name]), record))) > 1
        ]
        assert list(finding.alone) == alone
    assert any(finding.alone for finding in result.findings)
    assert 0 < result.ce_rate < 1


def test_every_counterpart_is_evaluated_twice_and_no_more() -> None:
    function = Counting(merit)
    scorer = counted(function)
    model = Model(SPACE, scorer)
    person = PEOPLE[:1]
    function.batches.clear()
    feta.tally(model, person)
    expected = Counter(
        tuple(other.values()) for other in counterparts(SPACE, RECORDS[0]) for _ in range(2)
    )
    assert Counter(function.rows) == expected
    function.batches.clear()
    feta.tally(model, person)
    feta.tally(model, np.repeat(person, 3, axis=0))
    assert not function.batches  # cached


def test_the_first_pass_is_canonical_and_the_second_is_not() -> None:
    function = Counting(merit)
    model = Model(SPACE, counted(function))
    function.batches.clear()
    feta.tally(model, PEOPLE[:1])
    first, second = function.batches[:2], function.batches[2:]
    rows = [tuple(row) for batch in first for row in batch.itertuples(index=False)]
    assert rows == [tuple(other.values()) for other in counterparts(SPACE, RECORDS[0])]
    assert [len(batch) for batch in first] == [13, 11]
    assert [len(batch) for batch in second] == [1, 8, 8, 7]
    again = [tuple(row) for batch in second for row in batch.itertuples(index=False)]
    assert sorted(again) == sorted(rows)
    assert again != rows


def test_columns_that_do_not_reach_the_model_are_not_evaluated() -> None:
    class Table:
        names = ("age", "income")

        def __call__(self, rows: np.ndarray) -> pd.DataFrame:
            return pd.DataFrame({"age": rows[:, 0], "income": rows[:, 3]})

    function = Counting(lambda frame: (frame["income"] - frame["age"]).to_numpy())
    model = Model(SPACE, counted(function, table=Table()))
    assert not model.scorer.reads(SPACE.attribute("sex"), SPACE)
    assert model.scorer.reads(SPACE.attribute("age"), SPACE)
    function.batches.clear()
    tally = feta.tally(model, PEOPLE[:1])
    assert tally.by_class.sum() == 24
    assert len(function.rows) == 2 * 12


@pytest.mark.parametrize(
    "function",
    [Random(), Drifting(), centered, Random(share=0.3)],
    ids=["random", "state", "batch", "sometimes random"],
)
def test_a_function_without_stable_answers_is_never_fair_and_never_unfair(
    function: Function,
) -> None:
    scorer = read_callable(with_two_columns(function), SPACE, options=OPTIONS)
    model = Model(SPACE, scorer)
    for person in PEOPLE:
        verdict = feta.verify(FairAt(model, person))
        assert isinstance(verdict, Unknown)
        assert verdict.reason is Reason.NONDETERMINISTIC
        assert verdict.detail.startswith("row (age ")
        assert verdict.provenance == "counted"
        doubt = doubt_at(model.restricted, person)
        assert doubt is not None
        assert doubt.kind == "nondeterministic"
        assert doubt.message.startswith("row (age ")
        assert "the model answered" in doubt.message
    assert feta.tally(model, PEOPLE).undecided.min() > 0
    with pytest.raises(feta.Undecided):
        FairPredictor(model).decide(PEOPLE)


def test_random_regression_scores_leave_people_undecided() -> None:
    model = Model(SPACE, counted(Random(), answers="scores"), Tolerance(1000.0))
    for query in (FairAt(model, PEOPLE[0]), WorstAt(model, PEOPLE[1])):
        verdict = feta.verify(query)
        assert isinstance(verdict, Unknown)
        assert verdict.reason is Reason.NONDETERMINISTIC
        assert verdict.detail.startswith("row (age ")
    assert not feta.spread(model, PEOPLE).decided.any()
    with pytest.raises(feta.Undecided, match=r"different answers to the same row.*row \(age "):
        FairPredictor(model).decide(PEOPLE)
    expected = r"^the model's scores cannot be used: got a row without a reliable answer; .* row \("
    with pytest.raises(UnreliableAnswer, match=expected):
        model.exact_scores(PEOPLE)


def test_the_reason_of_an_undecided_person_is_what_the_model_did() -> None:
    old = SPACE.encode([RECORDS[0] | {"age": 25}])
    model = Model(SPACE, counted(Broken("nan"), answers="scores"), Threshold(0.5))
    with pytest.raises(feta.Undecided, match=r"row \(age 25, .*nan") as caught:
        model.decide(old)
    assert "tie" not in str(caught.value)


def test_an_audit_shows_the_row_of_each_undecided_regression() -> None:
    model = Model(SPACE, counted(Broken("nan"), answers="scores"), Tolerance(1000.0))
    old = SPACE.encode([RECORDS[0] | {"age": 25}])
    result = feta.audit(model, [SPACE.decode(old[0]), RECORDS[1]])
    assert [finding.status for finding in result.findings] == ["undecided", "undecided"]
    assert [finding.decision is None for finding in result.findings] == [True, False]
    for finding in result.findings:
        assert "no valid answer" in finding.reason
        assert "row (age 25, " in finding.reason
        assert "nan" in finding.reason


def test_a_spent_budget_is_a_reason_of_its_own() -> None:
    scorer = counted(merit)
    spent = scorer.evaluator.calls.rows + 10
    scorer.evaluator.calls.options = replace(OPTIONS, max_rows=spent)
    model = Model(SPACE, scorer)
    verdicts = [feta.verify(FairAt(model, person)) for person in PEOPLE[:3]]
    assert {verdict.reason for verdict in verdicts} == {Reason.COUNTING_BUDGET}  # type: ignore[union-attr]
    assert "the budget of the counted model is spent" in verdicts[0].detail  # type: ignore[union-attr]


def test_rounding_that_depends_on_the_batch_leaves_decisions_but_not_ties() -> None:
    scorer = read_callable(with_two_columns(Rounding()), SPACE, options=OPTIONS)
    model = Model(SPACE, scorer, Threshold(0.0, equality="unfavorable"))
    seen = set()
    for row, record in enumerate(RECORDS):
        scores = brute_force(merit, SPACE, record)
        verdict = feta.verify(FairAt(model, PEOPLE[row]))
        split = len({score > 0 for score in scores if score}) == 2
        seen.add(type(verdict))
        if 0.0 in scores and not split:
            assert isinstance(verdict, Unknown)
        elif 0.0 not in scores:
            assert isinstance(verdict, Unfair if split else Fair)
    assert {Fair, Unfair} <= seen
    exact = scorer.points(PEOPLE[:3]).exact_scores(np.arange(3))
    assert exact.radii is not None
    assert 0 < exact.radius.floats().max() < 1e-7


def test_a_regression_whose_last_bits_depend_on_the_batch_has_a_median() -> None:
    model = Model(SPACE, counted(Rounding(), answers="scores"), Tolerance(13.0))
    assert model.points(PEOPLE[:3]).exact_scores(np.arange(3)).radii is not None
    spread, medians = feta.spread(model, PEOPLE), FairPredictor(model).decide(PEOPLE)
    scores = np.sort([brute_force(merit, SPACE, record) for record in RECORDS])
    for found, rank in (
        (spread.lowest, 0),
        (medians, scores.shape[1] // 2 - 1),
        (spread.highest, -1),
    ):
        np.testing.assert_allclose(found, scores[:, rank], rtol=1e-12, atol=1e-12)
    # Everybody with the same key gets the same bits.
    moved = SPACE.encode([record | {"age": 29, "sex": "male"} for record in RECORDS])
    assert (FairPredictor(model).decide(moved) == medians).all()


def test_ties_of_a_stable_function_are_exact() -> None:
    record = {"age": 18, "sex": "female", "income": 20, "housing": "own"}
    person = SPACE.encode(record)
    above = Model(SPACE, counted(merit), Threshold(0.0, equality="favorable"))
    below = Model(SPACE, counted(merit), Threshold(0.0, equality="unfavorable"))
    assert merit(pd.DataFrame([record]))[0] == 0
    assert above.decide(person).tolist() == [True]
    assert below.decide(person).tolist() == [False]


WAYS = {
    "raises": r"the model raised KeyError: .no table for age 25.",
    "nan": r"the model answered nan; expected finite numbers",
    "infinite": r"the model answered inf; expected finite numbers",
    "length": r"the model returned answers of the shape \(\d+,\) for \d+ rows; expected 1 number",
    "text": r"the model answered '\?'; expected finite numbers",
    "label": r"the model answered the label 'maybe'; expected 'no' or 'yes'",
}


@pytest.mark.parametrize("way", WAYS)
def test_rows_without_a_valid_answer_are_undecided_and_shown(way: str) -> None:
    classes = ("no", "yes") if way == "label" else None
    ages = [record for record in people(40) if record["age"] != 25][:3]
    function = _good_at_first(Broken(way)) if way == "length" else Broken(way)
    scorer = counted(function, classes=classes)
    model = Model(SPACE, scorer)
    for record in ages:
        person = SPACE.encode(record)[0]
        scores = {
            other["age"]: merit(pd.DataFrame([other]))[0] > 0
            for other in counterparts(SPACE, record)
            if other["age"] != 25
        }
        tally = feta.tally(model, person[None, :])
        assert tally.undecided.tolist() == [2]
        verdict = feta.verify(FairAt(model, person))
        assert not isinstance(verdict, Fair)
        if len(set(scores.values())) == 1:
            assert isinstance(verdict, Unknown)
        doubt = doubt_at(model.restricted, person)
        assert doubt is not None
        assert doubt.kind == "no answer"
        assert SPACE.decode(doubt.row)["age"] == 25
        assert re.search(WAYS[way], doubt.message), doubt.message
        assert "age 25" in doubt.message


def _good_at_first(function: Broken) -> Function:
    """Answer the first call, with which the function is read, without a failure."""
    calls: list[int] = []

    def answer(frame: pd.DataFrame) -> object:
        calls.append(len(frame))
        return merit(frame) if len(calls) == 1 else function(frame)

    return answer


def test_the_fingerprint_identifies_answers_version_and_outputs() -> None:
    first = counted(merit)
    assert first.fingerprint == counted(merit).fingerprint
    assert first.fingerprint != counted(merit, version="2").fingerprint
    assert first.fingerprint != counted(merit, level=1.0).fingerprint
    assert first.fingerprint != counted(lambda frame: merit(frame) + 1e-9).fingerprint
    assert first.stored().kind == "counted"


def test_another_number_of_columns_is_an_error() -> None:
    other = feta.FeatureSpace(SPACE.attributes[:3])
    expected = r"^wrong number of columns of the counted model: got 6; expected 4, the columns of"
    with pytest.raises(SchemaError, match=expected):
        Model(other, counted(merit))


def test_people_outside_the_limits_are_evaluated_by_the_function_itself() -> None:
    model = Model(SPACE, counted(merit), Threshold(0.0, equality="unfavorable"))
    record = {"age": 20, "sex": "male", "income": 900, "housing": "own"}
    result = feta.audit(model, [record])
    assert [finding.status for finding in result.findings] == ["fair"]
    assert result.findings[0].decision is True


def test_a_pickled_scorer_gives_the_same_answers() -> None:
    scorer = counted(merit)
    model = Model(SPACE, scorer)
    before = feta.tally(model, PEOPLE).by_class
    again = pickle.loads(pickle.dumps(scorer))
    assert again.fingerprint == scorer.fingerprint
    np.testing.assert_array_equal(feta.tally(Model(SPACE, again), PEOPLE).by_class, before)


def test_answers_do_not_depend_on_other_people_even_for_a_function_of_its_batch() -> None:
    # Nothing is repeated, so that the dependence is not noticed.
    options = replace(OPTIONS, repeat=0.0)
    everybody = Model(SPACE, read_callable(with_two_columns(centered), SPACE, options=options))
    alone = Model(SPACE, read_callable(with_two_columns(centered), SPACE, options=options))
    together = FairPredictor(everybody).decide(PEOPLE)
    singly = [FairPredictor(alone).decide(person[None, :])[0] for person in PEOPLE[::-1]][::-1]
    assert together.tolist() == singly


def test_a_small_cache_changes_no_answer() -> None:
    options = replace(OPTIONS, cache_bytes=1)
    small, large = (counted(merit, options=chosen) for chosen in (options, OPTIONS))
    for scorer in (small, large):
        for _ in range(2):
            feta.tally(Model(SPACE, scorer), PEOPLE)
    assert small.evaluator.calls.rows >= large.evaluator.calls.rows
    expected = feta.tally(Model(SPACE, large), PEOPLE).by_class
    np.testing.assert_array_equal(feta.tally(Model(SPACE, small), PEOPLE).by_class, expected)
