"""Reader of scikit-learn's combinations: voting, bagging, boosting by votes, and stacking."""

from collections.abc import Callable
from functools import partial
from typing import Any

import numpy as np

from feta.errors import NetworkError
from feta.io.raw_table import TableMaker
from feta.readers.sklearn.calibrated import read_calibrated
from feta.readers.sklearn.combination_agreement import check_combination
from feta.readers.sklearn.linear import coefficients, is_linear, probability_of, tie_side
from feta.readers.sklearn.members import (
    ReadMember,
    decision_scores,
    prediction,
    probabilities,
    second_probability,
    votes,
)
from feta.readers.sklearn.pipeline import split_pipeline
from feta.readers.sklearn.tree_ensembles import SINGLE_TREES
from feta.readers.sklearn.tree_inputs import inputs_of
from feta.scorer.ensemble.ensemble import Ensemble, Member, mean_weights
from feta.scorer.protocol import Link, Scorer
from feta.space.feature_space import FeatureSpace

Estimator = Any  # scikit-learn ships no types

TWO = 2  # classes, of which one score decides


def is_combination(estimator: object) -> bool:
    """Return whether a bare estimator is one of scikit-learn's combinations of other models."""
    kind = type(estimator)  # only the exact types: a subclass may decide differently
    if kind.__name__ not in READERS or not kind.__module__.startswith("sklearn."):
        return False
    members = getattr(estimator, "estimators_", ())
    of_trees = all(type(member).__name__ in SINGLE_TREES for member in members)
    return not (kind.__name__.startswith("Bagging") and of_trees)


def read_combination(
    estimator: Estimator,
    space: FeatureSpace,
    read: Callable[[Estimator], Scorer],
    *,
    table: TableMaker | None = None,
) -> Ensemble:
    """Read a fitted combination, alone or at the end of a pipeline.

    `read` reads one member, with the steps before the combination. Scores and decisions are
    compared with the estimator's own on random people.
    """
    steps, last = split_pipeline(estimator)
    combination = READERS[type(last).__name__](last, partial(_read_member, steps, read))
    check_combination(combination, last, inputs_of(steps, last, space, table=table))
    return combination


def _read_member(
    steps: Estimator, read: Callable[[Estimator], Scorer], member: Estimator
) -> Scorer:
    if steps is None:
        return read(member)
    from sklearn.pipeline import Pipeline  # noqa: PLC0415 - import feta stays light

    return read(Pipeline([*steps.steps, ("member", member)]))


def _read_voting(estimator: Estimator, read: ReadMember) -> Ensemble:
    soft = estimator.voting == "soft"
    n_classes = len(estimator.classes_)
    convert = probabilities if soft else votes
    members = [convert(member, read, n_classes) for member in estimator.estimators_]
    return _weighted_mean(
        estimator, members, _voting_weights(estimator), link="share" if soft else "identity"
    )


def _read_voting_regressor(estimator: Estimator, read: ReadMember) -> Ensemble:
    members = [prediction(member, read) for member in estimator.estimators_]
    return _weighted_mean(estimator, members, _voting_weights(estimator), link="identity")


def _voting_weights(estimator: Estimator) -> list[float]:
    given = estimator._weights_not_none  # noqa: SLF001 - there is no public name
    return [1.0] * len(estimator.estimators_) if given is None else [float(w) for w in given]


def _read_bagging(estimator: Estimator, read: ReadMember) -> Ensemble:
    n_features = estimator.n_features_in_
    for features in estimator.estimators_features_:
        if list(features) != list(range(n_features)):
            raise NetworkError(
                f"{type(estimator).__name__} gives its members only some of the features: got "
                f"max_features={estimator.max_features!r}; expected all of them, in order"
            )
    if not hasattr(estimator, "classes_"):
        members = [prediction(member, read) for member in estimator.estimators_]
        return _weighted_mean(estimator, members, [1.0] * len(members), link="identity")
    n_classes = len(estimator.classes_)
    members = [
        (probabilities if hasattr(member, "predict_proba") else votes)(member, read, n_classes)
        for member in estimator.estimators_
    ]
    return _weighted_mean(estimator, members, [1.0] * len(members), link="share")


