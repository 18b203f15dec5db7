"""Measures of proxies for one model on some people: overlap, re-inference, discrimination."""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from feta.arrays import Counts, Matrix, Vector
from feta.metrics.favorable_score import favorable_score, has_one_score
from feta.metrics.logistic import chosen_fit, fold_numbers, softmax
from feta.metrics.overlap import Overlap, overlaps
from feta.metrics.regression_columns import RegressionColumns
from feta.metrics.reinference import (
    AwareScores,
    Reinference,
    Score,
    SensitiveValues,
    reinference,
)
from feta.model import Model

# People who are measured: enough for intervals of ± 2 points, few enough to take seconds.
MAX_PEOPLE = 3000

# With fewer people, no probability of a group can be estimated.
MIN_PEOPLE = 100

NOT_ENOUGH = f"fewer than {MIN_PEOPLE} people"
UNREAD = "the model reads no sensitive column, so a score that reads them needs labels (--label)"
COUNTED = "the model is counted, and its score was not evaluated for this"
SEVERAL = "the model has several scores"
ONE_LABEL = "all labels are equal"

# The scores that read the sensitive columns.
ITSELF = "the model itself"
REGRESSION = "a logistic regression of the labels on all columns"


@dataclass(frozen=True, slots=True, eq=False)
class ProxyMeasures:
    """What the other columns of some people reveal about their sensitive ones, and its effect."""

    n_people: int
    overlaps: tuple[Overlap, ...]
    reinference: Reinference | None
    reference: str  # the score that reads the sensitive columns; or why there is none

    def as_json(self) -> dict[str, object]:
        """Return the figures as plain values."""
        measured = self.reinference
        return {
            "people": self.n_people,
            "overlap": [overlap.as_json() for overlap in self.overlaps],
            "reference": self.reference if measured is not None else None,
            "not_measured": "" if measured is not None else self.reference,
            "reinference": None if measured is None else measured.as_json(),
        }


def measure_proxies(
    model: Model, people: Matrix, labels: Sequence[float] | Vector | None = None
) -> ProxyMeasures:
    """Measure proxies on at most `MAX_PEOPLE` people, evenly chosen.

    The score that reads the sensitive columns is the model itself. If it does not read them, it is
    a logistic regression of the labels on all columns.
    """
    rows = evenly(len(people), MAX_PEOPLE)
    people = people[rows]
    if len(people) < MIN_PEOPLE:
        return ProxyMeasures(len(people), (), None, NOT_ENOUGH)
    found = overlaps(model.space, people)
    targets = None if labels is None else np.asarray(labels, dtype=np.float64)[rows]
    obstacle = _obstacle(model, targets)
    if obstacle:
        return ProxyMeasures(len(people), found, None, obstacle)
    itself = reads_sensitive(model)
    name = ITSELF if itself else REGRESSION
    score = _own_score(model) if itself else _logistic_score(model, people, targets)
    values = SensitiveValues.of(model.space, people)
    aware = AwareScores(values.scores(score, people), values)
    measured = reinference(favorable_score(model, people), aware)
    return ProxyMeasures(len(people), found, measured, name)


def _obstacle(model: Model, targets: Vector | None) -> str:
    """Return why re-inference cannot be measured; empty if it can."""
    if not has_one_score(model):
        return SEVERAL
    if model.scorer.provenance == "counted":
        return COUNTED
    if reads_sensitive(model):
        return ""
    if targets is None or model.rule.threshold is None:
        return UNREAD
    return ONE_LABEL if len(np.unique(targets)) == 1 else ""


def reads_sensitive(model: Model) -> bool:
    """Return whether a score can depend on a sensitive column."""
    space = model.space
    return any(model.scorer.reads(attribute, space) for attribute in space.sensitive)


def _own_score(model: Model) -> Score:
    return lambda people: favorable_score(model, people)


def _logistic_score(model: Model, people: Matrix, targets: Vector | None) -> Score:
    """Fit the probability of a favorable label to all columns."""
    assert targets is not None  # checked by `_obstacle`
    columns = RegressionColumns(model.space, people, sensitive=True)
    out = fold_numbers(len(people)) == 0  # chooses the penalty
    _, slopes = chosen_fit(columns(people), targets.astype(np.int64), 2, out)
    return lambda others: softmax(columns(others) @ slopes)[:, 1]


def evenly(n_all: int, most: int) -> Counts:
    """Return the indices of at most so many of all, evenly spaced."""
    return np.unique(np.linspace(0, n_all - 1, min(n_all, most)).round().astype(np.int64))
