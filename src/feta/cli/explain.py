"""`feta explain`: the smallest changes that would make fair decisions favorable, in words."""

import sys
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from rich.console import Console
from rich.text import Text

from feta.arrays import Matrix
from feta.cli.exit_code import ExitCode
from feta.cli.notices import notice
from feta.cli.progress import show_progress
from feta.cli.votes import VotesRequest, votes_of
from feta.errors import DomainError, SchemaError
from feta.io.sanitize import json_text, plain
from feta.predict.fair_predictor import FairPredictor
from feta.readers.load import LoadedModel
from feta.reasons.changeable import Changeable, read_changes
from feta.reasons.choices import spreads
from feta.reasons.explain import explain
from feta.reasons.explanation import Explanation, Finding
from feta.reasons.words import sentences
from feta.space.attribute import Derived


@dataclass(frozen=True, slots=True)
class ExplainOptions:
    """The options of `feta explain`."""

    data: Path
    change: tuple[str, ...]
    rows: tuple[int, ...]
    id_column: str | None
    ids: tuple[str, ...]
    people: int
    favorable: str | None
    max_columns: int
    max_decisions: int
    as_json: bool
    vote_weights: Path | None = None
    votes_from: Path | None = None
    exact_weights: bool = False


@dataclass(frozen=True, slots=True, eq=False)
class ReadPeople:
    """The rows of a table that could be read, with their numbers from 1 and ids."""

    people: Matrix
    numbers: tuple[int, ...]
    ids: tuple[str, ...]
    n_bad: int


def run_explain(loaded: LoadedModel, options: ExplainOptions) -> ExitCode:
    """Explain the decisions about some rows of a table."""
    if options.ids and options.id_column is None:
        raise SchemaError("ids of no column: got --person without --id; expected --id COLUMN")
    change = [one for text in options.change for one in read_changes(text)]
    for column in change:
        column.checked(loaded.model)  # before anything is read
    request = VotesRequest(
        options.votes_from,
        options.vote_weights,
        exact_weights=options.exact_weights,
        decided=options.data,
    )
    predictor = FairPredictor.voting(loaded.model, votes_of(loaded, request))
    read = _read(loaded, predictor, options.id_column)
    if read.n_bad:
        notice(f"rows that could not be read: {read.n_bad:,}; feta predict says why")
    explained = list(_explanations(predictor, read, change, options))
    if options.as_json:
        content = [
            {"row": read.numbers[index], **_id(read, index), **one.content,
             "sentences": sentences(one)}
            for index, one in explained
        ]  # fmt: skip
        sys.stdout.write(json_text({"explanations": content}, indent=2) + "\n")
    else:
        console = Console(soft_wrap=True)
        for index, one in explained:
            who = "".join(f" ({plain(value)})" for value in _id(read, index).values())
            text = f"Row {read.numbers[index]}{who}: {' '.join(sentences(one))}"
            console.print(Text(plain(text)))
        if not explained:
            console.print("Nobody to explain: no decision is unfavorable.")
    known = all(one.minimal and one.finding is not Finding.UNDECIDED for _, one in explained)
    return ExitCode.DONE if known else ExitCode.UNDECIDED


def _id(read: ReadPeople, index: int) -> dict[str, str]:
    return {"id": read.ids[index]} if read.ids else {}


def _read(loaded: LoadedModel, predictor: FairPredictor, id_column: str | None) -> ReadPeople:
    space, table = loaded.model.space, loaded.table
    assert table is not None  # --data is required
    ignore = predictor.sensitive == "ignore"  # some relations need the sensitive columns
    required = {
        a.name
        for a in space.attributes
        if not (isinstance(a, Derived) or (ignore and space.is_sensitive(a)))
    } | ({id_column} if id_column else set())
    table.require(sorted(required))
    parts, numbers, ids, n_all = [np.zeros((0, space.width))], list[int](), list[str](), 0
    with show_progress("reading people"):
        for chunk in table.chunks(required, typed=loaded.formats):
            people, good = chunk.encode_good(space, ignore_sensitive=ignore, admit=predictor.admit)
            parts.append(people)
            numbers += [chunk.start + index + 1 for index in good]
            n_all += len(chunk)
            if id_column:
                ids += [str(chunk.columns[id_column][index]) for index in good]
    return ReadPeople(np.concatenate(parts), tuple(numbers), tuple(ids), n_all - len(numbers))


def _explanations(
    predictor: FairPredictor, read: ReadPeople, change: list[Changeable], options: ExplainOptions
) -> Iterator[tuple[int, Explanation]]:
    """Yield the explanations of the people who were asked for, or of the first refused ones."""
    units = spreads(predictor.model, read.people)
    chosen, n_left = _chosen(read, options), options.people
    with show_progress("searching for changes"):
        for index in range(len(read.people)) if chosen is None else chosen:
            one = explain(
                predictor,
                read.people[index],
                change,
                spreads=units,
                favorable=options.favorable,
                max_columns=options.max_columns,
                max_decisions=options.max_decisions,
            )
            if chosen is not None or one.finding is not Finding.FAVORABLE:
                yield index, one
                n_left -= 1
            if chosen is None and not n_left:
                return


def _chosen(read: ReadPeople, options: ExplainOptions) -> list[int] | None:
    """Return the indices of the people who were asked for; None for nobody in particular."""
    if not options.rows and not options.ids:
        return None
    by_row = {number: index for index, number in enumerate(read.numbers)}
    by_id = {text: index for index, text in enumerate(read.ids)}
    for number in options.rows:
        if number not in by_row:
            raise DomainError(
                f"no row {number} that can be read in {options.data}: expected a number from 1 to "
                f"{max(read.numbers, default=0)}; feta predict says what is wrong with a row"
            )
    for text in options.ids:
        if text not in by_id:
            raise DomainError(
                f"no person {text!r} in the column {options.id_column!r} of {options.data}; "
                "feta predict says what is wrong with a row that cannot be read"
            )
    return [by_row[number] for number in options.rows] + [by_id[text] for text in options.ids]
