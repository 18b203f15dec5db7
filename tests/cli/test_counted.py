"""Functions that are counted on the command line: good ones, bad ones, and what is kept."""

import json
import os
import re
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.cli.commands import rows_of, run, run_process

Run = Callable[..., tuple[int, str, str]]

# As many functions as there are ways to fail; all begin with the same imports and scores.
SCORING = """
import os, pathlib, time
import numpy as np

def score(frame):
    male = (frame["sex"] == "male").to_numpy() * 4.0
    return (frame["income"] + (frame["age"] - 18) * 0.75 - 20).to_numpy() + male

def good(frame):
    return np.where(score(frame) > 0, "yes", "no")

def probability(frame):
    return 1 / (1 + np.exp(-score(frame)))

def printing(frame):
    print("a message of the model")
    return good(frame)

def random(frame):
    return np.where(np.random.random(len(frame)) < 0.5, "yes", "no")

def batch(frame):
    scores = score(frame)
    return np.where(scores > scores.mean(), "yes", "no")

def raises(frame):
    if (frame["age"] == 25).any():
        raise KeyError("no table for age 25")
    return good(frame)

def nan(frame):
    return np.where(frame["age"] == 25, np.nan, probability(frame))

def hangs(frame):
    if os.path.exists("hang") and len(frame) > 2 and (frame["income"] == 33).all():
        time.sleep(600)
    return good(frame)

def flickers(frame):
    if os.path.exists("flicker") and len(frame) > 2 and (frame["income"] == 33).all():
        return random(frame)
    return good(frame)

def fails(frame):
    raise ConnectionError("no route to the model")

def lost(frame):
    return np.full(len(frame), np.nan)

def slow(frame):
    pathlib.Path("started").touch()
    if pathlib.Path("be slow").exists():
        time.sleep(0.03)
    return good(frame)

seed = time.time_ns()
def imported(frame):
    return score(frame) + seed % 1000
"""

SCHEMA = """
[decision]
favorable = "yes"
unfavorable = "no"
threshold = 0.5
[columns]
age = { type = "integer", min = 18, max = 27, sensitive = true }
sex = { type = "category", values = ["female", "male"], sensitive = true }
income = { type = "integer", min = 0, max = 60 }
"""

# The third and the last person have no counterexample; income 33 is the last one.
PEOPLE = [(18, "male", 12), (20, "female", 14), (25, "male", 2), (22, "female", 33)]
FILES = ["--schema", "schema.toml", "--data", "people.csv", "--out", "out"]


def decisions(age: int, sex: str, income: int) -> list[bool]:
    """Decide every counterpart with the formula itself."""
    del age, sex
    return [
        income + (age - 18) * 0.75 - 20 + (4.0 if sex == "male" else 0.0) > 0
        for age in range(18, 28)
        for sex in ("female", "male")
    ]


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, forgotten_imports: None) -> Path:
    """Return a folder with functions, a schema and people; modules are forgotten afterwards."""
    del forgotten_imports
    monkeypatch.chdir(tmp_path)
    (tmp_path / "scoring.py").write_text(SCORING)
    (tmp_path / "schema.toml").write_text(SCHEMA)
    rows = [f"{age},{sex},{income}" for age, sex, income in PEOPLE]
    (tmp_path / "people.csv").write_text("\n".join(["age,sex,income", *rows]) + "\n")
    return tmp_path


def statuses(folder: Path) -> list[str]:
    return [row["verdict"] for row in rows_of(folder / "out" / "verdicts.csv")]


def expected_statuses() -> list[str]:
    return ["fair" if len(set(decisions(*person))) == 1 else "unfair" for person in PEOPLE]


