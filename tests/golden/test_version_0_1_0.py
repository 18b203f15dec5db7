"""Files of version 0.1.0 open and give the same results; its journals are not resumed.

`version_0_1_0/` was written by that version: models and schemas, audits of 40 people without their
reports, fair decisions, and an audit interrupted after 16 people.
"""

import json
import shutil
from pathlib import Path

import pandas as pd
import pytest

import feta
from tests.golden.command_cases import run_all
from tests.golden.comparison import Json, without_wording
from tests.golden.make_models import CELLS, networks

OLD = Path(__file__).parent / "version_0_1_0"
LABELS = {"threshold": "approved", "limit": "limit"}


@pytest.mark.parametrize("name", LABELS)
def test_model_and_schema_open_and_give_the_same_model(name: str) -> None:
    model = feta.load_model(OLD / f"{name}.feta")
    layers = networks()[name]
    network = feta.Network.from_layers(layers, activation="relu", sigmoid=name == "threshold")
    assert feta.read_schema(OLD / f"{name}.toml").model(network).fingerprint == model.fingerprint
    assert model.fingerprint == read_audit(OLD / f"{name}_audit")["model"]["fingerprint"]


@pytest.mark.parametrize("name", LABELS)
def test_model_gives_the_recorded_decisions(name: str) -> None:
    model = feta.load_model(OLD / f"{name}.feta")
    people = model.space.encode(pd.read_csv(OLD / "people.csv")[CELLS])
    recorded = pd.read_csv(OLD / f"{name}_decisions.csv").iloc[:, -1].tolist()
    decisions = feta.FairPredictor(model).decide(people).tolist()
    if name == "threshold":
        decisions = ["granted" if decision else "refused" for decision in decisions]
    assert decisions == recorded


def read_audit(folder: Path) -> Json:
    """Read an audit.json."""
    return json.loads((folder / "audit.json").read_text(encoding="utf-8"))


def test_audits_are_compared_and_the_journal_starts_again(tmp_path: Path) -> None:
    old = tmp_path / "old"
    shutil.copytree(OLD, old)
    commands = [
        ["audit", *_inputs(name, folder=old), "--label", label, "--out", str(out)]
        for name, label, out in (
            ("threshold", "approved", old / "threshold_interrupted"),
            ("limit", "limit", old / "limit_new"),
        )
    ]
    resumed = old / "threshold_interrupted"
    sides = [str(old / "threshold_audit"), str(resumed)]
    commands += [["diff", *sides, "--json"], ["diff", *sides, "--rate-only", "--json"]]
    commands += [["diff", *sides, "--rate-only", "--allow-other-question", "--json"]]
    sides = [str(old / "limit_audit"), str(old / "limit_new")]
    commands += [["diff", *sides, "--json"]]
    restarted, _, plain, rates, accepted, regression = run_all(commands)
    assert restarted["code"] == 1
    assert "start again" in restarted["stderr"]
    assert "resuming" not in restarted["stderr"]
    assert (resumed / "journal.sqlite.damaged-1").read_bytes() == (
        OLD / "threshold_interrupted" / "journal.sqlite"
    ).read_bytes()
    before, after = (
        without_wording(read_audit(folder)["summary"])
        for folder in (OLD / "threshold_audit", resumed)
    )
    assert before.items() <= after.items()
    assert (resumed / "pairs.csv").read_bytes() == (
        OLD / "threshold_audit" / "pairs.csv"
    ).read_bytes()
    # An audit.json of 0.1.0 states neither the rule's options nor those of the table. Any further
    # change, such as another wording of a domain, would be a change of the query.
    assert [result["code"] for result in (plain, rates, accepted)] == [3, 3, 0]
    compared = json.loads(accepted["stdout"])
    assert len(compared["question_changes"]) == 2
    assert all(left == right for _, left, right in compared["figures"])
    assert (compared["same_model"], compared["same_data"]) == (True, True)
    assert regression["code"] == 3
    assert len(json.loads(regression["stdout"])["question_changes"]) == 3


def _inputs(name: str, *, folder: Path) -> list[str]:
    return [str(folder / f"{name}.feta"), "--data", str(folder / "people.csv"), "--id", "id"]