def _read_adaptive_boosting(estimator: Estimator, read: ReadMember) -> Ensemble:
    """Return the weighted votes: w for the predicted class, −w / (classes − 1) for the others."""
    n_classes = len(estimator.classes_)
    if n_classes != TWO:
        raise NetworkError(
            f"{type(estimator).__name__} of several classes is not read exactly: got {n_classes} "
            "classes; expected 2"
        )
    members = [votes(member, read, n_classes) for member in estimator.estimators_]
    weights = [float(w) for w in estimator.estimator_weights_[: len(members)]]
    # The second vote minus the first, twice: one score above 0 stands for the second class.
    mean = _weighted_mean(estimator, members, weights, link="identity")
    directions = 2 * np.array([[-1.0, 1.0]])
    return Ensemble(
        mean.members,
        directions @ mean.weights,
        np.zeros(1),
        mean.denominator,
        mean.name,
        equality="below",
    )


def _weighted_mean(
    estimator: Estimator, members: list[Member], weights: list[float], *, link: Link
) -> Ensemble:
    """Return Σ weight · values / Σ weights; the first of the largest wins a tie of two classes."""
    if not all(np.isfinite(weight) and weight >= 0 for weight in weights) or sum(weights) <= 0:
        raise NetworkError(
            f"invalid weights of {type(estimator).__name__}: got {weights!r}; expected numbers of "
            "at least 0, not all of them 0"
        )
    integers, denominator = mean_weights(weights)
    outputs = members[0].outputs
    return Ensemble(
        tuple(members),
        np.hstack([weight * np.eye(outputs) for weight in integers]),
        np.zeros(outputs),
        denominator,
        type(estimator).__name__,
        equality="below" if outputs == TWO else None,
        link=link,
    )


def _read_stacking(estimator: Estimator, read: ReadMember) -> Ensemble:
    final = estimator.final_estimator_
    if estimator.passthrough:
        raise NetworkError(
            f"{type(estimator).__name__} also gives the features to its last model: got "
            "passthrough=True; expected passthrough=False"
        )
    if not is_linear(final):
        raise NetworkError(
            f"the last model of {type(estimator).__name__} is not linear: got "
            f"{type(final).__name__}; expected a linear model of scikit-learn"
        )
    pairs = zip(estimator.estimators_, estimator.stack_method_, strict=True)
    n_classes = len(getattr(estimator, "classes_", ()))
    members = [_stacked(member, method, read, n_classes) for member, method in pairs]
    matrix = np.asarray(coefficients(final), dtype=np.float64)
    bias = np.broadcast_to(np.asarray(final.intercept_, dtype=np.float64), len(matrix))
    link: Link = "logit" if probability_of(final) == "logistic" else "identity"
    return Ensemble(
        tuple(members), matrix, bias, 1, type(estimator).__name__, tie_side(final), link
    )


def _stacked(member: Estimator, method: str, read: ReadMember, n_classes: int) -> Member:
    if method == "decision_function":
        return decision_scores(member, read)
    if method == "predict_proba" and n_classes == TWO:
        return second_probability(member, read)
    if method == "predict_proba":
        return probabilities(member, read, n_classes)
    if n_classes == 0:
        return prediction(member, read)
    raise NetworkError(
        f"a member gives labels to the last model: got {type(member).__name__} with the method "
        f"{method!r}; expected probabilities or scores"
    )


READERS: dict[str, Callable[[Estimator, ReadMember], Ensemble]] = {
    "AdaBoostClassifier": _read_adaptive_boosting,
    "BaggingClassifier": _read_bagging,
    "BaggingRegressor": _read_bagging,
    "CalibratedClassifierCV": read_calibrated,
    "StackingClassifier": _read_stacking,
    "StackingRegressor": _read_stacking,
    "VotingClassifier": _read_voting,
    "VotingRegressor": _read_voting_regressor,
}