@pytest.mark.parametrize("function", ["good", "probability"])
def test_a_function_is_counted(folder: Path, feta_: Run, function: str) -> None:
    code, out, err = feta_("audit", "--predict", f"scoring:{function}", *FILES)
    assert code == 1
    assert statuses(folder) == expected_statuses()
    assert f"scoring:{function} is counted: every counterpart is evaluated by the function" in err
    assert "will evaluate about 160 rows, repetitions included: 4 different people" in err
    assert re.search(r"; reading it took [1-9][0-9,]* rows before", " ".join(err.split()))
    assert "Counted: fair means that the function" in " ".join(out.split())
    rows = rows_of(folder / "out" / "verdicts.csv")
    assert {row["provenance"] for row in rows} == {"counted"}
    gaps = [row["gap"] for row in rows if row["verdict"] == "unfair"]
    assert all(bool(gap) == (function == "probability") for gap in gaps)  # labels have none
    content = json.loads((folder / "out" / "audit.json").read_text())
    assert (content["provenance"], content["stopped"], content["partial"]) == ("counted", "", False)
    page = (folder / "out" / "report.html").read_text()
    assert "counted as fair" in page
    assert "proved fair" not in page
    assert "The proof is about" not in page
    assert not (folder / "out" / "journal.sqlite").exists()


@pytest.mark.usefixtures("folder")
def test_what_a_function_prints_does_not_reach_standard_output(feta_: Run) -> None:
    code, out, err = feta_("audit", "--predict", "scoring:printing", *FILES, "--json")
    assert code == 1
    assert json.loads(out)["summary"]["people"] == len(PEOPLE)
    assert "a message of the model" in err


def test_fair_decisions_are_counted(folder: Path, feta_: Run) -> None:
    (folder / "people.csv").write_text(
        "income\n" + "".join(f"{income}\n" for _, _, income in PEOPLE)
    )
    arguments = ["--predict", "scoring:good", "--schema", "schema.toml", "--data", "people.csv"]
    code, out, _ = feta_("predict", *arguments)
    assert code == 0
    majority = [2 * sum(votes) >= len(votes) for votes in (decisions(*one) for one in PEOPLE)]
    assert [line.split(",")[1] for line in out.splitlines()[1:]] == [
        '"yes"' if favorable else '"no"' for favorable in majority
    ]


@pytest.mark.usefixtures("folder")
def test_the_doctor_says_that_a_function_is_counted(feta_: Run) -> None:
    code, out, _ = feta_("doctor", "--predict", "scoring:good", *FILES[:2])
    assert code == 0
    assert "Nothing to compare: all decisions are those of the model itself." in out
    code, out, _ = feta_("doctor", "--predict", "scoring:good", *FILES[:4])
    assert code == 0
    assert "scoring:good can be audited." in out
    assert "Function: the function good; it is evaluated, not read." in out
    assert "Counted: fair means that the function good evaluated every counterpart of" in out
    assert "was evaluated" not in out  # nothing was audited


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["--predict", "scoring"], "invalid function: got 'scoring'; expected module:function"),
        (["--predict", "scorng:good"], "the module 'scorng' does not exist: got no file scorng.py"),
        (["--predict", "scoring:god"], "the function does not exist: got 'god'; expected one of"),
        (["--predict", "scoring:seed"], "scoring:seed is not a function: got int; expected"),
        (["--predict", "broken:f"], "the module 'broken' cannot be imported: got ZeroDivision"),
        (["--predict", "exits:f"], "the module 'exits' cannot be imported: got SystemExit"),
        (
            ["--predict", "scoring:good", "--method", "exact"],
            "a function can only be counted: got --predict and --method exact",
        ),
        (["model.onnx", "--predict", "scoring:good"], "got both of a model file and --predict"),
        ([], "got neither of a model file and --predict"),
        (["--predict", "scoring:score"], "returns no probabilities: got .*; write score = "),
        (["--predict", "scoring:fails"], "the model fails on rows of the sample (Connection.*"),
        (["--predict", "scoring:lost"], "has no answer for any row of a sample: got nan; expected"),
    ],
)
def test_a_name_that_is_no_function_is_explained(
    folder: Path, feta_: Run, arguments: list[str], message: str
) -> None:
    (folder / "broken.py").write_text("1 / 0\n")
    (folder / "exits.py").write_text("raise SystemExit(0)\n")
    code, _, err = feta_("audit", *arguments, *FILES)
    assert code == 2
    words = message.partition(".*")
    assert words[0] in err
    assert words[2] in err
    assert not (folder / "out").exists()


