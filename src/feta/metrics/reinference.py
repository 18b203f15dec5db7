"""Re-inference: how much of the effect of sensitive columns returns through other columns.

p(x, s) is a score that reads the sensitive columns, q(s) the share of people with s. The mean
m(x) = Σ q(s) p(x, s) uses no information about s: it is the proxy-free score. A score that never
reads s, but guesses it from x, differs from it by D(x) = Σ (P(s|x) − q(s)) p(x, s).
"""

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from feta.arrays import Counts, Flags, Matrix, Vector
from feta.metrics.estimate import Estimate
from feta.metrics.logistic import cross_fitted, log_loss
from feta.metrics.overlap import quartered
from feta.metrics.regression_columns import RegressionColumns
from feta.space.feature_space import FeatureSpace

Score = Callable[[Matrix], Vector]

# Combinations of sensitive groups that are distinguished; the people of all others are one group.
MAX_GROUPS = 8
MIN_PEOPLE = 20

# Sensitive values at which everybody is scored.
MAX_ASSIGNMENTS = 64

# D varies less than this, relative to the scores, if nothing can be inferred.
NEGLIGIBLE = 1e-9

# The other columns reveal something if they improve ln P(own group) by this much per person.
MIN_GAIN = 1e-3

# Steps of the search for the weights; each costs a product of a small matrix.
WEIGHT_STEPS = 2000


@dataclass(frozen=True, slots=True, eq=False)
class SensitiveValues:
    """Combinations of sensitive values that occur, in groups, and each person's group likelihood.

    Within a group, P(s|x) is the share of s in the group.
    """

    columns: Flags  # that are sensitive
    values: Matrix  # (combinations, sensitive columns)
    weights: Matrix  # (combinations, groups): the shares in each group; columns sum to 1
    shares: Vector  # of each group among the people: q
    likely: Matrix  # (people, groups): P(group | other columns), fitted to other people
    inferable: bool  # whether `likely` predicts better than the shares

    @classmethod
    def of(cls, space: FeatureSpace, people: Matrix) -> "SensitiveValues":
        """Find the groups of people, and estimate P(group | other columns)."""
        groups, n_groups = _joint_groups(space, people)
        of_people = people[:, space.sensitive_columns]
        values, weights = _weighted_values(of_people, groups, n_groups)
        read = RegressionColumns(space, people, sensitive=False)(people)
        shares = np.bincount(groups, minlength=n_groups) / len(groups)
        likely = cross_fitted(read, groups, n_groups)
        uninformed = log_loss(np.tile(shares, (len(groups), 1)), groups)
        inferable = log_loss(likely, groups) < uninformed - MIN_GAIN
        return cls(space.sensitive_columns, values, weights, shares, likely, inferable)

    def scores(self, score: Score, people: Matrix) -> Matrix:
        """Return the mean score of each person with the values of each group, (people, groups)."""
        results = np.zeros((len(people), len(self.shares)))
        for values, weights in zip(self.values, self.weights, strict=True):
            counterparts = np.array(people)
            counterparts[:, self.columns] = values
            results += np.outer(score(counterparts), weights)
        return results


@dataclass(frozen=True, slots=True, eq=False)
class AwareScores:
    """p(x, s) for each person and each group of sensitive values."""

    by_group: Matrix  # (people, groups)
    sensitive: SensitiveValues

    @property
    def proxy_free(self) -> Vector:
        """m(x): the mean over the groups as often as they occur."""
        return np.asarray(self.by_group @ self.sensitive.shares)

    @property
    def reinferred(self) -> Vector:
        """D(x): what a guess of the group adds."""
        deviations = self.sensitive.likely - self.sensitive.shares
        return np.asarray((deviations * self.by_group).sum(axis=1))


@dataclass(frozen=True, slots=True, eq=False)
class Reinference:
    """Two measures of a score f against a score p that reads the sensitive columns.

    `slope` is cov(f − m, D) / var(D): 1 if f contains all that a guess of the sensitive columns
    adds, 0 if it contains nothing of it. `discrimination` is the smallest share of the variance of
    f that no fixed mean of p over the groups explains (Lindholm et al.): 0 for a mean.
    """

    slope: Estimate | None  # None: nothing can be inferred, or p does not depend on it
    discrimination: Estimate | None  # None: f is constant

    def as_json(self) -> dict[str, object]:
        """Return the figures as plain values."""
        return {
            "slope": None if self.slope is None else self.slope.as_json(),
            "proxy_discrimination": None
            if self.discrimination is None
            else self.discrimination.as_json(),
        }


