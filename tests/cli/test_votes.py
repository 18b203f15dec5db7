"""Votes fitted to other people, on the command line and in a .feta file."""

import csv
import json
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest

from feta import Categorical, FairPredictor, FeatureSpace, Integer, Model, Network, save_model

Run = Callable[..., tuple[int, str, str]]

SPACE = FeatureSpace(
    (
        Integer("age", 18, 27, sensitive=True),
        Categorical("sex", ("female", "male"), sensitive=True),
        Integer("income", 0, 60),
    )
)


@pytest.fixture
def files(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Model:
    """Write a model and two tables, and return the model."""
    monkeypatch.chdir(tmp_path)
    network = Network.from_layers([([[0.05, -1.0, 1.0, 0.2]], [-6.0])]).with_link("logit")
    model = Model(SPACE, network, threshold=0.0, outcomes=("no", "yes"))
    save_model(model, "model.feta")
    rng = np.random.default_rng(0)
    for name, size in (("others.csv", 200), ("people.csv", 40)):
        rows = [
            f"{rng.integers(18, 28)},{rng.choice(['female', 'male'])},{rng.integers(0, 61)}"
            for _ in range(size)
        ]
        Path(name).write_text("\n".join(["age,sex,income", *rows]) + "\n")
    return model


def encoded(name: str) -> np.ndarray:
    with Path(name).open() as file:
        rows = list(csv.DictReader(file))
    return np.concatenate(
        [
            SPACE.encode({"age": int(r["age"]), "sex": r["sex"], "income": int(r["income"])})
            for r in rows
        ]
    )


def decisions(out: str) -> list[bool]:
    return [line.split(",")[1] == '"yes"' for line in out.splitlines()[1:]]


def test_votes_are_fitted_to_the_people_of_another_table(files: Model, feta_: Run) -> None:
    arguments = ["--data", "people.csv", "--votes-from", "others.csv"]
    code, out, err = feta_("predict", "model.feta", *arguments)
    assert code == 0
    assert "votes fitted to 200 people of others.csv: mean_probability, level " in err
    expected = FairPredictor.fitted(files, encoded("others.csv")).decide(encoded("people.csv"))
    assert decisions(out) == expected.tolist()
    assert 0 < expected.sum() < len(expected)


def test_a_file_with_votes_decides_by_them(files: Model, feta_: Run) -> None:
    command = ["export", "model.feta", "--votes-from", "others.csv", "--out", "voting.feta"]
    assert feta_(*command)[0] == 0
    loaded = FairPredictor.load("voting.feta")
    assert (loaded.vote, loaded.model.fingerprint) == ("mean_probability", files.fingerprint)
    assert loaded.fitted_on
    expected = loaded.decide(encoded("people.csv")).tolist()
    code, out, _ = feta_("predict", "voting.feta", "--data", "people.csv")
    assert (code, decisions(out)) == (0, expected)
    code, _, _ = feta_("audit", "voting.feta", "--data", "people.csv", "--out", "audit")
    assert code == 1
    with Path("audit/verdicts.csv").open() as file:
        audited = [row["fair decision"] == "yes" for row in csv.DictReader(file)]
    assert audited == expected
    assert json.loads(Path("audit/audit.json").read_text())["summary"]["people"] == 40
    # Another export keeps the votes.
    assert feta_("export", "voting.feta", "--out", "again.feta")[0] == 0
    assert FairPredictor.load("again.feta").level == loaded.level


@pytest.mark.usefixtures("files")
@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["--votes-from", "people.csv"], "--votes-from names the file that is decided"),
        (["--votes-from", "./people.csv"], "--votes-from names the file that is decided"),
        (
            ["--votes-from", "others.csv", "--vote-weights", "others.csv"],
            "got --vote-weights and --votes-from",
        ),
    ],
)
def test_votes_from_a_wrong_table_are_refused(
    arguments: list[str], message: str, feta_: Run
) -> None:
    code, _, err = feta_("predict", "model.feta", "--data", "people.csv", *arguments)
    assert code == 2
    assert message in " ".join(err.split())


@pytest.mark.usefixtures("files")
def test_only_a_feta_file_stores_votes(feta_: Run) -> None:
    code, _, err = feta_("export", "model.feta", "--votes-from", "others.csv", "--out", "m.onnx")
    assert code == 2
    assert "only a .feta file stores votes" in " ".join(err.split())
    assert feta_("export", "model.feta", "--votes-from", "others.csv", "--out", "v.feta")[0] == 0
    code, _, err = feta_(
        "predict", "v.feta", "--data", "people.csv", "--vote-weights", "others.csv"
    )
    assert code == 2
    assert "the .feta file contains votes" in " ".join(err.split())


def test_the_vote_adapts_to_the_model(files: Model, feta_: Run) -> None:
    save_model(Model(SPACE, files.scorer.with_link("identity"), threshold=0.0), "score.feta")
    arguments = ["--data", "people.csv", "--votes-from", "others.csv"]
    code, _, err = feta_("predict", "score.feta", *arguments)
    assert code == 0
    assert "the model takes the mean score: its scores are no probabilities" in err
