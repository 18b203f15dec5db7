import json
from collections.abc import Callable
from pathlib import Path

import pytest

import feta

SPACE = feta.FeatureSpace(
    (
        feta.Integer("age", 18, 22, sensitive=True),
        feta.Integer("loss", 0, 4356),
        feta.Real("income", 0, 100),
    )
)
NETWORK = feta.Network.from_layers([([[1.0, -1 / 1024, 1 / 8]], [-20.0])])
HEADER = "id,age,loss,income\n"
GOOD = "p1,20,100,8\np2,19,5000,30\np3,18,9000,60\np4,20,-1,4\n"

Run = Callable[..., tuple[int, str, str]]


@pytest.fixture(autouse=True)
def _model_file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Write a model to the current folder."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("COLUMNS", "200")
    feta.save_model(feta.Model(SPACE, NETWORK), "model.feta")


def test_an_audit_decides_and_counts_people_outside_the_limits(feta_: Run) -> None:
    Path("people.csv").write_text(HEADER + GOOD)
    code, out, _ = feta_("audit", "model.feta", "--data", "people.csv", "--out", "out")
    assert code == 1
    text = " ".join(out.split())
    assert (
        "2 people have loss above the schema's maximum 4,356: they are decided, and proved for "
        "their own values." in text
    )
    assert "1 person has loss below the schema's minimum 0: this person is decided" in text
    content = json.loads(Path("out/audit.json").read_text())
    assert content["summary"]["outside_limits"] == {"loss": {"below": 1, "above": 2}}
    assert (content["summary"]["people"], content["summary"]["not_audited"]) == (4, 0)
    verdicts = Path("out/verdicts.csv").read_text().splitlines()
    # The first person is favorable from age 20, the others from 22, 22 and 20.
    assert [line.split(",")[2].strip('"') for line in verdicts[1:]] == ["unfair"] * 4


def test_a_prediction_decides_and_counts_people_outside_the_limits(feta_: Run) -> None:
    Path("people.csv").write_text("id,loss,income\np2,5000,30\np3,9000,90\np5,99000,60\n")
    code, out, err = feta_("predict", "model.feta", "--data", "people.csv", "--id", "id")
    assert code == 0
    decisions = [line.split(",")[-1].strip('"') for line in out.splitlines()[1:]]
    # One age of five is favorable, then all, then none.
    assert decisions == ["unfavorable", "favorable", "unfavorable"]
    assert "3 people have loss above the schema's maximum 4,356: they are decided" in err


@pytest.mark.parametrize("command", ["audit", "predict"])
def test_rows_that_cannot_be_decided_are_refused_by_column_and_reason(
    feta_: Run, command: str
) -> None:
    Path("people.csv").write_text(HEADER + GOOD + "p5,20,100,1e39\n")
    code, _, err = feta_(command, "model.feta", "--data", "people.csv", "--id", "id")
    assert code == 2
    text = " ".join(err.split())
    assert "people.csv, row 5 (id 'p5'): 'income' is outside the schema's limits" in text
    assert "because the number is too large for this model" in text
    skip = ("--id", "id", "--skip-bad-rows")
    code, out, err = feta_(command, "model.feta", "--data", "people.csv", *skip)
    assert code == (1 if command == "audit" else 3)
    assert "2 people have loss above" in " ".join((out + err).split())


def test_a_strict_column_refuses_people_outside_its_limits(feta_: Run) -> None:
    strict = feta.FeatureSpace(
        (SPACE.attributes[0], feta.Integer("loss", 0, 4356, strict=True), SPACE.attributes[2])
    )
    feta.save_model(feta.Model(strict, NETWORK), "model.feta")
    Path("people.csv").write_text(HEADER + GOOD)
    code, _, err = feta_("audit", "model.feta", "--data", "people.csv")
    assert code == 2
    assert "row 2: 'loss' is invalid: got '5000'; expected an integer from 0 to 4356" in " ".join(
        err.split()
    )