def reinference(scores: Vector, aware: AwareScores) -> Reinference:
    """Measure scores of people against scores that read the sensitive columns."""
    return Reinference(_slope(scores, aware), _discrimination(scores, aware.by_group))


def _slope(scores: Vector, aware: AwareScores) -> Estimate | None:
    if not aware.sensitive.inferable:
        return None
    guessed = _centered(aware.reinferred)
    variance = float(np.mean(guessed**2))
    if np.sqrt(variance) <= NEGLIGIBLE * max(1.0, float(np.abs(aware.by_group).max())):
        return None
    beyond = _centered(scores - aware.proxy_free)
    slope = float(np.mean(beyond * guessed)) / variance
    return Estimate(slope, (beyond - slope * guessed) * guessed / variance)


def _discrimination(scores: Vector, by_group: Matrix) -> Estimate | None:
    """Compute the measure; by the envelope theorem, the weights add nothing to its influence."""
    centered = _centered(scores)
    variance = float(np.mean(centered**2))
    if variance <= NEGLIGIBLE**2 * max(1.0, float(np.abs(scores).max())) ** 2:
        return None
    rest = centered - _centered(by_group) @ nearest_mean(centered, _centered(by_group))
    share = float(np.mean(rest**2)) / variance
    return Estimate(share, (rest**2 - share * centered**2) / variance, at_least=0.0)


def nearest_mean(target: Vector, columns: Matrix) -> Vector:
    """Return weights ≥ 0 with sum 1 whose mean of columns is nearest to the target."""
    gram, products = columns.T @ columns / len(target), columns.T @ target / len(target)
    largest = float(np.linalg.norm(gram, 2))
    weights = ahead = np.full(len(gram), 1 / len(gram))
    if largest == 0:
        return weights
    momentum = 1.0
    for _ in range(WEIGHT_STEPS):
        gradient = gram @ ahead - products
        step = _onto_simplex(ahead - gradient / largest)
        if float(gradient @ (step - weights)) > 0:
            momentum = 1.0
        faster = (1 + np.sqrt(1 + 4 * momentum**2)) / 2
        ahead = step + (momentum - 1) / faster * (step - weights)
        if np.abs(step - weights).max() < NEGLIGIBLE / 1000:
            return step
        weights, momentum = step, faster
    return weights


def _onto_simplex(point: Vector) -> Vector:
    """Return the nearest point with numbers ≥ 0 and sum 1."""
    ordered = np.sort(point)[::-1]
    excess = (np.cumsum(ordered) - 1) / np.arange(1, len(point) + 1)
    last = np.flatnonzero(ordered > excess)[-1]
    return np.maximum(point - excess[last], 0.0)


def _centered(numbers: Matrix) -> Matrix:
    return np.asarray(numbers - numbers.mean(axis=0))


def _joint_groups(space: FeatureSpace, people: Matrix) -> tuple[Counts, int]:
    """Return the group of each person by all sensitive attributes, and the number of groups."""
    codes = np.zeros(len(people), dtype=np.int64)
    for bands in quartered(space, people):
        indices = bands.indices(people[:, space.columns_of(bands.attribute)])
        codes = codes * len(bands.names) + indices
    values, inverse, counts = np.unique(codes, return_inverse=True, return_counts=True)
    order = np.argsort(-counts, kind="stable")
    kept = [index for index in order[: MAX_GROUPS - 1] if counts[index] >= MIN_PEOPLE]
    numbers = np.full(len(values), len(kept), dtype=np.int64)
    numbers[kept] = np.arange(len(kept))
    groups = numbers[inverse]
    return groups, int(groups.max()) + 1


def _weighted_values(values: Matrix, groups: Counts, n_groups: int) -> tuple[Matrix, Matrix]:
    """Return the different values of people, and the share of each in every group.

    If there are many, evenly spaced people of each group represent their group.
    """
    rows, inverse = np.unique(values, axis=0, return_inverse=True)
    if len(rows) > MAX_ASSIGNMENTS:
        share = MAX_ASSIGNMENTS / len(groups)
        chosen = np.concatenate([_spaced(groups == group, share) for group in range(n_groups)])
        rows, inverse = np.unique(values[chosen], axis=0, return_inverse=True)
        groups = groups[chosen]
    weights = np.zeros((len(rows), n_groups))
    np.add.at(weights, (inverse.ravel(), groups), 1.0)
    return rows, weights / weights.sum(axis=0)


def _spaced(members: Flags, share: float) -> Counts:
    rows = np.flatnonzero(members)
    n_chosen = max(1, round(share * len(rows)))
    return rows[np.linspace(0, len(rows) - 1, n_chosen).round().astype(np.int64)]
