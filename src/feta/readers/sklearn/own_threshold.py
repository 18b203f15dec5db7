"""Classifiers with their own threshold: FixedThresholdClassifier, TunedThresholdClassifierCV.

Their `predict` chooses `pos_label` if a response of the inner classifier is at least a threshold.
The response is a probability or the decision function. It is monotone in the inner score z, so the
comparison is one of z with a cut. The network that is read has the score z − cut.
"""

import copy
import math
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from feta.errors import NetworkError
from feta.readers.sklearn.linear import Probability
from feta.rounding import Arithmetic, sigmoid_error
from feta.rule import Threshold
from feta.scorer.network.activation import identity
from feta.scorer.network.agreement import with_magnitude
from feta.scorer.network.layers import Affine
from feta.scorer.network.network import Network

Estimator = Any  # scikit-learn ships no types

NAMES = ("FixedThresholdClassifier", "TunedThresholdClassifierCV")


def has_own_threshold(estimator: object) -> bool:
    """Return whether an estimator is a classifier with its own threshold."""
    kind = type(estimator)
    return kind.__name__ in NAMES and kind.__module__.startswith("sklearn.")


def inner_classifier(estimator: Estimator) -> Estimator:
    """Return the fitted classifier inside; one that was trained before may not be copied."""
    return getattr(estimator, "estimator_", estimator.estimator)


def around(estimator: Estimator, bare: Estimator) -> Estimator:
    """Return the same threshold around another classifier: the last step of the inner pipeline."""
    moved = copy.copy(estimator)
    moved.estimator_ = bare
    for name in ("feature_names_in_", "n_features_in_"):
        if hasattr(bare, name):
            setattr(moved, name, getattr(bare, name))
        elif name in vars(moved):
            delattr(moved, name)
    return moved


@dataclass(frozen=True, slots=True)
class OwnThreshold:
    """A comparison: the response of one of two classes is at least the value."""

    value: float
    by_probability: bool
    second: bool  # whether the response is that of `classes_[1]`

    @classmethod
    def of(cls, estimator: Estimator) -> "OwnThreshold":
        """Return the comparison of a fitted classifier."""
        inner = inner_classifier(estimator)
        response = estimator.response_method
        by_probability = response == "predict_proba" or (
            response == "auto" and hasattr(inner, "predict_proba")
        )
        if type(estimator).__name__ == "FixedThresholdClassifier":
            label, value = estimator.pos_label, estimator.threshold
            if isinstance(value, str):  # "auto"
                value = 0.5 if by_probability else 0.0
        else:
            label = estimator._curve_scorer._get_pos_label()  # noqa: SLF001 - there is no public name
            value = estimator.best_threshold_
        second = label is None or bool(np.asarray(inner.classes_)[1] == label)
        return cls(float(value), by_probability, second)

    def shift(self, network: Network, probability: Probability | None) -> Network:
        """Return the network whose score is 0 where the response is the threshold.

        `probability` states how the probabilities follow from the network's score. Ties get the
        class of the response.
        """
        cut, size = self._cut(probability, network.arithmetic)
        equality = replace(network, equality="above" if self.second else "below")
        if cut == 0.0:
            return with_magnitude(equality, size)
        # An additional layer subtracts the cut without rounding.
        shifted = equality.then(identity(), Affine(np.array([[1.0]]), np.array([-cut])))
        return with_magnitude(replace(shifted, sigmoid=False), size + abs(cut))

    def _cut(self, probability: Probability | None, arithmetic: Arithmetic) -> tuple[float, float]:
        """Return the score at the threshold, and the magnitude of the response's rounding."""
        sign = 1.0 if self.second else -1.0
        if not self.by_probability:
            self._check(finite=True)
            return sign * self.value + 0.0, 0.0
        self._check(finite=False)
        if probability == "clipped":
            return sign * (2 * self.value - 1) + 0.0, 4.0
        if probability is None:
            raise NetworkError(
                "the probabilities inside a threshold are not known: got a classifier whose "
                "probabilities are no sigmoid of its score; expected a logistic model"
            )
        cut = Threshold.at_probability(self.value).value
        return sign * cut + 0.0, _rounding(cut, arithmetic)

    def _check(self, *, finite: bool) -> None:
        valid = math.isfinite(self.value) if finite else 0 < self.value < 1
        if not valid:
            expected = "a finite number" if finite else "a probability between 0 and 1"
            raise NetworkError(
                f"the classifier's own threshold decides nothing: got {self.value!r}; expected "
                f"{expected}; every person may get the same class"
            )


def _rounding(cut: float, arithmetic: Arithmetic) -> float:
    """Return the magnitude that covers the rounding of σ(z), and of 1 − σ(z), at a cut.

    A layer of the source adds at least gamma(0) units of its magnitude.
    """
    error = sigmoid_error(cut, arithmetic) + sigmoid_error(-cut, arithmetic)
    if not math.isfinite(error):
        raise NetworkError(
            f"the classifier's own threshold is too extreme: got the log-odds {cut:.4g}; expected "
            "a probability that its sigmoid separates from 0 and 1"
        )
    return error / arithmetic.gamma(0)
