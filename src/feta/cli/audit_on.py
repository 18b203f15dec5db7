"""`feta audit --on`: the parts of a dataset on a cluster, and one report as from one machine."""

import time
from dataclasses import replace
from pathlib import Path

from feta.auditing.executor import InProcess
from feta.auditing.part_claims import CLAIMS
from feta.auditing.report_data import ReportData
from feta.auditing.results import AuditResults
from feta.auditing.stored_results import read_bad_rows, read_results
from feta.auditing.stream import AuditStream
from feta.auditing.table_audit import TableAudit
from feta.cli.audit import AuditOptions, report_source, show_report
from feta.cli.audit_files import AuditFiles
from feta.cli.certificate_files import CertificateFiles
from feta.cli.exit_code import ExitCode
from feta.cli.notices import note_ignored, notice
from feta.cli.on_cluster import (
    ClusterRequest,
    ModelRequest,
    OpenRun,
    check_out,
    opened,
    summed,
)
from feta.cli.votes import VotesRequest, votes_of
from feta.distributed.part_work import RowOptions
from feta.distributed.result_folder import Receipt, ResultFolder
from feta.errors import SchemaError
from feta.io.bad_rows import BadRows
from feta.io.sanitize import plain
from feta.readers.comparison import Comparison
from feta.report.audit_tables import PAIRS, VERDICTS


def run_audit_on(options: AuditOptions, on: str) -> ExitCode:
    """Audit the parts of a dataset on a cluster."""
    out = _check(options)
    model = ModelRequest(options.origin, options.schema, options.source, options.one_vs_rest)
    rows = RowOptions(
        options.label,
        options.id_column,
        options.skip_bad_rows,
        options.engine,
        options.seconds,
        certify=options.certify,
    )
    with opened(ClusterRequest(on, options.data, out, model, rows, audits=True)) as open_run:
        note_ignored(open_run.ignored)
        for note in open_run.loaded.notes:
            notice(note)
        report = _audit(open_run, options, out)
    return show_report(open_run.loaded, report, options)


def _check(options: AuditOptions) -> Path:
    """Return the folder of the results; raise for options that contradict each other."""
    if options.jobs != 1:
        raise SchemaError(
            "two numbers of processes: got --jobs with --on; expected one of them; write --on "
            f"local:{options.jobs} for {options.jobs} processes on this machine"
        )
    return check_out(options.out, options.data)


def _audit(open_run: OpenRun, options: AuditOptions, out: Path) -> ReportData:
    """Audit all parts, merge their results, and write the files of the report."""
    started = time.perf_counter()
    loaded = open_run.loaded
    votes = votes_of(loaded, VotesRequest(vote_weights=options.vote_weights, fits=False))
    results = open_run.work(votes)
    auditor = open_run.part_work(votes).auditor()
    audit = TableAudit(auditor, AuditStream(InProcess(auditor)))
    digest = open_run.run.sha256
    with (
        AuditFiles(out, loaded.model) as files,
        CertificateFiles(auditor, loaded, options, digest) as certificate,
    ):
        receipts, compared = _merge(open_run, results, audit, (files, certificate))
        source = report_source(loaded, options, compared, data_sha256=digest)
        report = audit.report(source, seconds=time.perf_counter() - started)
        replaced = files.replaced(report)
        report = files.finish(replace(report, certificate=certificate.seal(complete=True)))
        certificate.finish()
    if replaced:
        notice(f"replaced {replaced}, which was in {plain(out)}")
    results.commit(receipts, {"rows": open_run.run.rows, "tables": dict(report.files)})
    return report


def _merge(
    open_run: OpenRun,
    results: ResultFolder,
    audit: TableAudit,
    writers: tuple[AuditFiles, CertificateFiles],
) -> tuple[list[Receipt], Comparison | None]:
    """Merge the results of all parts in order, and append their tables to the files."""
    model, (files, certificate) = open_run.loaded.model, writers
    merged, compared, receipts = AuditResults.of(model), None, []
    for facts, receipt in open_run.run.receipts(results):
        content = receipt.content
        merged = merged.merged(read_results(content["results"], model))
        empty = BadRows(model.space, open_limits=True)
        audit.bad_rows = audit.bad_rows.merged(read_bad_rows(content["bad_rows"], empty))
        compared = summed(compared, content["compared"])
        files.append({name: results.path(facts, name) for name in (PAIRS, VERDICTS)})
        certificate.append(results.path(facts, CLAIMS))
        receipts.append(replace(receipt, content={}))
    audit.results, audit.finished = merged, True
    return receipts, compared
