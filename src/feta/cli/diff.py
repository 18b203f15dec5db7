"""`feta diff`: what changed between two audits, for CI gates."""

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

# All other results leave the comparison undecided.
EXIT_CODES = {GateResult.NOT_WORSE: ExitCode.DONE, GateResult.WORSE: ExitCode.COUNTEREXAMPLE}
COLORS = {GateResult.NOT_WORSE: "green", GateResult.WORSE: "red"}


def run_diff(
    old: Path, new: Path, gate: Gate, *, output: Literal["text", "md", "json", "junit"]
) -> ExitCode:
    """Compare two audits, given as folders or as audit.json files."""
    audits = read_audit(old), read_audit(new)
    if audits[0].path.samefile(audits[1].path):
        raise SchemaError(f"{new}: both arguments name the same audit; name two folders")
    difference = compare(*audits)
    match output:
        case "json":
            content = asdict(difference) | _gate_json(difference, gate)
            sys.stdout.write(json_text(content, indent=2))
        case "md":
            sys.stdout.write(diff_markdown(difference, gate))
        case "junit":
            sys.stdout.write(diff_junit(difference, gate))
        case "text":
            _show(difference, gate, [audit.path for audit in audits if audit.partial])
    return EXIT_CODES.get(gate.outcome(difference), ExitCode.UNDECIDED)


def _gate_json(difference: Diff, gate: Gate) -> dict[str, object]:
    outcome = gate.outcome(difference)
    return {
        "outcome": outcome,
        "worse": outcome == GateResult.WORSE,
        "less_settled": outcome == GateResult.LESS_SETTLED,
        "rate_only": gate.rate_only,
    }


def _show(difference: Diff, gate: Gate, partial: list[Path]) -> None:
    console = Console(soft_wrap=True)
    first, *rest = remarks(difference)
    console.print(Text(first))
    for path in partial:
        console.print(Text(f"{plain(path)} is partial: it was interrupted.", style="bold yellow"))
    table = Table(box=SIMPLE_HEAD)
    for heading in ("", "before", "after", "change"):
        table.add_column(heading, justify="right" if heading else "left")
    for name, before, after in difference.known_figures:
        cells = (
            figure_text(name, before),
            figure_text(name, after),
            change_text(name, before, after),
        )
        table.add_row(Text(plain(name).replace("_", " ")), *map(Text, cells))
    console.print(table)
    for remark in rest:
        console.print(Text(remark))
    color = COLORS.get(gate.outcome(difference), "yellow")
    console.print(Text(conclusion(difference, gate), style=f"bold {color}"))
