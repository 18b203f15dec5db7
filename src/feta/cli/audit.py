"""`feta audit`: the verdict of every row, a summary, and the files of a report."""

import hashlib
import shlex
import sys
import time
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass, replace
from functools import partial
from importlib.metadata import version
from pathlib import Path
from typing import Literal

from feta.auditing.auditor import Auditor
from feta.auditing.block import AuditedBlock
from feta.auditing.executor import Executor, InProcess, fitting_of
from feta.auditing.journal import AuditJournal
from feta.auditing.report_data import ReportData, ReportSource
from feta.auditing.stream import AuditStream
from feta.auditing.table_audit import TableAudit
from feta.auditing.table_blocks import RowColumns, TableBlocks
from feta.auditing.workers import Workers
from feta.cli.audit_files import AuditFiles
from feta.cli.audit_words import show
from feta.cli.certificate_files import CertificateFiles
from feta.cli.counted_rows import counted_progress
from feta.cli.exit_code import ExitCode
from feta.cli.folder_lock import FolderLock
from feta.cli.long_lived import long_lived
from feta.cli.notices import note_ignored, notice
from feta.cli.output_path import check_file, check_folder
from feta.cli.progress import show_progress
from feta.cli.sign import read_key
from feta.cli.signals import terminable, uninterrupted
from feta.cli.votes import VotesRequest, votes_of
from feta.engine.protocol import Budget
from feta.errors import DomainError, SchemaError
from feta.io.bad_rows import note_all_problems
from feta.io.certificate_file import MODEL
from feta.io.column_format import Formats
from feta.io.sanitize import json_text, plain
from feta.io.table_section import options_json
from feta.progress import Watch, unwatched
from feta.readers.check_reading import check_reading
from feta.readers.comparison import Comparison
from feta.readers.load import LoadedModel, PeopleFile
from feta.readers.load_function import ModelOrigin, Opening, open_any
from feta.readers.source import SourceOptions
from feta.report.audit_json import audit_json
from feta.report.junit import junit
from feta.report.markdown import markdown
from feta.scorer.counted.counted import Counted
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

    origin: ModelOrigin
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
    certify: bool = False
    without_model: bool = False  # the certificate comes without the model's file
    on: str | None = None  # a cluster
    sign: Path | None = None  # a private key


def run_audit(options: AuditOptions) -> ExitCode:
    """Audit a table row by row; an interruption keeps finished rows and marks them as partial."""
    check_folder(options.out)
    _check_certify(options)
    if options.on is not None:
        from feta.cli.audit_on import run_audit_on

        return run_audit_on(options, options.on)
    loaded = _load(options, PeopleFile(options.data), watch=show_progress)
    names = _columns_to_read(loaded, options)
    for note in loaded.notes:
        notice(note)
    comparison = check_reading(loaded, watch=show_progress)
    with counted_progress(loaded, jobs=options.jobs):
        report = _audit(loaded, names, options, comparison)
    return show_report(loaded, report, options)


def show_report(loaded: LoadedModel, report: ReportData, options: AuditOptions) -> ExitCode:
    """Print the report in the format of standard output."""
    if options.format == "text":
        show(loaded, report, out=options.out, certify=options.certify)
    else:
        sys.stdout.write(RENDERERS[options.format](report))
    return exit_code(report)


def _audit(
    loaded: LoadedModel, names: set[str], options: AuditOptions, comparison: Comparison | None
) -> ReportData:
    """Audit all rows, write the files, and return the report."""
    auditor = _auditor(loaded, options)
    started = time.perf_counter()
    certified = _digest(options.data) if options.certify else ""
    with (
        FolderLock(options.out, work="audit"),
        AuditFiles(options.out, loaded.model) as files,
        CertificateFiles(auditor, loaded, options, certified) as certificate,
        terminable(),
        long_lived(),
        TableAudit(auditor, _stream(auditor, loaded, options)) as audit,
    ):
        with suppress(KeyboardInterrupt):  # the results so far are reported as partial
            _audit_rows(audit, loaded, names, options, (files, certificate))
        digest = _digest(options.data)
        source = report_source(loaded, options, comparison, data_sha256=digest)
        seconds = time.perf_counter() - started
        report = audit.report(source, seconds=seconds, picture=options.out is not None)
        replaced = files.replaced(report)
        seal = certificate.seal(complete=not report.partial)
        report = files.finish(replace(report, certificate=seal))
        certificate.finish()
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
    files: tuple[AuditFiles, CertificateFiles],
) -> None:
    def write(audited: AuditedBlock) -> None:
        for writer in files:
            writer.write(audited)

    table, auditor = loaded.table, audit.auditor
    assert table is not None
    columns = RowColumns(options.label, options.id_column, options.skip_bad_rows)
    executor = audit.stream.executor
    fitting = fitting_of(executor)
    blocks = TableBlocks(auditor, columns, executor.block_size, fitting=fitting)
    chunks = table.chunks(names, typed=loaded.formats)
    try:
        with show_progress(f"auditing {plain(options.data.name)}", total=1.0) as advance:
            audit.run(blocks.blocks(chunks), write=write, guard=uninterrupted, advance=advance)
    except DomainError as error:
        if not options.skip_bad_rows:
            space, admit = loaded.model.space, auditor.admit
            note_all_problems(error, table, names, space, loaded.formats, admit=admit)
        raise


