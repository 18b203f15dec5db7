import json
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

import pytest

import feta
from feta.cli.run_command import run_command
from feta.errors import SchemaError
from feta.report.audited import read_audit
from feta.report.diff import compare
from feta.report.gate import Gate, GateResult, conclusion
from feta.report.matching import match

SPACE = feta.FeatureSpace((feta.Integer("age", 18, 90, sensitive=True), feta.Real("income", 0, 99)))
ROWS = ["p1,30,10", "p2,40,45", "p3,50,80", "p4,60,47"]  # p2 and p4 are unfair


@pytest.fixture
def audited(tmp_path: Path) -> Callable[..., Path]:
    model = feta.Model(SPACE, feta.Network.from_layers([([[0.1, 1.0]], [-50.0])]))
    feta.save_model(model, tmp_path / "m.feta")

    def make(name: str, *options: str, rows: list[str] = ROWS) -> Path:
        (tmp_path / f"{name}.csv").write_text("\n".join(["id,age,income", *rows]))
        data = ["--data", str(tmp_path / f"{name}.csv"), "--out", str(tmp_path / name)]
        assert run_command(["audit", str(tmp_path / "m.feta"), *data, *options]) == 1
        return tmp_path / name

    return make


def edit(out: Path, change: Callable[[dict[str, Any]], object]) -> None:
    content = json.loads((out / "audit.json").read_text())
    change(content)
    (out / "audit.json").write_text(json.dumps(content))


@pytest.mark.parametrize(
    ("key", "value", "message"),
    [
        ("unfair", float("nan"), "invalid number: got NaN; expected finite numbers only"),
        ("unfair", [], r"invalid 'summary.unfair': got \[\]; expected a count"),
        ("unfair", True, "invalid 'summary.unfair': got True; expected a count"),
        ("unfair", -1, "invalid 'summary.unfair': got -1; expected a count"),
        ("ce_rate", 2, "invalid 'summary.ce_rate': got 2; expected a share from 0 to 1, or null"),
        ("ce_rate", 0.0, "contradicts itself: got 2 of 4 people unfair, but a CE rate of 0.0"),
        ("unfair", 1, "contradicts itself: got 4 people, but 3 verdicts"),
        ("one_attribute_is_enough", [], "expected an object of counts"),
    ],
)
def test_an_invalid_summary_is_rejected(
    audited: Callable[..., Path], key: str, value: object, message: str
) -> None:
    out = audited("out")
    edit(out, lambda content: content["summary"].update({key: value}))
    with pytest.raises(SchemaError, match=message):
        read_audit(out)
    assert run_command(["diff", str(out), str(audited("other"))]) == 2


def test_a_missing_or_repeated_key_is_rejected(audited: Callable[..., Path]) -> None:
    out = audited("out")
    edit(out, lambda content: content["summary"].pop("unfair"))
    with pytest.raises(SchemaError, match=r"missing key 'summary.unfair'; audit again"):
        read_audit(out)
    text = (audited("other") / "audit.json").read_text().replace('"fair":', '"fair": 1, "fair":', 1)
    (out / "audit.json").write_text(text)
    with pytest.raises(SchemaError, match="repeated key: got 'fair' twice"):
        read_audit(out)


@pytest.mark.parametrize(
    ("options", "rows", "reason"),
    [
        (("", ""), ROWS[::-1], "there are no ids, and the two audits read different data files"),
        (("id", "id"), ["p1,30,10", ",40,45"], "1 ids are empty"),
        (("id", "id"), [*ROWS, ROWS[0]], "ids occur more than once: p1"),
        (("id", ""), ROWS, "the earlier audit has --id id, the later one no --id"),
        (("", "id"), ROWS, "the earlier audit has no --id, the later one --id id"),
        (
            ("id", "id"),
            ["p1,30,10", "p2,60,47", "p3,50,80", "p4,40,45"],
            "people are unfair in both audits, but their records differ: p2, p4",
        ),
    ],
)
def test_people_who_cannot_be_matched_are_not_compared(
    audited: Callable[..., Path], options: tuple[str, str], rows: list[str], reason: str
) -> None:
    columns = [["--id", name] if name else [] for name in options]
    old = read_audit(audited("old", *columns[0]))
    new = read_audit(audited("new", *columns[1], rows=rows))
    (obstacle,) = match(old, new).reasons
    assert reason in obstacle
    diff = compare(old, new)
    assert Gate().outcome(diff) == GateResult.NOT_MATCHED
    assert reason in conclusion(diff, Gate())
    assert Gate(rate_only=True).outcome(diff) != GateResult.NOT_MATCHED


