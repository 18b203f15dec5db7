"""Weights, ballot and level of a vote, fitted once on other people."""

import hashlib
from dataclasses import dataclass, replace
from fractions import Fraction

import numpy as np

from feta.arrays import Counts, Matrix, Vector
from feta.engine.budget_tracker import BudgetTracker
from feta.engine.counterparts import assignments
from feta.engine.means import MeanSums
from feta.engine.protocol import UNLIMITED
from feta.errors import SchemaError, Undecided
from feta.model import Model
from feta.space.feature_space import FeatureSpace
from feta.space.vote_weights import VoteWeights
from feta.vote.graded_ballot import EVEN_CELLS, GradedBallot
from feta.vote.mean_decision import mean_decision
from feta.vote.probability import probability_at
from feta.vote.settings import VoteSettings
from feta.vote.stored_votes import StoredVotes
from feta.vote.totals import Totals, score_range

# People whose counterparts the thresholds of a ballot are fitted to, and their counterparts.
BALLOT_PEOPLE = 400
BALLOT_SCORES = 100_000


def fit_votes(model: Model, people: Matrix, settings: VoteSettings) -> StoredVotes:
    """Fit weights, ballot and level to people, once; the settings must fit the model."""
    model.space.check(people)
    if settings.needs_people and not len(people):
        raise SchemaError(
            "votes without people: got 0 people; expected people to whom weights and level are "
            "fitted, other than those to be decided"
        )
    weights = fitted_weights(model.space, people, settings)
    digest = hashlib.sha256(people.astype(np.dtype("<f8")).tobytes()).hexdigest()
    votes = StoredVotes(settings.vote, None, weights, None, digest)
    mean = mean_decision(model, settings.vote, None, None)
    level = settings.level
    if mean is None or mean.cutoff is None or level is None:
        return votes
    asked = Asked.of(model, people, level)
    found = asked.level(MeanSums(model, mean.vote, weights))
    if mean.vote.unit == 1:  # scores need no ballot
        return replace(votes, level=found)
    ballot = fit_ballot(MeanSums(model, mean.vote, weights), asked.people, found)
    return replace(votes, ballot=ballot, level=asked.level(MeanSums(model, ballot, weights)))


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


