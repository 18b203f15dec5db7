"""Results of the commands `audit`, `predict` and `diff` on the golden models."""

import csv
import json
import os
import subprocess
import sys
from collections.abc import Sequence
from dataclasses import dataclass
from importlib.util import find_spec
from pathlib import Path

from tests.golden.comparison import Json, without_wording
from tests.golden.make_models import MODELS

ROOT = Path(__file__).parents[2]


@dataclass(frozen=True, slots=True)
class ModelCase:
    """A model with its options, and the column of its labels."""

    options: tuple[str, ...]
    label: str
    table: tuple[str, ...] = ("people.csv", "--skip-bad-rows")
    extras: tuple[str, ...] = ()


MODEL_CASES = {
    "threshold": ModelCase(("threshold.feta",), "approved"),
    "exhaustive": ModelCase(("threshold.feta", "--engine", "exhaustive"), "approved"),
    "out_of_time": ModelCase(
        ("threshold.feta", "--engine", "exhaustive", "--seconds", "0"), "approved"
    ),
    "weighted": ModelCase(("threshold.feta", "--vote-weights", "good.csv"), "approved"),
    "later": ModelCase(("later.feta",), "approved"),
    "blind": ModelCase(("blind.feta",), "approved", ("good.csv",)),
    "below": ModelCase(
        ("below.onnx", "--schema", "below.toml"), "approved", extras=("onnxruntime",)
    ),
    "classes": ModelCase(
        ("classes.npz", "--schema", "classes.toml", "--layers", "fc1,fc2"), "tier"
    ),
    "one_vs_rest": ModelCase(
        ("classes.npz", "--schema", "classes.toml", "--layers", "fc1,fc2", "--one-vs-rest", "gold"),
        "tier",
    ),
    "limit": ModelCase(
        ("limit.safetensors", "--schema", "limit.toml", "--layers", "fc1,fc2,fc3"), "limit"
    ),
}
DIFFS = {
    "diff_worse": ("threshold", "later"),
    "diff_allowed": ("threshold", "later", "--allow-new", "2"),
    "diff_rate_only": ("threshold", "later", "--rate-only"),
    "diff_better": ("later", "threshold"),
    "diff_other_question": ("classes", "one_vs_rest"),
}
REFUSED = {
    "refused_diff": ("diff", "later", "later"),
    "refused_bad_row": ("audit", "threshold.feta", "--data", "people.csv"),
    "refused_label": ("audit", "threshold.feta", "--data", "good.csv", "--label", "absent"),
}


def run_all(commands: Sequence[Sequence[str]]) -> list[dict[str, Json]]:
    """Run commands in one process, in the folder of the models."""
    completed = subprocess.run(
        [sys.executable, "-m", "tests.golden.run_commands"],
        input=json.dumps(commands),
        capture_output=True,
        text=True,
        encoding="utf-8",
        check=False,
        cwd=MODELS,
        env={**os.environ, "PYTHONPATH": str(ROOT), "COLUMNS": "160"},
        timeout=600,  # only against hanging
    )
    assert completed.returncode == 0, completed.stderr
    results: list[dict[str, Json]] = json.loads(completed.stdout)
    return results


def command_results(folder: Path) -> dict[str, Json]:
    """Run every case and return its results by name; a case without its extra is left out."""
    cases = {
        name: case
        for name, case in MODEL_CASES.items()
        if all(find_spec(package) is not None for package in case.extras)
    }
    commands: dict[str, list[str]] = {}
    for name, case in cases.items():
        table = ["--id", "id", "--data", *case.table]
        out = str(folder / name)
        audit = ["audit", *case.options, *table, "--label", case.label, "--out", out]
        commands[f"audit_{name}"] = audit
        out = str(folder / f"{name}.csv")
        commands[f"predict_{name}"] = ["predict", *case.options, *table, "--out", out]
    for name, (old, new, *options) in DIFFS.items():
        sides = [str(folder / old), str(folder / new)]
        commands[name] = ["diff", *sides, *options, "--json"]
    commands.update({name: list(arguments) for name, arguments in REFUSED.items()})
    done = dict(zip(commands, run_all(list(commands.values())), strict=True))
    results: dict[str, Json] = {}
    for name in cases:
        results[name] = {
            "audit": _audit(done[f"audit_{name}"], folder / name),
            "predict": _predict(done[f"predict_{name}"], folder / f"{name}.csv"),
        }
    results["diff"] = {
        name: {
            "code": done[name]["code"],
            "json": without_wording(json.loads(done[name]["stdout"] or "null")),
        }
        for name in DIFFS
    }
    results["refused"] = {name: done[name]["code"] for name in REFUSED}
    return results


def _audit(done: dict[str, Json], folder: Path) -> Json:
    return {
        "code": done["code"],
        "files": sorted(path.name for path in folder.iterdir()),
        "audit.json": without_wording(
            json.loads((folder / "audit.json").read_text(encoding="utf-8"))
        ),
        "verdicts.csv": _lines(folder / "verdicts.csv", wording="reason"),
        "pairs.csv": _lines(folder / "pairs.csv"),
    }


def _predict(done: dict[str, Json], path: Path) -> Json:
    return {"code": done["code"], "csv": path.read_bytes().decode().splitlines(keepends=True)}


def _lines(path: Path, *, wording: str = "") -> list[str]:
    """Return the lines of a table; the cells of a column of wording become empty."""
    text = path.read_bytes().decode()
    if not wording:
        return text.splitlines(keepends=True)
    header, *rows = csv.reader(text.splitlines())
    column = header.index(wording)
    return [
        ",".join([*cells[:column], "a text" if cells[column] else "", *cells[column + 1 :]])
        for cells in [header, *rows]
    ]
