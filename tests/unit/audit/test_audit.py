import sys

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
    SchemaError,
    Unknown,
    audit,
)
from feta.arrays import Flags, Matrix
from feta.audit.clearest import EACH, Clearest
from feta.audit.finding import Auditor, Finding
from feta.audit.summary import Summary

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
    with pytest.raises(DomainError, match="'age' must be a whole number from 0 to 4, got 5"):
        audit(MODEL, [{"age": 5, "size": 1, "income": 0}])
    with pytest.raises(EngineError, match="an engine must be one of"):
        audit(MODEL, people(0), engine="oracle")
    several = Model(SPACE, Network.from_layers([(np.eye(3), [0.0] * 3)]), Argmax(("a", "b", "c")))
    with pytest.raises(SchemaError, match=r"two decisions, got Argmax; .*one_vs_rest"):
        audit(several, people(0))
    assert len(audit(several.one_vs_rest("a"), people(0)).findings) == 1


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
    clearest = Clearest(auditor)
    found = auditor.ask(SPACE.encode(people(-3, -2.5, -3.5, -2, -4, -7, 9)))
    for finding in found:
        clearest.add(finding, f"p{finding.row}")
    shown = clearest.pairs()
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
    clearest = Clearest(hurried)
    clearest.add(finding)
    assert [one.pair for one in clearest.pairs()] == [finding.pair]
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
    summary = Summary(("age",))
    summary.add(Finding(0, "fair", decision=True, fair_decision=True))
    proved = [summary.everyone_fair]
    summary.add(Finding(1, "not audited", reason="bad"), label=True)
    assert [*proved, summary.everyone_fair] == [True, False]
    assert (summary.people, summary.as_dict()["not_audited"], summary.labeled) == (1, 1, 0)
