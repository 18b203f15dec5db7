"""`feta init` asks in a terminal, and its flags answer in scripts."""

import os
import select
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest

import feta
from feta.cli.init_conversation import parse_columns, suggest_other, suggest_sensitive
from feta.io.schema_file import Decision
from tests.cli.commands import run

joblib = pytest.importorskip("joblib")
pytest.importorskip("termios", reason="this system has no pseudo-terminals")

import pty

from sklearn.compose import make_column_transformer
from sklearn.linear_model import LinearRegression, LogisticRegression
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import OneHotEncoder, StandardScaler

RNG = np.random.default_rng(5)
PEOPLE = pd.DataFrame(
    {
        "id": [f"p{n}" for n in range(60)],
        "age": RNG.integers(18, 60, 60),
        "sex": RNG.choice(["f", "m"], 60),
        "months": [-1, *RNG.integers(1, 40, 59)],
    }
)
PEOPLE["decision"] = np.where(PEOPLE.age + PEOPLE.months > 55, "approved", "refused")
READ = ["age", "sex", "months"]
FILES = ("init", "model.joblib", "people.csv", "--trust-pickle")

# Only against hanging.
PATIENCE = 300


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    columns = make_column_transformer(
        (StandardScaler(), ["age", "months"]), (OneHotEncoder(), ["sex"])
    )
    pipeline = make_pipeline(columns, LogisticRegression()).fit(PEOPLE[READ], PEOPLE.decision)
    joblib.dump(pipeline, tmp_path / "model.joblib")
    PEOPLE.to_csv(tmp_path / "people.csv", index=False)
    return tmp_path


def talk(
    folder: Path, *dialog: tuple[str, str], arguments: tuple[str, ...] = FILES
) -> tuple[int, str]:
    """Run the command in a pseudo-terminal; type each answer after its question appeared."""
    ours, theirs = pty.openpty()
    process = subprocess.Popen(
        [sys.executable, "-m", "feta", *arguments],
        cwd=folder, stdin=theirs, stdout=theirs, stderr=theirs, start_new_session=True,
        env=os.environ | {"COLUMNS": "200", "TERM": "dumb"},
    )  # fmt: skip
    os.close(theirs)
    seen = ""
    try:
        for question, answer in dialog:
            while question not in seen:
                piece = read(ours)
                assert piece, f"no {question!r} in {seen}"
                seen += piece
            rest = seen.partition(question)[2]
            os.write(ours, f"{answer}\n".encode())
            seen = rest
        while piece := read(ours):
            seen += piece
        return process.wait(PATIENCE), seen.replace("\r\n", "\n")
    finally:
        process.kill()
        process.wait()
        os.close(ours)


def read(terminal: int) -> str:
    """Return what appears next; empty at the end."""
    ready, _, _ = select.select([terminal], [], [], PATIENCE)
    assert ready, "the command waits for an answer"
    try:
        return os.read(terminal, 65536).decode("utf-8", errors="replace")
    except OSError:  # Linux reports the end of a terminal so
        return ""


def test_a_conversation_writes_the_schema_that_flags_write(folder: Path) -> None:
    code, shown = talk(
        folder,
        ("Sensitive columns (names or numbers, with commas) [age,sex]:", ""),
        ("Which outcome is favorable for a person?:", "approved"),
        ("Write the schema anyway? [yes]:", ""),
    )
    assert code == 0, shown
    flags = ("--sensitive", "age,sex", "--favorable", "approved", "--out", "flags.toml")
    assert run(*FILES, *flags, cwd=folder).returncode == 0
    text = (folder / "schema.toml").read_text(encoding="utf-8")
    assert text == (folder / "flags.toml").read_text(encoding="utf-8")
    assert "# 'months' has the minimum -1, which looks impossible" in text
    assert "A guess" not in text
    schema = feta.read_schema(folder / "schema.toml")
    assert schema.decision == Decision("approved", "refused", probability=0.5, favors="below")
    assert [attribute.name for attribute in schema.space.sensitive] == ["age", "sex"]


def test_wrong_answers_are_asked_once_more(folder: Path) -> None:
    code, shown = talk(
        folder,
        ("[age,sex]:", "agee"),
        ("did you mean 'age'?", ""),  # Enter would accept the suggestion; the next answer wins
        ("Which outcome is favorable for a person?:", "maybe"),
        ("Not a choice: 'maybe'; expected one of approved, refused", "2"),
        ("Write the schema anyway? [yes]:", "no"),
    )
    assert code == 0, shown
    assert "nothing was written" in shown
    assert not (folder / "schema.toml").exists()