def test_limits_apply_to_a_model_file(folder: Path, feta_: Run) -> None:
    neighbors = pytest.importorskip("sklearn.neighbors")
    import joblib  # noqa: PLC0415 - comes with scikit-learn
    import pandas as pd  # noqa: PLC0415

    rows = [(age, income) for age in range(18, 28) for income in range(0, 60, 4)]
    frame = pd.DataFrame(rows, columns=["age", "income"])
    labels = ["yes" if income + age > 35 else "no" for age, income in rows]
    joblib.dump(neighbors.KNeighborsClassifier(3).fit(frame, labels), folder / "knn.joblib")
    command = ["audit", "knn.joblib", "--trust-pickle", *FILES]
    code, _, _ = feta_(*command, "--max-rows", "1")
    assert code != 1  # nobody can be decided with one row
    code, _, err = feta_(*command, "--method", "labels")
    assert code == 1
    assert "knn.joblib is counted, as --method labels asks" in err
    gaps = [row["gap"] for row in rows_of(folder / "out" / "verdicts.csv")]
    assert set(gaps) == {""}


def test_a_function_that_is_not_deterministic_stops_the_audit(folder: Path) -> None:
    done = run("audit", "--predict", "scoring:random", *FILES, cwd=folder)
    assert done.returncode == 3
    assert "the model is not deterministic: got different answers to the same row" in one_line(done)
    assert "row (age " in done.stdout
    assert "every counterpart was evaluated" not in one_line(done)  # the audit stopped
    assert "the model answered '" in one_line(done)  # labels, not their indicators
    assert set(statuses(folder)) == {"undecided"}
    content = json.loads((folder / "out" / "audit.json").read_text())
    assert content["partial"]
    assert content["stopped"].startswith("the model is not deterministic")
    reason = rows_of(folder / "out" / "verdicts.csv")[0]["reason"]
    assert "the model gave different answers to the same row" in reason
    assert "the model answered" in reason
    page = (folder / "out" / "report.html").read_text()
    assert "Stopped, these are partial results: the model is not deterministic" in page


def test_a_function_that_depends_on_its_batch_stops_the_audit(folder: Path) -> None:
    done = run("audit", "--predict", "scoring:batch", *FILES, cwd=folder)
    assert done.returncode == 3
    assert "independently of the batch" in one_line(done)
    assert set(statuses(folder)) == {"undecided"}


@pytest.mark.parametrize(
    ("function", "problem"),
    [
        ("raises", "the model raised KeyError: 'no table for age 25'"),
        ("nan", "the model answered nan; expected finite numbers"),
    ],
)
def test_a_function_that_fails_on_some_rows_leaves_people_undecided(
    folder: Path, function: str, problem: str
) -> None:
    done = run("audit", "--predict", f"scoring:{function}", *FILES, cwd=folder)
    rows = rows_of(folder / "out" / "verdicts.csv")
    if function == "raises":  # for a row of the table
        assert "No row of the table could be compared with the function raises" in one_line(done)
    # A counterexample among the other ages remains one.
    assert {row["verdict"] for row in rows} <= {"unfair", "undecided"}
    undecided = [row for row in rows if row["verdict"] == "undecided"]
    assert len(undecided) >= expected_statuses().count("fair")
    assert done.returncode == (1 if len(undecided) < len(rows) else 3)
    for row in undecided:
        assert "the model gave no valid answer for some counterparts" in row["reason"]
        assert "row (age 25, " in row["reason"]
        assert problem in row["reason"]


