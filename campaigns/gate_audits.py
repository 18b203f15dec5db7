"""Real audit folders for the campaign `gate`, and edits of their files."""

import csv
import hashlib
import io
import json
import shutil
from collections.abc import Callable
from contextlib import redirect_stderr, redirect_stdout
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import feta
from campaigns.stopping import stopped_after
from feta.cli import run_command
from feta.model import Model
from feta.rule import Rule

INCOMES = [20 + 2.5 * number for number in range(24)]
AGE = (18, 90)

# A score is income + age / 10 − level, so the level alone determines who is unfair.
BEFORE, AFTER = 50.0, 60.0

Row = dict[str, str]


def table() -> list[Row]:
    """Return made-up people with two columns that could be ids."""
    return [
        {"id": f"p{n}", "other": f"q{n}", "age": str(20 + 3 * n), "income": str(income)}
        for n, income in enumerate(INCOMES)
    ]


def model_of(
    level: float,
    *,
    rule: Rule | None = None,
    sensitive: tuple[str, ...] = ("age",),
    ages: tuple[int, int] = AGE,
    provenance: str = "proved",
) -> Model:
    """Return a linear model of age and income."""
    space = feta.FeatureSpace(
        (
            feta.Integer("age", *ages, sensitive="age" in sensitive),
            feta.Levels("income", tuple(INCOMES), sensitive="income" in sensitive),
        )
    )
    network = feta.Network.from_layers([([[0.1, 1.0]], [-level])])
    return Model(space, replace(network, provenance=provenance), rule or feta.Threshold(0.0))  # type: ignore[arg-type]  # a text


@dataclass
class Audits:
    """Real audits in one folder, each run once; ways to hide copy them before any change."""

    root: Path
    results: dict[str, Path] = field(default_factory=dict)
    copies: int = 0

    def audit(
        self,
        name: str,
        model: Model,
        rows: list[Row] | None = None,
        *options: str,
        stop_after: int | None = None,
    ) -> Path:
        """Audit a table with the command line; the same name gives the same folder."""
        if name not in self.results:
            folder = self.root / name
            folder.mkdir()
            feta.save_model(model, folder / "model.feta")
            write_table(folder / "people.csv", table() if rows is None else rows)
            files = [str(folder / "model.feta"), "--data", str(folder / "people.csv")]
            with stopped_after(stop_after):
                code = run("audit", *files, "--out", str(folder / "out"), *options)
            assert code in (0, 1, 3, 130), f"{name}: the audit ended with {code}"
            self.results[name] = folder / "out"
        return self.results[name]

    def copy(self, out: Path) -> Path:
        """Copy the folder of an audit, so that it can be changed."""
        self.copies += 1
        folder = self.root / f"copy-{self.copies}"
        shutil.copytree(out, folder)
        return folder

    def before(self, *options: str) -> Path:
        """Audit the accepted model."""
        return self.audit(f"before{''.join(options)}", model_of(BEFORE), None, *options)

    def after(self, *options: str) -> Path:
        """Audit a model with as many unfair people, but other ones."""
        return self.audit(f"after{''.join(options)}", model_of(AFTER), None, *options)


def run(*arguments: str) -> int:
    """Run the command line in this process; return its exit code."""
    with redirect_stdout(io.StringIO()), redirect_stderr(io.StringIO()):
        return run_command.run_command(list(arguments))


def write_table(path: Path, rows: list[Row]) -> None:
    """Write a table as CSV."""
    with path.open("w", encoding="utf-8", newline="") as file:
        writer = csv.DictWriter(file, list(rows[0]))
        writer.writeheader()
        writer.writerows(rows)


def edit_json(out: Path, change: Callable[[dict[str, Any]], object]) -> None:
    """Change audit.json in place."""
    content = json.loads((out / "audit.json").read_text(encoding="utf-8"))
    change(content)
    (out / "audit.json").write_text(json.dumps(content), encoding="utf-8")


def edit_text(out: Path, name: str, change: Callable[[str], str]) -> None:
    """Change a file of an audit in place, as a text."""
    text = (out / name).read_text(encoding="utf-8")
    changed = change(text)
    assert changed != text, f"nothing to change in {name}"
    (out / name).write_text(changed, encoding="utf-8")


def all_fair(out: Path) -> None:
    """Call everybody fair in verdicts.csv."""
    edit_text(out, "verdicts.csv", lambda text: text.replace('"unfair"', '"fair"'))


def fair_summary(content: dict[str, Any]) -> None:
    """Call everybody fair in the summary."""
    summary = content["summary"]
    summary |= {"unfair": 0, "fair": summary["people"], "ce_rate": 0.0}
    summary["one_attribute_is_enough"] = dict.fromkeys(summary["one_attribute_is_enough"], 0)


def new_digests(out: Path) -> None:
    """Update the digests of the files in audit.json."""
    names = ("pairs.csv", "verdicts.csv")
    digests = {name: hashlib.sha256((out / name).read_bytes()).hexdigest() for name in names}
    edit_json(out, lambda content: content.update(files=digests))
