"""Simple baselines that are fair for everybody by construction."""

import numpy as np
from numpy.typing import ArrayLike

from feta.arrays import Matrix
from feta.rule import Rule, Threshold
from feta.scorer.network.layers import Columns
from feta.scorer.network.network import Network
from feta.space.feature_space import FeatureSpace
from feta.train.scaling import Scaling
from feta.train.task import Task


def majority(space: FeatureSpace, labels: ArrayLike, *, rule: Rule = Threshold(0.0)) -> Network:  # noqa: B008 - frozen
    """Return the network that gives everybody the most frequent label."""
    array = np.asarray(labels)
    targets = Task(rule).targets(array, len(array))
    if rule.tolerance is not None:
        bias = np.array([targets.mean()])
    elif rule.threshold is not None:
        above = (2 * targets.sum() >= len(targets)) == (rule.favors == "above")
        bias = np.array([rule.threshold + (1.0 if above else -1.0)])
    else:
        bias = np.bincount(targets.astype(np.int64), minlength=rule.outputs).astype(np.float64)
    return Network(Columns(bias, np.zeros((len(bias), space.width))), (), (), source="float64")


def blind_logistic(
    space: FeatureSpace,
    people: Matrix,
    labels: ArrayLike,
    *,
    rule: Rule = Threshold(0.0),  # noqa: B008 - frozen
    strength: float = 0.1,
) -> Network:
    """Fit a logistic regression that does not read the sensitive columns; `strength` is C."""
    from sklearn.linear_model import LogisticRegression, Ridge  # noqa: PLC0415 - slow to import

    targets = Task(rule).targets(labels, len(people))
    scaling = Scaling.of(space, people)
    read = np.flatnonzero(~space.sensitive_columns)
    scaled = scaling(people)[:, read]
    if rule.tolerance is not None:
        fitted = Ridge(alpha=1 / strength).fit(scaled, targets)
        weight, bias = fitted.coef_[None, :], np.array([fitted.intercept_])
    else:
        fitted = LogisticRegression(C=strength, max_iter=2000).fit(scaled, targets)
        weight, bias = fitted.coef_, fitted.intercept_
    if rule.favors == "below":
        weight, bias = -weight, -bias
    if len(bias) != rule.outputs:  # only two classes, or a class without people
        weight, bias = _rows_per_class(weight, bias, fitted.classes_, rule.outputs)
    slopes = np.zeros((len(bias), space.width))
    slopes[:, read] = weight
    return Network(scaling.outside(slopes, bias), (), (), source="float64")


def _rows_per_class(
    weight: Matrix, bias: Matrix, classes: Matrix, outputs: int
) -> tuple[Matrix, Matrix]:
    """Return one row per class; a class without people never wins."""
    if len(bias) == 1:  # two classes share one row
        weight, bias = np.vstack([-weight, weight]) / 2, np.concatenate([-bias, bias]) / 2
    rows = np.zeros((outputs, weight.shape[1]))
    shifts = np.full(outputs, -1e6)  # far below any score of scaled people
    rows[classes.astype(np.int64)], shifts[classes.astype(np.int64)] = weight, bias
    return rows, shifts
