"""`feta audit`: every row's verdict, the clearest pairs in plain words, and files to hand over."""

import hashlib
import shlex
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from functools import partial
from importlib.metadata import version
from pathlib import Path
from typing import Literal

from rich.console import Console
from rich.text import Text

from feta.audit.asking import Asking
from feta.audit.auditor import Auditor
from feta.audit.comparison import Comparison
from feta.audit.journal import Journal
from feta.audit.workers import Workers
from feta.cli.audit_files import AuditFiles
from feta.cli.audit_rows import Columns, audited
from feta.cli.audit_words import show
from feta.cli.comparison import check_reading
from feta.cli.exit_code import ExitCode
from feta.cli.folder_lock import FolderLock
from feta.cli.open_model import Opened, People, open_model
from feta.cli.open_source import SourceOptions
from feta.cli.out import check_folder
from feta.cli.progress import progress_bar
from feta.cli.uninterrupted import terminable, uninterrupted
from feta.cli.vote_weights import read_vote_weights
from feta.engine.protocol import Budget
from feta.errors import DomainError
from feta.model import Model
from feta.plain import json_text, listed, plain
from feta.report.audit_json import audit_json
from feta.report.junit import junit
from feta.report.markdown import markdown
from feta.report.report import Gathering, Report, Source
from feta.space.attribute import Derived
from feta.space.bad_rows import BadRows, note_all_problems
from feta.space.column_format import Formats
from feta.space.table_file import TableFile
from feta.space.table_section import options_json

Format = Literal["text", "md", "json", "junit"]

# How a report is written to standard output, where it is not shown in words.
RENDERERS: dict[str, Callable[[Report], str]] = {
    "md": markdown,
    "json": lambda report: json_text(audit_json(report), indent=2),
    "junit": junit,
}

JOURNAL = "journal.sqlite"


@dataclass(frozen=True, slots=True)
class Options:
    """What the user asked for."""

    model_path: Path
    schema: Path | None
    source: SourceOptions
    one_vs_rest: str | None
    data: Path
    label: str | None
    id_column: str | None
    out: Path | None
    format: Format
    engine: str
    seconds: float | None
    skip_bad_rows: bool
    vote_weights: Path | None = None
    jobs: int = 1


def run_audit(options: Options) -> ExitCode:
    """Audit a table row by row; an interruption keeps what is done and labels it partial."""
    check_folder(options.out)
    opened = open_model(
        options.model_path,
        options.schema,
        options.source,
        one_vs_rest=options.one_vs_rest,
        people=People(options.data),
    )
    table = opened.table
    assert table is not None
    wanted = _wanted(opened.model, table, options)
    for note in opened.notes:
        notice(note)
    compared = check_reading(opened)
    gathering = Gathering(_auditor(opened, options))
    partial_results = False
    started = time.perf_counter()
    with (
        FolderLock(options.out, work="audit"),
        AuditFiles(options.out, opened.model) as files,
        terminable(),
        _asking(gathering.auditor, opened, options) as asking,
    ):
        bad_rows = BadRows(opened.model.space, open_limits=True)
        try:
            _go(asking, opened, wanted, options, gathering, files, bad_rows)
        except KeyboardInterrupt:
            partial_results = True
        except DomainError as error:
            if not options.skip_bad_rows:
                note_all_problems(
                    error,
                    table,
                    wanted,
                    opened.model.space,
                    opened.formats,
                    admit=gathering.auditor.admit,
                )
            raise
        source = _source(opened, options, compared)
        seconds = time.perf_counter() - started
        report = gathering.report(
            source, partial=partial_results, seconds=seconds, bad_rows=bad_rows.kinds
        )
        report = files.finish(report)
        if asking.lost:
            notice(
                f"{asking.lost:,} people have no answer because a process died: give the same command again with --out, and only they are asked again"
            )
        if asking.journal is not None and not (partial_results or asking.lost):
            asking.journal.remove()
    if options.format == "text":
        show(opened, report, out=options.out)
    else:
        sys.stdout.write(RENDERERS[options.format](report))
    return exit_code(report)


