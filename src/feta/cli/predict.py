"""`feta predict`: fair decisions; the sensitive cells are never read, and may be missing."""

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

from feta.arrays import Matrix
from feta.auditing.outcome import fair_outcomes
from feta.cli.audit import note_ignored, notice
from feta.cli.exit_code import ExitCode
from feta.cli.output_path import check_file
from feta.cli.progress import progress_bar, watched
from feta.cli.vote_weights import read_vote_weights
from feta.engine.protocol import Budget
from feta.errors import DomainError
from feta.io.bad_rows import BadRows, listed_kinds, note_all_problems
from feta.io.chunk import Chunk
from feta.io.part_file import part_of
from feta.io.sanitize import json_text, plain, write_row
from feta.predict.fair_predictor import FairPredictor
from feta.readers.check_reading import check_reading
from feta.readers.load import LoadedModel
from feta.report.words import unlisted_words
from feta.rule import Tolerance
from feta.space.attribute import Derived
from feta.space.limits import Outside

# Decisions kept in memory before they go to a temporary file, in characters.
SPOOLED = 2**24

# Rows that could not be read whose problem is spelled out.
SHOWN_PROBLEMS = 5


@dataclass(frozen=True, slots=True)
class PredictOptions:
    """What the user asked for."""

    data: Path
    id_column: str | None
    out: Path | None
    as_json: bool
    engine: str
    seconds: float | None
    skip_bad_rows: bool = False
    vote_weights: Path | None = None
    inputs: tuple[Path, ...] = ()  # files that must not be written over


def run_predict(loaded: LoadedModel, options: PredictOptions) -> ExitCode:
    """Decide each row of a table, streaming; undecided rows say so, and the exit code too."""
    model = loaded.model
    space = model.space
    check_file(options.out, options.inputs)
    table = loaded.table
    assert table is not None
    needed = [
        a.name for a in space.attributes if not isinstance(a, Derived) and not space.is_sensitive(a)
    ]
    table.require([*needed, *([options.id_column] if options.id_column else [])])
    wanted = {*needed, *([options.id_column] if options.id_column else [])}
    known = {attribute.name for attribute in space.attributes}
    note_ignored([name for name in table.names if name not in wanted | known])
    _check(loaded)
    weights = read_vote_weights(options.vote_weights, space, table.options)
    predictor = FairPredictor(model, options.engine, weights=weights)
    answer = "score" if isinstance(model.rule, Tolerance) else "decision"
    undecided = False
    part = options.out and part_of(options.out)
    with ExitStack() as stack:
        stream: IO[str]
        if part is not None:
            stack.callback(part.unlink, missing_ok=True)
            stream = stack.enter_context(part.open("w", encoding="utf-8", newline=""))
        else:  # nothing is printed before every row is known to be good
            stream = stack.enter_context(
                tempfile.SpooledTemporaryFile(SPOOLED, "w+", encoding="utf-8", newline="")
            )
        writer = _Writer(stream, options, answer)
        progress = stack.enter_context(progress_bar())
        task = progress.add_task(f"deciding {plain(options.data.name)}", total=1.0)
        problems = Problems(BadRows(space, ignore_sensitive=True, open_limits=True))
        beyond: Counter[Outside] = Counter()
        unlisted: Counter[str] = Counter()
        seen = Found(problems, beyond, unlisted)
        try:
            for chunk in table.chunks(wanted, typed=loaded.formats):
                undecided |= _decide(predictor, chunk, writer, options, seen)
                progress.update(task, completed=chunk.progress)
        except DomainError as error:
            if not options.skip_bad_rows:
                note_all_problems(
                    error, table, wanted, space, loaded.formats,
                    ignore_sensitive=True, admit=predictor.admit,
                )  # fmt: skip
            raise
        progress.stop()
        problems.tell()
        for name, count in unlisted.items():
            notice(unlisted_words(name, count))
        for one, count in beyond.items():
            notice(plain(one.words(count, model.network.provenance)))
        if part is not None and options.out is not None:
            stream.close()
            part.replace(options.out)
        else:
            stream.seek(0)
            shutil.copyfileobj(stream, sys.stdout)
    return ExitCode.UNDECIDED if undecided else ExitCode.DONE


def _check(loaded: LoadedModel) -> None:
    """Say how the model was read, and refuse one that itself decides otherwise."""
    for note in loaded.notes:
        notice(note)
    compared = check_reading(loaded, ignore_sensitive=True, watch=watched)
    if compared is not None and compared.different:
        notice(compared.sentence())


@dataclass
class Problems:
    """Rows that could not be read: by column and reason, and what is wrong with the first few."""

    rows: BadRows
    first: list[str] = field(default_factory=list)

    def add(self, row: Chunk, error: DomainError) -> None:
        """Count one more."""
        self.rows.add(row, error)
        if len(self.first) < SHOWN_PROBLEMS:
            self.first.append(str(error))

    def tell(self) -> None:
        """Say them."""
        for what in self.first:
            notice(f"not read: {what}")
        if self.rows.rows > len(self.first):
            notice(f"and {self.rows.rows - len(self.first):,} more rows were not read")
        for line in listed_kinds(self.rows.kinds):
            notice(f"rows not read: {plain(line)}")


@dataclass
class Found:
    """What a table shows besides decisions: bad rows, people outside limits, unlisted texts."""

    problems: Problems
    beyond: Counter[Outside]
    unlisted: Counter[str]


def _decide(
    predictor: FairPredictor,
    chunk: Chunk,
    writer: "_Writer",
    options: PredictOptions,
    seen: "Found",
) -> bool:
    model = predictor.model
    people, good = _people(predictor, chunk, options, seen.problems)
    for one, flags in model.space.open_limits.outside(people):
        seen.beyond[one] += int(flags.sum())
    seen.unlisted.update(model.space.unlisted(people))
    # The budget is a person's; the predictor takes one for all.
    seconds = None if options.seconds is None else options.seconds * len(chunk)
    answers = fair_outcomes(replace(predictor, budget=Budget(seconds=seconds)), people)
    found = dict(zip(good, answers, strict=True))
    for index in range(len(chunk)):
        answer = found.get(index)
        outcome = "undecided" if answer is None else model.describe(answer)
        name = str(chunk.columns[options.id_column][index]) if options.id_column else None
        writer.write(chunk.start + index + 1, name, outcome if index in found else "not read")
    return None in answers or len(found) < len(chunk)


def _people(
    predictor: FairPredictor, chunk: Chunk, options: PredictOptions, problems: Problems
) -> tuple[Matrix, list[int]]:
    """Encode a chunk's people; those who cannot be are left out and told, if that is asked for."""
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
        one = chunk.row(index)
        try:
            rows.append(encode(one, id_column=options.id_column))
            good.append(index)
        except DomainError as error:
            problems.add(one, error)
    return np.concatenate(rows), good


class _Writer:
    """One line a person: CSV, or JSON lines."""

    def __init__(self, stream: IO[str], options: PredictOptions, answer: str) -> None:
        self.stream, self.as_json, self.answer = stream, options.as_json, answer
        if not self.as_json:
            names = ["row", *([options.id_column] if options.id_column else []), answer]
            write_row(stream, names)

    def write(self, row: int, name: str | None, outcome: str | float) -> None:
        if self.as_json:
            told: dict[str, object] = {"row": row} | ({"id": name} if name is not None else {})
            self.stream.write(json_text(told | {self.answer: outcome}))
        else:
            write_row(self.stream, [row, *([name] if name is not None else []), outcome])
