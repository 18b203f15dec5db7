import json
from dataclasses import replace
from pathlib import Path

import joblib
import numpy as np
import pandas as pd
import pytest
from sklearn.compose import make_column_transformer
from sklearn.linear_model import LogisticRegression
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import OneHotEncoder, StandardScaler

from feta import (
    FairPredictor,
    MissingExtra,
    Model,
    Network,
    PlainTrainer,
    Tolerance,
    save_model,
)
from feta.arrays import Flags
from feta.cli.run_command import run_command
from feta.comparing.candidate import Candidate
from feta.comparing.model_comparison import ComparedRow, Comparing
from tests.cli.commands import Done, run
from tests.extras import needs
from tests.unit.metrics.planted import SPACE, aware_model, draw_labels, planted

SCHEMA = """
[decision]
favorable = "yes"
unfavorable = "no"
threshold = 0.5
[columns]
sex = { type = "category", values = ["f", "m"], sensitive = true }
town = { type = "category", values = ["a", "b"] }
merit = { type = "number", min = -6, max = 6 }
"""
PEOPLE = planted(0.8, 1200)
LABELS = draw_labels(PEOPLE)
VOTES = ("", ", blind", ", majority", ", fitted vote")


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("compare")
    frame = pd.DataFrame([SPACE.decode(person) for person in PEOPLE])
    loan = np.where(LABELS == 1, "yes", "no")
    columns = make_column_transformer(
        (OneHotEncoder(), ["sex", "town"]), (StandardScaler(), ["merit"])
    )
    pipeline = make_pipeline(columns, LogisticRegression(C=100.0)).fit(frame, loan)
    joblib.dump(pipeline, folder / "model.joblib")
    frame.assign(loan=loan, same="yes", odd="maybe").to_csv(folder / "people.csv", index=False)
    frame.assign(loan=loan)[:150].to_csv(folder / "few.csv", index=False)
    (folder / "schema.toml").write_text(SCHEMA)
    named = replace(aware_model(), outcomes=("no", "yes"), threshold=None)
    save_model(named, folder / "true.feta")
    save_model(named, folder / "<b>x&.feta")
    return folder


def compare(folder: Path, *options: str, data: str = "people.csv", label: str = "loan") -> Done:
    files = ("model.joblib", "--trust-pickle", "--schema", "schema.toml", "--epochs", "2")
    return run("compare", *files, "--data", data, "--label", label, *options, cwd=folder)


@pytest.fixture(scope="module")
def compared(folder: Path) -> dict[str, object]:
    """Compare once, and return the figures by row."""
    pytest.importorskip("torch")
    done = compare(folder, "--out", "out")
    assert done.returncode == 0, done.stderr
    assert "Written to out: comparison.html, comparison.json" in done.stdout
    assert "…" not in done.stdout  # no figure is cut off at 80 characters
    content: dict[str, object] = json.loads((folder / "out" / "comparison.json").read_text())
    return content


def figure(content: dict[str, object], name: str, key: str, kind: str = "figures") -> float:
    rows = content["rows"]
    assert isinstance(rows, list)
    (row,) = [row for row in rows if row["name"] == name]
    return float(row[kind][key]["value"])


def test_blind_copies_guess_and_votes_do_not(compared: dict[str, object]) -> None:
    names = [row["name"] for row in compared["rows"]]  # type: ignore[attr-defined]  # a list
    assert [name for name in names if "distilled" not in name] == [
        *(f"model.joblib{vote}" for vote in VOTES),
        "network",
        "network, blind",
        "network, CE-Fair",
    ]
    assert figure(compared, "model.joblib, blind", "slope") == pytest.approx(1.0, abs=0.15)
    assert abs(figure(compared, "model.joblib, fitted vote", "slope")) < 0.02
    assert figure(compared, "model.joblib, fitted vote", "proxy_discrimination") < 0.001
    assert figure(compared, "model.joblib, blind", "proxy_discrimination") > 0.1
    for name in names[1:]:
        if name.startswith("model") or name.endswith("blind"):
            assert figure(compared, name, "counterexamples") == 0.0
    blind, vote = (
        figure(compared, f"model.joblib, {kind}", "gap sex") for kind in ("blind", "fitted vote")
    )
    assert blind > vote + 0.1


