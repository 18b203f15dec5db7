"""`feta audit`: every row's verdict, the clearest pairs in plain words, and files to hand over."""

import sys
import time
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import dataclass, field, replace
from importlib.metadata import version
from pathlib import Path
from typing import IO, Any

import numpy as np
from rich.box import SIMPLE_HEAD
from rich.console import Console
from rich.table import Table
from rich.text import Text

from feta.arrays import Matrix
from feta.audit.clearest import Clearest, Shown
from feta.audit.finding import Auditor, Finding
from feta.audit.summary import Summary
from feta.cli.exit_code import ExitCode
from feta.cli.open_model import Opened
from feta.cli.plain import json_text, listed, plain, shortened, write_row
from feta.cli.progress import progress_bar
from feta.engine.protocol import Budget
from feta.errors import DomainError
from feta.model import Model
from feta.space.attribute import Derived
from feta.space.table_file import Chunk, TableFile
from feta.verdict.counterexample import Counterexample

FORMAT = "feta-audit"
VERSION = 1
LISTED_ROWS = 1000  # rows without an answer that audit.json names; all are in verdicts.csv

TRUE = {"1", "1.0", "true", "yes"}
FALSE = {"0", "0.0", "false", "no"}


@dataclass(frozen=True, slots=True)
class Options:
    """What the user asked for."""

    model_path: Path
    data: Path
    label: str | None
    id_column: str | None
    out: Path | None
    as_json: bool
    engine: str
    seconds: float | None
    skip_bad_rows: bool


@dataclass
class Run:
    """An audit under way: what is found so far, whatever stops it."""

    options: Options
    model: Model
    auditor: Auditor
    summary: Summary
    clearest: Clearest
    unanswered: list[dict[str, object]] = field(default_factory=list)
    partial: bool = False
    started: float = field(default_factory=time.perf_counter)

    def take(self, finding: Finding, label: bool | None, name: str) -> None:
        """Count a finding, and keep it if it is among the clearest."""
        self.summary.add(finding, label)
        self.clearest.add(finding, name)
        if finding.status in ("undecided", "not audited") and len(self.unanswered) < LISTED_ROWS:
            entry_row = {"row": finding.row + 1, "id": name, "status": finding.status}
            self.unanswered.append(entry_row | {"reason": finding.reason})


def run_audit(opened: Opened, options: Options) -> ExitCode:
    """Audit a table row by row; Ctrl-C keeps what is done and labels it partial."""
    model = opened.model
    table = TableFile(options.data)
    wanted = _wanted(model, table, options)
    auditor = Auditor(model, options.engine, Budget(seconds=options.seconds), opened.replay)
    names = tuple(attribute.name for attribute in model.space.sensitive)
    run = Run(options, model, auditor, Summary(names), Clearest(auditor))
    with _Files(options.out, model) as files:
        try:
            with progress_bar() as progress:
                task = progress.add_task(f"auditing {plain(options.data.name)}", total=1.0)
                for chunk in table.chunks(wanted):
                    for finding, label, name in _findings(run, chunk):
                        run.take(finding, label, name)
                        files.write(finding, name)
                        share = (finding.row + 1 - chunk.start) / len(chunk)
                        done = progress.tasks[0].fields.get("base", 0.0)
                        progress.update(task, completed=done + share * (chunk.progress - done))
                    progress.update(task, completed=chunk.progress, base=chunk.progress)
        except KeyboardInterrupt:
            run.partial = True
        content = _content(run)
        files.finish(content)
    if options.as_json:
        sys.stdout.write(json_text(content, indent=2))
    else:
        _show(run)
    return _exit_code(run)


def _wanted(model: Model, table: TableFile, options: Options) -> set[str]:
    needed = [a.name for a in model.space.attributes if not isinstance(a, Derived)]
    table.require(needed)
    extra = [name for name in (options.label, options.id_column) if name]
    table.require(extra)
    derived = {a.name for a in model.space.attributes if isinstance(a, Derived)}
    wanted = {*needed, *extra, *(derived & set(table.names))}
    note_ignored([name for name in table.names if name not in wanted])
    return wanted


