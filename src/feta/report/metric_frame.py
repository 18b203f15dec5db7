"""Disparities between groups, measured by fairlearn if it is installed."""

from collections.abc import Sequence
from dataclasses import dataclass
from importlib.metadata import PackageNotFoundError, version
from typing import TYPE_CHECKING, Literal

import numpy as np

from feta.auditing.groups import DecisionCase, Group

if TYPE_CHECKING:
    from fairlearn.metrics import MetricFrame

# The name of a metric in fairlearn, its description, and the label of the people that it is about.
MEASURES: tuple[tuple[str, str, int | None], ...] = (
    ("selection_rate", "selection rate", None),
    ("true_positive_rate", "true positive rate", 1),
    ("false_positive_rate", "false positive rate", 0),
)


@dataclass(frozen=True, slots=True)
class Disparity:
    """The largest difference and the smallest ratio of a rate between groups.

    Both are given for the model's decisions and for the fair ones.
    """

    measure: str
    differences: tuple[float, float]
    ratios: tuple[float, float]


def installed() -> str:
    """Return the version of fairlearn, or an empty text if it is not installed."""
    try:
        return version("fairlearn")
    except PackageNotFoundError:
        return ""


def disparities(groups: Sequence[Group], min_people: int) -> list[Disparity]:
    """Compare the groups in which a metric is about enough people, if there are at least two."""
    if not installed():
        return []
    results = []
    for name, description, label in MEASURES:
        large = [group.cases for group in groups if _count(group.cases, label) >= min_people]
        if len(large) > 1:
            current, fair = _frame(name, large, "model"), _frame(name, large, "fair")
            differences = (float(current.difference()), float(fair.difference()))
            ratios = (float(current.ratio()), float(fair.ratio()))
            results.append(Disparity(description, differences, ratios))
    return results


def _count(cases: dict[DecisionCase, int], label: int | None) -> int:
    return sum([number for case, number in cases.items() if label in (None, case.label)])


def _frame(
    measure: str, groups: Sequence[dict[DecisionCase, int]], side: Literal["model", "fair"]
) -> "MetricFrame":
    """Compute fairlearn's table of one metric; equal cases are one row with a weight."""
    from fairlearn import metrics  # noqa: PLC0415 - slow to import, and optional

    rows = [(index, case, n) for index, group in enumerate(groups) for case, n in group.items()]
    return metrics.MetricFrame(
        metrics=getattr(metrics, measure),
        # People without a label count in the selection rate only, which does not read labels.
        y_true=np.array([case.label or 0 for _, case, _ in rows]),
        y_pred=np.array([getattr(case, side) for _, case, _ in rows]),
        sensitive_features=np.array([index for index, _, _ in rows]),
        sample_params={
            "sample_weight": np.array([_weight(measure, case, n) for _, case, n in rows], float)
        },
    )


def _weight(measure: str, case: DecisionCase, count: int) -> int:
    return 0 if case.label is None and measure != "selection_rate" else count
