"""`feta predict --on`: fair decisions about the parts of a dataset, one file per part."""

from collections import Counter
from dataclasses import replace

from rich.console import Console
from rich.text import Text

from feta.auditing.stored_results import read_bad_rows
from feta.auditing.table_decisions import Remarks
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
from feta.cli.predict import PredictOptions, show_remarks, wrote
from feta.cli.votes import VotesRequest, votes_of
from feta.distributed.part_work import RowOptions
from feta.distributed.result_folder import PARTS, Json, Receipt, ResultFolder
from feta.errors import SchemaError
from feta.model import Model
from feta.readers.comparison import Comparison
from feta.space.limits import Outside


def run_predict_on(model: ModelRequest, options: PredictOptions, on: str) -> ExitCode:
    """Decide all parts; the commit file lists them with their digests."""
    rows = RowOptions(
        None,
        options.id_column,
        options.skip_bad_rows,
        options.engine,
        options.seconds,
        options.as_json,
    )
    out = check_out(options.out, options.data)
    request = ClusterRequest(on, options.data, out, model, rows, audits=False)
    votes = VotesRequest(
        options.votes_from,
        options.vote_weights,
        exact_weights=options.exact_weights,
        decided=options.data if options.data.is_file() else None,
    )
    with opened(request) as open_run:
        loaded, run = open_run.loaded, open_run.run
        if loaded.model.relation.reads_sensitive:
            raise SchemaError(
                "decisions by [consequences] need the sensitive columns, which parts of a dataset "
                "do not read here: got --on; expected one table; omit --on"
            )
        note_ignored(open_run.ignored)
        for note in loaded.notes:
            notice(note)
        results = open_run.work(votes_of(loaded, votes))
        counts, remarks, incomplete, receipts, compared = _merge(open_run, results)
        results.commit(receipts, {"rows": run.rows, "data_sha256": run.sha256})
    if compared is not None and compared.different:
        notice(compared.sentence())
    show_remarks(remarks, loaded.model)
    Console(stderr=True, soft_wrap=True).print(Text(wrote(out / PARTS, counts)))
    return ExitCode.UNDECIDED if incomplete else ExitCode.DONE


def _merge(
    open_run: OpenRun, results: ResultFolder
) -> tuple[Counter[str], Remarks, bool, list[Receipt], Comparison | None]:
    """Return counts, remarks, whether somebody has no decision, receipts, and the comparison."""
    model = open_run.loaded.model
    counts, remarks, incomplete = Counter[str](), Remarks.of(model), False
    receipts: list[Receipt] = []
    compared: Comparison | None = None
    for _, receipt in open_run.run.receipts(results):
        content = receipt.content
        counts.update(content["counts"])
        remarks = remarks.merged(_remarks(content, model))
        incomplete |= content["incomplete"]
        compared = summed(compared, content["compared"])
        receipts.append(replace(receipt, content={}))
    return counts, remarks, incomplete, receipts, compared


def _remarks(content: Json, model: Model) -> Remarks:
    stored = Remarks.of(model)
    read_bad_rows(content["bad_rows"], stored.bad_rows)
    stored.first_problems = content["first_problems"]
    stored.outside = Counter({Outside(*limit): count for limit, count in content["outside"]})
    stored.unlisted = Counter(content["unlisted"])
    return stored
