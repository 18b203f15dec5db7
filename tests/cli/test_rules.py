"""Several classes and regression on the command line, in separate processes."""

import csv
import json
from pathlib import Path

import numpy as np
import pytest
from onnx import helper

import feta
from tests.bad_files import graph_model, stored
from tests.cli.commands import rows_of, run
from tests.extras import needs

COLUMNS = """
[columns]
age = { type = "integer", min = 18, max = 30, sensitive = true }
sex = { type = "category", values = ["female", "male"], sensitive = true }
income = { type = "number", min = 0, max = 100, center = 50.0, scale = 10.0 }
"""
CLASSES = ["basic", "silver", "gold"]
PEOPLE = [(20, "female", 50.0), (30, "male", 90.0), (25, "male", 10.0), (18, "female", 65.0)]
# Weights of age, female, male and scaled income, for three scores and for one.
THREE_SCORES = np.array([[-0.1, 0.0, 0.0, -1.0], [0.0, 0.1, 0.2, 0.0], [0.05, -0.5, 0.5, 0.75]])
ONE_SCORE = np.array([[10.0, 0.0, 120.0, 250.0]])


def linear(weight: np.ndarray, bias: list[float], *, softmax: bool) -> bytes:
    nodes = [helper.make_node("Gemm", ["x", "W", "b"], ["s"], transB=1)]
    nodes.append(helper.make_node("Softmax" if softmax else "Identity", ["s"], ["y"]))
    return graph_model(
        nodes, [stored("W", weight), stored("b", np.array(bias))]
    ).SerializeToString()


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    classes = f"[decision]\nclasses = {json.dumps(CLASSES)}\n"
    (tmp_path / "classes.toml").write_text(classes + COLUMNS)
    regression = '[decision]\ntolerance = 100.0\nunit = "EUR {0}"\n'
    (tmp_path / "limit.toml").write_text(regression + COLUMNS)
    (tmp_path / "classes.onnx").write_bytes(linear(THREE_SCORES, [1.9, -0.1, -1.0], softmax=True))
    (tmp_path / "limit.onnx").write_bytes(linear(ONE_SCORE, [1000.0], softmax=False))
    with (tmp_path / "data.csv").open("w", newline="") as file:
        writer = csv.writer(file)
        writer.writerow(["age", "sex", "income", "tier", "limit"])
        for row, person in enumerate(PEOPLE):
            writer.writerow([*person, CLASSES[row % 3], 1000 + 100 * row])
    return tmp_path


def command(folder: Path, name: str, kind: str, *options: str) -> list[str]:
    files = [str(folder / f"{kind}.onnx"), "--schema", str(folder / f"{kind}.toml")]
    return [name, *files, "--data", str(folder / "data.csv"), *options]


def model_of(folder: Path, kind: str) -> feta.Model:
    network = feta.read_onnx(folder / f"{kind}.onnx")
    return feta.read_schema(folder / f"{kind}.toml").model(network)


def raw_people(folder: Path) -> list[dict[str, object]]:
    rows = rows_of(folder / "data.csv")
    return [
        {"age": int(row["age"]), "sex": row["sex"], "income": float(row["income"])} for row in rows
    ]


@needs("onnxruntime")
def test_several_classes_are_audited_by_name(folder: Path) -> None:
    out = folder / "out"
    done = run(*command(folder, "audit", "classes", "--label", "tier", "--out", str(out)))
    assert done.returncode == 1, done.stderr
    assert "%) has a counterpart with a different class." in done.stdout
    assert "margin of the other class" in done.stdout
    assert "Accuracy: " in done.stdout
    model = model_of(folder, "classes")
    people = model.space.encode(raw_people(folder))
    verdicts, pairs = rows_of(out / "verdicts.csv"), rows_of(out / "pairs.csv")
    assert [row["decision"] for row in verdicts] == [
        CLASSES[decision] for decision in model.decide(people)
    ]
    fair = feta.FairPredictor(model).decide(people)
    assert [row["fair decision"] for row in verdicts] == [CLASSES[decision] for decision in fair]
    assert len(pairs) == sum(row["verdict"] == "unfair" for row in verdicts) > 0
    for pair in pairs:
        assert {pair["decision"], pair["counterpart decision"]} < set(CLASSES)
        assert pair["replayed"] == "yes"
        assert float(pair["score"]) <= 0 < float(pair["counterpart score"])
        assert float(pair["gap"]) == pytest.approx(float(pair["counterpart score"]))
    content = json.loads((out / "audit.json").read_text())
    assert (content["model"]["outcomes"], content["model"]["rule"]) == (CLASSES, "Argmax")
    assert (content["summary"]["mean_span"], content["summary"]["max_span"]) == (None, None)
    assert np.shape(content["clearest_pairs"][0]["scores"]) == (2, 3)
    assert set(content["clearest_pairs"][0]["decisions"]) < set(CLASSES)


