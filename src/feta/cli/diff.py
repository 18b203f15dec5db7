"""`feta diff`: what changed between two audits; 1 if anybody is worse off, 3 if less is settled: for CI gates."""

import sys
from dataclasses import asdict
from pathlib import Path

from rich.box import SIMPLE_HEAD
from rich.console import Console
from rich.table import Table
from rich.text import Text

from feta.cli.exit_code import ExitCode
from feta.plain import json_text, listed, plain
from feta.report.diff import SHARES, Diff, Number, compare, read_audit


def run_diff(old: Path, new: Path, *, as_json: bool) -> ExitCode:
    """Compare two audits, given by folder or by audit.json."""
    audits = read_audit(old), read_audit(new)
    found = compare(*audits)
    if as_json:
        sys.stdout.write(json_text(asdict(found) | _answers(found), indent=2))
    else:
        partial = [one.path for one in audits if one.told.get("partial")]
        _show(found, partial)
    if found.worse:
        return ExitCode.COUNTEREXAMPLE
    return ExitCode.UNDECIDED if found.less_settled else ExitCode.DONE


def _answers(found: Diff) -> dict[str, bool]:
    return {"worse": found.worse, "less_settled": found.less_settled}


def _show(found: Diff, partial: list[Path]) -> None:
    console = Console()
    same = "the same model" if found.same_model else "another model"
    people = "the same table" if found.same_data else "another table"
    console.print(Text(f"{same.capitalize()}, {people}."))
    if not found.same_space:
        message = "The columns, their domains or which are sensitive differ: so did the question."
        console.print(Text(message, style="bold yellow"))
    for path in partial:
        console.print(Text(f"{plain(path)} is partial: it was interrupted.", style="bold yellow"))
    table = Table(box=SIMPLE_HEAD)
    for heading in ("", "before", "after", "change"):
        table.add_column(heading, justify="right" if heading else "left")
    for name, before, after in found.figures:
        if (before, after) != (None, None):
            cells = (_shown(name, before), _shown(name, after), _change(name, before, after))
            table.add_row(Text(plain(name).replace("_", " ")), *map(Text, cells))
    console.print(table)
    for first, second, count in found.moves:
        people = "person" if count == 1 else "people"
        console.print(Text(f"{count:,} {people}: {plain(first)} → {plain(second)}"))
    if found.newly_unfair:
        names = listed(found.newly_unfair, 20)
        console.print(Text(f"Newly unfair: {names}", style="bold red"))
    console.print(_conclusion(found))


def _conclusion(found: Diff) -> Text:
    if found.worse:
        return Text("Worse: more people have a counterexample, or others do.", style="bold red")
    if found.less_settled:
        message = "Less settled: nobody new has a counterexample, but answers are missing that were there."
        return Text(message, style="bold yellow")
    return Text("Not worse: nobody new has one, and no answer is missing.", style="bold green")


def _shown(name: str, value: Number) -> str:
    if value is None:
        return "-"
    return f"{value:.1%}" if name in SHARES else f"{value:,}"


def _change(name: str, before: Number, after: Number) -> str:
    if before is None or after is None or before == after:
        return ""
    return f"{after - before:+.1%}" if name in SHARES else f"{after - before:+,}"
