"""The level at which as many people as asked for are favorable."""

from dataclasses import dataclass
from fractions import Fraction

import numpy as np

from feta.arrays import Vector
from feta.errors import SchemaError, Undecided
from feta.predict.crowd import Crowd, CrowdSums


@dataclass(frozen=True, slots=True)
class Level:
    """The level that is asked for: a number of favorable people, or a stated level."""

    n_favorable: int | None
    stated: float | None

    @classmethod
    def of(cls, level: float | str, crowd: Crowd) -> "Level":
        """Return a stated level, or as many favorable people as the model has."""
        return cls(int(crowd.favorable.sum()), None) if level == "keep" else cls(None, float(level))


def nearest_level(sums: CrowdSums, level: Level) -> float:
    """Return the level at which the number of favorable people is nearest to the one asked for.

    Of two levels that are equally near, the one with more favorable people is taken.
    """
    if level.stated is not None or level.n_favorable is None:
        assert level.stated is not None  # one of both is asked for
        return level.stated
    clusters = _clusters(sums, level.n_favorable)
    return sums.sign * _between(clusters, level.n_favorable, sums.scale)


def n_at_level(sums: CrowdSums, level: float) -> int:
    """Return the number of people whose means are favorable at a level."""
    cut = Fraction(level) * sums.scale * sums.sign
    lows, highs = _favorable_first(sums)
    favorable = [
        bool(low >= cut) if (low >= cut) == (high >= cut) else sums.sign * _exact(sums, row) >= cut
        for row, (low, high) in enumerate(zip(lows.tolist(), highs.tolist(), strict=True))
    ]
    return int(sums.crowd.numbers[favorable].sum())


def _favorable_first(sums: CrowdSums) -> tuple[Vector, Vector]:
    """Return bounds on the sums, negative if low means are favorable."""
    lows, highs = sums.totals.first()
    return (lows, highs) if sums.sign == 1 else (-highs, -lows)


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


def _clusters(sums: CrowdSums, n_favorable: int) -> list[_Cluster]:
    """Sort people from the highest mean; those whose bounds overlap are one cluster.

    The cluster at which the level is sought is resolved exactly.
    """
    lows, highs = _favorable_first(sums)
    numbers = sums.crowd.numbers
    clusters: list[_Cluster] = []
    for row in np.argsort(-highs, kind="stable").tolist():
        if clusters and highs[row] >= clusters[-1].low:
            clusters[-1].add(row, lows[row], highs[row], int(numbers[row]))
        else:
            clusters.append(_Cluster([row], lows[row], highs[row], int(numbers[row])))
    done, result = 0, list[_Cluster]()
    for cluster in clusters:
        done += cluster.number
        if done - cluster.number < n_favorable < done and len(cluster.rows) > 1:
            result += _resolved(sums, cluster)
        else:
            result.append(cluster)
    return result


def _resolved(sums: CrowdSums, cluster: _Cluster) -> list[_Cluster]:
    """Divide a cluster by the exact sums of its people."""
    if cluster.low == cluster.high:  # equal integers
        return [cluster]
    by_total: dict[Fraction, list[int]] = {}
    for row in cluster.rows:
        by_total.setdefault(sums.sign * _exact(sums, row), []).append(row)
    return [
        _Cluster(rows, total, total, int(sums.crowd.numbers[rows].sum()))
        for total, rows in sorted(by_total.items(), reverse=True)
    ]


def _exact(sums: CrowdSums, row: int) -> Fraction:
    totals = sums.exact(row)
    if totals is None:
        raise Undecided((row,), "its mean is not exact")
    return totals[0]


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
