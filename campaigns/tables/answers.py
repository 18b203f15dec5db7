"""FETA's answers about a case, from the command line or from Python."""

import contextlib
import csv
import io
import os
import subprocess
import sys
import tomllib
import warnings
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np
from sklearn.frozen import FrozenEstimator

import feta
from campaigns.tables.case import LABEL, OUTCOMES, Case
from feta.cli import run_command
from feta.estimators.fair_classifier import FairClassifier

MAX_SECONDS = 120  # for one command in a separate process


class Crash(Exception):
    """A command or a call that ended with an internal error."""


@dataclass(frozen=True, slots=True)
class Refusal:
    """A step that refused, and its message."""

    step: str
    message: str


@dataclass(frozen=True, slots=True)
class Domain:
    """The values that FETA lists for the sensitive column."""

    values: tuple[object, ...]
    missing: bool


@dataclass(frozen=True, slots=True)
class Answers:
    """One entry per row: verdicts, the model's decisions, and fair decisions by source."""

    domain: Domain
    verdicts: tuple[str, ...]
    model_decisions: tuple[str, ...]
    fair: Mapping[str, tuple[str, ...]] = field(default_factory=dict)


def run_steps(case: Case, folder: Path, *, separate_process: bool) -> Answers | Refusal:
    """Run all of FETA's steps on a case; raise `Crash` if one fails."""
    if case.combination.file == "frame":
        return _from_python(case)
    return _from_commands(case, folder, separate_process=separate_process)


def _from_commands(case: Case, folder: Path, *, separate_process: bool) -> Answers | Refusal:
    schema, out, decisions = (folder / name for name in ("schema.toml", "out", "decisions.csv"))
    model, data = str(case.model_file), str(case.table_file)
    common = ["--schema", str(schema), "--trust-pickle"]
    init = ["--sensitive", case.sensitive, "--leave-out", LABEL, "--trust-pickle"]
    steps: dict[str, tuple[list[str], tuple[int, ...]]] = {
        "init": ([model, data, *init, "--out", str(schema)], (0,)),
        "audit": ([model, *common, "--data", data, "--out", str(out)], (0, 1, 3)),
        "predict": (
            [model, *common, "--data", str(case.shared_file), "--out", str(decisions)],
            (0, 3),
        ),
    }
    codes = {}
    for step, (arguments, allowed) in steps.items():
        run_step = _in_process if separate_process else _in_this_process
        codes[step], messages = run_step([step, *arguments])
        if codes[step] == 2:
            return Refusal(step, _short_message(messages, folder))
        if codes[step] not in allowed or "Traceback" in messages:
            raise Crash(f"{step} ended with {codes[step]}: {messages[-500:]}")
    rows = _read_csv(out / "verdicts.csv")
    verdicts = tuple(row["verdict"] for row in rows)
    expected = 1 if "unfair" in verdicts else 3 if set(verdicts) != {"fair"} else 0
    if codes["audit"] != expected:
        raise Crash(f"wrong exit code of audit: got {codes['audit']}; expected {expected}")
    fair = {
        "audit": tuple(row["fair decision"] for row in rows),
        "predict": tuple(row["decision"] for row in _read_csv(decisions)),
    }
    model_decisions = tuple(row["decision"] for row in rows)
    return Answers(_schema_domain(schema, case.sensitive), verdicts, model_decisions, fair)


def _in_this_process(arguments: list[str]) -> tuple[int | str, str]:
    """Run a command here; return its exit code, or what went wrong, and its messages."""
    out, err = io.StringIO(), io.StringIO()
    sys.argv = ["feta", *arguments]
    code: int | str = "no exit"
    with contextlib.redirect_stdout(out), contextlib.redirect_stderr(err):
        try:
            run_command.main()
        except SystemExit as exit_:
            code = exit_.code if isinstance(exit_.code, int) else int(bool(exit_.code))
        except BaseException as error:  # such failures are what the campaign looks for
            code = f"{type(error).__name__}: {error}"
    return code, err.getvalue()


def _in_process(arguments: list[str]) -> tuple[int | str, str]:
    """Run a command in a separate process."""
    done = subprocess.run(
        [sys.executable, "-m", "feta", *arguments],
        capture_output=True,
        text=True,
        encoding="utf-8",
        timeout=MAX_SECONDS,
        check=False,
        env={**os.environ, "COLUMNS": "160"},
    )
    return done.returncode, done.stderr


def _short_message(messages: str, folder: Path) -> str:
    """Return the error message without the folder's name and line breaks."""
    start = messages.rfind("feta: ")
    text = messages[start + len("feta: ") :] if start >= 0 else messages
    return " ".join(text.replace(f"{folder}{os.sep}", "").split())


def _read_csv(path: Path) -> list[dict[str, str]]:
    with path.open(encoding="utf-8", newline="") as file:
        return list(csv.DictReader(file))


def _schema_domain(schema: Path, column: str) -> Domain:
    """Return the values that a schema lists for a column."""
    entry = tomllib.loads(schema.read_text(encoding="utf-8"))["columns"][column]
    missing = bool(entry.get("missing", False))
    if "values" in entry:
        return Domain(tuple(entry["values"]), missing)
    step = entry.get("step", 1)
    n_steps = round((entry["max"] - entry["min"]) / step)
    return Domain(tuple(entry["min"] + n * step for n in range(n_steps + 1)), missing)


def _from_python(case: Case) -> Answers | Refusal:
    step = "from_frame"
    sensitive = [case.sensitive]
    people = case.people
    shared = people.drop(columns=sensitive)
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            space = feta.FeatureSpace.from_frame(people, sensitive=sensitive, missing=True)
            step = "read_sklearn"
            model = feta.Model(space, feta.read_sklearn(case.pipeline, space), outcomes=OUTCOMES)
            step = "audit"
            audit = feta.audit(model, people, replay=feta.runtime_of(case.pipeline, model))
            step = "FairPredictor"
            rows = space.encode(shared, sensitive="ignore")
            decisions = feta.FairPredictor(model).decide(rows)
            step = "FairClassifier"
            frozen = FrozenEstimator(case.pipeline)
            classifier = FairClassifier(frozen, space, vote="majority", weights=None, level=None)
            classes = classifier.fit(people, case.frame[LABEL]).predict(shared)
    except feta.FetaError as error:
        return Refusal(step, " ".join(str(error).split()))
    except Exception as error:
        raise Crash(f"{step}: {type(error).__name__}: {error}") from error
    fair = {
        "audit": tuple(_outcome(finding.fair_decision) for finding in audit.findings),
        "FairPredictor": tuple(_outcome(decision) for decision in np.asarray(decisions).tolist()),
        "FairClassifier": tuple(str(name) for name in classes),
    }
    model_decisions = tuple(_outcome(finding.decision) for finding in audit.findings)
    verdicts = tuple(finding.status for finding in audit.findings)
    return Answers(_space_domain(space, case.sensitive), verdicts, model_decisions, fair)


def _outcome(decision: object) -> str:
    return "undecided" if decision is None else OUTCOMES[int(bool(decision))]


def _space_domain(space: feta.FeatureSpace, column: str) -> Domain:
    """Return the values that a space lists for a column."""
    match space.attribute(column):
        case feta.Categorical(values=values, missing=missing):
            return Domain(tuple(values), missing)
        case feta.Levels(numbers=numbers, missing=missing):
            return Domain(tuple(numbers), missing)
        case feta.Integer(low=low, high=high, missing=missing):
            return Domain(tuple(range(low, high + 1)), missing)
        case attribute:
            raise Crash(f"wrong domain of {column!r}: got {attribute!r}; expected a finite one")
