"""`feta predict`: fair decisions; sensitive cells are read only if the relation needs them."""

import shutil
import sys
import tempfile
from collections import Counter
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path
from typing import IO

from rich.console import Console
from rich.text import Text

from feta.auditing.table_decisions import Remarks, TableDecisions
from feta.cli.exit_code import ExitCode
from feta.cli.notices import note_ignored, notice
from feta.cli.output_path import check_file
from feta.cli.progress import progress_bar, show_progress
from feta.cli.votes import VotesRequest, votes_of
from feta.errors import DomainError
from feta.io.bad_rows import listed_kinds, note_all_problems
from feta.io.regular_file import part_path
from feta.io.sanitize import plain
from feta.model import Model
from feta.predict.fair_predictor import FairPredictor
from feta.readers.check_reading import check_reading
from feta.readers.load import LoadedModel
from feta.report.decision_table import DecisionTable
from feta.report.words import unlisted_words
from feta.space.attribute import Derived

# Characters of decisions held in memory; more are written to a temporary file.
MAX_CHARACTERS_IN_MEMORY = 2**24


@dataclass(frozen=True, slots=True)
class PredictOptions:
    """The options of `feta predict`."""

    data: Path
    id_column: str | None
    out: Path | None
    as_json: bool
    engine: str
    seconds: float | None
    skip_bad_rows: bool = False
    vote_weights: Path | None = None
    votes_from: Path | None = None
    inputs: tuple[Path, ...] = ()  # files that must not be overwritten
    exact_weights: bool = False


def run_predict(loaded: LoadedModel, options: PredictOptions) -> ExitCode:
    """Decide the rows of a table in chunks; undecided rows are marked and set the exit code."""
    check_file(options.out, options.inputs)
    names = _columns_to_read(loaded, options)
    _check_reading(loaded)
    request = VotesRequest(
        options.votes_from,
        options.vote_weights,
        exact_weights=options.exact_weights,
        decided=options.data,
    )
    votes = votes_of(loaded, request)
    predictor = FairPredictor.voting(loaded.model, votes, options.engine)
    part = options.out and part_path(options.out)
    with ExitStack() as stack:
        stream: IO[str]
        if part is not None:
            stack.callback(part.unlink, missing_ok=True)
            stream = stack.enter_context(part.open("w", encoding="utf-8", newline=""))
        else:  # print nothing before all rows are known to be valid
            stream = stack.enter_context(
                tempfile.SpooledTemporaryFile(
                    MAX_CHARACTERS_IN_MEMORY, "w+", encoding="utf-8", newline=""
                )
            )
        undecided, counts = _decide_table(loaded, predictor, names, options, stream)
        if part is not None and options.out is not None:
            stream.close()
            part.replace(options.out)
            # On stderr, so that stdout is empty with --out, as before the message existed.
            Console(stderr=True, soft_wrap=True).print(Text(wrote(options.out, counts)))
        else:
            stream.seek(0)
            shutil.copyfileobj(stream, sys.stdout)
    return ExitCode.UNDECIDED if undecided else ExitCode.DONE


def wrote(path: Path, counts: Counter[str]) -> str:
    """Return the sentence about a written file: the number of rows by decision."""
    parts = [f"{count:,} {plain(name)}" for name, count in counts.most_common()]
    return f"Wrote {plain(path)}: {', '.join(parts)}."


def _columns_to_read(loaded: LoadedModel, options: PredictOptions) -> set[str]:
    """Return the columns that decisions read; all of them must exist."""
    space, table = loaded.model.space, loaded.table
    assert table is not None
    required = [
        a.name
        for a in space.attributes
        if not isinstance(a, Derived) and (_reads_sensitive(loaded) or not space.is_sensitive(a))
    ]
    required += [options.id_column] if options.id_column else []
    table.require(required)
    names = set(required)
    known = {attribute.name for attribute in space.attributes}
    note_ignored([name for name in table.names if name not in names | known])
    return names


def _reads_sensitive(loaded: LoadedModel) -> bool:
    """Return whether decisions need the sensitive columns."""
    return loaded.model.relation.reads_sensitive


def _check_reading(loaded: LoadedModel) -> None:
    """Print how the model was read; refuse a model that itself decides differently."""
    for note in loaded.notes:
        notice(note)
    if _reads_sensitive(loaded):
        notice(
            "these decisions need the sensitive columns: the equations of [consequences] recover "
            "each person's noise from them"
        )
    ignore = not _reads_sensitive(loaded)
    comparison = check_reading(loaded, ignore_sensitive=ignore, watch=show_progress)
    if comparison is not None and comparison.different:
        notice(comparison.sentence())


def _decide_table(
    loaded: LoadedModel,
    predictor: FairPredictor,
    names: set[str],
    options: PredictOptions,
    stream: IO[str],
) -> tuple[bool, Counter[str]]:
    """Write all decisions and print the remarks.

    Returns whether some row is undecided, and the number of rows by decision.
    """
    model, table = loaded.model, loaded.table
    assert table is not None
    key = "decision" if model.rule.tolerance is None else "score"
    written = DecisionTable(stream, key, id_column=options.id_column, as_json=options.as_json)
    decisions = TableDecisions(predictor, options.id_column, options.skip_bad_rows, options.seconds)
    with progress_bar() as progress:
        task = progress.add_task(f"deciding {plain(options.data.name)}", total=1.0)
        try:
            for chunk in table.chunks(names, typed=loaded.formats):
                written.write(chunk, decisions.of_chunk(chunk))
                progress.update(task, completed=chunk.progress)
        except DomainError as error:
            if not options.skip_bad_rows:
                note_all_problems(
                    error, table, names, model.space, loaded.formats,
                    ignore_sensitive=not _reads_sensitive(loaded), admit=predictor.admit,
                )  # fmt: skip
            raise
    show_remarks(decisions.remarks, model)
    return decisions.incomplete, written.counts


def show_remarks(remarks: Remarks, model: Model) -> None:
    """Print all remarks about a table as notices."""
    for problem in remarks.first_problems:
        notice(f"not read: {problem}")
    if remarks.bad_rows.rows > len(remarks.first_problems):
        n_more = remarks.bad_rows.rows - len(remarks.first_problems)
        notice(f"and {n_more:,} more rows were not read")
    for line in listed_kinds(remarks.bad_rows.kinds):
        notice(f"rows not read: {plain(line)}")
    for name, count in remarks.unlisted.items():
        notice(unlisted_words(name, count))
    for limit, count in remarks.outside.items():
        notice(plain(limit.words(count, model.scorer.provenance)))
