"""A blind copy of a scikit-learn estimator: the same settings, fitted without sensitive columns."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

from feta.arrays import Flags, Matrix, Vector
from feta.errors import NetworkError
from feta.space.feature_space import FeatureSpace


@dataclass(frozen=True, slots=True, eq=False)
class Estimated:
    """A fitted classifier of two classes, the table it takes, and its favorable class."""

    estimator: Any  # scikit-learn ships no types
    table: Callable[[Matrix], Any]
    favorable: int  # the index of the class

    @property
    def classes(self) -> Any:  # noqa: ANN401 - of any type
        """Both classes, in the estimator's order."""
        return self.estimator.classes_


def fit_blind(source: Estimated, space: FeatureSpace, people: Matrix, labels: Flags) -> "BlindCopy":
    """Fit a clone to people who all have the same sensitive values, the most frequent ones.

    A column without variation cannot be learned from, so the fit is blind; unlike a missing column,
    it needs no change of the preprocessing. Decisions set the same values, so that they cannot
    depend on the person's own.
    """
    from sklearn.base import clone  # noqa: PLC0415 - slow to import

    rows, counts = np.unique(people[:, space.sensitive_columns], axis=0, return_counts=True)
    constant = rows[int(np.argmax(counts))]
    names = [source.classes[1 - source.favorable], source.classes[source.favorable]]
    targets = np.array(names)[labels.astype(np.int64)]
    try:
        copy = clone(source.estimator)
        copy.fit(source.table(_with(people, space, constant)), targets)
    except Exception as error:  # the user's estimator may raise anything
        reason = " ".join(str(error).split())[:200]
        raise NetworkError(
            f"the estimator cannot be fitted without sensitive columns: got "
            f"{type(error).__name__}: {reason}; expected a clone that can be fitted"
        ) from None
    return BlindCopy(copy, source, space, constant)


@dataclass(frozen=True, slots=True, eq=False)
class BlindCopy:
    """A fitted copy, and the sensitive values that everybody gets before it decides."""

    estimator: Any
    source: Estimated
    space: FeatureSpace
    constant: Vector

    def __call__(self, people: Matrix) -> Vector:
        """Return the probability of the favorable class; without one, 1 or 0 by `predict`."""
        table = self.source.table(_with(people, self.space, self.constant))
        favorable = self.source.classes[self.source.favorable]
        if not hasattr(self.estimator, "predict_proba"):
            return np.asarray(self.estimator.predict(table) == favorable, dtype=np.float64)
        index = list(self.estimator.classes_).index(favorable)
        return np.asarray(self.estimator.predict_proba(table), dtype=np.float64)[:, index]


def _with(people: Matrix, space: FeatureSpace, values: Vector) -> Matrix:
    """Return people with the same sensitive values."""
    changed = np.array(people)
    changed[:, space.sensitive_columns] = values
    return changed