def note_ignored(names: list[str]) -> None:
    """Say once which columns of a table nobody asked for; nameless ones go without saying."""
    names = [name for name in names if name]
    if names:
        are = "columns are" if len(names) > 1 else "column is"
        notice(f"{len(names):,} {are} not in the schema and ignored: {listed(names)}")


def notice(message: str) -> None:
    """Say something beside the answer, on standard error."""
    Console(stderr=True, soft_wrap=True).print(Text(f"note: {message}", style="dim"))


def _findings(run: Run, chunk: Chunk) -> Iterator[tuple[Finding, bool | None, str]]:
    """Ask about a chunk in blocks; bad rows stop the audit unless they are to be skipped."""
    rows: list[tuple[int, Matrix | None, str]] = []
    try:
        people = chunk.encode(run.model.space)
        rows = [(place, people[place], "") for place in range(len(chunk))]
    except DomainError:
        if not run.options.skip_bad_rows:
            raise
        rows = [_single(run, chunk, place) for place in range(len(chunk))]
    for start in range(0, len(rows), 256):
        block = rows[start : start + 256]
        good = [person for _, person, _ in block if person is not None]
        found = iter(run.auditor.ask(np.stack(good)) if good else [])
        for place, person, reason in block:
            if person is None:
                finding = Finding(chunk.start + place, "not audited", reason=reason)
            else:
                finding = _renumbered(next(found), chunk.start + place)
            label = None if person is None else _label(run, chunk, place)
            yield finding, label, _name(run, chunk, place)


def _renumbered(finding: Finding, row: int) -> Finding:
    return replace(finding, row=row)


def _single(run: Run, chunk: Chunk, place: int) -> tuple[int, Matrix | None, str]:
    try:
        return place, chunk.row(place).encode(run.model.space)[0], ""
    except DomainError as error:
        return place, None, str(error)


def _label(run: Run, chunk: Chunk, place: int) -> bool | None:
    column = run.options.label
    if column is None:
        return None
    cell = str(chunk.columns[column][place])
    unfavorable, favorable = run.model.outcomes
    if cell == favorable or (cell != unfavorable and cell.lower() in TRUE):
        return True
    if cell == unfavorable or cell.lower() in FALSE:
        return False
    message = f"{chunk.path}, row {chunk.start + place + 1}: the label {column!r} must be {favorable!r}, {unfavorable!r}, 1 or 0, got {shortened(repr(cell), 80)}"
    raise DomainError(message, column=column, row=chunk.start + place)


def _name(run: Run, chunk: Chunk, place: int) -> str:
    column = run.options.id_column
    return str(chunk.columns[column][place]) if column else ""


