"""`feta audit`: the verdict of every row, a summary, and the files of a report."""

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

from feta.auditing.auditor import Auditor
from feta.auditing.journal import AuditJournal
from feta.auditing.rows import RowColumns, audit_rows
from feta.auditing.runner import AuditRunner
from feta.auditing.workers import Workers
from feta.cli.audit_files import AuditFiles
from feta.cli.audit_words import show
from feta.cli.exit_code import ExitCode
from feta.cli.folder_lock import FolderLock
from feta.cli.notices import note_ignored, notice
from feta.cli.output_path import check_folder
from feta.cli.progress import progress_bar, show_progress
from feta.cli.signals import terminable, uninterrupted
from feta.cli.vote_weights import read_vote_weights
from feta.engine.protocol import Budget
from feta.errors import DomainError
from feta.io.bad_rows import BadRows, note_all_problems
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
from feta.report.report import Report, ReportBuilder, ReportSource
from feta.space.attribute import Derived

Format = Literal["text", "md", "json", "junit"]

# Formats of standard output other than text.
RENDERERS: dict[str, Callable[[Report], str]] = {
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
) -> Report:
    """Audit all rows, write the files, and return the report."""
    space, table = loaded.model.space, loaded.table
    assert table is not None
    builder = ReportBuilder(_auditor(loaded, options))
    interrupted = False
    started = time.perf_counter()
    with (
        FolderLock(options.out, work="audit"),
        AuditFiles(options.out, loaded.model) as files,
        terminable(),
        _runner(builder.auditor, loaded, options) as runner,
    ):
        bad_rows = BadRows(space, open_limits=True)
        try:
            _audit_rows(runner, loaded, names, options, builder, files, bad_rows)
        except KeyboardInterrupt:
            interrupted = True
        except DomainError as error:
            if not options.skip_bad_rows:
                admit = builder.auditor.admit
                note_all_problems(error, table, names, space, loaded.formats, admit=admit)
            raise
        source = _source(loaded, options, comparison)
        seconds = time.perf_counter() - started
        report = builder.report(
            source, partial=interrupted, seconds=seconds, bad_rows=bad_rows.kinds
        )
        replaced = files.replaced(report)
        report = files.finish(report)
        if replaced:
            notice(f"replaced {replaced}, which was in {plain(options.out)}")
        if runner.lost:
            notice(
                f"{runner.lost:,} people have no verdict because a worker process died; "
                "run the same command again with --out to audit only these"
            )
        if runner.journal is not None and not (interrupted or runner.lost):
            runner.journal.remove()
    return report


def _audit_rows(
    runner: AuditRunner,
    loaded: LoadedModel,
    names: set[str],
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
        for chunk in loaded.table.chunks(names, typed=loaded.formats):
            for row in audit_rows(runner, chunk, columns, bad_rows):
                with uninterrupted():  # a row is both counted and written, or neither
                    builder.take(row.finding, row.person, row.label, row.name)
                    files.write(row.finding, row.name, row.person)
                share = (row.finding.row + 1 - chunk.start) / len(chunk)
                progress.update(task, completed=base + share * (chunk.progress - base))
            base = chunk.progress


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


@contextmanager
def _runner(auditor: Auditor, loaded: LoadedModel, options: AuditOptions) -> Iterator[AuditRunner]:
    """Start the workers and open the journal; stop and close them at the end."""
    make = partial(make_auditor, options, dict(loaded.formats))
    workers = Workers(make, options.jobs) if options.jobs != 1 else None
    journal = None if options.out is None else _open_journal(options.out, loaded, options)
    try:
        yield AuditRunner(auditor, workers, journal)
    finally:
        if workers is not None:
            workers.stop()
        if journal is not None:
            journal.remove() if journal.empty else journal.close()


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


def exit_code(report: Report) -> ExitCode:
    """Return the exit code of a finished audit."""
    if report.partial:
        return ExitCode.INTERRUPTED
    if report.summary.statuses["unfair"]:
        return ExitCode.COUNTEREXAMPLE
    return ExitCode.DONE if report.summary.everyone_fair else ExitCode.UNDECIDED
