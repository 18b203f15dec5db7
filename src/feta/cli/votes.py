"""The votes of fair decisions: stored in the model's file, or fitted to the people of a table."""

import hashlib
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np

from feta.arrays import Matrix
from feta.cli.notices import notice
from feta.cli.progress import show_progress
from feta.cli.vote_weights import read_vote_weights
from feta.errors import SchemaError
from feta.io.table_file import TableFile
from feta.model import Model
from feta.predict.fit_votes import fit_votes
from feta.readers.load import LoadedModel
from feta.vote.settings import Recommended, VoteSettings
from feta.vote.stored_votes import StoredVotes

EXACT = (
    "exact weights are stored: combinations of sensitive values that few people have may reveal "
    "that these people are in the table"
)


@dataclass(frozen=True, slots=True)
class VotesRequest:
    """The options of a command about votes."""

    votes_from: Path | None = None
    vote_weights: Path | None = None
    exact_weights: bool = False
    decided: Path | None = None  # the table that the command decides
    fits: bool = True  # whether the command can fit votes


def votes_of(loaded: LoadedModel, request: VotesRequest) -> StoredVotes:
    """Return the votes that a command asks for, or those of the model's file."""
    _check_sources(loaded, request)
    if request.votes_from is not None:
        return fitted_votes(loaded, request.votes_from, request)
    if request.vote_weights is not None:
        return _weighted_votes(loaded, request.vote_weights, request)
    if loaded.settings is None or not loaded.votes.is_default:
        return loaded.votes
    return _votes_without_people(loaded, loaded.settings, request)


def _check_sources(loaded: LoadedModel, request: VotesRequest) -> None:
    """Raise if there is more than one source of votes."""
    n_options = (request.votes_from is not None) + (request.vote_weights is not None)
    if n_options and not loaded.votes.is_default:
        raise SchemaError(
            "two sources of votes: the .feta file contains votes, and --vote-weights or "
            "--votes-from asks for others; expected one; remove the option, or use the file from "
            "which this one was exported"
        )
    if n_options > 1:
        raise SchemaError(
            "two sources of votes: got --vote-weights and --votes-from; expected one of them"
        )
    if request.exact_weights and request.votes_from is None:
        raise SchemaError(
            "exact weights of nobody: got --exact-weights without --votes-from; expected both"
        )


def _weighted_votes(loaded: LoadedModel, path: Path, request: VotesRequest) -> StoredVotes:
    """Return the vote of the schema with these weights; without [votes], their majority."""
    settings = loaded.settings
    if settings is None:
        return StoredVotes(weights=read_vote_weights(path, loaded.model.space, loaded.options))
    if settings.weights == "equal":
        raise SchemaError(
            'two settings of weights: got --vote-weights, and weights = "equal" in [votes] of the '
            "schema; expected one; remove one of them"
        )
    adapted = settings.adapted(loaded.model)
    if adapted.level is not None and adapted.vote != "majority":
        stated = "the default" if isinstance(settings.level, Recommended) else "stated there"
        instead = "--votes-from" if request.fits else "a file of feta export --votes-from"
        raise SchemaError(
            f'a kept level without people: got --vote-weights, and level = "keep" ({stated}) in '
            f"[votes] of the schema; expected whole people for a level; use {instead}, or write "
            'level = "threshold"'
        )
    for text in adapted.notices:
        notice(text)
    weights = read_vote_weights(path, loaded.model.space, loaded.options, least=settings.least)
    return StoredVotes(adapted.vote, weights=weights)


def _votes_without_people(
    loaded: LoadedModel, settings: VoteSettings, request: VotesRequest
) -> StoredVotes:
    """Return the votes of a schema's [votes] that need no people."""
    adapted = settings.adapted(loaded.model)
    if adapted.needs_people and not request.fits:
        return loaded.votes
    if adapted.needs_people:
        raise SchemaError(
            "votes without people: [votes] of the schema asks for empirical weights or a kept "
            "level; expected other people; pass --votes-from TABLE, or write "
            'weights = "equal" and level = "threshold"'
        )
    return StoredVotes(adapted.vote)


def fitted_votes(loaded: LoadedModel, path: Path, request: VotesRequest) -> StoredVotes:
    """Fit weights and level to the people of a table, as recommended for the kind of model."""
    if request.decided is not None and _same_content(path, request.decided):
        raise SchemaError(
            f"--votes-from names the file that is decided, or a copy of it: got {path}; expected "
            "other people, such as those on whom the model was trained"
        )
    settings = loaded.settings or VoteSettings()
    if request.exact_weights:
        settings = replace(settings, least=1)
        notice(f"warning: {EXACT}")
    adapted = settings.adapted(loaded.model)
    for text in adapted.notices:
        notice(text)
    with show_progress(f"fitting votes to {path.name}"):
        people = _people(loaded.model, TableFile(path, loaded.options))
        fitted = fit_votes(loaded.model, people, adapted)
    for text in fitted.notices:
        notice(text)
    votes = fitted.votes
    level = "" if votes.level is None else f", level {votes.level:.6g}"
    notice(f"votes fitted to {fitted.n_people:,} people of {path.name}: {votes.vote}{level}")
    return replace(votes, fitted_on=_digest(path))


def _people(model: Model, table: TableFile) -> Matrix:
    """Return the people of a table, inside or outside the limits of other columns."""
    names = [
        attribute.name for attribute in model.space.attributes if attribute.name in table.names
    ]
    rows = [
        chunk.encode(model.space, admit=_everybody)
        for chunk in table.chunks(set(names), typed=table.formats(names))
    ]
    return np.concatenate([np.zeros((0, model.space.width)), *rows])


def _everybody(people: Matrix) -> None:
    """Admit all people: `fit_votes` leaves out those whom the model cannot decide."""
    del people


def _same_content(first: Path, second: Path) -> bool:
    """Return whether two paths lead to the same file, or to files of equal bytes."""
    if first.resolve() == second.resolve():
        return True
    if not (first.is_file() and second.is_file()):
        return False
    if first.stat().st_size != second.stat().st_size:
        return False
    return first.samefile(second) or _digest(first) == _digest(second)


def _digest(path: Path) -> str:
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()
