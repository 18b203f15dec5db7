"""`feta audit`: the verdict of every row, a summary, and the files of a report."""

import hashlib
import shlex
import sys
import time
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass
from functools import partial
from importlib.metadata import version
from pathlib import Path
from typing import Literal

from feta.auditing.auditor import Auditor
from feta.auditing.executor import Executor, InProcess
from feta.auditing.journal import AuditJournal
from feta.auditing.report_data import ReportData, ReportSource
from feta.auditing.stream import AuditStream
from feta.auditing.table_audit import TableAudit
from feta.auditing.table_blocks import RowColumns, TableBlocks
from feta.auditing.workers import Workers
from feta.cli.audit_files import AuditFiles
from feta.cli.audit_words import show
from feta.cli.exit_code import ExitCode
from feta.cli.folder_lock import FolderLock
from feta.cli.notices import note_ignored, notice
from feta.cli.output_path import check_folder
from feta.cli.progress import show_progress
from feta.cli.signals import terminable, uninterrupted
from feta.cli.vote_weights import read_vote_weights
from feta.engine.protocol import Budget
from feta.errors import DomainError
from feta.io.bad_rows import note_all_problems
from feta.io.column_format import Formats
from feta.io.sanitize import json_text, plain
from feta.io.table_section import options_json
from feta.progress import Watch, unwatched
from feta.readers.check_reading import check_reading
from feta.readers.comparison import Comparison
from feta.readers.load import LoadedModel, PeopleFile, open_model
from feta.readers.source import SourceOptions
from feta.report.audit_json import audit_json
from feta.report.junit import junit
from feta.report.markdown import markdown
from feta.space.attribute import Derived

Format = Literal["text", "md", "json", "junit"]

# Formats of standard output other than text.
RENDERERS: dict[str, Callable[[ReportData], str]] = {
    "md": markdown,
    "json": lambda report: json_text(audit_json(report), indent=2),
    "junit": junit,
}

JOURNAL = "journal.sqlite"


@dataclass(frozen=True, slots=True)
class AuditOptions:
    """The options of `feta audit`."""

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
    """Audit a table row by row; an interruption keeps finished rows and marks them as partial."""
    check_folder(options.out)
    loaded = _load(options, PeopleFile(options.data), watch=show_progress)
    names = _columns_to_read(loaded, options)
    for note in loaded.notes:
        notice(note)
    comparison = check_reading(loaded, watch=show_progress)
    report = _audit(loaded, names, options, comparison)
    if options.format == "text":
        show(loaded, report, out=options.out)
    else:
        sys.stdout.write(RENDERERS[options.format](report))
    return exit_code(report)


def _audit(
    loaded: LoadedModel, names: set[str], options: AuditOptions, comparison: Comparison | None
) -> ReportData:
    """Audit all rows, write the files, and return the report."""
    auditor = _auditor(loaded, options)
    started = time.perf_counter()
    with (
        FolderLock(options.out, work="audit"),
        AuditFiles(options.out, loaded.model) as files,
        terminable(),
        TableAudit(auditor, _stream(auditor, loaded, options)) as audit,
    ):
        with suppress(KeyboardInterrupt):  # the results so far are reported as partial
            _audit_rows(audit, loaded, names, options, files)
        source = _source(loaded, options, comparison)
        seconds = time.perf_counter() - started
        report = audit.report(source, seconds=seconds, picture=options.out is not None)
        replaced = files.replaced(report)
        report = files.finish(report)
        if replaced:
            notice(f"replaced {replaced}, which was in {plain(options.out)}")
        lost = audit.stream.lost
        if lost:
            notice(
                f"{lost:,} people have no verdict because a worker process died; "
                "run the same command again with --out to audit only these"
            )
        audit.reported = True
    return report


