"""Means over folds, paired differences, and comparison with the paper's figures."""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

import numpy as np

from feta_paper.paper import Published

# More resamples would change an interval over five folds by less than the printed digits.
RESAMPLES = 10_000
ENDS = (2.5, 97.5)  # percent of the resamples: the middle 95

Place = Literal["within", "above", "below"]


@dataclass(frozen=True, slots=True)
class SampleSummary:
    """Mean and population deviation over folds, as in the paper."""

    mean: float
    std: float
    n: int

    @property
    def error(self) -> float:
        """The standard error of the mean; unknown for one fold."""
        return self.std / math.sqrt(self.n - 1) if self.n > 1 else math.nan


@dataclass(frozen=True, slots=True)
class Difference:
    """The difference of two arms, fold by fold; a single fold has no interval."""

    mean: float
    std: float
    n: int
    positive: int  # folds in which it is above zero
    interval: tuple[float, float] | None

    @property
    def sign(self) -> int:
        """The sign of the whole interval; 0 if it contains zero, or if there is none."""
        if self.interval is None:
            return 0
        return int(self.interval[0] > 0) - int(self.interval[1] < 0)


def summarize(values: Sequence[float]) -> SampleSummary | None:
    """Summarize the folds with a finite figure; None if there are none."""
    finite = [value for value in values if math.isfinite(value)]
    if not finite:
        return None
    return SampleSummary(float(np.mean(finite)), float(np.std(finite)), len(finite))


def paired(left: Sequence[float], right: Sequence[float], *, seed: int) -> Difference | None:
    """Return the difference fold by fold, with a bootstrap interval over folds.

    None if the numbers of folds differ, because then the folds are not pairs.
    """
    if len(left) != len(right):
        return None
    pairs = np.array([(a, b) for a, b in zip(left, right, strict=True) if math.isfinite(a + b)])
    if not len(pairs):
        return None
    gaps = pairs[:, 0] - pairs[:, 1]
    interval = _bootstrap(gaps, seed) if len(gaps) > 1 else None
    positive = int((gaps > 0).sum())
    return Difference(float(gaps.mean()), float(gaps.std()), len(gaps), positive, interval)


def _bootstrap(
    gaps: np.ndarray[tuple[int], np.dtype[np.float64]], seed: int
) -> tuple[float, float]:
    indices = np.random.default_rng(seed).integers(len(gaps), size=(RESAMPLES, len(gaps)))
    low, high = np.percentile(gaps[indices].mean(axis=1), ENDS)
    return float(low), float(high)


def place(mean: float, paper: Published) -> Place | None:
    """Compare a mean with the paper's: within two of its deviations or not; None if it has none."""
    if paper.std is None or paper.by_construction:
        return None
    # The paper prints at most three decimals: beyond nine, a difference is a rounding error.
    beyond = round(abs(mean - paper.mean) - 2 * paper.std, 9)
    return "within" if beyond <= 0 else "above" if mean > paper.mean else "below"
