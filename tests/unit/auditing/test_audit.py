import sys
from dataclasses import replace

import numpy as np
import pandas as pd
import pytest

from feta import (
    Argmax,
    Audit,
    Budget,
    DomainError,
    EngineError,
    FeatureSpace,
    Integer,
    Model,
    Network,
    Real,
    Reason,
    Tolerance,
    Unknown,
    VoteWeights,
    audit,
    tally,
)
from feta.arrays import Answers, Flags, Matrix
from feta.auditing.auditor import Auditor
from feta.auditing.finding import Finding
from feta.auditing.summary import AuditSummary
from feta.auditing.top_pairs import EACH, TopPairs
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


def statuses(found: Audit) -> list[str]:
    return [finding.status for finding in found.findings]


def test_everybody_gets_a_finding_in_order() -> None:
    found = audit(MODEL, people(5, -2, -9, -4, 8))
    assert statuses(found) == ["fair", "unfair", "fair", "unfair", "fair"]
    assert [finding.row for finding in found.findings] == [0, 1, 2, 3, 4]
    assert [finding.decision for finding in found.findings] == [True, True, False, False, True]
    assert [finding.runtime for finding in found.findings] == [
        "safe",
        "safe",
        "safe",
        "safe",
        "safe",
    ]
    assert found.ce_rate == 0.4
    assert found.undecided == ()


def test_pairs_are_the_farthest_and_the_widest_comes_first() -> None:
    found = audit(MODEL, people(-4, -2))
    assert [finding.row for finding in found.pairs] == [0, 1]
    gaps = [finding.pair.gap for finding in found.pairs if finding.pair]
    assert gaps == [5.0, 3.0]  # -1 up to 4, and 1 down to -2
    assert found.summary.mean_violation == 4.0
    assert found.summary.violation_max == 5.0


def test_attributes_that_are_enough_alone_are_named() -> None:
    found = audit(MODEL, people(-3, -7, -1.5))
    assert [finding.alone for finding in found.findings] == [("age", "size"), (), ("age",)]
    told = found.summary.as_dict()
    assert told["one_attribute_is_enough"] == {"age": 2, "size": 1}
    assert told["only_several_together"] == 1


def test_flips_and_accuracies_are_counted() -> None:
    found = audit(MODEL, people(-3.5, 8, -9), labels=[True, True, False])
    assert [finding.fair_decision for finding in found.findings] == [True, True, False]
    assert found.flip_rate == pytest.approx(1 / 3)
    assert found.summary.accuracy == pytest.approx(2 / 3)
    assert found.summary.fair_accuracy == 1.0
    assert audit(MODEL, people(8)).summary.accuracy is None


def test_labels_must_be_as_many_as_people() -> None:
    with pytest.raises(DomainError, match="there must be a label for each of 2 people, got 1"):
        audit(MODEL, people(1, 2), labels=[True])


def test_no_time_leaves_everybody_undecided() -> None:
    found = audit(MODEL, people(5, -2), engine="exhaustive", budget=Budget(seconds=0))
    assert statuses(found) == ["undecided"] * 2
    assert len(found.undecided) == 2
    assert found.summary.as_dict()["undecided"] == 2
    assert not found.summary.everyone_fair
    assert "time" in found.findings[0].reason


def test_a_tie_is_runtime_sensitive() -> None:
    found = audit(MODEL, people(0))
    assert (found.findings[0].status, found.findings[0].runtime) == ("fair", "sensitive")
    assert found.summary.runtime_sensitive == 1


def test_a_runtime_that_decides_otherwise_is_told() -> None:
    def stubborn(rows: Matrix) -> Flags:
        return np.ones(len(rows), dtype=bool)

    def faithful(rows: Matrix) -> Flags:
        return np.asarray(MODEL.decide(rows), dtype=bool)

    found = audit(MODEL, people(-2), replay=stubborn)
    assert (found.findings[0].replayed, found.findings[0].runtime) == (False, "sensitive")
    assert found.summary.not_replayed == 1
    found = audit(MODEL, people(-2), replay=faithful)
    assert (found.findings[0].replayed, found.findings[0].runtime) == (True, "safe")
    assert found.summary.not_replayed == 0


def test_what_cannot_be_audited_is_refused() -> None:
    with pytest.raises(
        DomainError, match="'age' is invalid: got 5; expected an integer from 0 to 4"
    ):
        audit(MODEL, [{"age": 5, "size": 1, "income": 0}])
    with pytest.raises(EngineError, match="an engine must be one of"):
        audit(MODEL, people(0), engine="oracle")


SEVERAL = Model(
    SPACE,
    # Classes by age + income, size + income, and a constant.
    Network.from_layers([([[1, 0, 1], [0, 1, 1], [0, 0, 0]], [0.0, 0.5, 0.25])]),
    Argmax(("a", "b", "c")),
)
SCORED = Model(SPACE, Network.from_layers([([[2.0, 1.0, 1.0]], [0.0])]), Tolerance(7.0))