def fit_ballot(sums: MeanSums, people: Matrix, level: float) -> GradedBallot:
    """Return a ballot with many thresholds where people near the cut-off have their counterparts.

    Half of the thresholds are even steps; the others are quantiles of the probabilities that these
    counterparts have.
    """
    model, weights = sums.model, sums.weights
    scales, totals = sums.scales(people), all_totals(sums, people)
    distance = np.abs(totals.middles[:, 0] / np.maximum(scales, 1) - level)
    voted = np.flatnonzero(scales)
    near = voted[np.argsort(distance[voted], kind="stable")[:BALLOT_PEOPLE]]
    scores = np.sort(np.concatenate([_scores(model, people[row], weights) for row in near]))
    chosen = scores[np.linspace(0, len(scores) - 1, EVEN_CELLS // 2).round().astype(int)]
    link = model.scorer.link
    steps = [number / (EVEN_CELLS // 2) for number in range(1, EVEN_CELLS // 2)]
    fitted = [probability_at(float(score), link) for score in np.unique(chosen)]
    return GradedBallot.at(link, [*steps, *fitted])


def _scores(model: Model, person: Vector, weights: VoteWeights | None) -> Vector:
    """Return scores of a person's counterparts that have votes, evenly chosen if there are many."""
    voters = assignments(model, person[None, :], weights)
    n_chosen = min(voters.size, max(1, BALLOT_SCORES // BALLOT_PEOPLE))
    chosen = np.linspace(0, voters.size - 1, n_chosen).round().astype(np.int64)
    ids = chosen if voters.listed is None else voters.listed[chosen]
    lows, highs = score_range(model.restricted.counterparts(person[None, :], ids))
    middles = lows / 2 + highs / 2
    return np.asarray(middles[np.isfinite(middles)])


def all_totals(sums: MeanSums, people: Matrix) -> Totals:
    """Return the sums of all people."""
    tracker = BudgetTracker(UNLIMITED)
    shape = (len(people), sums.model.scorer.outputs)
    totals = Totals(np.zeros(shape), np.zeros(shape))
    for group in sums.groups(people):
        part = sums.bounded(people[group], tracker)
        totals.lows[group], totals.highs[group] = part.lows, part.highs
    return totals


@dataclass(frozen=True, slots=True, eq=False)
class Asked:
    """The people of different keys, how many there are of each, and what level is asked for."""

    people: Matrix
    numbers: Counts
    favorable: Counts | None  # how many should be favorable; None: the level is given
    given: float

    @classmethod
    def of(cls, model: Model, people: Matrix, level: float | str) -> "Asked":
        """Deduplicate people by their keys."""
        seen: dict[bytes, int] = {}
        keys = model.relation.keys(people)
        inverse = [seen.setdefault(bytes(key), len(seen)) for key in keys]
        rows = np.unique(inverse, return_index=True)[1]  # numbered in order of appearance
        numbers = np.bincount(inverse, minlength=len(rows))
        if not isinstance(level, str):
            return cls(people[rows], numbers, None, float(level))
        decisions = model.decide(people).astype(np.int64)
        favorable = np.bincount(inverse, weights=decisions, minlength=len(rows))
        return cls(people[rows], numbers, favorable.astype(np.int64), 0.0)

    def level(self, sums: MeanSums) -> float:
        """Return the level at which the number of favorable people is nearest to the one asked for.

        Of two levels that are equally near, the one with more favorable people is taken.
        """
        if self.favorable is None:
            return self.given
        scales = sums.scales(self.people)
        voted = np.flatnonzero(scales)
        if not len(voted):
            raise SchemaError(
                "no level: got no people whose counterparts have votes; expected other people, or "
                "weights with more assignments"
            )
        if len(voted) < len(scales):  # people without votes have no mean
            parts = self.people[voted], self.numbers[voted], self.favorable[voted]
            return Asked(*parts, self.given).level(sums)
        sign = 1 if sums.model.rule.favors == "above" else -1
        lows, highs = all_totals(sums, self.people).first()
        divisors, scale = None, int(scales[0])
        if (scales != scale).any():  # sums of different numbers of votes: compare means
            divisors, scale = scales, 1
            lows = np.nextafter(lows / scales, -np.inf)
            highs = np.nextafter(highs / scales, np.inf)
        lows, highs = (lows, highs) if sign == 1 else (-highs, -lows)
        n_favorable = int(self.favorable.sum())
        exact = _ExactMeans(sums, self.people, sign, divisors)
        clusters = self._clusters(lows, highs, n_favorable, exact)
        return sign * _between(clusters, n_favorable, scale)

    def _clusters(
        self, lows: Vector, highs: Vector, n_favorable: int, exact: "_ExactMeans"
    ) -> list["_Cluster"]:
        """Sort people from the highest mean; those whose bounds overlap are one cluster.

        The cluster at which the level is sought is resolved exactly.
        """
        order = np.argsort(-highs, kind="stable")
        clusters: list[_Cluster] = []
        for row in order.tolist():
            if clusters and highs[row] >= clusters[-1].low:
                clusters[-1].add(row, lows[row], highs[row], int(self.numbers[row]))
            else:
                clusters.append(_Cluster([row], lows[row], highs[row], int(self.numbers[row])))
        done, result = 0, list[_Cluster]()
        for cluster in clusters:
            done += cluster.number
            if done - cluster.number < n_favorable < done and len(cluster.rows) > 1:
                result += self._resolved(cluster, exact)
            else:
                result.append(cluster)
        return result

    def _resolved(self, cluster: "_Cluster", exact: "_ExactMeans") -> list["_Cluster"]:
        """Divide a cluster by the exact means of its people."""
        if cluster.low == cluster.high:  # equal integers
            return [cluster]
        by_mean: dict[Fraction, list[int]] = {}
        for row in cluster.rows:
            by_mean.setdefault(exact.of(row), []).append(row)
        return [
            _Cluster(rows, mean, mean, int(self.numbers[rows].sum()))
            for mean, rows in sorted(by_mean.items(), reverse=True)
        ]


@dataclass(frozen=True, slots=True, eq=False)
class _ExactMeans:
    """Exact means of people, or sums if all are divided by the same number, times a sign."""

    sums: MeanSums
    people: Matrix
    sign: int
    divisors: Counts | None

    def of(self, row: int) -> Fraction:
        totals = self.sums.exact(self.people[row : row + 1], BudgetTracker(UNLIMITED))
        if totals is None:
            raise Undecided((row,), "its mean is not exact")
        divisor = 1 if self.divisors is None else int(self.divisors[row])
        return self.sign * totals[0] / divisor


@dataclass(slots=True)
class _Cluster:
    """People whose means are equal, or too close to distinguish."""

    rows: list[int]
    low: float | Fraction
    high: float | Fraction
    number: int  # of people

    def add(self, row: int, low: float, high: float, number: int) -> None:
        self.rows.append(row)
        self.low, self.high = min(self.low, low), max(self.high, high)
        self.number += number


def _between(clusters: list[_Cluster], n_favorable: int, scale: int) -> float:
    """Return a float64 between the clusters that are favorable and the others."""
    counts = np.cumsum([0, *(cluster.number for cluster in clusters)])
    distances = np.abs(counts - n_favorable)
    n_taken = int(np.flatnonzero(distances == distances.min())[-1])  # the most favorable one
    if n_taken == 0:
        return float(np.nextafter(float(Fraction(clusters[0].high) / scale), np.inf))
    low = Fraction(clusters[n_taken - 1].low) / scale
    if n_taken == len(clusters):
        return _at_most(low)
    high = Fraction(clusters[n_taken].high) / scale
    middle = float((low + high) / 2)
    if high < Fraction(middle) <= low:
        return middle
    level = _at_most(low)
    if Fraction(level) <= high:
        raise SchemaError(
            "no level separates the people: got two means that no float64 separates; expected "
            "different people; set the level yourself"
        )
    return level


def _at_most(number: Fraction) -> float:
    """Return the highest float64 that is not above a number."""
    nearest = float(number)
    return nearest if Fraction(nearest) <= number else float(np.nextafter(nearest, -np.inf))
