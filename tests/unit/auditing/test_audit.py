from dataclasses import replace

import numpy as np
import pandas as pd
import pytest
from sklearn.linear_model import LogisticRegression

from feta import (
    Argmax,
    Audit,
    Budget,
    DomainError,
    EngineError,
    Fair,
    FeatureSpace,
    Integer,
    Model,
    Network,
    NetworkError,
    Real,
    Reason,
    Tolerance,
    Unknown,
    VoteWeights,
    audit,
    tally,
)
from feta.arrays import Answers, Flags, Matrix
from feta.auditing import block_verdicts
from feta.auditing.auditor import Auditor
from feta.auditing.finding import Finding
from feta.auditing.summary import AuditSummary
from feta.auditing.top_pairs import PAIRS_PER_ATTRIBUTE, TopPairs
from feta.verdict.certificate import Certificate, LatticeProof
from tests.examples import linear

SPACE = FeatureSpace(
    (
        Integer("age", 0, 4, sensitive=True),
        Integer("size", 0, 4, sensitive=True),
        Real("income", -20, 20),
    )
)
MODEL = Model(SPACE, Network.from_layers([([[1.0, 1.0, 1.0]], [0.0])]), threshold=0.0)


def people(*incomes: float) -> pd.DataFrame:
    return pd.DataFrame({"age": 2, "size": 1, "income": incomes})


def statuses(result: Audit) -> list[str]:
    return [finding.status for finding in result.findings]


def test_everybody_has_a_finding_in_order() -> None:
    result = audit(MODEL, people(5, -2, -9, -4, 8))
    assert statuses(result) == ["fair", "unfair", "fair", "unfair", "fair"]
    assert [finding.row for finding in result.findings] == [0, 1, 2, 3, 4]
    assert [finding.decision for finding in result.findings] == [True, True, False, False, True]
    assert [finding.runtime for finding in result.findings] == ["safe"] * 5
    assert result.ce_rate == 0.4
    assert result.undecided == ()


def test_pairs_are_the_worst_and_sorted_by_gap() -> None:
    result = audit(MODEL, people(-4, -2))
    assert [finding.row for finding in result.pairs] == [0, 1]
    gaps = [finding.pair.gap for finding in result.pairs if finding.pair]
    assert gaps == [5.0, 3.0]  # -1 up to 4, and 1 down to -2
    assert result.summary.mean_violation == 4.0
    assert result.summary.violation_max == 5.0


def test_attributes_that_are_enough_by_themselves_are_named() -> None:
    result = audit(MODEL, people(-3, -7, -1.5))
    assert [finding.alone for finding in result.findings] == [("age", "size"), (), ("age",)]
    figures = result.summary.as_dict()
    assert figures["one_attribute_is_enough"] == {"age": 2, "size": 1}
    assert figures["only_several_together"] == 1


def test_flips_and_accuracies_are_counted() -> None:
    result = audit(MODEL, people(-3.5, 8, -9), labels=[True, True, False])
    assert [finding.fair_decision for finding in result.findings] == [True, True, False]
    assert result.flip_rate == pytest.approx(1 / 3)
    assert result.summary.accuracy == pytest.approx(2 / 3)
    assert result.summary.fair_accuracy == 1.0
    assert audit(MODEL, people(8)).summary.accuracy is None


def test_labels_must_be_one_per_person() -> None:
    message = "^invalid number of labels: got 1; expected one label per person, 2$"
    with pytest.raises(DomainError, match=message):
        audit(MODEL, people(1, 2), labels=[True])


def test_without_time_everybody_is_undecided() -> None:
    result = audit(MODEL, people(5, -2), engine="exhaustive", budget=Budget(seconds=0))
    assert statuses(result) == ["undecided"] * 2
    assert len(result.undecided) == 2
    assert result.summary.as_dict()["undecided"] == 2
    assert not result.summary.everyone_fair
    assert "time" in result.findings[0].reason


def test_a_tie_is_runtime_sensitive() -> None:
    result = audit(MODEL, people(0))
    assert (result.findings[0].status, result.findings[0].runtime) == ("fair", "sensitive")
    assert result.summary.runtime_sensitive == 1