def test_several_classes_are_audited_by_class() -> None:
    found = audit(SEVERAL, people(-9, 5, -3), labels=["c", "b", "a"])
    assert statuses(found) == ["fair", "unfair", "unfair"]
    assert [finding.decision for finding in found.findings] == [2, 0, 2]
    for finding, votes in zip(
        found.findings, tally(SEVERAL, SPACE.encode(people(-9, 5, -3))).by_class, strict=True
    ):
        assert finding.fair_decision == int(np.argmax(votes))
    middle, last = found.findings[1:]
    assert middle.alone == ("age", "size")
    assert last.pair is not None
    assert last.pair.decisions[0] == 2
    assert found.summary.accuracy == pytest.approx(1 / 3)
    told = found.summary.as_dict()
    assert (told["mean_span"], told["max_span"], told["mean_absolute_error"]) == (None, None, None)


def test_one_class_against_the_rest_is_audited_by_that_class() -> None:
    found = audit(SEVERAL.one_vs_rest("c"), people(-9, 5, -3), labels=["c", "a", "not c"])
    assert statuses(found) == ["fair", "fair", "unfair"]
    assert [finding.decision for finding in found.findings] == [True, False, True]
    assert found.summary.accuracy == pytest.approx(2 / 3)


def test_regression_is_audited_by_tolerance() -> None:
    tables = pd.concat([people(0), people(3).assign(age=0, size=0)])
    found = audit(SCORED, tables, labels=[5.0, "9"])
    first, second = found.findings
    # Counterparts score from 0 to 12 above income, whoever asks.
    assert statuses(found) == ["unfair", "unfair"]
    assert (first.decision, first.fair_decision, first.span) == (5.0, 6.0, 12.0)
    assert (second.decision, second.fair_decision, second.span) == (3.0, 9.0, 12.0)
    for one, scores in ((first, [0.0, 12.0]), (second, [3.0, 15.0])):
        assert one.pair is not None
        assert (one.pair.gap, one.pair.decisions, one.alone) == (12.0, (), ("age",))
        assert one.pair.scores.tolist() == scores
    told = found.summary.as_dict()
    assert (found.ce_rate, found.flip_rate, told["mean_violation"]) == (1.0, 0.0, 12.0)
    assert (told["mean_span"], told["max_span"]) == (12.0, 12.0)
    assert (told["mean_absolute_error"], told["fair_mean_absolute_error"]) == (3.0, 0.5)
    assert (told["accuracy"], told["fair_accuracy"]) == (None, None)


def test_the_same_score_is_no_flip_however_it_is_rounded() -> None:
    thirds = Network.from_layers([([[0.0, 0.0, 0.1]], [0.7]), ([[1 / 3]], [0.1])], activation="abs")
    exact = Model(SPACE, thirds, Tolerance(0.0))
    found = audit(exact, people(*np.linspace(-20, 20, 97)))
    assert set(statuses(found)) == {"fair"}
    assert (found.flip_rate, found.summary.max_span) == (0.0, 0.0)


def test_a_score_farther_than_the_tolerance_from_the_median_is_a_flip() -> None:
    found = audit(
        replace(SCORED, rule=Tolerance(5.0), threshold=None), people(0).assign(age=0, size=0)
    )
    assert found.flip_rate == 1.0  # 0 against 6


def test_regression_out_of_time_is_undecided() -> None:
    found = audit(SCORED, people(0, 1), engine="exhaustive", budget=Budget(seconds=0))
    assert statuses(found) == ["undecided"] * 2
    assert (found.findings[0].fair_decision, found.findings[0].span) == (None, None)
    assert found.summary.mean_span == 0.0


@pytest.mark.parametrize("model", [MODEL, SEVERAL, SCORED])
def test_votes_change_fair_decisions_and_no_verdict(model: Model) -> None:
    weights = VoteWeights.of(SPACE, {(4, 4): 1})
    table = people(-3, 0, 2)
    plain, voted = audit(model, table), audit(model, table, weights=weights)
    assert statuses(voted) == statuses(plain)
    oldest = SPACE.encode(table.assign(age=4, size=4))
    own = model.score(oldest) if model is SCORED else model.decide(oldest)
    assert [finding.fair_decision for finding in voted.findings] == own.tolist()
    assert [finding.span for finding in voted.findings] == [
        finding.span for finding in plain.findings
    ]


@pytest.mark.parametrize("model", [SEVERAL, SEVERAL.one_vs_rest("c"), SCORED])
def test_a_runtime_is_asked_whatever_the_rule(model: Model) -> None:
    def faithful(rows: Matrix) -> Answers:
        return model.score(rows) if model is SCORED else model.decide(rows)

    def stubborn(rows: Matrix) -> Answers:
        return 0 * faithful(rows)

    table = people(-3).assign(age=0, size=0)
    for replay, replayed in ((faithful, True), (stubborn, False)):
        found = audit(model, table, replay=replay)
        assert (found.findings[0].status, found.findings[0].replayed) == ("unfair", replayed)


