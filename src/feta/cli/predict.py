"""`feta predict`: fair decisions; sensitive cells are never read and may be missing."""

import shutil
import sys
import tempfile
from collections import Counter
from contextlib import ExitStack
from dataclasses import dataclass, field, replace
from functools import partial
from pathlib import Path
from typing import IO

import numpy as np
from rich.console import Console
from rich.text import Text

from feta.arrays import Matrix
from feta.auditing.outcome import fair_outcomes
from feta.cli.exit_code import ExitCode
from feta.cli.notices import note_ignored, notice
from feta.cli.output_path import check_file
from feta.cli.progress import progress_bar, show_progress
from feta.cli.votes import VotesRequest, votes_of
from feta.engine.protocol import Budget
from feta.errors import DomainError
from feta.io.bad_rows import BadRows, listed_kinds, note_all_problems
from feta.io.chunk import Chunk
from feta.io.regular_file import part_path
from feta.io.sanitize import json_text, plain, write_row
from feta.model import Model
from feta.predict.fair_predictor import FairPredictor
from feta.readers.check_reading import check_reading
from feta.readers.load import LoadedModel
from feta.report.words import unlisted_words
from feta.space.attribute import Derived
from feta.space.limits import Outside

# Characters of decisions held in memory; more are written to a temporary file.
MAX_CHARACTERS_IN_MEMORY = 2**24

# Unread rows whose problem is printed in full.
SHOWN_PROBLEMS = 5


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
            Console(stderr=True, soft_wrap=True).print(Text(_wrote(options.out, counts)))
        else:
            stream.seek(0)
            shutil.copyfileobj(stream, sys.stdout)
    return ExitCode.UNDECIDED if undecided else ExitCode.DONE


def _wrote(path: Path, counts: Counter[str]) -> str:
    """Return the sentence about a written file: the number of rows by decision."""
    parts = [f"{count:,} {plain(name)}" for name, count in counts.most_common()]
    return f"Wrote {plain(path)}: {', '.join(parts)}."


def _columns_to_read(loaded: LoadedModel, options: PredictOptions) -> set[str]:
    """Return the columns that decisions read; all of them must exist."""
    space, table = loaded.model.space, loaded.table
    assert table is not None
    required = [
        a.name for a in space.attributes if not isinstance(a, Derived) and not space.is_sensitive(a)
    ]
    required += [options.id_column] if options.id_column else []
    table.require(required)
    names = set(required)
    known = {attribute.name for attribute in space.attributes}
    note_ignored([name for name in table.names if name not in names | known])
    return names


def _check_reading(loaded: LoadedModel) -> None:
    """Print how the model was read; refuse a model that itself decides differently."""
    for note in loaded.notes:
        notice(note)
    comparison = check_reading(loaded, ignore_sensitive=True, watch=show_progress)
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
    writer = _Writer(stream, options, "decision" if model.rule.tolerance is None else "score")
    remarks = Remarks(BadRows(model.space, ignore_sensitive=True, open_limits=True))
    undecided = False
    with progress_bar() as progress:
        task = progress.add_task(f"deciding {plain(options.data.name)}", total=1.0)
        try:
            for chunk in table.chunks(names, typed=loaded.formats):
                undecided |= _decide_chunk(predictor, chunk, writer, options, remarks)
                progress.update(task, completed=chunk.progress)
        except DomainError as error:
            if not options.skip_bad_rows:
                note_all_problems(
                    error, table, names, model.space, loaded.formats,
                    ignore_sensitive=True, admit=predictor.admit,
                )  # fmt: skip
            raise
    remarks.show(model)
    return undecided, writer.counts


@dataclass
class Remarks:
    """What a table shows besides decisions: unread rows, people outside limits, unlisted texts."""

    bad_rows: BadRows
    first_problems: list[str] = field(default_factory=list)
    outside: Counter[Outside] = field(default_factory=Counter)
    unlisted: Counter[str] = field(default_factory=Counter)

    def add_problem(self, row: Chunk, error: DomainError) -> None:
        """Count a row that could not be read."""
        self.bad_rows.add(row, error)
        if len(self.first_problems) < SHOWN_PROBLEMS:
            self.first_problems.append(str(error))

    def show(self, model: Model) -> None:
        """Print all remarks as notices."""
        for problem in self.first_problems:
            notice(f"not read: {problem}")
        if self.bad_rows.rows > len(self.first_problems):
            n_more = self.bad_rows.rows - len(self.first_problems)
            notice(f"and {n_more:,} more rows were not read")
        for line in listed_kinds(self.bad_rows.kinds):
            notice(f"rows not read: {plain(line)}")
        for name, count in self.unlisted.items():
            notice(unlisted_words(name, count))
        for limit, count in self.outside.items():
            notice(plain(limit.words(count, model.scorer.provenance)))


def _decide_chunk(
    predictor: FairPredictor,
    chunk: Chunk,
    writer: "_Writer",
    options: PredictOptions,
    remarks: Remarks,
) -> bool:
    """Write the decisions of one chunk; return whether some row is undecided."""
    model = predictor.model
    people, good = _encode(predictor, chunk, options, remarks)
    for limit, flags in model.space.open_limits.outside(people):
        remarks.outside[limit] += int(flags.sum())
    remarks.unlisted.update(model.space.unlisted(people))
    # The option limits the time per person; the predictor's budget is for all people together.
    seconds = None if options.seconds is None else options.seconds * len(chunk)
    outcomes = fair_outcomes(replace(predictor, budget=Budget(seconds=seconds)), people)
    by_index = dict(zip(good, outcomes, strict=True))
    for index in range(len(chunk)):
        outcome = by_index.get(index)
        text = "undecided" if outcome is None else model.describe(outcome)
        name = str(chunk.columns[options.id_column][index]) if options.id_column else None
        writer.write(chunk.start + index + 1, name, text if index in by_index else "not read")
    return None in outcomes or len(by_index) < len(chunk)


def _encode(
    predictor: FairPredictor, chunk: Chunk, options: PredictOptions, remarks: Remarks
) -> tuple[Matrix, list[int]]:
    """Encode the people of a chunk; with --skip-bad-rows, omit and count invalid rows."""
    space, admit = predictor.model.space, predictor.admit
    encode = partial(Chunk.encode, space=space, ignore_sensitive=True, admit=admit)
    try:
        people = encode(chunk, id_column=options.id_column)
        return people, list(range(len(chunk)))
    except DomainError:
        if not options.skip_bad_rows:
            raise
    rows: list[Matrix] = [np.zeros((0, space.width))]
    good: list[int] = []
    for index in range(len(chunk)):
        row = chunk.row(index)
        try:
            rows.append(encode(row, id_column=options.id_column))
            good.append(index)
        except DomainError as error:
            remarks.add_problem(row, error)
    return np.concatenate(rows), good


class _Writer:
    """Writer of one line per person: CSV, or JSON lines."""

    def __init__(self, stream: IO[str], options: PredictOptions, key: str) -> None:
        self.stream, self.as_json, self.key = stream, options.as_json, key
        self.counts: Counter[str] = Counter()
        if not self.as_json:
            names = ["row", *([options.id_column] if options.id_column else []), key]
            write_row(stream, names)

    def write(self, row: int, name: str | None, outcome: str | float) -> None:
        self.counts[outcome if isinstance(outcome, str) else "scores"] += 1
        if self.as_json:
            content: dict[str, object] = {"row": row} | ({"id": name} if name is not None else {})
            self.stream.write(json_text(content | {self.key: outcome}))
        else:
            write_row(self.stream, [row, *([name] if name is not None else []), outcome])