def _audit_rows(
    audit: TableAudit,
    loaded: LoadedModel,
    names: set[str],
    options: AuditOptions,
    files: AuditFiles,
) -> None:
    table, auditor = loaded.table, audit.auditor
    assert table is not None
    columns = RowColumns(options.label, options.id_column, options.skip_bad_rows)
    blocks = TableBlocks(auditor, columns, audit.stream.executor.block_size)
    chunks = table.chunks(names, typed=loaded.formats)
    try:
        with show_progress(f"auditing {plain(options.data.name)}", total=1.0) as advance:
            audit.run(
                blocks.blocks(chunks), write=files.write, guard=uninterrupted, advance=advance
            )
    except DomainError as error:
        if not options.skip_bad_rows:
            space, admit = loaded.model.space, auditor.admit
            note_all_problems(error, table, names, space, loaded.formats, admit=admit)
        raise


def _load(options: AuditOptions, people: PeopleFile, *, watch: Watch = unwatched) -> LoadedModel:
    return open_model(
        options.model_path,
        options.schema,
        options.source,
        one_vs_rest=options.one_vs_rest,
        people=people,
        watch=watch,
    )


def _auditor(loaded: LoadedModel, options: AuditOptions) -> Auditor:
    assert loaded.table is not None
    weights = read_vote_weights(options.vote_weights, loaded.model.space, loaded.table.options)
    budget = Budget(seconds=options.seconds)
    return Auditor(loaded.model, options.engine, budget, loaded.runtime, weights)


def make_auditor(options: AuditOptions, formats: Formats) -> Auditor:
    """Open the files in a worker process and return its auditor."""
    return _auditor(_load(options, PeopleFile(options.data, formats=formats)), options)


def _stream(auditor: Auditor, loaded: LoadedModel, options: AuditOptions) -> AuditStream:
    """Choose the executor, and open the journal."""
    executor: Executor = InProcess(auditor)
    if options.jobs != 1:
        executor = Workers(partial(make_auditor, options, dict(loaded.formats)), options.jobs)
    journal = None if options.out is None else _open_journal(options.out, loaded, options)
    return AuditStream(executor, journal)


def _open_journal(folder: Path, loaded: LoadedModel, options: AuditOptions) -> AuditJournal:
    settings = {
        "engine": options.engine,
        "seconds": options.seconds,
        "vote weights": _digest(options.vote_weights),
        "runtime": loaded.runtime_name,
        "version of FETA": version("feta-fair"),
    }
    journal = AuditJournal(folder / JOURNAL, loaded.model, settings)
    note = journal.damage_note("people")
    if note:
        notice(note)
    if not journal.empty:
        notice(f"resuming with {len(journal):,} people known from {plain(journal.path)}")
    return journal


def _digest(path: Path | None) -> str:
    if path is None:
        return ""
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def _source(
    loaded: LoadedModel, options: AuditOptions, comparison: Comparison | None
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
        comparison,
        options.id_column,
        loaded.notes,
        loaded.outcome_classes,
    )


def _command(options: AuditOptions) -> str:
    """Return the command that repeats this audit, with file names instead of paths."""
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


def _columns_to_read(loaded: LoadedModel, options: AuditOptions) -> set[str]:
    """Return the columns that the audit reads; require those that must exist."""
    attributes, table = loaded.model.space.attributes, loaded.table
    assert table is not None
    required = [a.name for a in attributes if not isinstance(a, Derived)]
    table.require(required)
    extra = [name for name in (options.label, options.id_column) if name]
    table.require(extra)
    derived = {a.name for a in attributes if isinstance(a, Derived)}
    names = {*required, *extra, *(derived & set(table.names))}
    note_ignored([name for name in table.names if name not in names])
    return names


def exit_code(report: ReportData) -> ExitCode:
    """Return the exit code of a finished audit."""
    if report.partial:
        return ExitCode.INTERRUPTED
    if report.summary.statuses["unfair"]:
        return ExitCode.COUNTEREXAMPLE
    return ExitCode.DONE if report.summary.everyone_fair else ExitCode.UNDECIDED