def test_one_class_is_audited_against_the_rest(folder: Path) -> None:
    arguments = command(folder, "audit", "classes", "--one-vs-rest", "gold", "--label", "tier")
    done = run(*arguments)
    assert done.returncode == 1, done.stderr
    assert "margin of gold" in done.stdout
    assert "not gold" in done.stdout
    predicted = run(*command(folder, "predict", "classes", "--one-vs-rest", "gold", "--json"))
    decisions = {json.loads(line)["decision"] for line in predicted.stdout.splitlines()}
    assert decisions == {"gold", "not gold"}


def test_fair_classes_are_predicted_without_the_sensitive_columns(folder: Path) -> None:
    rows = raw_people(folder)
    text = "income\n" + "".join(f"{row['income']}\n" for row in rows)
    (folder / "data.csv").write_text(text)
    done = run(*command(folder, "predict", "classes"))
    assert (done.returncode, done.stderr) == (0, "")
    model = model_of(folder, "classes")
    fair = feta.FairPredictor(model).decide(model.space.encode(rows))
    lines = [f'{row},"{CLASSES[decision]}"' for row, decision in enumerate(fair, start=1)]
    assert done.stdout.split() == ['"row","decision"', *lines]


@needs("onnxruntime")
def test_a_regression_is_audited_by_its_tolerance(folder: Path) -> None:
    out = folder / "out"
    done = run(*command(folder, "audit", "limit", "--label", "limit", "--out", str(out)))
    assert done.returncode == 1, done.stderr
    sentence = "have two counterparts whose scores differ by more than 100 EUR {0}."
    assert sentence in done.stdout
    assert (
        "The scores of a person's counterparts span 240 EUR {0} on average, 240 EUR {0} at most."
        in done.stdout
    )
    assert "of the scores by more than 100 EUR {0}." in done.stdout
    assert "Mean absolute error: " in done.stdout
    assert "Accuracy" not in done.stdout
    assert "decision" not in done.stdout.split("Selected counterexamples")[1].splitlines()[1]
    model = model_of(folder, "limit")
    people = model.space.encode(raw_people(folder))
    verdicts, pairs = rows_of(out / "verdicts.csv"), rows_of(out / "pairs.csv")
    scores, fair = model.score(people), feta.FairPredictor(model).decide(people)
    assert [float(row["decision"]) for row in verdicts] == scores.tolist()
    assert [float(row["fair decision"]) for row in verdicts] == fair.tolist()
    for pair in pairs:
        gap = float(pair["higher score"]) - float(pair["lower score"])
        assert float(pair["gap"]) == gap > 100
        assert (pair["decision"], pair["replayed"]) == ("", "yes")
    figures = json.loads((out / "audit.json").read_text())["summary"]
    labels = 1000 + 100 * np.arange(4)
    assert figures["mean_absolute_error"] == pytest.approx(np.abs(scores - labels).mean())
    assert figures["fair_mean_absolute_error"] == pytest.approx(np.abs(fair - labels).mean())
    assert figures["flip_rate"] == np.mean(np.abs(scores - fair) > 100)
    assert (figures["max_span"], figures["accuracy"]) == (240.0, None)


def test_a_wide_tolerance_proves_everybody_fair(folder: Path) -> None:
    schema = (folder / "limit.toml").read_text().replace("100.0", "240.0", 1)
    (folder / "limit.toml").write_text(schema)
    done = run(*command(folder, "audit", "limit"))
    assert done.returncode == 0, done.stderr
    sentence = (
        "Fair: each of the 4 people provably gets the same score to within 240 "
        "EUR {0}, whatever their age or sex."
    )
    assert sentence in done.stdout
    undecided = run(*command(folder, "audit", "limit", "--seconds", "0", "--engine", "exhaustive"))
    assert (undecided.returncode, "4 people are undecided" in undecided.stdout) == (3, True)


def test_fair_scores_are_predicted(folder: Path) -> None:
    model = model_of(folder, "limit")
    fair = feta.FairPredictor(model).decide(model.space.encode(raw_people(folder))).tolist()
    done = run(*command(folder, "predict", "limit"))
    assert done.returncode == 0, done.stderr
    rows = list(csv.DictReader(done.stdout.splitlines()))
    assert [float(row["score"]) for row in rows] == fair
    lines = run(*command(folder, "predict", "limit", "--json")).stdout.splitlines()
    assert [json.loads(line)["score"] for line in lines] == fair
    undecided = run(
        *command(folder, "predict", "limit", "--seconds", "0", "--engine", "exhaustive")
    )
    assert (undecided.returncode, undecided.stdout.count("undecided")) == (3, 4)


def test_vote_weights_are_read_from_a_table(folder: Path) -> None:
    voters = folder / "voters.csv"
    voters.write_text("sex,age\nmale,30\nfemale,18\nmale,30\n")
    weights = ["--vote-weights", str(voters)]
    expected: list[object] = []
    for kind in ("classes", "limit"):
        model = model_of(folder, kind)
        rows = raw_people(folder)
        eldest = model.space.encode([row | {"age": 30, "sex": "male"} for row in rows])
        answers_of_voters = model.score(eldest) if kind == "limit" else model.decide(eldest)
        expected = (
            answers_of_voters.tolist()
            if kind == "limit"
            else [CLASSES[decision] for decision in answers_of_voters]
        )
        done = run(*command(folder, "predict", kind, *weights))
        assert done.returncode == 0, done.stderr
        answers = [list(row.values())[1] for row in csv.DictReader(done.stdout.splitlines())]
        assert (list(map(float, answers)) if kind == "limit" else answers) == expected
    out = folder / "out"
    done = run(*command(folder, "audit", "limit", *weights, "--out", str(out)))
    assert done.returncode == 1, done.stderr
    content = json.loads((out / "audit.json").read_text())
    assert (content["vote_weights"], content["summary"]["max_span"]) == ("voters.csv", 240.0)
    assert [float(row["fair decision"]) for row in rows_of(out / "verdicts.csv")] == expected


