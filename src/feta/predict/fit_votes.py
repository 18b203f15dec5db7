"""Weights, ballot and level of a vote, fitted once on other people."""

import hashlib
from dataclasses import dataclass, replace

import numpy as np

from feta.arrays import Matrix
from feta.errors import SchemaError
from feta.model import Model
from feta.predict.crowd import Crowd, CrowdSums
from feta.predict.fit_ballot import fit_ballot, people_near
from feta.predict.fit_level import Level, n_at_level, nearest_level
from feta.space.feature_space import FeatureSpace
from feta.space.vote_weights import VoteWeights
from feta.vote.graded_ballot import GradedBallot
from feta.vote.mean_decision import mean_decision
from feta.vote.settings import VoteSettings
from feta.vote.stored_votes import StoredVotes
from feta.wider_limits import decidable

# A ballot is fitted to people near the cut-off, which the ballot before it locates.
BALLOTS = 2

# A kept level that misses by more than this share and by more people is worth a notice.
WORTH_SHARE, WORTH_PEOPLE = 0.01, 5


@dataclass(frozen=True, slots=True, eq=False)
class FittedVotes:
    """Votes that are fitted to people, and what the user should know about the fit."""

    votes: StoredVotes
    n_people: int
    notices: tuple[str, ...] = ()


def fit_votes(model: Model, people: Matrix, settings: VoteSettings) -> FittedVotes:
    """Fit weights, ballot and level to people, once; the settings must fit the model.

    People may be outside the limits of columns that are not sensitive. Those whom the model cannot
    decide there are left out. The order of the people has no influence, except on the digest.
    """
    model.space.check(people, limits="open")
    digest = hashlib.sha256(people.astype(np.dtype("<f8")).tobytes()).hexdigest()
    people, notices = _decidable(model, people)
    if settings.needs_people and not len(people):
        raise SchemaError(
            "votes without people: got 0 people; expected people to whom weights and level are "
            "fitted, other than those to be decided"
        )
    weights = fitted_weights(model.space, people, settings)
    votes = StoredVotes(settings.vote, None, weights, None, digest)
    mean = mean_decision(model, settings.vote, None, None)
    if mean is None or mean.cutoff is None or settings.level is None:
        return FittedVotes(votes, len(people), notices)
    crowd = Crowd.of(model, people).voted(weights)
    level = Level.of(settings.level, crowd)
    sums = _sums(crowd, votes, level)
    votes = replace(votes, level=nearest_level(sums, level))
    if isinstance(sums.vote, GradedBallot):  # scores need no ballot
        votes = replace(votes, ballot=sums.vote)
    return FittedVotes(votes, len(people), (*notices, *_missed(sums, level, votes.level)))


def fitted_weights(
    space: FeatureSpace, people: Matrix, settings: VoteSettings
) -> VoteWeights | None:
    """Return the weights, those of the people if they are empirical; None for one vote each."""
    weights = settings.weights
    if isinstance(weights, str):
        if weights == "equal":
            return None
        return VoteWeights.from_people(space, people, least=settings.least)
    return weights


def _decidable(model: Model, people: Matrix) -> tuple[Matrix, tuple[str, ...]]:
    """Return the people whom the model decides; notices count those outside the limits."""
    flags, refusal = decidable(model, people)
    notices = [
        limit.fitted_words(int((outside & flags).sum()))
        for limit, outside in model.space.open_limits.outside(people)
        if (outside & flags).any()
    ]
    if refusal is not None:
        n_refused = int((~flags).sum())
        who = "1 person is" if n_refused == 1 else f"{n_refused:,} people are"
        notices.append(
            f"{who} left out of the votes: {refusal.column!r} {refusal.what}; the votes are "
            "fitted to the others"
        )
    return people[flags], tuple(notices)


def _sums(crowd: Crowd, votes: StoredVotes, level: Level) -> CrowdSums:
    """Return the sums that the level is compared with, on a ballot that is fitted to people."""
    mean = mean_decision(crowd.model, votes.vote, level.stated, None)
    assert mean is not None  # a majority has no level
    sums = CrowdSums(crowd, mean.vote, votes.weights)
    if isinstance(mean.vote, GradedBallot):
        for _ in range(BALLOTS):
            ballot = fit_ballot(crowd, people_near(sums, level), votes.weights, level)
            sums = CrowdSums(crowd, ballot, votes.weights)
    return sums


def _missed(sums: CrowdSums, level: Level, fitted: float | None) -> tuple[str, ...]:
    """Return a notice if the level keeps the share of favorable decisions only roughly."""
    if level.n_favorable is None or fitted is None:
        return ()
    reached, n_people = n_at_level(sums, fitted), int(sums.crowd.numbers.sum())
    if abs(reached - level.n_favorable) <= max(WORTH_PEOPLE, WORTH_SHARE * n_people):
        return ()
    return (
        f"the level is kept roughly: the vote is favorable to {reached / n_people:.1%} of these "
        f"people, the model to {level.n_favorable / n_people:.1%}, because many means are equal",
    )
