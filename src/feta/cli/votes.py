"""The votes of fair decisions: stored in the model's file, or fitted to the people of a table."""

import hashlib
from dataclasses import replace
from pathlib import Path

import numpy as np

from feta.arrays import Matrix
from feta.cli.notices import notice
from feta.cli.progress import show_progress
from feta.cli.vote_weights import read_vote_weights
from feta.errors import SchemaError
from feta.io.table_file import TableFile
from feta.model import Model
from feta.predict.fair_predictor import FairPredictor
from feta.readers.load import LoadedModel
from feta.scorer.protocol import has_scores
from feta.vote.mean_decision import VoteName
from feta.vote.probability import PROBABILITY_LINKS
from feta.vote.stored_votes import StoredVotes


def votes_of(
    loaded: LoadedModel, *, vote_weights: Path | None, votes_from: Path | None, engine: str
) -> StoredVotes:
    """Return the votes that a command asks for, or those of the model's file."""
    options = [name for name in (vote_weights, votes_from) if name is not None]
    if options and not loaded.votes.is_default:
        raise SchemaError(
            "two sources of votes: the .feta file contains votes, and --vote-weights or "
            "--votes-from asks for others; expected one; remove the option, or use the file from "
            "which this one was exported"
        )
    if len(options) > 1:
        raise SchemaError(
            "two sources of votes: got --vote-weights and --votes-from; expected one of them"
        )
    if votes_from is not None:
        return fitted_votes(loaded, votes_from, engine)
    weights = read_vote_weights(vote_weights, loaded.model.space, loaded.options)
    return loaded.votes if weights is None else StoredVotes(weights=weights)


def fitted_votes(loaded: LoadedModel, path: Path, engine: str) -> StoredVotes:
    """Fit weights and level to the people of a table, as recommended for the kind of model."""
    if loaded.table is not None and _same_file(path, loaded.table.path):
        raise SchemaError(
            f"--votes-from names the file that is decided: got {path}; expected other people, "
            "such as those on whom the model was trained"
        )
    model, vote = loaded.model, recommended_vote(loaded.model)
    with show_progress(f"fitting votes to {path.name}"):
        people = _people(model, TableFile(path, loaded.options))
        predictor = FairPredictor.fitted(model, people, vote, engine=engine)
    digest = hashlib.sha256(path.read_bytes()).hexdigest()
    votes = replace(predictor.stored_votes, fitted_on=digest)
    level = "" if votes.level is None else f", level {votes.level:.6g}"
    notice(f"votes fitted to {len(people):,} people of {path.name}: {vote}{level}")
    return votes


def recommended_vote(model: Model) -> VoteName:
    """Return the mean probability, or what comes nearest to it for this kind of model."""
    if model.rule.threshold is None or not has_scores(model.scorer):
        why = "it has several classes" if model.rule.threshold is None else "it returns labels only"
        notice(f"the model takes the weighted majority without a level: {why}")
        return "majority"
    if model.scorer.link not in PROBABILITY_LINKS:
        notice("the model takes the mean score: its scores are no probabilities")
        return "mean_score"
    return "mean_probability"


def _people(model: Model, table: TableFile) -> Matrix:
    names = [
        attribute.name for attribute in model.space.attributes if attribute.name in table.names
    ]
    rows = [
        chunk.encode(model.space) for chunk in table.chunks(set(names), typed=table.formats(names))
    ]
    return np.concatenate(rows)


def _same_file(first: Path, second: Path) -> bool:
    return first.resolve() == second.resolve() or (
        first.exists() and second.exists() and first.samefile(second)
    )