def test_an_interruption_writes_nothing(folder: Path) -> None:
    code, shown = talk(folder, ("[age,sex]:", "\x04"))
    assert (code, (folder / "schema.toml").exists()) == (130, False), shown


def test_an_existing_schema_is_refused_before_any_question(folder: Path) -> None:
    (folder / "schema.toml").write_text("", encoding="utf-8")
    code, shown = talk(folder)
    assert code == 2
    assert "exists already" in shown
    assert "Sensitive columns" not in shown


def test_a_network_is_asked_for_names_and_columns(tmp_path: Path) -> None:
    numbers = PEOPLE[["id", "age", "months"]].assign(label=1)
    numbers.to_csv(tmp_path / "people.csv", index=False)
    arrays: dict[str, Any] = {"a.weight": np.ones((1, 2)), "a.bias": np.zeros(1)}
    np.savez(tmp_path / "net.npz", **arrays)
    code, shown = talk(
        tmp_path,
        ("Sensitive columns (names or numbers, with commas) [age]:", "2"),
        ("Columns that the model does not read (names or numbers, with commas) [id,label]:", ""),
        ("Name of the favorable outcome [favorable]:", "yes"),
        ("Name of the other outcome [unfavorable]:", "no"),
        ("Which scores mean 'yes'? [high]:", "low"),
        ("Write the schema anyway? [yes]:", ""),
        arguments=("init", "net.npz", "people.csv", "--layers", "a"),
    )
    assert code == 0, shown
    schema = feta.read_schema(tmp_path / "schema.toml")
    assert schema.decision == Decision("yes", "no", score=0.0, favors="below")
    assert [attribute.name for attribute in schema.space.attributes] == ["age", "months"]


@pytest.mark.parametrize(
    ("flags", "message"),
    [
        (
            ("--favorable", "approve"),
            "invalid --favorable: got 'approve'; expected one of 'approved', 'refused'",
        ),
        (("--favors", "below"), "the favorable class is not named: got no --favorable"),
        (
            ("--favorable", "approved", "--unfavorable", "denied"),
            "invalid --unfavorable: got 'denied'",
        ),
        (
            ("--favorable", "approved", "--favors", "above"),
            "invalid --favors: got 'above'; expected 'below', because 'approved' is",
        ),
        (("--tolerance", "3"), "the model predicts classes: got --tolerance"),
        (
            ("--tolerance", "3", "--favorable", "approved"),
            "a tolerance has no favorable outcome: got --tolerance with --favorable",
        ),
    ],
)
def test_flags_that_contradict_the_model_are_refused(
    folder: Path, flags: tuple[str, ...], message: str
) -> None:
    done = run(*FILES, "--sensitive", "age", *flags, cwd=folder)
    assert done.returncode == 2
    assert message in done.stderr
    assert not (folder / "schema.toml").exists()


def test_a_regression_has_a_tolerance_but_no_favorable_outcome(folder: Path) -> None:
    pipeline = make_pipeline(StandardScaler(), LinearRegression())
    joblib.dump(pipeline.fit(PEOPLE[["age", "months"]], PEOPLE.age * 2.0), folder / "model.joblib")
    names = ("--sensitive", "age")
    assert run(*FILES, *names, "--tolerance", "2.5", cwd=folder).returncode == 0
    assert feta.read_schema(folder / "schema.toml").decision == Decision(tolerance=2.5)
    done = run(*FILES, *names, "--favorable", "x", "--out", "other.toml", cwd=folder)
    assert "no outcome of two is favorable" in done.stderr


def test_without_a_terminal_the_flag_is_required(folder: Path) -> None:
    done = run(*FILES, cwd=folder)
    assert done.returncode == 2
    assert "add --sensitive a,b, or run this in a terminal" in done.stderr


def test_suggestions_follow_the_words_of_names() -> None:
    sensitive = ["Age", "personal_status", "dateOfBirth", "foreign_worker", "native-country"]
    other = ["customer_id", "loan_decision", "y"]
    neither = ["status", "wage", "average", "color", "essex"]
    assert suggest_sensitive([*sensitive, *other, *neither]) == sensitive
    assert suggest_other([*sensitive, *other, *neither]) == other


def test_answers_name_columns_by_name_or_number() -> None:
    names = ["age", "1", "a,b"]
    assert parse_columns("3, age,age", names) == (["a,b", "age"], [])
    assert parse_columns("1", names) == (["1"], [])  # a name wins over a number
    assert parse_columns("a,b", names) == (["a,b"], [])
    assert parse_columns("none", names) == ([], [])
    assert parse_columns("4,sex", names) == ([], ["4", "sex"])