def test_figures_equal_those_of_the_model_itself(folder: Path, compared: dict[str, object]) -> None:
    assert (compared["people_fitted"], compared["people_measured"]) == (600, 600)
    order = np.random.default_rng([0, 5]).permutation(1200)  # the stated split
    measured = np.sort(order[600:])
    frame = pd.read_csv(folder / "people.csv").iloc[measured]
    own = joblib.load(folder / "model.joblib").predict(frame[["sex", "town", "merit"]])
    right, men = own == frame["loan"], frame["sex"] == "m"
    assert figure(compared, "model.joblib", "accuracy") == pytest.approx(right.mean())
    assert figure(compared, "model.joblib", "favorable") == pytest.approx((own == "yes").mean())
    gap = (own[men] == "yes").mean() - (own[~men] == "yes").mean()
    assert figure(compared, "model.joblib", "gap sex") == pytest.approx(gap)
    vote = figure(compared, "model.joblib, fitted vote", "accuracy")
    change = figure(compared, "model.joblib, fitted vote", "accuracy", "differences")
    assert change == pytest.approx(vote - right.mean())
    flipped = frame.assign(sex=np.where(men, "f", "m"))[["sex", "town", "merit"]]
    unfair = joblib.load(folder / "model.joblib").predict(flipped) != own
    assert figure(compared, "model.joblib", "counterexamples") == pytest.approx(unfair.mean())


def test_at_equal_approval_the_people_with_the_highest_scores_are_approved(
    folder: Path, compared: dict[str, object]
) -> None:
    frame = pd.read_csv(folder / "people.csv")
    order = np.random.default_rng([0, 5]).permutation(1200)
    fitted, measured = frame.iloc[order[:600]], frame.iloc[order[600:]]
    model = joblib.load(folder / "model.joblib")
    own = model.predict(measured[["sex", "town", "merit"]]) == "yes"
    means = np.zeros(600)
    for sex, share in fitted["sex"].value_counts(normalize=True).items():
        counterparts = measured.assign(sex=str(sex))[["sex", "town", "merit"]]
        means += share * model.predict_proba(counterparts)[:, 1]
    approved = means >= np.sort(means)[-own.sum()]
    men = (measured["sex"] == "m").to_numpy()

    def gap(decisions: Flags) -> float:
        return float(decisions[men].mean() - decisions[~men].mean())

    key = "gap_at_equal_approval sex"
    assert figure(compared, "model.joblib", key) == pytest.approx(gap(own))
    vote = figure(compared, "model.joblib, fitted vote", key)
    assert vote == pytest.approx(gap(approved), abs=0.02)  # the vote is graded
    change = figure(compared, "model.joblib, fitted vote", key, "differences")
    assert change == pytest.approx(vote - gap(own))
    rows = compared["rows"]
    assert isinstance(rows, list)
    for row in rows:
        distilled, majority = (row["name"].endswith(kind) for kind in ("distilled", "majority"))
        assert (row["figures"]["proxy_discrimination"] is None) == distilled
        assert (row["figures"]["slope"] is None) == (distilled or majority)


def test_the_page_has_a_picture_and_no_script(folder: Path, compared: dict[str, object]) -> None:
    page = (folder / "out" / "comparison.html").read_text(encoding="utf-8")
    rows = compared["rows"]
    assert isinstance(rows, list)
    assert page.count("<circle") == sum(
        figure is not None for row in rows for figure in row["figures"].values()
    )
    assert "<script" not in page
    assert "sex: m minus f" in page
    assert page.count("<figure") == 7  # a panel for each measure
    assert page.count('class="first"') == 7  # the figure of the first row