def test_edited_verdicts_are_not_compared_even_by_rate(
    audited: Callable[..., Path],
) -> None:
    old, out = read_audit(audited("old")), audited("new")
    verdicts = out / "verdicts.csv"
    verdicts.write_text(verdicts.read_text().replace('"unfair"', '"fair"', 1))
    new = read_audit(out)
    assert new.doubt == "verdicts.csv changed after audit.json was written"
    assert Gate(rate_only=True).outcome(compare(old, new)) == GateResult.NOT_MATCHED
    edit(out, lambda content: content.pop("files"))
    assert read_audit(out).doubt == "verdicts.csv has 3 people fair, and audit.json 2"
    verdicts.unlink()
    new = read_audit(out)
    assert new.doubt == "verdicts.csv is missing"
    assert Gate().outcome(compare(old, new)) == GateResult.NOT_MATCHED
    gate = Gate(rate_only=True)
    assert "only the rates were compared, not who is unfair" in conclusion(compare(old, new), gate)


@pytest.mark.parametrize(
    ("change", "words"),
    [
        ({"reading": "sampled"}, "answers were proved and are sampled"),
        ({"relation": "Constrained"}, "relation was not stated and is 'Constrained'"),
        (
            {"rule_options": {"value": 0.0, "favors": "below", "equality": "favorable"}},
            "the rule's favors was 'above' and is 'below'",
        ),
        (
            {"rule_options": {"value": 1.0, "favors": "above", "equality": "favorable"}},
            "the rule's value was 0.0 and is 1.0",
        ),
    ],
)
def test_a_weaker_query_is_a_different_query(
    audited: Callable[..., Path], change: dict[str, object], words: str
) -> None:
    old, out = read_audit(audited("old")), audited("new")
    edit(out, lambda content: content["model"].update(change))
    diff = compare(old, read_audit(out))
    assert diff.question_changes == (words,)
    assert Gate().outcome(diff) == GateResult.NOT_COMPARABLE


def test_a_stronger_query_is_comparable(audited: Callable[..., Path]) -> None:
    old, new = audited("old", "--seconds", "5"), read_audit(audited("new"))
    edit(old, lambda content: content["model"].update(reading="sampled"))
    diff = compare(read_audit(old), new)
    assert (diff.question_changes, Gate().outcome(diff)) == ((), GateResult.NOT_WORSE)


def _set_domain(content: dict[str, Any], domain: str) -> None:
    content["model"]["sensitive"]["age"] = domain


@pytest.mark.parametrize(
    ("before", "after", "same"),
    [
        ("a whole number from 18 to 90", "an integer from 18 to 90", True),
        ("a whole number from 18 to 90 or missing", "an integer from 18 to 90 or missing", True),
        ("a whole number from 18 to 90", "an integer from 18 to 90 or missing", False),
        ("a whole number from 18 to 90", "an integer from 18 to 75", False),
        ("a whole number from 18 to 90", "a number from 18 to 90", False),
        ("one of 'a', 'b'", "one of 'a', 'c'", False),
    ],
)
def test_the_wording_of_a_domain_does_not_change_the_query(
    audited: Callable[..., Path], before: str, after: str, *, same: bool
) -> None:
    old, new = audited("old"), audited("new")
    for folder, domain in ((old, before), (new, after)):
        edit(folder, partial(_set_domain, domain=domain))
    changes = compare(read_audit(old), read_audit(new)).question_changes
    assert changes == (() if same else (f"the domain of age was {before} and is {after}",))
