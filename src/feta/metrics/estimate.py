"""A figure about people with its interval, and paired differences of two figures."""

from dataclasses import dataclass
from typing import Self

import numpy as np

from feta.arrays import Flags, Vector

# The quantile of the normal distribution for intervals of 95 %.
QUANTILE = 1.959964


@dataclass(frozen=True, slots=True, eq=False)
class Estimate:
    """A figure, and how much each person moves it: its influence function at each of them.

    The interval is the normal one of 95 %, from the variance of the influence. It covers the draw
    of the people. It does not cover the training of the models, nor the fit of P(group | other
    columns). Shares have Wilson's interval, which is not empty at 0 and 1.
    """

    value: float
    influence: Vector  # one number per person, with mean 0
    is_share: bool = False
    at_least: float = -np.inf  # no value below can occur

    @classmethod
    def share(cls, flags: Flags) -> Self:
        """Return the share of people with a flag."""
        numbers = np.asarray(flags, dtype=np.float64)
        mean = float(numbers.mean())
        return cls(mean, numbers - mean, is_share=True)

    @property
    def error(self) -> float:
        """The standard error."""
        return float(np.sqrt(np.mean(self.influence**2) / len(self.influence)))

    @property
    def interval(self) -> tuple[float, float]:
        """The lower and the upper end."""
        if self.is_share:
            return wilson(self.value, len(self.influence))
        reach = QUANTILE * self.error
        return max(self.at_least, self.value - reach), self.value + reach

    def minus(self, other: "Estimate") -> "Estimate":
        """Return the difference to another figure about the same people, with a paired interval."""
        return Estimate(self.value - other.value, self.influence - other.influence)

    def as_json(self) -> dict[str, float]:
        """Return the value and both ends."""
        low, high = self.interval
        return {"value": self.value, "low": low, "high": high}


def rate_difference(answers: Flags | Vector, first: Flags, second: Flags) -> Estimate:
    """Return the rate of an answer in one group of people minus the rate in another."""
    rates = [_rate(answers, members) for members in (first, second)]
    return rates[0].minus(rates[1])


def _rate(answers: Flags | Vector, members: Flags) -> Estimate:
    numbers = np.asarray(answers, dtype=np.float64)
    rate = float(numbers[members].mean())
    return Estimate(rate, np.where(members, numbers - rate, 0.0) / members.mean())


def wilson(share: float, n_people: int) -> tuple[float, float]:
    """Return Wilson's interval of 95 % for a share of people."""
    squared = QUANTILE**2 / n_people
    center = (share + squared / 2) / (1 + squared)
    reach = np.sqrt(share * (1 - share) * squared + squared**2 / 4) / (1 + squared)
    return max(0.0, float(center - reach)), min(1.0, float(center + reach))
