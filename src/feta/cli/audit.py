"""`feta audit`: every row's verdict, the clearest pairs in plain words, and files to hand over."""

import sys
import time
from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from importlib.metadata import version
from pathlib import Path
from typing import Any

import numpy as np
from rich.console import Console
from rich.text import Text

from feta.arrays import Matrix
from feta.audit.answer import Answer, read_label
from feta.audit.auditor import Auditor
from feta.audit.clearest import Clearest, Shown
from feta.audit.finding import Finding
from feta.audit.summary import Summary
from feta.cli.audit_files import AuditFiles
from feta.cli.audit_words import never_read, show
from feta.cli.exit_code import ExitCode
from feta.cli.open_model import Opened
from feta.cli.out import check_folder
from feta.cli.plain import json_text, listed, plain
from feta.cli.progress import progress_bar
from feta.cli.uninterrupted import uninterrupted
from feta.cli.vote_weights import read_vote_weights
from feta.engine.protocol import Budget
from feta.errors import DomainError
from feta.model import Model
from feta.space.attribute import Derived
from feta.space.table_file import Chunk, TableFile

FORMAT = "feta-audit"
VERSION = 1
LISTED_ROWS = 1000  # rows without an answer that audit.json names; all are in verdicts.csv


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
    vote_weights: Path | None = None


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

    def take(self, finding: Finding, label: Answer | None, name: str) -> None:
        """Count a finding, and keep it if it is among the clearest."""
        self.summary.add(finding, label)
        self.clearest.add(finding, name)
        if finding.status in ("undecided", "not audited") and len(self.unanswered) < LISTED_ROWS:
            entry_row = {"row": finding.row + 1, "id": name, "status": finding.status}
            self.unanswered.append(entry_row | {"reason": finding.reason})


def run_audit(opened: Opened, options: Options) -> ExitCode:
    """Audit a table row by row; Ctrl-C keeps what is done and labels it partial."""
    model = opened.model
    check_folder(options.out)
    table = TableFile(options.data)
    wanted = _wanted(model, table, options)
    weights = read_vote_weights(options.vote_weights, model.space)
    budget = Budget(seconds=options.seconds)
    auditor = Auditor(model, options.engine, budget, opened.replay, weights)
    run = Run(options, model, auditor, Summary.of(model), Clearest(auditor))
    with AuditFiles(options.out, model) as files:
        try:
            with progress_bar() as progress:
                task = progress.add_task(f"auditing {plain(options.data.name)}", total=1.0)
                for chunk in table.chunks(wanted):
                    for finding, label, name in _findings(run, chunk):
                        with uninterrupted():  # counted and written, or neither
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
        pairs = run.clearest.pairs()
        show(opened, run.summary, pairs, partial=run.partial, out=options.out)
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


def _findings(run: Run, chunk: Chunk) -> Iterator[tuple[Finding, Answer | None, str]]:
    """Ask about a chunk in blocks; bad rows stop the audit unless they are to be skipped."""
    rows: list[tuple[int, Matrix | None, str]] = []
    try:
        people = chunk.encode(run.model.space, id_column=run.options.id_column)
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
        one = chunk.row(place).encode(run.model.space, id_column=run.options.id_column)
        return place, one[0], ""
    except DomainError as error:
        return place, None, str(error)


def _label(run: Run, chunk: Chunk, place: int) -> Answer | None:
    column = run.options.label
    if column is None:
        return None
    row = chunk.start + place
    if chunk.columns[column][place] in ("", None):  # nobody has said yet
        return None
    try:
        return read_label(run.model, chunk.columns[column][place])
    except DomainError as error:
        message = f"{chunk.path}, row {row + 1}: the label {column!r} {error}"
        raise DomainError(message, column=column, row=row) from None


def _name(run: Run, chunk: Chunk, place: int) -> str:
    column = run.options.id_column
    return str(chunk.columns[column][place]) if column else ""


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
            "rule": type(model.rule).__name__,
            "outcomes": list(model.outcomes),
            "reading": model.network.reading,
            "sensitive_never_read": list(never_read(model)),
        },
        "data": run.options.data.name,
        "vote_weights": None if run.options.vote_weights is None else run.options.vote_weights.name,
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
