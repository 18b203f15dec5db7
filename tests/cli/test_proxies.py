"""Proxies in `feta doctor` and in the report of an audit."""

import json
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

from feta import save_model
from tests.unit.metrics.planted import SPACE, aware_model, blind_model, draw_labels, planted

Run = Callable[..., tuple[int, str, str]]


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    save_model(aware_model(), "aware.feta")
    save_model(blind_model(), "blind.feta")
    for name, strength in (("people.csv", 0.8), ("perfect.csv", 1.0)):
        people = planted(strength, 800)
        loan = np.where(draw_labels(people) == 1, *reversed(aware_model().outcomes))
        frame = pd.DataFrame([SPACE.decode(person) for person in people])
        frame.assign(loan=loan).to_csv(name, index=False)
    return tmp_path


@pytest.mark.usefixtures("folder")
def test_doctor_measures_a_model_against_itself(feta_: Run) -> None:
    code, out, _ = feta_("doctor", "aware.feta", "--data", "people.csv", "--json")
    measures = json.loads(out)["proxy_measures"]
    slope = measures["reinference"]["slope"]
    assert (code, measures["reference"], measures["people"]) == (0, "the model itself", 800)
    assert slope["low"] < 1.0 < slope["high"]
    assert measures["overlap"][0]["outside"]["value"] == 0.0
    assert measures["overlap"][0]["groups"] == ["f", "m"]


@pytest.mark.usefixtures("folder")
def test_doctor_warns_if_a_vote_extrapolates(feta_: Run) -> None:
    _, out, _ = feta_("doctor", "aware.feta", "--data", "perfect.csv")
    assert "Warning: for 100.0 % [99.5, 100.0] of people, a vote over sex extrapolates" in out


@pytest.mark.usefixtures("folder")
def test_doctor_needs_labels_for_a_blind_model(feta_: Run) -> None:
    _, out, _ = feta_("doctor", "blind.feta", "--data", "people.csv")
    assert "Re-inference: not measured: the model reads no sensitive column" in out
    _, out, _ = feta_("doctor", "blind.feta", "--data", "people.csv", "--label", "loan")
    assert "against a logistic regression of the labels on all columns" in out
    assert "a rough indication only" in out
    code, _, err = feta_("doctor", "blind.feta", "--label", "loan")
    assert code == 2
    assert "--label names a column of a table: got no --data" in err
    code, _, err = feta_("doctor", "blind.feta", "--data", "people.csv", "--label", "lone")
    assert code == 2
    assert "loan" in err


def test_the_report_of_an_audit_shows_proxies(folder: Path, feta_: Run) -> None:
    code, _, _ = feta_("audit", "aware.feta", "--data", "perfect.csv", "--out", "audit")
    assert code == 1
    page = (folder / "audit" / "report.html").read_text(encoding="utf-8")
    assert "<h2>Proxies</h2>" in page
    assert '<p class="warning">Warning: for 100.0 % [99.5, 100.0] of people' in page
    content = json.loads((folder / "audit" / "audit.json").read_text())["proxies"]
    assert content["overlap"][0]["outside"]["value"] == 1.0
    code, out, _ = feta_("audit", "aware.feta", "--data", "perfect.csv", "--json")
    assert json.loads(out)["proxies"] is None  # a text on a terminal takes no extra seconds