def test_a_function_that_hangs_stops_the_audit_and_a_later_one_resumes(folder: Path) -> None:
    people = [*PEOPLE[:3] * 6, PEOPLE[3]]  # the function hangs on the last person
    rows = [f"{age},{sex},{income}" for age, sex, income in people]
    (folder / "people.csv").write_text("\n".join(["age,sex,income", *rows]) + "\n")
    (folder / "hang").touch()
    command = ["audit", "--predict", "scoring:hangs", *FILES, "--timeout", "2"]
    done = run_process(
        *command, cwd=folder
    )  # it does not wait for the function, which sleeps for 600 s
    assert done.returncode == 3
    assert "the model does not answer: got no answer for 20 rows within 2 s" in one_line(done)
    assert "the first row is (age 18, sex 'female', income 33)" in one_line(done)
    expected = expected_statuses()
    kept = statuses(folder)
    assert 0 < len(kept) < len(people)
    assert kept == (expected[:3] * 6)[: len(kept)]
    assert (folder / "out" / "journal.sqlite").exists()
    (folder / "hang").unlink()
    again = run(*command, cwd=folder)
    assert again.returncode == 1
    assert "resuming with" in again.stderr
    assert statuses(folder) == [*expected[:3] * 6, expected[3]]


def test_a_function_that_becomes_random_keeps_what_is_done_and_a_later_one_resumes(
    folder: Path,
) -> None:
    people = [*PEOPLE[:3] * 6, *PEOPLE[3:4] * 2]  # the answers about the last two are random
    rows = [f"{age},{sex},{income}" for age, sex, income in people]
    (folder / "people.csv").write_text("\n".join(["age,sex,income", *rows]) + "\n")
    (folder / "flicker").touch()
    command = ["audit", "--predict", "scoring:flickers", *FILES]
    done = run(*command, cwd=folder)
    assert done.returncode == 3
    assert "the model is not deterministic: got different answers" in one_line(done)
    expected = expected_statuses()
    kept = [status for status in statuses(folder) if status != "undecided"]
    assert kept
    assert kept == (expected[:3] * 6)[: len(kept)]
    (folder / "flicker").unlink()
    again = run(*command, cwd=folder)
    assert again.returncode == 1
    assert "resuming with" in again.stderr
    assert statuses(folder) == [*expected[:3] * 6, *expected[3:4] * 2]


def test_workers_open_the_function_themselves(folder: Path) -> None:
    command = ["audit", "--predict", "scoring:good", *FILES, "--jobs", "2"]
    done = run(*command, cwd=folder)
    assert done.returncode == 1
    assert statuses(folder) == expected_statuses()


def test_workers_refuse_a_function_that_answers_differently_in_each_process(folder: Path) -> None:
    schema = SCHEMA.replace("threshold = 0.5", "score = 0.0")
    (folder / "schema.toml").write_text(schema)
    done = run("audit", "--predict", "scoring:imported", *FILES, "--jobs", "2", cwd=folder)
    assert done.returncode == 3
    assert "the model answers differently in another process" in one_line(done)


def test_an_interruption_keeps_what_is_done_and_the_journal_refuses_another_function(
    folder: Path,
) -> None:
    rows = [f"{18 + n % 10},male,{n % 61}" for n in range(400)]
    (folder / "people.csv").write_text("\n".join(["age,sex,income", *rows]) + "\n")
    (folder / "be slow").touch()
    process = subprocess.Popen(
        [sys.executable, "-m", "feta", "audit", "--predict", "scoring:slow", *FILES],
        cwd=folder,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        env=os.environ | {"COLUMNS": "200"},
        preexec_fn=lambda: signal.signal(signal.SIGINT, signal.SIG_DFL),  # noqa: PLW1509 - no threads here
    )
    journal = folder / "out" / "journal.sqlite-wal"
    while process.poll() is None and not (journal.exists() and journal.stat().st_size > 40_000):
        time.sleep(0.1)
    process.send_signal(signal.SIGINT)
    _, err = process.communicate(timeout=300)
    assert process.returncode == 130, err
    assert json.loads((folder / "out" / "audit.json").read_text())["partial"]
    assert (folder / "out" / "journal.sqlite").exists()
    changed = run("audit", "--predict", "scoring:good", *FILES, cwd=folder)
    assert changed.returncode == 2
    assert "is the journal of another audit: the model was" in changed.stderr


def one_line(done: subprocess.CompletedProcess[str]) -> str:
    return " ".join((done.stdout + done.stderr).split())
