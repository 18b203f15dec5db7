"""Statistics: means over folds, paired differences, and where a figure lies beside the paper's."""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

import numpy as np

from feta_paper.paper import Published

# Drawing more would move the ends of an interval over five folds by less than is printed.
RESAMPLES = 10_000
ENDS = (2.5, 97.5)  # per cent of the resamples: the middle 95

Place = Literal["within", "above", "below"]


@dataclass(frozen=True, slots=True)
class SampleSummary:
    """Figures of several folds: their mean and population deviation, as the paper has them."""

    mean: float
    std: float
    n: int

    @property
    def error(self) -> float:
        """The mean's standard error; of one fold nobody knows it."""
        return self.std / math.sqrt(self.n - 1) if self.n > 1 else math.nan


@dataclass(frozen=True, slots=True)
class Difference:
    """One arm minus another, fold by fold; no interval for a single fold."""

    mean: float
    std: float
    n: int
    positive: int  # folds in which it is above zero
    interval: tuple[float, float] | None

    @property
    def sign(self) -> int:
        """The side of zero the whole interval lies on; 0 if it does not, or if there is none."""
        if self.interval is None:
            return 0
        return int(self.interval[0] > 0) - int(self.interval[1] < 0)


def summarize(values: Sequence[float]) -> SampleSummary | None:
    """Summarize the folds that came to a number; None if none did."""
    finite = [value for value in values if math.isfinite(value)]
    if not finite:
        return None
    return SampleSummary(float(np.mean(finite)), float(np.std(finite)), len(finite))


def paired(left: Sequence[float], right: Sequence[float], *, seed: int) -> Difference | None:
    """Take the difference fold by fold, with a bootstrap interval over folds.

    None unless both have a figure for every fold: folds that differ in number are not pairs.
    """
    if len(left) != len(right):
        return None
    both = np.array([(a, b) for a, b in zip(left, right, strict=True) if math.isfinite(a + b)])
    if not len(both):
        return None
    apart = both[:, 0] - both[:, 1]
    interval = _bootstrap(apart, seed) if len(apart) > 1 else None
    positive = int((apart > 0).sum())
    return Difference(float(apart.mean()), float(apart.std()), len(apart), positive, interval)


def _bootstrap(
    apart: np.ndarray[tuple[int], np.dtype[np.float64]], seed: int
) -> tuple[float, float]:
    drawn = np.random.default_rng(seed).integers(len(apart), size=(RESAMPLES, len(apart)))
    low, high = np.percentile(apart[drawn].mean(axis=1), ENDS)
    return float(low), float(high)


def place(mean: float, paper: Published) -> Place | None:
    """Say where a mean lies: within two of the paper's deviations or not; None if it printed none."""
    if paper.std is None or paper.by_construction:
        return None
    # The paper prints three decimals at most: beyond nine, a difference is float64's, not ours.
    beyond = round(abs(mean - paper.mean) - 2 * paper.std, 9)
    return "within" if beyond <= 0 else "above" if mean > paper.mean else "below"