@pytest.mark.parametrize(
    ("kind", "options", "message"),
    [
        (
            "classes",
            ["--one-vs-rest", "Gold"],
            "unknown class: got 'Gold'; expected one of 'basic', 'silver', 'gold'; "
            "did you mean 'gold'?",
        ),
        (
            "limit",
            ["--one-vs-rest", "gold"],
            "limit.toml: --one-vs-rest needs several classes: got Tolerance",
        ),
        (
            "classes",
            ["--label", "limit"],
            "row 1: invalid label 'limit': got '1000'; expected one of 'basic', 'silver', 'gold'",
        ),
        (
            "limit",
            ["--label", "tier"],
            "row 1: invalid label 'tier': got 'basic'; expected a finite number",
        ),
        (
            "limit",
            ["--vote-weights", "nobody.csv"],
            "nobody.csv: no rows: expected at least one row below the header",
        ),
        (
            "limit",
            ["--vote-weights", "broken.csv"],
            "broken.csv, row 2: 'age' is invalid: got '17'; expected an integer from 18 to 30",
        ),
        ("limit", ["--vote-weights", "short.csv"], "the table must have the column 'sex'"),
    ],
)
def test_options_that_do_not_fit_the_rule_are_refused_in_one_line(
    folder: Path, kind: str, options: list[str], message: str
) -> None:
    (folder / "nobody.csv").write_text("age,sex\n")
    (folder / "broken.csv").write_text("age,sex\n18,male\n17,male\n")
    (folder / "short.csv").write_text("age\n18\n")
    done = run(*command(folder, "audit", kind, *options), cwd=folder)
    assert (done.returncode, done.stdout) == (2, "")
    assert message in done.stderr
    assert done.stderr.splitlines()[-1].startswith("feta: ")


def test_a_network_with_several_outputs_needs_class_names_which_init_lists(folder: Path) -> None:
    plain = '[decision]\nfavorable = "yes"\n' + COLUMNS
    (folder / "classes.toml").write_text(plain)
    done = run(*command(folder, "audit", "classes"))
    assert done.returncode == 2
    assert "classes.toml: the network has 3 outputs, but [decision] lists no classes" in done.stderr
    out = folder / "guessed.toml"
    files = [str(folder / "classes.onnx"), str(folder / "data.csv")]
    names = ["--sensitive", "age,sex", "--leave-out", "tier,limit", "--out", str(out)]
    init = run("init", *files, *names)
    assert init.returncode == 0, init.stderr
    assert "[decision] must name the classes, in the order of the network's outputs." in init.stderr
    assert feta.read_schema(out).rule == feta.Argmax(("class 0", "class 1", "class 2"))


@pytest.mark.parametrize("kind", ["classes", "limit"])
def test_a_saved_model_keeps_its_rule(folder: Path, kind: str) -> None:
    feta.save_model(model_of(folder, kind), folder / "model.feta")
    done = run("predict", str(folder / "model.feta"), "--data", str(folder / "data.csv"))
    assert done.returncode == 0, done.stderr
    assert done.stdout == run(*command(folder, "predict", kind)).stdout


def test_init_refuses_more_classes_than_a_rule_can_have(folder: Path) -> None:
    model = linear(np.ones((128, 4)), [0.0] * 128, softmax=False)
    (folder / "classes.onnx").write_bytes(model)
    out = folder / "guessed.toml"
    files = [str(folder / "classes.onnx"), str(folder / "data.csv")]
    done = run("init", *files, "--sensitive", "age", "--out", str(out))
    assert (done.returncode, out.exists()) == (2, False)
    assert "too many classes: got 128; expected at most 127" in done.stderr


def test_a_tolerance_of_the_first_release_is_another_query(folder: Path) -> None:
    """It compared each counterpart with the person, and audit.json did not state that."""
    for out in ("old", "new"):
        run(*command(folder, "audit", "limit", "--out", str(folder / out)))
    content = json.loads((folder / "old" / "audit.json").read_text())
    assert content["model"]["tolerance_compares"] == "span"
    same = run("diff", str(folder / "old"), str(folder / "new"))
    assert same.returncode == 0, same.stdout
    del content["model"]["tolerance_compares"]
    (folder / "old" / "audit.json").write_text(json.dumps(content))
    other = run("diff", str(folder / "old"), str(folder / "new"))
    assert other.returncode == 3, other.stdout
    assert "what a tolerance compares" in other.stdout