class _Files:
    """pairs.csv, verdicts.csv and audit.json; they appear whole when the audit ends, or not at all."""

    def __init__(self, folder: Path | None, model: Model) -> None:
        self.folder, self.model = folder, model
        self.streams: dict[str, IO[str]] = {}
        self.names = [attribute.name for attribute in model.space.attributes]
        self.sensitive = [attribute.name for attribute in model.space.sensitive]
        self.made: list[Path] = []  # folders that were not there before

    def __enter__(self) -> "_Files":
        if self.folder is not None:
            above = [self.folder, *self.folder.parents]
            self.made = [one for one in above if not one.exists()]
            self.folder.mkdir(parents=True, exist_ok=True)
            for name, header in (
                ("pairs.csv", self._pair_header()),
                ("verdicts.csv", VERDICT_HEADER),
            ):
                self.streams[name] = self._part(name).open("w", encoding="utf-8", newline="")
                write_row(self.streams[name], header)
        return self

    def __exit__(self, *_: object) -> None:
        if not self.streams:
            return
        for stream in self.streams.values():  # left over only where something went wrong
            stream.close()
        for name in (*self.streams, "audit.json"):
            self._part(name).unlink(missing_ok=True)
        for folder in self.made:
            with suppress(OSError):  # somebody else put something there
                folder.rmdir()

    def _part(self, name: str) -> Path:
        assert self.folder is not None
        return self.folder / f".{name}.part"

    def _pair_header(self) -> list[str]:
        others = [f"counterpart {name}" for name in self.sensitive]
        return [*PAIR_HEADER, *self.names, *others]

    def write(self, finding: Finding, name: str) -> None:
        """Add one person."""
        if self.folder is None:
            return
        pair = finding.pair
        gap = "" if pair is None else pair.gap
        outcomes = {None: "", True: self.model.outcomes[-1], False: self.model.outcomes[0]}
        verdict = [finding.row + 1, name, finding.status, outcomes[finding.decision]]
        verdict += [outcomes[finding.fair_decision], gap, finding.runtime, finding.reason]
        write_row(self.streams["verdicts.csv"], verdict)
        if pair is not None:
            write_row(self.streams["pairs.csv"], self._pair_row(finding, pair, name))

    def _pair_row(self, finding: Finding, pair: Counterexample, name: str) -> list[object]:
        space = self.model.space
        before, after = space.decode(pair.person), space.decode(pair.counterpart)
        first, second = (self.model.outcomes[decision] for decision in pair.decisions)
        changed = [one for one in self.sensitive if before[one] != after[one]]
        replayed = {None: "", True: "yes", False: "no"}[finding.replayed]
        return [
            finding.row + 1,
            name,
            first,
            second,
            *pair.scores.tolist(),
            pair.gap,
            finding.runtime,
            replayed,
            " ".join(changed),
            " ".join(finding.alone),
            *(before[one] for one in self.names),
            *(after[one] for one in self.sensitive),
        ]

    def finish(self, content: dict[str, Any]) -> None:
        """Put the files in their places."""
        if self.folder is None:
            return
        self._part("audit.json").write_text(json_text(content, indent=2), encoding="utf-8")
        for stream in self.streams.values():
            stream.close()
        for name in ("pairs.csv", "verdicts.csv", "audit.json"):
            self._part(name).replace(self.folder / name)
        self.streams.clear()


PAIR_HEADER = [
    "row",
    "id",
    "decision",
    "counterpart decision",
    "score",
    "counterpart score",
    "gap",
    "runtime",
    "replayed",
    "changed",
    "one alone is enough",
]
VERDICT_HEADER = ["row", "id", "verdict", "decision", "fair decision", "gap", "runtime", "reason"]


def _content(run: Run) -> dict[str, Any]:
    """Give what audit.json holds; docs/formats.md describes it."""
    model = run.model
    return {
        "format": FORMAT,
        "version": VERSION,
        "feta": version("feta-fair"),
        "partial": run.partial,
        "model": {
            "file": run.options.model_path.name,
            "fingerprint": model.fingerprint,
            "network": model.network.fingerprint,
            "space": model.space.fingerprint,
            "counterparts": model.space.lattice.size,
            "outcomes": list(model.outcomes),
        },
        "data": run.options.data.name,
        "engine": run.options.engine,
        "seconds": time.perf_counter() - run.started,
        "summary": run.summary.as_dict(),
        "clearest_pairs": [_pair_content(run, shown) for shown in run.clearest.pairs()],
        "unanswered": run.unanswered,
    }


def _pair_content(run: Run, shown: Shown) -> dict[str, Any]:
    finding, pair, name = shown.finding, shown.pair, shown.name
    space = run.model.space
    before, after = space.decode(pair.person), space.decode(pair.counterpart)
    return {
        "row": finding.row + 1,
        "id": name,
        "person": before,
        "changed": {one: after[one] for one in after if after[one] != before[one]},
        "decisions": [run.model.outcomes[decision] for decision in pair.decisions],
        "scores": pair.scores.tolist(),
        "gap": pair.gap,
        "runtime": finding.runtime,
        "replayed": finding.replayed,
    }


