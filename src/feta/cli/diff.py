"""`feta diff`: what changed between two audits; 1 if anybody is worse off, 3 if that cannot be told: for CI gates."""

import sys
from dataclasses import asdict
from pathlib import Path
from typing import Literal

from rich.box import SIMPLE_HEAD
from rich.console import Console
from rich.table import Table
from rich.text import Text

from feta.cli.exit_code import ExitCode
from feta.errors import SchemaError
from feta.io.sanitize import json_text, plain
from feta.report.audited import read_audit
from feta.report.diff import Diff, change_text, compare, figure_text
from feta.report.diff_formats import diff_junit, diff_markdown, remarks
from feta.report.gate import Gate, GateResult, conclusion

ENDS = {GateResult.NOT_WORSE: ExitCode.DONE, GateResult.WORSE: ExitCode.COUNTEREXAMPLE}
COLORS = {GateResult.NOT_WORSE: "green", GateResult.WORSE: "red"}


def run_diff(
    old: Path, new: Path, gate: Gate, *, output: Literal["text", "md", "json", "junit"]
) -> ExitCode:
    """Compare two audits, given by folder or by audit.json."""
    audits = read_audit(old), read_audit(new)
    if audits[0].path.samefile(audits[1].path):
        raise SchemaError(f"{new}: both arguments name the same audit; name two folders")
    found = compare(*audits)
    match output:
        case "json":
            sys.stdout.write(json_text(asdict(found) | _answers(found, gate), indent=2))
        case "md":
            sys.stdout.write(diff_markdown(found, gate))
        case "junit":
            sys.stdout.write(diff_junit(found, gate))
        case "text":
            _show(found, gate, [one.path for one in audits if one.partial])
    return ENDS.get(gate.outcome(found), ExitCode.UNDECIDED)


def _answers(found: Diff, gate: Gate) -> dict[str, object]:
    outcome = gate.outcome(found)
    return {
        "outcome": outcome,
        "worse": outcome == GateResult.WORSE,
        "less_settled": outcome == GateResult.LESS_SETTLED,
        "rate_only": gate.rate_only,
    }


def _show(found: Diff, gate: Gate, partial: list[Path]) -> None:
    console = Console(soft_wrap=True)
    first, *rest = remarks(found)
    console.print(Text(first))
    for path in partial:
        console.print(Text(f"{plain(path)} is partial: it was interrupted.", style="bold yellow"))
    table = Table(box=SIMPLE_HEAD)
    for heading in ("", "before", "after", "change"):
        table.add_column(heading, justify="right" if heading else "left")
    for name, before, after in found.known_figures:
        cells = (
            figure_text(name, before),
            figure_text(name, after),
            change_text(name, before, after),
        )
        table.add_row(Text(plain(name).replace("_", " ")), *map(Text, cells))
    console.print(table)
    for remark in rest:
        console.print(Text(remark))
    color = COLORS.get(gate.outcome(found), "yellow")
    console.print(Text(conclusion(found, gate), style=f"bold {color}"))