def _check_certify(options: AuditOptions) -> None:
    """Raise for options that contradict each other, before any work starts."""
    if options.without_model and not options.certify:
        raise SchemaError("--without-model needs --certify; add it, or omit --without-model")
    if options.sign is not None:
        if not options.certify:
            raise SchemaError("--sign needs --certify; add it, or omit --sign")
        read_key(options.sign)
    if not options.certify:
        return
    if options.out is None:
        raise SchemaError("--certify needs a folder: got no --out; add --out FOLDER")
    inputs = (options.origin.path, options.schema, options.data, options.vote_weights)
    if options.out.is_dir():
        check_file(options.out / MODEL, [path for path in inputs if path is not None])


def _load(options: AuditOptions, people: PeopleFile, *, watch: Watch = unwatched) -> LoadedModel:
    opening = Opening(options.schema, options.one_vs_rest, people, watch)
    return open_any(options.origin, opening, options.source)


def _auditor(loaded: LoadedModel, options: AuditOptions) -> Auditor:
    assert loaded.table is not None
    votes = votes_of(loaded, VotesRequest(vote_weights=options.vote_weights, fits=False))
    budget = Budget(seconds=options.seconds)
    # The pairs of a counted model are its own answers already.
    counted = loaded.model.scorer.provenance == "counted"
    runtime = None if counted else loaded.runtime
    stored = None if votes.is_default else votes
    auditor = Auditor(loaded.model, options.engine, budget, runtime, votes=stored)
    if options.certify:
        auditor.check_certifiable()
    return auditor


def make_auditor(options: AuditOptions, formats: Formats, fingerprint: str) -> Auditor:
    """Open the files in a worker process and return its auditor.

    The auditor refuses to work if a function answers differently here.
    """
    auditor = _auditor(_load(options, PeopleFile(options.data, formats=formats)), options)
    same = auditor.model.fingerprint == fingerprint
    return auditor if same else replace(auditor, refusal=OTHER_ANSWERS)


OTHER_ANSWERS = (
    "the model answers differently in another process: got other answers to the same rows; "
    "expected equal ones; fix its random state when it is imported, or run with --jobs 1"
)


def _stream(auditor: Auditor, loaded: LoadedModel, options: AuditOptions) -> AuditStream:
    """Choose the executor, and open the journal."""
    executor: Executor = InProcess(auditor)
    if options.jobs != 1:
        make = partial(make_auditor, _for_workers(options, loaded), dict(loaded.formats))
        executor = Workers(partial(make, fingerprint=loaded.model.fingerprint), options.jobs)
    journal = None if options.out is None else _open_journal(options.out, loaded, options)
    return AuditStream(executor, journal)


def _for_workers(options: AuditOptions, loaded: LoadedModel) -> AuditOptions:
    """Return the options of a worker: the same batches of a function, and a share of its rows."""
    scorer, origin = loaded.model.scorer, options.origin
    if not isinstance(scorer, Counted):
        return options
    max_rows = origin.max_rows
    share = None if max_rows is None else max(1, max_rows // options.jobs)
    return replace(options, origin=origin.for_worker(scorer.evaluator.batch, max_rows=share))


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


def report_source(
    loaded: LoadedModel,
    options: AuditOptions,
    comparison: Comparison | None,
    *,
    data_sha256: str,
) -> ReportSource:
    """Return the names and digests that a report shows."""
    return ReportSource(
        options.origin.name,
        options.data.name,
        data_sha256,
        _command(options),
        None if options.vote_weights is None else options.vote_weights.name,
        loaded.unit,
        loaded.runtime_name,
        "" if options.source.external else _digest(options.origin.path),
        options_json(loaded.options),
        comparison,
        options.id_column,
        loaded.notes,
        loaded.outcome_classes,
    )


def _command(options: AuditOptions) -> str:
    """Return the command that repeats this audit, with file names instead of paths."""
    origin = options.origin
    model = [origin.name] if origin.function is None else ["--predict", origin.name]
    parts = ["feta", "audit", *model, "--data", options.data.name]
    named = {
        "--schema": None if options.schema is None else options.schema.name,
        "--label": options.label,
        "--id": options.id_column,
        "--one-vs-rest": options.one_vs_rest,
        "--vote-weights": None if options.vote_weights is None else options.vote_weights.name,
        "--layers": options.source.layers,
        "--seconds": options.seconds,
        "--engine": None if options.engine == "auto" else options.engine,
        "--method": None if origin.method == "auto" else origin.method,
        "--on": options.on,
        "--sign": None if options.sign is None else options.sign.name,
    }
    for option, value in named.items():
        parts += [] if value is None else [option, str(value)]
    flags = {
        "--skip-bad-rows": options.skip_bad_rows,
        "--external-data": options.source.external,
        "--trust-pickle": options.source.trust_pickle,
        "--certify": options.certify,
        "--without-model": options.without_model,
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
    if report.stopped:
        return ExitCode.UNDECIDED
    if report.partial:
        return ExitCode.INTERRUPTED
    if report.summary.statuses["unfair"]:
        return ExitCode.COUNTEREXAMPLE
    return ExitCode.DONE if report.summary.everyone_fair else ExitCode.UNDECIDED
