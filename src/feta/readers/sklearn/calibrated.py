"""Reader of calibrated classifiers: the mean over folds of a curve of each fold's score."""

from typing import Any

import numpy as np

from feta.errors import NetworkError
from feta.readers.sklearn.members import (
    ReadMember,
    check_classes,
    decision_scores,
    second_probability,
)
from feta.scorer.ensemble.curve import Curve
from feta.scorer.ensemble.curves import Interpolation, Pair
from feta.scorer.ensemble.ensemble import Ensemble, Member
from feta.scorer.ensemble.probability import Sigmoid, Softmax

Estimator = Any  # scikit-learn ships no types


def read_calibrated(estimator: Estimator, read: ReadMember) -> Ensemble:
    """Read a CalibratedClassifierCV: sigmoid, isotonic or temperature."""
    n_classes = len(estimator.classes_)
    members = [_calibrated(fold, read, n_classes) for fold in estimator.calibrated_classifiers_]
    return Ensemble(
        tuple(members),
        np.hstack([np.eye(n_classes)] * len(members)),
        np.zeros(n_classes),
        len(members),
        type(estimator).__name__,
        equality="below" if n_classes == 2 else None,  # noqa: PLR2004 - argmax of two
        link="share",
    )


def _calibrated(fold: Estimator, read: ReadMember, n_classes: int) -> Member:
    check_classes(fold.estimator, n_classes)
    if fold.method == "temperature":
        return _tempered(fold, read, n_classes)
    if n_classes != 2:  # noqa: PLR2004 - one calibrated score
        raise NetworkError(
            "calibrated probabilities of several classes are divided by their sum: got "
            f"{n_classes} classes and the method {fold.method!r}; expected 2 classes, or the "
            "method 'temperature'"
        )
    response = (
        decision_scores(fold.estimator, read)
        if hasattr(fold.estimator, "decision_function")  # as the source prefers
        else second_probability(fold.estimator, read)
    )
    curve = _curve(fold.calibrators[0], fold.method)
    return Member(response.scorer, (*response.curves, curve, Pair()))


def _curve(calibrator: Estimator, method: str) -> Curve:
    if method == "sigmoid":
        return Sigmoid(-float(calibrator.a_), -float(calibrator.b_))
    if method == "isotonic" and calibrator.out_of_bounds == "clip":
        return Interpolation(
            np.asarray(calibrator.X_thresholds_, dtype=np.float64),
            np.asarray(calibrator.y_thresholds_, dtype=np.float64),
        )
    raise NetworkError(
        f"an unknown calibration: got the method {method!r}; expected 'sigmoid', 'isotonic' or "
        "'temperature'"
    )


def _tempered(fold: Estimator, read: ReadMember, n_classes: int) -> Member:
    """Return softmax(β · scores); of two classes, the scores are −s and s."""
    if not hasattr(fold.estimator, "decision_function"):
        raise NetworkError(
            "a temperature of logarithms of probabilities is not read exactly: got "
            f"{type(fold.estimator).__name__} without decision_function; expected one that has it"
        )
    response = decision_scores(fold.estimator, read)
    beta = float(fold.calibrators[0].beta_)
    if n_classes == 2:  # noqa: PLR2004 - one score
        return Member(response.scorer, (Sigmoid(2 * beta), Pair()))
    return Member(response.scorer, (Softmax(n_classes, beta),))