@pytest.mark.parametrize(
    ("model", "label", "message"),
    [
        (MODEL, "maybe", "the label of row 0 must be 'favorable', 'unfavorable', 1 or 0, got 'maybe'"),
        (SEVERAL, "A", "the label of row 0 must be one of 'a', 'b', 'c', got 'A'"),
        (SEVERAL, 1, "the label of row 0 must be one of 'a', 'b', 'c', got '1'"),
        (SEVERAL.one_vs_rest("a"), "d", "the label of row 0 must be one of 'a', 'b', 'c', got 'd'"),
        (SCORED, "many", "the label of row 0 must be a finite number, got 'many'"),
        (SCORED, None, "the label of row 0 must be a finite number, got None"),
        (SCORED, float("inf"), "the label of row 0 must be a finite number, got inf"),
        (SCORED, "x" * 999, "got 'xxx[x]* … x*'$"),
    ],
)  # fmt: skip
def test_a_label_that_cannot_be_is_refused(model: Model, label: object, message: str) -> None:
    with pytest.raises(DomainError, match=message):
        audit(model, people(0), labels=[label])


def test_an_empty_table_proves_nothing() -> None:
    found = audit(MODEL, people())
    assert found.findings == ()
    assert (found.ce_rate, found.flip_rate, found.summary.mean_violation) == (0.0, 0.0, 0.0)
    assert not found.summary.everyone_fair


def test_a_large_table_is_asked_in_blocks() -> None:
    found = audit(MODEL, people(*[-2.0] * 600, 9.0))
    assert [finding.row for finding in found.findings] == list(range(601))
    assert found.summary.statuses == {"unfair": 600, "fair": 1}


def test_the_clearest_pairs_change_one_attribute_and_show_nobody_twice() -> None:
    auditor = Auditor(MODEL)
    top_pairs = TopPairs(auditor)
    found = auditor.ask(SPACE.encode(people(-3, -2.5, -3.5, -2, -4, -7, 9)))
    for finding in found:
        top_pairs.add(finding, f"p{finding.row}")
    shown = top_pairs.pairs()
    rows = [one.finding.row for one in shown]
    assert len(set(rows)) == len(rows) <= 2 * EACH + EACH
    assert rows[-1] == 5
    for one in shown:
        before, after = SPACE.decode(one.pair.person), SPACE.decode(one.pair.counterpart)
        n_changed = sum(before[name] != after[name] for name in before)
        assert n_changed == (2 if one.finding.row == 5 else 1)
        assert one.name == f"p{one.finding.row}"


def test_out_of_time_the_farthest_pair_is_shown_instead() -> None:
    finding = Auditor(MODEL).ask(SPACE.encode(people(-3)))[0]
    hurried = Auditor(MODEL, "exhaustive", Budget(seconds=0))
    assert hurried.simplest(finding, "age") is None
    assert hurried.simplest(finding, None) is finding.pair
    top_pairs = TopPairs(hurried)
    top_pairs.add(finding)
    assert [one.pair for one in top_pairs.pairs()] == [finding.pair]
    fair = Auditor(MODEL).ask(SPACE.encode(people(-7)))[0]
    assert Auditor(MODEL).simplest(fair, "age") is None  # age alone changes nothing there


@pytest.mark.parametrize("known", [True, False])
def test_out_of_time_the_best_pair_so_far_is_kept(
    monkeypatch: pytest.MonkeyPatch, *, known: bool
) -> None:
    auditor = Auditor(MODEL)
    pair = auditor.ask(SPACE.encode(people(-3)))[0].pair
    verdict = Unknown(Reason.OUT_OF_TIME, pair if known else None)
    monkeypatch.setattr(sys.modules[Auditor.__module__], "verify", lambda *_, **__: verdict)
    found = auditor.ask(SPACE.encode(people(-3)))[0]
    assert (found.status, found.pair) == (("unfair", pair) if known else ("undecided", None))


def test_rows_that_were_not_audited_count_as_nobody() -> None:
    summary = AuditSummary(("age",))
    summary.add(Finding(0, "fair", decision=True, fair_decision=True))
    proved = [summary.everyone_fair]
    summary.add(Finding(1, "not audited", reason="bad"), label=True)
    assert [*proved, summary.everyone_fair] == [True, False]
    assert (summary.people, summary.as_dict()["not_audited"], summary.labeled) == (1, 1, 0)


def test_a_model_that_decides_everybody_alike_is_doubted() -> None:
    rows = [{"age": 30, "sex": "male", "income": n} for n in range(25)]
    result = audit(linear(bias=1.0), rows)
    assert result.summary.everyone_fair
    assert "is a center or scale missing" in result.summary.doubts[0]


def test_a_model_no_better_than_the_commoner_label_is_doubted() -> None:
    rows = [{"age": 18 + n, "sex": "male", "income": 1} for n in range(40)]
    labels = [n < 30 for n in range(40)]
    result = audit(linear(age=1.0, bias=-40.0), rows, labels=labels)
    assert any(
        "no more often than always answering 'favorable'" in one for one in result.summary.doubts
    )


def test_a_model_that_is_right_is_not_doubted() -> None:
    rows = [{"age": 18 + n, "sex": "male", "income": 1} for n in range(40)]
    labels = [18 + n >= 40 for n in range(40)]
    assert audit(linear(age=1.0, bias=-40.0), rows, labels=labels).summary.doubts == []