def _go(
    asking: Asking,
    opened: Opened,
    wanted: set[str],
    options: Options,
    gathering: Gathering,
    files: AuditFiles,
    bad_rows: BadRows,
) -> None:
    columns = Columns(options.label, options.id_column, options.skip_bad_rows)
    with progress_bar() as progress:
        task = progress.add_task(f"auditing {plain(options.data.name)}", total=1.0)
        base = 0.0
        assert opened.table is not None
        for chunk in opened.table.chunks(wanted, typed=opened.formats):
            for row in audited(asking, chunk, columns, bad_rows):
                with uninterrupted():  # counted and written, or neither
                    gathering.take(row.finding, row.person, row.label, row.name)
                    files.write(row.finding, row.name, row.person)
                share = (row.finding.row + 1 - chunk.start) / len(chunk)
                progress.update(task, completed=base + share * (chunk.progress - base))
            base = chunk.progress


def _auditor(opened: Opened, options: Options) -> Auditor:
    assert opened.table is not None
    weights = read_vote_weights(options.vote_weights, opened.model.space, opened.table.options)
    budget = Budget(seconds=options.seconds)
    return Auditor(opened.model, options.engine, budget, opened.runtime, weights)


def make_auditor(options: Options, formats: Formats) -> Auditor:
    """Open the files again, in a worker."""
    opened = open_model(
        options.model_path,
        options.schema,
        options.source,
        one_vs_rest=options.one_vs_rest,
        people=People(options.data, formats=formats),
    )
    return _auditor(opened, options)


@contextmanager
def _asking(auditor: Auditor, opened: Opened, options: Options) -> Iterator[Asking]:
    """Put together who computes and what is noted; workers end and the journal closes at the end."""
    make = partial(make_auditor, options, dict(opened.formats))
    workers = Workers(make, options.jobs) if options.jobs != 1 else None
    journal = None
    if options.out is not None:
        settings = {
            "engine": options.engine,
            "seconds": options.seconds,
            "vote weights": _digest(options.vote_weights),
            "runtime": opened.runtime_name,
            "version of FETA": version("feta-fair"),
        }
        journal = Journal(options.out / JOURNAL, opened.model, settings)
        if journal.set_aside is not None:
            notice(
                "the journal was damaged or written by another version: it was renamed to "
                f"{plain(journal.set_aside)}, and none of it is used; all people start again; "
                "no further action is needed"
            )
        if not journal.empty:
            notice(f"resuming with {len(journal):,} people known from {plain(journal.path)}")
    try:
        yield Asking(auditor, workers, journal)
    finally:
        if workers is not None:
            workers.stop()
        if journal is not None:
            journal.remove() if journal.empty else journal.close()


def _digest(path: Path | None) -> str:
    if path is None:
        return ""
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def _source(opened: Opened, options: Options, compared: Comparison | None) -> Source:
    return Source(
        options.model_path.name,
        options.data.name,
        _digest(options.data),
        _command(options),
        None if options.vote_weights is None else options.vote_weights.name,
        opened.unit,
        opened.runtime_name,
        "" if options.source.external else _digest(options.model_path),
        options_json(opened.options),
        compared,
        options.id_column,
        opened.notes,
    )


def _command(options: Options) -> str:
    """Write the command that asks for this audit again, with the files' names alone."""
    parts = ["feta", "audit", options.model_path.name, "--data", options.data.name]
    named = {
        "--schema": None if options.schema is None else options.schema.name,
        "--label": options.label,
        "--id": options.id_column,
        "--one-vs-rest": options.one_vs_rest,
        "--vote-weights": None if options.vote_weights is None else options.vote_weights.name,
        "--layers": options.source.layers,
        "--seconds": options.seconds,
        "--engine": None if options.engine == "auto" else options.engine,
    }
    for option, value in named.items():
        parts += [] if value is None else [option, str(value)]
    flags = {
        "--skip-bad-rows": options.skip_bad_rows,
        "--external-data": options.source.external,
        "--trust-pickle": options.source.trust_pickle,
    }
    out = "audit" if options.out is None else options.out.name
    return shlex.join([*parts, *(flag for flag, on in flags.items() if on), "--out", out])


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


def exit_code(report: Report) -> ExitCode:
    """Say how an audit ended."""
    if report.partial:
        return ExitCode.INTERRUPTED
    if report.summary.statuses["unfair"]:
        return ExitCode.COUNTEREXAMPLE
    return ExitCode.DONE if report.summary.everyone_fair else ExitCode.UNDECIDED
