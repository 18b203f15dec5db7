"""Rules and scores for tests, and what each rule decides by definition, in exact fractions."""

import itertools
from collections.abc import Iterator, Sequence
from fractions import Fraction

import numpy as np
from numpy.typing import ArrayLike

from feta.dyadic import Dyadic
from feta.rule import Argmax, OneVsRest, Rule, Threshold, Tolerance
from feta.scorer.exact_scores import ExactScores
from feta.scorer.protocol import Enclosure, Objective

Point = tuple[Fraction, ...]

ABC = ("a", "b", "c")
DECISION_RULES: tuple[Rule, ...] = (
    Threshold(0.0, equality="favorable"),
    Threshold(0.5, "above", "unfavorable"),
    Threshold(-0.5, "below", "favorable"),
    Threshold(0.0, "below", "unfavorable"),
    Argmax(("no", "yes")),
    Argmax(ABC),
    OneVsRest(("no", "yes"), "yes"),
    OneVsRest(ABC, "a"),
    OneVsRest(ABC, "b"),
    OneVsRest(ABC, "c"),
)
REGRESSIONS: tuple[Rule, ...] = (Tolerance(0.0), Tolerance(0.5), Tolerance(1.0))
RULES = DECISION_RULES + REGRESSIONS


def exact(rows: ArrayLike, radii: ArrayLike | None = None) -> ExactScores:
    """Return exact scores, or intervals, one row per point."""
    return ExactScores(Dyadic.of(rows), None if radii is None else Dyadic.of(radii))


def enclosure(values: ArrayLike, errors: ArrayLike) -> Enclosure:
    """Return float64 scores with error bounds, one row per point."""
    floats = np.asarray(values, dtype=np.float64)
    return Enclosure(floats, np.broadcast_to(np.asarray(errors, np.float64), floats.shape))


def grid(n_outputs: int) -> np.ndarray:
    """Return all points with scores in halves from −1 to 1: many of them are ties."""
    return np.array(list(itertools.product((-1.0, -0.5, 0.0, 0.5, 1.0), repeat=n_outputs)))


def interval_grid(n_outputs: int) -> ExactScores:
    """Return intervals that touch, overlap, equal each other, or are single points."""
    values = (-1.5, -1.0, -0.5, 0.0, 0.5, 1.0) if n_outputs == 1 else (-0.5, 0.0, 0.5)
    centers = itertools.product(values, repeat=n_outputs)
    radii = itertools.product((0.0, 0.25, 0.5), repeat=n_outputs)
    both = list(itertools.product(centers, radii))
    return exact([center for center, _ in both], [radius for _, radius in both])


def points_of(scores: ExactScores) -> list[Point]:
    """Return the centers as fractions."""
    width = scores.centers.numerators.shape[1]
    flat = scores.fractions()
    return [tuple(flat[start : start + width]) for start in range(0, len(flat), width)]


def corners(scores: ExactScores) -> Iterator[list[Point]]:
    """Yield the corners of each row's box; a rule's extreme decisions are among them."""
    radii = points_of(ExactScores(scores.radius))
    for center, radius in zip(points_of(scores), radii, strict=True):
        ends = [(c - r, c + r) for c, r in zip(center, radius, strict=True)]
        yield list(itertools.product(*ends))


def decision(rule: Rule, point: Sequence[Fraction]) -> int:
    """Return the decision by the definition of a rule."""
    match rule:
        case Threshold(value=value, favors=favors, equality=equality):
            if point[0] == Fraction(value):
                return int(equality == "favorable")
            return int((point[0] > Fraction(value)) == (favors == "above"))
        case Argmax():
            return point.index(max(point))
        case OneVsRest(classes=classes, chosen=chosen):
            return int(classes[point.index(max(point))] == chosen)
        case _:
            raise AssertionError(f"{rule} makes no decisions")


def interval_decision(rule: Rule, box: Sequence[Point]) -> int:
    """Return the decision that all corners of a box get, or −1 if they get several."""
    decisions = {decision(rule, corner) for corner in box}
    return decisions.pop() if len(decisions) == 1 else -1


def objective_value(objective: Objective, point: Sequence[Fraction]) -> Fraction:
    """Return the value of an objective at a point."""
    rows = objective.directions.tolist()
    offsets = objective.offsets.fractions()
    if len(offsets) == 1:
        offsets = offsets * len(rows)
    values = [
        sum((Fraction(d) * s for d, s in zip(row, point, strict=True)), offset)
        for row, offset in zip(rows, offsets, strict=True)
    ]
    return min(values) if objective.least else max(values)
