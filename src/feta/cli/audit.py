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

from feta.auditing.auditor import Auditor
from feta.auditing.journal import AuditJournal
from feta.auditing.rows import RowColumns, audit_rows
from feta.auditing.runner import AuditRunner
from feta.auditing.workers import Workers
from feta.cli.audit_files import AuditFiles
from feta.cli.audit_words import show
from feta.cli.exit_code import ExitCode
from feta.cli.folder_lock import FolderLock
from feta.cli.output_path import check_folder
from feta.cli.progress import progress_bar, watched
from feta.cli.signals import terminable, uninterrupted
from feta.cli.vote_weights import read_vote_weights
from feta.engine.protocol import Budget
from feta.errors import DomainError
from feta.io.bad_rows import BadRows, note_all_problems
from feta.io.column_format import Formats
from feta.io.sanitize import json_text, listed, plain
from feta.io.table_file import TableFile
from feta.io.table_section import options_json
from feta.model import Model
from feta.readers.check_reading import check_reading
from feta.readers.comparison import Comparison
from feta.readers.load import LoadedModel, PeopleFile, open_model
from feta.readers.source import SourceOptions
from feta.report.audit_json import audit_json
from feta.report.junit import junit
from feta.report.markdown import markdown
from feta.report.report import Report, ReportBuilder, ReportSource
from feta.space.attribute import Derived

Format = Literal["text", "md", "json", "junit"]

# How a report is written to standard output, where it is not shown in words.
RENDERERS: dict[str, Callable[[Report], str]] = {
    "md": markdown,
    "json": lambda report: json_text(audit_json(report), indent=2),
    "junit": junit,
}

JOURNAL = "journal.sqlite"


@dataclass(frozen=True, slots=True)
class AuditOptions:
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


def run_audit(options: AuditOptions) -> ExitCode:
    """Audit a table row by row; an interruption keeps what is done and labels it partial."""
    check_folder(options.out)
    loaded = open_model(
        options.model_path,
        options.schema,
        options.source,
        one_vs_rest=options.one_vs_rest,
        people=PeopleFile(options.data),
        watch=watched,
    )
    table = loaded.table
    assert table is not None
    wanted = _wanted(loaded.model, table, options)
    for note in loaded.notes:
        notice(note)
    compared = check_reading(loaded, watch=watched)
    builder = ReportBuilder(_auditor(loaded, options))
    partial_results = False
    started = time.perf_counter()
    with (
        FolderLock(options.out, work="audit"),
        AuditFiles(options.out, loaded.model) as files,
        terminable(),
        _runner(builder.auditor, loaded, options) as runner,
    ):
        bad_rows = BadRows(loaded.model.space, open_limits=True)
        try:
            _go(runner, loaded, wanted, options, builder, files, bad_rows)
        except KeyboardInterrupt:
            partial_results = True
        except DomainError as error:
            if not options.skip_bad_rows:
                note_all_problems(
                    error,
                    table,
                    wanted,
                    loaded.model.space,
                    loaded.formats,
                    admit=builder.auditor.admit,
                )
            raise
        source = _source(loaded, options, compared)
        seconds = time.perf_counter() - started
        report = builder.report(
            source, partial=partial_results, seconds=seconds, bad_rows=bad_rows.kinds
        )
        report = files.finish(report)
        if runner.lost:
            notice(
                f"{runner.lost:,} people have no answer because a process died: give the same command again with --out, and only they are asked again"
            )
        if runner.journal is not None and not (partial_results or runner.lost):
            runner.journal.remove()
    if options.format == "text":
        show(loaded, report, out=options.out)
    else:
        sys.stdout.write(RENDERERS[options.format](report))
    return exit_code(report)


def _go(
    runner: AuditRunner,
    loaded: LoadedModel,
    wanted: set[str],
    options: AuditOptions,
    builder: ReportBuilder,
    files: AuditFiles,
    bad_rows: BadRows,
) -> None:
    columns = RowColumns(options.label, options.id_column, options.skip_bad_rows)
    with progress_bar() as progress:
        task = progress.add_task(f"auditing {plain(options.data.name)}", total=1.0)
        base = 0.0
        assert loaded.table is not None
        for chunk in loaded.table.chunks(wanted, typed=loaded.formats):
            for row in audit_rows(runner, chunk, columns, bad_rows):
                with uninterrupted():  # counted and written, or neither
                    builder.take(row.finding, row.person, row.label, row.name)
                    files.write(row.finding, row.name, row.person)
                share = (row.finding.row + 1 - chunk.start) / len(chunk)
                progress.update(task, completed=base + share * (chunk.progress - base))
            base = chunk.progress


def _auditor(loaded: LoadedModel, options: AuditOptions) -> Auditor:
    assert loaded.table is not None
    weights = read_vote_weights(options.vote_weights, loaded.model.space, loaded.table.options)
    budget = Budget(seconds=options.seconds)
    return Auditor(loaded.model, options.engine, budget, loaded.runtime, weights)


def make_auditor(options: AuditOptions, formats: Formats) -> Auditor:
    """Open the files again, in a worker."""
    loaded = open_model(
        options.model_path,
        options.schema,
        options.source,
        one_vs_rest=options.one_vs_rest,
        people=PeopleFile(options.data, formats=formats),
    )
    return _auditor(loaded, options)


@contextmanager
def _runner(auditor: Auditor, loaded: LoadedModel, options: AuditOptions) -> Iterator[AuditRunner]:
    """Put together who computes and what is noted; workers end and the journal closes at the end."""
    make = partial(make_auditor, options, dict(loaded.formats))
    workers = Workers(make, options.jobs) if options.jobs != 1 else None
    journal = None
    if options.out is not None:
        settings = {
            "engine": options.engine,
            "seconds": options.seconds,
            "vote weights": _digest(options.vote_weights),
            "runtime": loaded.runtime_name,
            "version of FETA": version("feta-fair"),
        }
        journal = AuditJournal(options.out / JOURNAL, loaded.model, settings)
        if journal.set_aside is not None:
            notice(
                "the journal was damaged or written by another version: it was renamed to "
                f"{plain(journal.set_aside)}, and none of it is used; all people start again; "
                "no further action is needed"
            )
        if not journal.empty:
            notice(f"resuming with {len(journal):,} people known from {plain(journal.path)}")
    try:
        yield AuditRunner(auditor, workers, journal)
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


def _source(
    loaded: LoadedModel, options: AuditOptions, compared: Comparison | None
) -> ReportSource:
    return ReportSource(
        options.model_path.name,
        options.data.name,
        _digest(options.data),
        _command(options),
        None if options.vote_weights is None else options.vote_weights.name,
        loaded.unit,
        loaded.runtime_name,
        "" if options.source.external else _digest(options.model_path),
        options_json(loaded.options),
        compared,
        options.id_column,
        loaded.notes,
    )


def _command(options: AuditOptions) -> str:
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


def _wanted(model: Model, table: TableFile, options: AuditOptions) -> set[str]:
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
