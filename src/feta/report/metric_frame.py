"""Metric frame: how far apart groups are in fairlearn's measures, where fairlearn is installed."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from importlib.metadata import PackageNotFoundError, version
from typing import TYPE_CHECKING

import numpy as np

from feta.report.groups import Group, Judged

if TYPE_CHECKING:
    from fairlearn.metrics import MetricFrame

# A measure's name there, in words, and whose decisions it looks at.
MEASURES: tuple[tuple[str, str, Callable[[Judged], bool]], ...] = (
    ("selection_rate", "favorable, of everybody", lambda _: True),
    ("true_positive_rate", "favorable, of those labeled so", lambda one: one.label == 1),
    ("false_positive_rate", "favorable, of those labeled otherwise", lambda one: one.label == 0),
)


@dataclass(frozen=True, slots=True)
class Disparity:
    """The widest difference and the smallest ratio of a rate between groups: as it is, and enforced."""

    measure: str
    differences: tuple[float, float]
    ratios: tuple[float, float]


def installed() -> str:
    """Give fairlearn's version; nothing where it is not installed."""
    try:
        return version("fairlearn")
    except PackageNotFoundError:
        return ""


def disparities(groups: Sequence[Group], enough: int) -> list[Disparity]:
    """Compare the groups in which a measure looks at enough people; with one such group there is none."""
    if not installed():
        return []
    found = []
    for name, words, looks_at in MEASURES:
        counted = [one.judged for one in groups if _count(one.judged, looks_at) >= enough]
        if len(counted) > 1:
            own, fair = (_frame(name, counted, side) for side in ("own", "fair"))
            differences = (float(own.difference()), float(fair.difference()))
            ratios = (float(own.ratio()), float(fair.ratio()))
            found.append(Disparity(words, differences, ratios))
    return found


def _count(judged: dict[Judged, int], looks_at: Callable[[Judged], bool]) -> int:
    return sum(number for one, number in judged.items() if looks_at(one))


def _frame(measure: str, groups: Sequence[dict[Judged, int]], side: str) -> "MetricFrame":
    """Make fairlearn's table of one measure; people who are alike are one row with a weight."""
    from fairlearn import metrics  # noqa: PLC0415 - slow, and may be absent

    rows = [(index, one, n) for index, group in enumerate(groups) for one, n in group.items()]
    return metrics.MetricFrame(
        metrics=getattr(metrics, measure),
        # People without a label count in the selection rate alone, which does not read labels.
        y_true=np.array([one.label or 0 for _, one, _ in rows]),
        y_pred=np.array([getattr(one, side) for _, one, _ in rows]),
        sensitive_features=np.array([index for index, _, _ in rows]),
        sample_params={
            "sample_weight": np.array([_weight(measure, one, n) for _, one, n in rows], float)
        },
    )


def _weight(measure: str, one: Judged, count: int) -> int:
    return 0 if one.label is None and measure != "selection_rate" else count