def _exit_code(run: Run) -> ExitCode:
    if run.partial:
        return ExitCode.INTERRUPTED
    if run.summary.statuses["unfair"]:
        return ExitCode.COUNTEREXAMPLE
    return ExitCode.DONE if run.summary.everyone_fair else ExitCode.UNDECIDED


def _show(run: Run) -> None:
    console = Console()
    console.print()
    console.print(_headline(run))
    if run.summary.statuses["unfair"]:
        console.print(_pair_table(run))
    for line in _notes(run):
        console.print(Text(line))
    if run.options.out is not None:
        folder = plain(run.options.out)
        console.print(Text(f"Written to {folder}: pairs.csv, verdicts.csv, audit.json"))
    console.print()


def _headline(run: Run) -> Text:
    summary = run.summary
    unfair, people = summary.statuses["unfair"], summary.people
    text = Text()
    if run.partial:
        text.append("Interrupted: these are partial results.\n", style="bold yellow")
    if unfair:
        least = "at least " if summary.statuses["undecided"] else ""
        text.append(f"Yes: {least}{unfair:,} of {people:,} people", style="bold red")
        text.append(f" have a counterpart decided the other way (CE rate {summary.ce_rate:.1%}).")
    elif summary.everyone_fair and not run.partial:
        text.append(f"No: all {people:,} people are proved to be decided alike", style="bold green")
        text.append(f", whatever their {', '.join(plain(one) for one in summary.attributes)}.")
    else:
        text.append("Not settled: ", style="bold yellow")
        text.append(
            f"{summary.statuses['fair']:,} people are proved to be decided alike, the others are not."
        )
    return text


def _pair_table(run: Run) -> Table:
    table = Table(box=SIMPLE_HEAD, title="The clearest pairs", title_justify="left")
    for heading in ("row", "the same file, but for", "decision", "score"):
        table.add_column(heading)
    for shown in run.clearest.pairs():
        finding, pair, name = shown.finding, shown.pair, shown.name
        space = run.model.space
        before, after = space.decode(pair.person), space.decode(pair.counterpart)
        changes = [
            f"{plain(one)} {plain(before[one])} → {plain(after[one])}"
            for one in before
            if before[one] != after[one]
        ]
        first, second = (plain(run.model.outcomes[one]) for one in pair.decisions)
        table.add_row(
            Text(f"{finding.row + 1}" + (f" ({plain(name)})" if name else "")),
            Text("\n".join(changes), style="bold"),
            Text(f"{first} → {second}"),
            Text(f"{pair.scores[0]:+.4g} → {pair.scores[1]:+.4g}"),
        )
    return table


def _notes(run: Run) -> Iterator[str]:
    summary = run.summary
    if summary.statuses["unfair"]:
        parts = ", ".join(f"{plain(name)} {summary.alone[name]:,}" for name in summary.attributes)
        yield f"One attribute alone is enough for: {parts}; only several together: {summary.jointly:,}."
        yield f"Scores of the farthest pairs differ by {summary.mean_violation:.3g} on average, by {summary.violation_max:.3g} at most."
    yield f"Fair decisions (feta predict) would change {summary.flip_rate:.1%} of the decisions."
    if summary.accuracy is not None and summary.fair_accuracy is not None:
        yield f"Accuracy: {summary.accuracy:.1%} as it is, {summary.fair_accuracy:.1%} with fair decisions ({summary.labeled:,} labeled people)."
    if summary.statuses["undecided"]:
        yield f"{summary.statuses['undecided']:,} people are undecided: raise --seconds, or narrow the sensitive domains."
    if summary.statuses["not audited"]:
        yield f"{summary.statuses['not audited']:,} rows could not be read and were not audited; verdicts.csv (--out) says why."
    if summary.runtime_sensitive:
        yield f"{summary.runtime_sensitive:,} answers are runtime-sensitive: the model's own rounding could tip them."
    if summary.not_replayed:
        yield f"{summary.not_replayed:,} pairs do not replay in onnxruntime, whose rounding decides them alike."
