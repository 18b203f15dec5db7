"""Summary of an audit on the terminal."""

from collections.abc import Sequence
from pathlib import Path

from rich.box import SIMPLE_HEAD
from rich.console import Console
from rich.table import Table
from rich.text import Text

from feta.auditing.report_data import ReportData
from feta.auditing.top_pairs import PairView
from feta.io.bad_rows import listed_kinds
from feta.io.certificate_file import CERTIFICATE
from feta.io.sanitize import plain
from feta.model import Model
from feta.readers.load import LoadedModel
from feta.report.words import (
    Headline,
    caveats,
    cell,
    compared,
    early_end,
    figures,
    headline,
    notes,
    words_for,
)
from feta.rule.words import RuleWords
from feta.scorer.protocol import has_scores

COLORS = {"unfair": "red", "fair": "green", "undecided": "yellow"}


def show(
    loaded: LoadedModel, report: ReportData, *, out: Path | None, certify: bool = False
) -> None:
    """Print the summary, the selected counterexamples, the warnings and the written files."""
    summary, pairs, partial = report.summary, report.pairs, report.partial
    model = loaded.model
    words = words_for(model, loaded.unit)
    console = Console()
    console.print()
    console.print(_styled(headline(summary, words, partial=partial), early_end(report)))
    if summary.statuses["unfair"]:
        console.print(_pair_table(model, words, pairs))
    for line in [
        *figures(summary, words),
        *notes(summary, report.source.runtime),
        compared(report.source),
        *caveats(model),
    ]:
        console.print(Text(line))
    for line in listed_kinds(report.bad_rows):
        console.print(Text(f"  not read: {plain(line)}"))
    for doubt in summary.doubts:
        console.print(Text(f"Doubtful: {plain(doubt)}", style="bold yellow"))
    if out is not None:
        files = "report.html, pairs.csv, verdicts.csv, audit.json"
        files += f", {CERTIFICATE}" if certify else ""
        console.print(Text(f"Written to {plain(out)}: {files}"))
        if certify:
            console.print(Text(f"Re-check the certificate with: feta check {plain(out)}"))
        if partial:
            console.print(Text("The same command resumes the audit."))
    console.print()


def _styled(answer: Headline, early_end: str) -> Text:
    text = Text()
    if early_end:
        text.append(f"{early_end}\n", style="bold yellow")
    text.append(answer.strong, style=f"bold {COLORS[answer.verdict]}")
    text.append(answer.rest)
    return text


def _pair_table(model: Model, words: RuleWords, pairs: Sequence[PairView]) -> Table:
    table = Table(box=SIMPLE_HEAD, title="Selected counterexamples", title_justify="left")
    decides = bool(model.outcomes)
    gaps = has_scores(model.scorer)
    headings = ["row", words.changes, *(["decision"] if decides else [])]
    headings += [words.margin] if gaps else []
    for heading in headings:
        table.add_column(Text(heading))
    for view in pairs:
        name = f" ({plain(view.name)})" if view.name else ""
        cells = [Text(f"{view.finding.row + 1}{name}"), _changes(view)]
        if decides:
            first, second = (plain(model.outcomes[number]) for number in view.pair.decisions)
            cells.append(Text(f"{first} → {second}"))
        digits = "+.4g" if decides else words.digits
        before, after = (f"{margin:{digits}}" for margin in view.pair.margins(model.rule))
        table.add_row(*cells, *([Text(f"{before} → {after}")] if gaps else []))
    return table


def _changes(view: PairView) -> Text:
    """Return the sensitive values that differ, one line per attribute."""
    before, after = view.before, view.after
    changes = [
        f"{plain(name)} {plain(cell(before[name]))} → {plain(cell(after[name]))}"
        for name in view.changed
    ]
    return Text("\n".join(changes), style="bold")