def test_a_pair_that_does_not_replay_is_runtime_sensitive() -> None:
    def constant(rows: Matrix) -> Flags:
        return np.ones(len(rows), dtype=bool)

    def same(rows: Matrix) -> Flags:
        return np.asarray(MODEL.decide(rows), dtype=bool)

    result = audit(MODEL, people(-2), replay=constant)
    assert (result.findings[0].replayed, result.findings[0].runtime) == (False, "sensitive")
    assert result.summary.not_replayed == 1
    result = audit(MODEL, people(-2), replay=same)
    assert (result.findings[0].replayed, result.findings[0].runtime) == (True, "safe")
    assert result.summary.not_replayed == 0


def test_invalid_people_and_unknown_engines_are_rejected() -> None:
    with pytest.raises(
        DomainError, match="'age' is invalid: got 5; expected an integer from 0 to 4"
    ):
        audit(MODEL, [{"age": 5, "size": 1, "income": 0}])
    with pytest.raises(EngineError, match="unknown engine: got 'oracle'; expected one of"):
        audit(MODEL, people(0), engine="oracle")


SEVERAL = Model(
    SPACE,
    # Classes by age + income, size + income, and a constant.
    Network.from_layers([([[1, 0, 1], [0, 1, 1], [0, 0, 0]], [0.0, 0.5, 0.25])]),
    Argmax(("a", "b", "c")),
)
SCORED = Model(SPACE, Network.from_layers([([[2.0, 1.0, 1.0]], [0.0])]), Tolerance(7.0))


def test_several_classes_are_audited_by_class() -> None:
    result = audit(SEVERAL, people(-9, 5, -3), labels=["c", "b", "a"])
    assert statuses(result) == ["fair", "unfair", "unfair"]
    assert [finding.decision for finding in result.findings] == [2, 0, 2]
    for finding, votes in zip(
        result.findings, tally(SEVERAL, SPACE.encode(people(-9, 5, -3))).by_class, strict=True
    ):
        assert finding.fair_decision == int(np.argmax(votes))
    middle, last = result.findings[1:]
    assert middle.alone == ("age", "size")
    assert last.pair is not None
    assert last.pair.decisions[0] == 2
    assert result.summary.accuracy == pytest.approx(1 / 3)
    figures = result.summary.as_dict()
    assert (figures["mean_span"], figures["max_span"], figures["mean_absolute_error"]) == (
        None,
        None,
        None,
    )


def test_one_class_against_the_rest_is_audited_by_that_class() -> None:
    result = audit(SEVERAL.one_vs_rest("c"), people(-9, 5, -3), labels=["c", "a", "not c"])
    assert statuses(result) == ["fair", "fair", "unfair"]
    assert [finding.decision for finding in result.findings] == [True, False, True]
    assert result.summary.accuracy == pytest.approx(2 / 3)


def test_regression_is_audited_by_tolerance() -> None:
    tables = pd.concat([people(0), people(3).assign(age=0, size=0)])
    result = audit(SCORED, tables, labels=[5.0, "9"])
    first, second = result.findings
    # Everybody's counterparts score from 0 to 12 above the income.
    assert statuses(result) == ["unfair", "unfair"]
    assert (first.decision, first.fair_decision, first.span) == (5.0, 6.0, 12.0)
    assert (second.decision, second.fair_decision, second.span) == (3.0, 9.0, 12.0)
    for finding, scores in ((first, [0.0, 12.0]), (second, [3.0, 15.0])):
        assert finding.pair is not None
        assert (finding.pair.gap, finding.pair.decisions) == (12.0, ())
        assert finding.alone == ("age",)
        assert finding.pair.scores.tolist() == scores
    figures = result.summary.as_dict()
    assert (result.ce_rate, result.flip_rate, figures["mean_violation"]) == (1.0, 0.0, 12.0)
    assert (figures["mean_span"], figures["max_span"]) == (12.0, 12.0)
    assert (figures["mean_absolute_error"], figures["fair_mean_absolute_error"]) == (3.0, 0.5)
    assert (figures["accuracy"], figures["fair_accuracy"]) == (None, None)


