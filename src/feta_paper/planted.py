"""People with a planted direct discrimination and a proxy, for which the fair answer is known.

Four merit columns decide, and so does the group, directly. A proxy has no effect of its own, but
correlates with the group. A model without the group can guess it from the proxy: it re-learns a
share of the discrimination.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Self

import numpy as np

from feta.arrays import Flags, Matrix, Vector
from feta.errors import SchemaError
from feta.space.attribute import Attribute, Categorical, Integer, Real
from feta.space.feature_space import FeatureSpace

# Log-odds per standard deviation of each merit column.
MERIT = (1.0, 0.8, 0.6, 0.4)

# Merits are clipped to the limits of their columns, five standard deviations.
LIMIT = 5.0

# Log-odds at average merit outside the group; half of all people are favorable, roughly.
BASE = 0.5

# The probability from which on a decision is favorable.
HALF = 0.5


def space_with(merits: Sequence[Attribute]) -> FeatureSpace:
    """Return the space of people with these columns: the group is first, the proxy last."""
    group = Categorical("group", ("majority", "minority"), sensitive=True)
    return FeatureSpace((group, *merits, Integer("proxy", 0, 1)))


SPACE = space_with([Real(f"merit{number}", -LIMIT, LIMIT) for number in range(1, len(MERIT) + 1)])


@dataclass(frozen=True, slots=True, eq=False)
class Planted:
    """People, their labels, and the true probabilities behind the labels."""

    people: Matrix
    labels: Flags
    minority: Flags
    fair: Vector  # the probability averaged over the group, independent of the person's own
    effect: Vector  # how much the group changes the probability
    favored: Vector  # the probability of a person outside the group

    @classmethod
    def of(
        cls,
        n_people: int,
        correlation: float,
        *,
        seed: int,
        minority_share: float = 0.3,
        log_odds: float = 1.5,
    ) -> Self:
        """Draw people.

        Parameters
        ----------
        n_people
            The number of people.
        correlation
            The correlation of the proxy with the group, from 0 to 1; both have the same mean.
        seed
            Equal seeds give the same people.
        minority_share
            The probability of belonging to the minority.
        log_odds
            By how much the minority is put at a disadvantage.
        """
        rng = np.random.default_rng([seed, 6])
        merits = np.clip(rng.normal(size=(n_people, len(MERIT))), -LIMIT, LIMIT)
        odds = BASE + merits @ np.array(MERIT)
        return cls.among(
            merits, odds, correlation, rng=rng, minority_share=minority_share, log_odds=log_odds
        )

    @classmethod
    def among(
        cls,
        merits: Matrix,
        odds: Vector,
        correlation: float,
        *,
        rng: np.random.Generator,
        minority_share: float = 0.3,
        log_odds: float = 1.5,
    ) -> Self:
        """Draw the group, the proxy and the labels of people whose other columns are known.

        Parameters
        ----------
        merits
            The columns that decide, one row per person.
        odds
            The log-odds of the favorable label outside the group.
        correlation
            The correlation of the proxy with the group, from 0 to 1; both have the same mean.
        rng
            The source of randomness.
        minority_share
            The probability of belonging to the minority.
        log_odds
            By how much the minority is put at a disadvantage.
        """
        if not 0 <= correlation <= 1:
            raise SchemaError(
                f"invalid correlation: got {correlation!r}; expected a number from 0 to 1"
            )
        minority = rng.random(len(odds)) < minority_share
        chance = (1 - correlation) * minority_share + correlation * minority
        proxy = rng.random(len(odds)) < chance
        favored, disadvantaged = _sigmoid(odds), _sigmoid(odds - log_odds)
        labels = rng.random(len(odds)) < np.where(minority, disadvantaged, favored)
        return cls(
            np.column_stack([~minority, minority, merits, proxy]).astype(np.float64),
            labels,
            minority,
            (1 - minority_share) * favored + minority_share * disadvantaged,
            favored - disadvantaged,
            favored,
        )

    def relearned(self, probabilities: Vector) -> float:
        """Return the share of the planted discrimination that predictions contain.

        It is the gap between the groups beyond that of the fair probabilities, divided by the
        mean effect. For P(favorable | other columns) it is the squared correlation.
        """
        beyond = np.asarray(probabilities) - self.fair
        gap = beyond[~self.minority].mean() - beyond[self.minority].mean()
        return float(gap / self.effect.mean())

    def relearned_by(self, favorable: Flags) -> float:
        """Return the share of the planted discrimination that decisions contain.

        It is the gap between the groups beyond that of the fair decisions, divided by the share of
        people whose decision depends on the group if everybody has the true probability; decisions
        are made at one half.
        """
        beyond = favorable.astype(np.float64) - (self.fair >= HALF)
        gap = beyond[~self.minority].mean() - beyond[self.minority].mean()
        return float(gap / np.mean((self.favored >= HALF) & (self.favored - self.effect < HALF)))

    def agreement(self, favorable: Flags) -> float:
        """Return the share of decisions that the fair probability would make at one half."""
        return float(np.mean(favorable == (self.fair >= HALF)))


def _sigmoid(scores: Vector) -> Vector:
    return np.asarray(1 / (1 + np.exp(-scores)))
