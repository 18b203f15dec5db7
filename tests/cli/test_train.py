import json
import re
import signal
import subprocess
import sys
import time
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

from feta import read_onnx, read_schema
from feta.readers.onnx.runtime import onnx_scores
from tests.cli.commands import Done, run, run_process
from tests.extras import needs
from tests.unit.train.people import LABELS, PEOPLE, RECORDS

SCHEMA = """
[decision]
favorable = "yes"
unfavorable = "no"
threshold = 0.5
[columns]
age = { type = "integer", min = 18, max = 30, sensitive = true }
sex = { type = "category", values = ["female", "male"], sensitive = true }
income = { type = "number", min = 0, max = 100, center = 50.0, scale = 30.0 }
"""
QUICK = ("--plain-epochs", "10", "--epochs", "3", "--batch-size", "32", "--hidden", "6")


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    table = pd.DataFrame(RECORDS).assign(loan=np.where(LABELS, "yes", "no"), id=range(160))
    table.to_csv(tmp_path / "people.csv", index=False)
    (tmp_path / "schema.toml").write_text(SCHEMA)
    return tmp_path


def train(folder: Path, *options: str, label: str = "loan", separate: bool = False) -> Done:
    """Train, optionally in a process of its own, which has its own number of threads."""
    files = ("people.csv", "--schema", "schema.toml", "--label", label)
    start = run_process if separate else run
    return start("train", *files, *QUICK, *options, cwd=folder)


@needs("torch")
def test_a_model_and_its_curve_are_written_and_fit_the_schema(folder: Path) -> None:
    done = train(folder)
    assert (done.returncode, done.stderr.splitlines()) == (
        0,
        ["note: 1 column is not in the schema and ignored: id"],
    ), done
    assert "people with a counterexample:" in done.stdout
    names = sorted(path.name for path in folder.iterdir())
    assert names == ["model.json", "model.onnx", "model.svg", "people.csv", "schema.toml"]
    schema = read_schema(folder / "schema.toml")
    model = schema.model(read_onnx(folder / "model.onnx"))
    assert np.mean(model.decide(PEOPLE) == LABELS) > 0.7
    replay = onnx_scores(folder / "model.onnx")
    assert replay is not None
    scaled = (PEOPLE - np.array(schema.centers)) / np.array(schema.scales)
    chances = 1 / (1 + np.exp(-model.score(PEOPLE)))  # the schema's threshold is a probability
    assert np.allclose(replay(scaled)[:, 0], chances, rtol=1e-9, atol=1e-9)
    curve = json.loads((folder / "model.json").read_text())
    assert len(curve["epochs"]) == 3
    assert run(
        "audit", "model.onnx", "--schema", "schema.toml", "--data", "people.csv", cwd=folder
    ).returncode in (0, 1)


@needs("torch")
def test_a_killed_training_resumes_to_the_same_bytes(folder: Path) -> None:
    options = ("--epochs", "1000")  # three seconds, long enough to be interrupted
    assert train(folder, *options, "--out", "whole.onnx", separate=True).returncode == 0
    arguments = [
        "train",
        "people.csv",
        "--schema",
        "schema.toml",
        "--label",
        "loan",
        *QUICK,
        *options,
    ]
    checkpoint = folder / "model.checkpoint"
    command = [sys.executable, "-m", "feta", *arguments]
    process = subprocess.Popen(
        command,
        cwd=folder,
        stderr=subprocess.PIPE,
        text=True,
        # A shell starts a background job with the signal ignored, which its children would inherit.
        preexec_fn=lambda: signal.signal(signal.SIGINT, signal.SIG_DFL),  # noqa: PLW1509 - no threads here
    )
    while not checkpoint.exists() and process.poll() is None:
        time.sleep(0.01)
    process.send_signal(signal.SIGINT)
    messages = process.communicate()[1]
    assert process.returncode == 130
    assert "feta: interrupted; the same command resumes the training" in messages
    resumed = subprocess.Popen(command, cwd=folder)
    time.sleep(2)  # killed at any epoch
    resumed.kill()
    resumed.communicate()
    assert train(folder, *options, separate=True).returncode == 0
    assert (folder / "model.onnx").read_bytes() == (folder / "whole.onnx").read_bytes()
    assert not checkpoint.exists()
    done = train(folder, "--out", "c.onnx", "--start", "model.onnx", "--span", "0.1", "--json")
    content = json.loads(done.stdout)
    assert content["model"] == "c.onnx"
    assert content["ce_rate"][1] <= content["ce_rate"][0]


@pytest.mark.parametrize(
    ("options", "label", "message"),
    [
        (("--out", "model.pt"), "loan", "model.pt: unknown file type: got .*; expected .onnx"),
        ((), "sex", "invalid label: got 'sex', a column that the network reads"),
        ((), "lone", "the table must have the column 'lone'.* did you mean 'loan'"),
        ((), "id", "people.csv, row 3: invalid label 'id': got '2'; expected 'yes', 'no', 1 or 0"),
        (("--hidden", "a"), "loan", "invalid --hidden: got 'a'; expected integers, such as 16,16"),
        (
            ("--keep", "none"),
            "loan",
            "invalid keep: got 'none'; expected 'all', 'counterexamples' or a",
        ),
        (("--epochs", "0"), "loan", "invalid epochs: got 0; expected an integer above 0"),
    ],
)
def test_invalid_training_options_are_reported(
    folder: Path, options: tuple[str, ...], label: str, message: str
) -> None:
    done = train(folder, *options, label=label)
    assert done.returncode == 2
    assert re.search(message, done.stderr), done.stderr


@pytest.mark.parametrize(
    ("decision", "message"),
    [
        (
            "score = 3.5",
            r"training returns log-odds: got score = 3.5 in \[decision\]; expected a prob",
        ),
        ('classes = ["yes", "no"]\none_vs_rest = "yes"', "remove one_vs_rest from"),
    ],
)
def test_rules_that_cannot_be_trained_are_reported(
    folder: Path, decision: str, message: str
) -> None:
    body = SCHEMA.split("[columns]")[1]
    (folder / "schema.toml").write_text(f"[decision]\n{decision}\n[columns]{body}")
    done = train(folder)
    assert done.returncode == 2
    assert re.search(message, done.stderr), done.stderr