def test_equal_scores_are_no_flip_after_rounding() -> None:
    thirds = Network.from_layers([([[0.0, 0.0, 0.1]], [0.7]), ([[1 / 3]], [0.1])], activation="abs")
    exact = Model(SPACE, thirds, Tolerance(0.0))
    result = audit(exact, people(*np.linspace(-20, 20, 97)))
    assert set(statuses(result)) == {"fair"}
    assert (result.flip_rate, result.summary.max_span) == (0.0, 0.0)


def test_a_score_that_differs_from_the_median_by_more_than_the_tolerance_is_a_flip() -> None:
    result = audit(
        replace(SCORED, rule=Tolerance(5.0), threshold=None), people(0).assign(age=0, size=0)
    )
    assert result.flip_rate == 1.0  # the score is 0, the median 6


def test_regression_out_of_time_is_undecided() -> None:
    result = audit(SCORED, people(0, 1), engine="exhaustive", budget=Budget(seconds=0))
    assert statuses(result) == ["undecided"] * 2
    assert (result.findings[0].fair_decision, result.findings[0].span) == (None, None)
    assert result.summary.mean_span == 0.0


@pytest.mark.parametrize("model", [MODEL, SEVERAL, SCORED])
def test_weights_change_fair_decisions_but_no_verdict(model: Model) -> None:
    weights = VoteWeights.of(SPACE, {(4, 4): 1})
    table = people(-3, 0, 2)
    unweighted, weighted = audit(model, table), audit(model, table, weights=weights)
    assert statuses(weighted) == statuses(unweighted)
    oldest = SPACE.encode(table.assign(age=4, size=4))
    expected = model.score(oldest) if model is SCORED else model.decide(oldest)
    assert [finding.fair_decision for finding in weighted.findings] == expected.tolist()
    assert [finding.span for finding in weighted.findings] == [
        finding.span for finding in unweighted.findings
    ]


@pytest.mark.parametrize("model", [SEVERAL, SEVERAL.one_vs_rest("c"), SCORED])
def test_pairs_are_replayed_for_every_rule(model: Model) -> None:
    def same(rows: Matrix) -> Answers:
        return model.score(rows) if model is SCORED else model.decide(rows)

    def constant(rows: Matrix) -> Answers:
        return 0 * same(rows)

    table = people(-3).assign(age=0, size=0)
    for replay, replayed in ((same, True), (constant, False)):
        result = audit(model, table, replay=replay)
        assert (result.findings[0].status, result.findings[0].replayed) == ("unfair", replayed)


@pytest.mark.parametrize(
    ("model", "label", "message"),
    [
        (MODEL, "maybe", "got 'maybe'; expected 'favorable', 'unfavorable', 1 or 0$"),
        (SEVERAL, "A", "got 'A'; expected one of 'a', 'b', 'c'"),
        (SEVERAL, 1, "got '1'; expected one of 'a', 'b', 'c'"),
        (SEVERAL.one_vs_rest("a"), "d", "got 'd'; expected one of 'a', 'b', 'c'"),
        (SCORED, "many", "got 'many'; expected a finite number$"),
        (SCORED, None, "got None; expected a finite number$"),
        (SCORED, float("inf"), "got inf; expected a finite number$"),
        (SCORED, "x" * 999, "got 'xxx[x]* … x*'; expected a finite number$"),
    ],
)  # fmt: skip
def test_an_invalid_label_is_rejected(model: Model, label: object, message: str) -> None:
    with pytest.raises(DomainError, match=f"^invalid label of row 0: {message}"):
        audit(model, people(0), labels=[label])


def test_an_empty_table_proves_nothing() -> None:
    result = audit(MODEL, people())
    assert result.findings == ()
    assert (result.ce_rate, result.flip_rate, result.summary.mean_violation) == (0.0, 0.0, 0.0)
    assert not result.summary.everyone_fair


def test_a_large_table_is_audited_in_blocks() -> None:
    result = audit(MODEL, people(*[-2.0] * 600, 9.0))
    assert [finding.row for finding in result.findings] == list(range(601))
    assert result.summary.statuses == {"unfair": 600, "fair": 1}


