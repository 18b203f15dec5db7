"""A ballot with many thresholds where people near the cut-off have their counterparts."""

import numpy as np

from feta.arrays import Counts, Flags, Vector
from feta.engine.counterparts import assignments
from feta.predict.crowd import Crowd, CrowdSums
from feta.predict.fit_level import Level
from feta.space.vote_weights import VoteWeights
from feta.vote.graded_ballot import EVEN_CELLS, GradedBallot
from feta.vote.mean_decision import edge_at
from feta.vote.probability import probability_at
from feta.vote.score_mean import ScoreMean
from feta.vote.totals import score_range

# People whose counterparts the thresholds of a ballot are fitted to, and their counterparts.
BALLOT_PEOPLE = 400
BALLOT_SCORES = 100_000


def people_near(sums: CrowdSums, level: Level) -> Counts:
    """Return the rows of the people next to the cut-off, half of them on each side if possible.

    Nearness is that of ranks by the mean. On each side, people who are as near as the farthest one
    that is needed are chosen evenly by their mean scores.
    """
    means = np.nan_to_num(sums.sign * sums.totals.middles[:, 0], nan=-np.inf)
    order = np.argsort(-means, kind="stable")
    cut = _cut(sums, level, means[order], sums.crowd.numbers[order])
    n_upper = min(BALLOT_PEOPLE // 2, cut)
    n_lower = min(BALLOT_PEOPLE - n_upper, len(order) - cut)
    n_upper = min(BALLOT_PEOPLE - n_lower, cut)
    ends = [index for index in (cut - n_upper, cut - 1, cut, cut + n_lower - 1) if index >= 0]
    values = [means[order[index]] for index in ends if index < len(order)]
    order = np.lexsort((-_mean_scores(sums, np.isin(means, values)), -means))
    upper, lower = order[:cut][::-1], order[cut:]  # the nearest first
    rows = [_nearest(upper, means, n_upper), _nearest(lower, means, n_lower)]
    return np.sort(np.concatenate(rows))


def fit_ballot(
    crowd: Crowd, rows: Counts, weights: VoteWeights | None, level: Level
) -> GradedBallot:
    """Return a ballot of even steps and as many quantiles of the counterparts' probabilities.

    A stated level is one of its thresholds.
    """
    scores = np.sort(np.concatenate([_scores(crowd, row, weights) for row in rows.tolist()]))
    chosen = scores[np.linspace(0, len(scores) - 1, EVEN_CELLS // 2).round().astype(int)]
    link = crowd.model.scorer.link
    steps = [number / (EVEN_CELLS // 2) for number in range(1, EVEN_CELLS // 2)]
    fitted = [probability_at(float(score), link) for score in np.unique(chosen)]
    edge = None if level.stated is None else edge_at(crowd.model, level.stated)
    return GradedBallot.at(link, [*steps, *fitted], edge)


def _cut(sums: CrowdSums, level: Level, means: Vector, numbers: Counts) -> int:
    """Return how many means, in descending order, are on the favorable side of the cut-off."""
    if level.stated is not None:
        return int((means >= sums.sign * level.stated * sums.scale).sum())
    assert level.n_favorable is not None  # one of both is asked for
    return int(np.searchsorted(np.concatenate([[0], np.cumsum(numbers)]), level.n_favorable))


def _mean_scores(sums: CrowdSums, tied: Flags) -> Vector:
    """Return the mean scores of people if several of them have equal means, otherwise zeros."""
    scores = np.zeros(len(tied))
    rows = np.flatnonzero(tied)
    by_score = CrowdSums(sums.crowd, ScoreMean(), sums.weights)
    scores[rows] = np.nan_to_num(sums.sign * by_score.totals_of(rows).middles[:, 0])
    return scores


def _nearest(rows: Counts, means: Vector, number: int) -> Counts:
    """Return the first rows; of those whose means equal the last one's, evenly chosen ones."""
    if not number:
        return rows[:0]
    tied = np.flatnonzero(means[rows] == means[rows[number - 1]])
    n_nearer = int(tied[0])
    even = np.linspace(0, len(tied) - 1, number - n_nearer).round().astype(np.int64)
    return np.concatenate([rows[:n_nearer], rows[tied[even]]])


def _scores(crowd: Crowd, row: int, weights: VoteWeights | None) -> Vector:
    """Return scores of a person's counterparts that have votes, evenly chosen if there are many."""
    model, person = crowd.models[row], crowd.people[row : row + 1]
    voting = assignments(model, person, weights)
    n_chosen = min(voting.size, max(1, BALLOT_SCORES // BALLOT_PEOPLE))
    chosen = np.linspace(0, voting.size - 1, n_chosen).round().astype(np.int64)
    ids = chosen if voting.listed is None else voting.listed[chosen]
    lows, highs = score_range(model.restricted.counterparts(person, ids))
    middles = lows / 2 + highs / 2
    return np.asarray(middles[np.isfinite(middles)])
