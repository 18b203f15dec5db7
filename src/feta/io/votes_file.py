"""Votes in model files: weights and ballot as arrays, the rest as JSON."""

from typing import Any

import numpy as np

from feta.arrays import Array
from feta.errors import NetworkError
from feta.space.feature_space import FeatureSpace
from feta.space.vote_weights import VoteWeights
from feta.vote.graded_ballot import GradedBallot
from feta.vote.stored_votes import StoredVotes

# The prefix of arrays that belong to the votes, not to the scorer.
PREFIX = "votes."


def describe_votes(votes: StoredVotes) -> dict[str, Any]:
    """Return what is not an array; numbers as text, so that no bit is lost."""
    return {
        "vote": votes.vote,
        "level": None if votes.level is None else votes.level.hex(),
        "fitted_on": votes.fitted_on,
        "weighted": votes.weights is not None,
        "graded": votes.ballot is not None,
    }


def votes_arrays(votes: StoredVotes) -> dict[str, Array]:
    """Return the arrays of weights and ballot."""
    arrays: dict[str, Array] = {}
    if votes.weights is not None:
        arrays |= {
            "assignment_ids": votes.weights.assignment_ids.astype(np.int64),
            "votes": votes.weights.votes.astype(np.int64),
        }
    if votes.ballot is not None:
        arrays |= {
            "thresholds": votes.ballot.thresholds,
            "grades": votes.ballot.grades.astype(np.int64),
        }
    return {PREFIX + name: np.ascontiguousarray(array) for name, array in arrays.items()}


def build_votes(
    description: dict[str, Any], arrays: dict[str, Array], space: FeatureSpace
) -> StoredVotes:
    """Return the votes of a file."""
    level = description["level"]
    weights = ballot = None
    if description["weighted"]:
        ids, votes = (_array(arrays, name, np.int64) for name in ("assignment_ids", "votes"))
        weights = VoteWeights(ids, votes, space)
    if description["graded"]:
        thresholds = _array(arrays, "thresholds", np.float64)
        ballot = GradedBallot(thresholds, _array(arrays, "grades", np.int64))
    return StoredVotes(
        description["vote"],
        None if level is None else float.fromhex(level),
        weights,
        ballot,
        str(description["fitted_on"]),
    )


def _array(arrays: dict[str, Array], name: str, kind: type) -> Array:
    array = arrays[PREFIX + name]
    if array.dtype != np.dtype(kind):
        raise NetworkError(
            f"unsupported type of the array {PREFIX + name!r}: got {array.dtype}; "
            f"expected {np.dtype(kind)}"
        )
    return array