def test_top_pairs_change_one_attribute_and_show_nobody_twice() -> None:
    auditor = Auditor(MODEL)
    top_pairs, rows_of_table = (
        TopPairs.of(MODEL),
        SPACE.encode(people(-3, -2.5, -3.5, -2, -4, -7, 9)),
    )
    findings = auditor.audit(rows_of_table)
    top_pairs.add(findings, rows_of_table, [f"p{finding.row}" for finding in findings])
    views = top_pairs.pairs(auditor)
    rows = [view.finding.row for view in views]
    assert len(set(rows)) == len(rows) <= 2 * PAIRS_PER_ATTRIBUTE + PAIRS_PER_ATTRIBUTE
    assert rows[-1] == 5
    for view in views:
        before, after = SPACE.decode(view.pair.person), SPACE.decode(view.pair.counterpart)
        n_changed = sum(before[name] != after[name] for name in before)
        assert n_changed == (2 if view.finding.row == 5 else 1)
        assert view.name == f"p{view.finding.row}"


def test_out_of_time_the_worst_pair_is_shown_instead() -> None:
    finding = Auditor(MODEL).audit(SPACE.encode(people(-3)))[0]
    auditor = Auditor(MODEL, "exhaustive", Budget(seconds=0))
    assert auditor.simplest_pairs("age", SPACE.encode(people(-3))) == [None]
    top_pairs = TopPairs.of(MODEL)
    top_pairs.add([finding], SPACE.encode(people(-3)), [""])
    assert [view.pair for view in top_pairs.pairs(auditor)] == [finding.pair]
    # Age alone changes no decision here.
    assert Auditor(MODEL).simplest_pairs("age", SPACE.encode(people(-7))) == [None]


@pytest.mark.parametrize("known", [True, False])
def test_out_of_time_the_best_pair_so_far_is_returned(
    monkeypatch: pytest.MonkeyPatch, *, known: bool
) -> None:
    auditor = Auditor(MODEL)
    pair = auditor.audit(SPACE.encode(people(-3)))[0].pair
    verdict = Unknown(Reason.OUT_OF_TIME, pair if known else None)
    monkeypatch.setattr(block_verdicts, "verify_counted", lambda *_, **__: ([verdict], None))
    finding = auditor.audit(SPACE.encode(people(-3)))[0]
    assert (finding.status, finding.pair) == (("unfair", pair) if known else ("undecided", None))


def test_rows_that_were_not_audited_are_not_counted_as_people() -> None:
    summary = AuditSummary(("age",))
    fair = Fair(Certificate("", "", LatticeProof(1)))
    summary.add([Finding(0, fair, decision=True, fair_decision=True)], [None])
    proved = [summary.everyone_fair]
    summary.add([Finding(1, reason="bad")], [True])
    assert [*proved, summary.everyone_fair] == [True, False]
    assert (summary.people, summary.as_dict()["not_audited"], summary.labeled) == (1, 1, 0)


def test_a_constant_decision_is_reported_as_a_doubt() -> None:
    rows = [{"age": 30, "sex": "male", "income": n} for n in range(25)]
    result = audit(linear(bias=1.0), rows)
    assert result.summary.everyone_fair
    assert "check whether a center or scale is missing" in result.summary.doubts[0]


def test_a_model_no_better_than_a_constant_is_reported_as_a_doubt() -> None:
    rows = [{"age": 18 + n, "sex": "male", "income": 1} for n in range(40)]
    labels = [n < 30 for n in range(40)]
    result = audit(linear(age=1.0, bias=-40.0), rows, labels=labels)
    assert any(
        "no more accurate than the constant decision 'favorable' (75.0%)" in doubt
        for doubt in result.summary.doubts
    )


def test_an_accurate_model_has_no_doubts() -> None:
    rows = [{"age": 18 + n, "sex": "male", "income": 1} for n in range(40)]
    labels = [18 + n >= 40 for n in range(40)]
    assert audit(linear(age=1.0, bias=-40.0), rows, labels=labels).summary.doubts == []


def test_an_estimator_is_no_model() -> None:
    with pytest.raises(
        NetworkError, match=r"^invalid model: got LogisticRegression; expected a Mo"
    ):
        audit(LogisticRegression(), [])
