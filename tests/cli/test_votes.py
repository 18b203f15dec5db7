"""Votes fitted to other people, on the command line and in a .feta file."""

import csv
import json
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest

from feta import (
    Argmax,
    Categorical,
    FairPredictor,
    FeatureSpace,
    Integer,
    Model,
    Network,
    VoteWeights,
    save_model,
    write_onnx,
)

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
    assert "the vote is the mean score: the model's scores are no probabilities" in err


@pytest.mark.usefixtures("files")
def test_a_copy_of_the_decided_table_is_refused(feta_: Run) -> None:
    Path("copy.csv").write_bytes(Path("people.csv").read_bytes())
    arguments = ["--data", "people.csv", "--votes-from", "copy.csv"]
    code, _, err = feta_("predict", "model.feta", *arguments)
    assert code == 2
    assert "the file that is decided, or a copy of it" in " ".join(err.split())
    # An export decides nobody: its --data may be the table of the votes.
    arguments = ["--data", "others.csv", "--votes-from", "others.csv"]
    assert feta_("export", "model.feta", *arguments, "--out", "v.feta")[0] == 0


@pytest.mark.usefixtures("files")
def test_rare_combinations_are_stored_on_request_only(feta_: Run) -> None:
    Path("few.csv").write_text("age,sex,income\n18,female,5\n19,male,50\n20,male,60\n")
    command = ["export", "model.feta", "--votes-from", "few.csv", "--out", "v.feta"]
    code, _, err = feta_(*command)
    assert code == 2
    text = " ".join(err.split())
    assert "no sensitive assignment has 5 people: got at most 1 of 3" in text
    assert "declare fewer sensitive columns, give more people" in text
    assert "--exact-weights" in text
    code, _, err = feta_(*command, "--exact-weights")
    assert code == 0
    assert "warning: exact weights are stored" in " ".join(err.split())
    weights = FairPredictor.load("v.feta").weights
    assert weights is not None
    assert (len(weights.votes), weights.total) == (3, 3)
    code, _, err = feta_("predict", "model.feta", "--data", "people.csv", "--exact-weights")
    assert code == 2
    assert "--exact-weights without --votes-from" in " ".join(err.split())


SCHEMA = """
[decision]
favorable = "yes"
unfavorable = "no"
{votes}
[columns]
age = {{ type = "integer", min = 18, max = 27, sensitive = true }}
sex = {{ type = "category", values = ["female", "male"], sensitive = true }}
income = {{ type = "integer", min = 0, max = 60 }}
"""


def test_a_schema_states_the_settings_of_votes(files: Model, feta_: Run) -> None:
    write_onnx(files, "net.onnx")
    arguments = ["net.onnx", "--schema", "s.toml", "--data", "people.csv"]
    text = '[votes]\nvote = "mean_score"\nweights = "equal"\nlevel = "threshold"\n'
    Path("s.toml").write_text(SCHEMA.format(votes=text))
    code, out, _ = feta_("predict", *arguments)
    assert code == 0
    expected = FairPredictor(files, vote="mean_score").decide(encoded("people.csv"))
    assert decisions(out) == expected.tolist()
    Path("s.toml").write_text(SCHEMA.format(votes='[votes]\nvote = "mean_score"\n'))
    code, _, err = feta_("predict", *arguments)
    assert code == 2
    assert "votes without people: [votes] of the schema asks for" in " ".join(err.split())
    code, _, err = feta_("predict", *arguments, "--votes-from", "others.csv")
    assert code == 0
    assert "votes fitted to 200 people of others.csv: mean_score, level " in err


def test_several_classes_take_no_level(files: Model, feta_: Run) -> None:
    del files
    weight = np.array([[0.1, 0.0, 0.5, 0.0], [0.0, 0.5, 0.0, 0.05], [0.0, 0.0, 0.0, 0.1]])
    network = Network.from_layers([(weight, np.array([0.0, 0.5, -1.0]))]).with_link("logit")
    model = Model(SPACE, network, Argmax(("a", "b", "c")))
    save_model(model, "three.feta")
    code, out, err = feta_("predict", "three.feta", "--data", "people.csv", "--votes-from",
                           "others.csv")  # fmt: skip
    assert code == 0
    assert "the vote has no level: the model has several classes" in err
    with pytest.warns(UserWarning, match="no level"):
        expected = FairPredictor.fitted(model, encoded("others.csv"))
    assert expected.vote == "mean_probability"
    names = [line.split(",")[1].strip('"') for line in out.splitlines()[1:]]
    assert names == ["abc"[index] for index in expected.decide(encoded("people.csv"))]
    assert len(set(names)) > 1