@needs("torch")
def test_several_models_are_compared_and_names_are_escaped(folder: Path) -> None:
    arguments = ("true.feta", "<b>x&.feta", "--data", "people.csv", "--label", "loan")
    options = ("--epochs", "1", "--out", "two", "--json", "--seed", "3")
    done = run("compare", *arguments, *options, cwd=folder)
    assert done.returncode == 0, done.stderr
    content = json.loads(done.stdout)
    assert (content["format"], content["finished"], content["seed"]) == ("feta-comparison", True, 3)
    for kind in ("", ", majority", ", fitted vote"):  # both are the same model
        for key in ("accuracy", "proxy_discrimination", "gap sex"):
            first, second = (f"{name}{kind}" for name in arguments[:2])
            assert figure(content, first, key) == figure(content, second, key)
    page = (folder / "two" / "comparison.html").read_text(encoding="utf-8")
    assert "<b>x" not in page
    assert "&lt;b&gt;x&amp;.feta" in page


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"label": "salary"}, "salary"),
        ({"label": "merit"}, "invalid label: got 'merit', a column that the network reads"),
        ({"label": "odd"}, "row 1: invalid label 'odd'"),
        ({"label": "same"}, "only one class: got favorable labels only; expected both decisions"),
        ({"data": "few.csv"}, "too few people: got 150; expected at least 200"),
    ],
)
def test_bad_input_is_refused(folder: Path, options: dict[str, str], message: str) -> None:
    done = compare(folder, **options)
    assert done.returncode == 2
    assert message in done.stderr


def test_models_of_different_schemas_are_refused(folder: Path) -> None:
    town = replace(aware_model(), space=SPACE.with_sensitive(["town"]), threshold=None)
    save_model(replace(town, outcomes=("no", "yes"), threshold=None), folder / "town.feta")
    done = compare(folder, "town.feta")
    assert done.returncode == 2
    assert "have different columns or decisions: expected the same schema" in done.stderr
    done = compare(folder, "model.joblib")
    assert "a model is named twice" in done.stderr
    done = compare(folder, "--out", "people.csv")
    assert "--out is a file; expected a folder" in done.stderr


def test_rules_without_two_decisions_are_refused(folder: Path) -> None:
    regression = Model(SPACE, Network.from_layers([([[0, 1, 0, 0, 1]], [0])]), Tolerance(0.1))
    save_model(regression, folder / "score.feta")
    arguments = ("score.feta", "--data", "scored.csv", "--label", "score")
    frame = pd.read_csv(folder / "people.csv").assign(score=LABELS)
    frame.to_csv(folder / "scored.csv", index=False)
    done = run("compare", *arguments, cwd=folder)
    assert done.returncode == 2
    assert "models with two decisions are compared: got the rule Tolerance" in done.stderr


def test_an_interruption_keeps_what_is_measured(
    folder: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    measured: list[str] = []
    measure = Comparing._measured

    def interrupted(work: Comparing, candidate: Candidate) -> ComparedRow:
        if len(measured) == 2:
            raise KeyboardInterrupt
        measured.append(candidate.name)
        return measure(work, candidate)

    monkeypatch.setattr(Comparing, "_measured", interrupted)
    monkeypatch.chdir(folder)
    files = ["--schema", "schema.toml", "--data", "people.csv", "--label", "loan"]
    command = ["compare", "model.joblib", "--trust-pickle", *files, "--out", "interrupted"]
    assert run_command(command) == 130
    content = json.loads((folder / "interrupted" / "comparison.json").read_text())
    assert not content["finished"]
    assert [row["name"] for row in content["rows"]] == measured
    assert "Interrupted: some candidates are missing" in capsys.readouterr().out
    assert run_command([*command[:-1], "nothing"]) == 130  # before the first candidate
    assert not (folder / "nothing").exists()


def test_without_torch_networks_are_left_out_with_the_reason(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def missing(*_: object, **__: object) -> None:
        raise MissingExtra("training", "torch")

    monkeypatch.setattr(PlainTrainer, "train", missing)
    monkeypatch.delattr(FairPredictor, "distil", raising=False)
    done = compare(folder, "--json")
    assert done.returncode == 0
    content = json.loads(done.stdout)
    assert len(content["rows"]) == len(VOTES)
    assert [left["name"] for left in content["left_out"]] == [
        "network",
        "network, blind",
        "network, CE-Fair",
    ]
    assert "torch" in content["left_out"][0]["reason"]