def weighted(files: Model, feta_: Run, votes: str) -> tuple[int, list[bool], str]:
    """Decide the people with --vote-weights and this [votes] section."""
    write_onnx(files, "net.onnx")
    Path("s.toml").write_text(SCHEMA.format(votes=votes))
    arguments = ["net.onnx", "--schema", "s.toml", "--data", "people.csv"]
    code, out, err = feta_("predict", *arguments, "--vote-weights", "others.csv")
    return code, decisions(out), " ".join(err.split())


def test_vote_weights_are_those_of_the_vote_in_the_schema(files: Model, feta_: Run) -> None:
    others, people = encoded("others.csv"), encoded("people.csv")
    exact = VoteWeights.from_people(SPACE, others)
    code, found, _ = weighted(files, feta_, "")
    majority = FairPredictor(files, weights=exact).decide(people).tolist()
    assert (code, found) == (0, majority)
    text = '[votes]\nvote = "mean_score"\nlevel = "threshold"\nleast = {}\n'
    merged = VoteWeights.from_people(SPACE, others, least=12)
    for least, weights in ((1, exact), (12, merged)):
        code, found, _ = weighted(files, feta_, text.format(least))
        predictor = FairPredictor(files, vote="mean_score", weights=weights)
        assert (code, found) == (0, predictor.decide(people).tolist())
    assert len(merged.votes) < len(exact.votes)
    code, found, _ = weighted(files, feta_, '[votes]\nvote = "majority"\nleast = 1\n')
    assert (code, found) == (0, majority)


def test_vote_weights_that_contradict_the_schema_are_refused(files: Model, feta_: Run) -> None:
    code, _, err = weighted(files, feta_, '[votes]\nweights = "equal"\n')
    assert code == 2
    assert 'two settings of weights: got --vote-weights, and weights = "equal" in [votes]' in err
    for section, which in (("", "the default"), ('level = "keep"\n', "stated there")):
        code, _, err = weighted(files, feta_, f'[votes]\nvote = "mean_score"\n{section}')
        assert code == 2
        assert f'got --vote-weights, and level = "keep" ({which}) in [votes]' in err
        assert "use --votes-from" in err
    arguments = ["net.onnx", "--schema", "s.toml", "--data", "people.csv", "--out", "audit"]
    code, _, err = feta_("audit", *arguments, "--vote-weights", "others.csv")
    assert code == 2
    assert "use a file of feta export --votes-from" in " ".join(err.split())


def test_people_outside_the_limits_are_in_the_fit(files: Model, feta_: Run) -> None:
    rows = Path("others.csv").read_text().splitlines()
    rows += ["20,female,75", "21,male,90", "22,male,-3"]
    Path("wider.csv").write_text("\n".join(rows) + "\n")
    arguments = ["--data", "people.csv", "--votes-from", "wider.csv"]
    code, out, err = feta_("predict", "model.feta", *arguments)
    assert code == 0
    assert "2 people have income above the schema's maximum 60: the votes are fitted to" in err
    assert "1 person has income below the schema's minimum 0: the votes are fitted to" in err
    assert "votes fitted to 203 people of wider.csv" in err
    wide = [{"age": 20, "sex": "female", "income": 75}, {"age": 21, "sex": "male", "income": 90},
            {"age": 22, "sex": "male", "income": -3}]  # fmt: skip
    people = np.concatenate([encoded("others.csv"), SPACE.encode(wide, limits="open")])
    with pytest.warns(UserWarning, match="the votes are fitted to") as warned:
        predictor = FairPredictor.fitted(files, people)
    assert len(warned) == 2
    assert decisions(out) == predictor.decide(encoded("people.csv")).tolist()
    # A strict column, or a sensitive one, still refuses.
    Path("wider.csv").write_text("\n".join([*rows, "99,male,3"]) + "\n")
    code, _, err = feta_("predict", "model.feta", *arguments)
    assert code == 2
    assert "'age' is invalid: got '99'" in err
