"""Comparison of a combination with the estimator that it was read from."""

import warnings
from typing import Any

import numpy as np

from feta.absorb.evaluation import MAX_QUOTED, Evaluation
from feta.absorb.walk import run_step
from feta.arrays import Array, Matrix
from feta.errors import NetworkError
from feta.readers.sklearn.tree_inputs import TreeInputs
from feta.rounding import AGREEMENT
from feta.scorer.ensemble.ensemble import Ensemble
from feta.scorer.ensemble.probability import sigmoids
from feta.space.sampling import draw_people

Estimator = Any  # scikit-learn ships no types

# People drawn from the space, and at most so many with unusual values.
DRAWN_PEOPLE = 512
MAX_PROBES = 512


def check_combination(combination: Ensemble, estimator: Estimator, inputs: TreeInputs) -> None:
    """Raise if predictions or decisions differ from the estimator's own."""
    space = inputs.space
    drawn = draw_people(space, np.random.default_rng(0), DRAWN_PEOPLE)
    probes = Evaluation(space, None, inputs.table).probes()[:MAX_PROBES]
    people = np.concatenate([drawn, probes])
    expected, labels = _source(estimator, inputs, people)
    scores = combination.over(space).points(people).scores(combination.arithmetic)
    got = _predictions(combination, scores.values, expected.shape[1])
    allowed = AGREEMENT * (1 + np.abs(expected)) + scores.errors.max(axis=1, keepdims=True)
    different = (np.abs(got - expected) > allowed).any(axis=1)
    if different.any():
        row = int(np.argmax(different))
        raise _difference("predictions", estimator, got[row], expected[row])
    if labels is None:
        return
    decided, sure = _decisions(scores.values, scores.errors)
    different = sure & (estimator.classes_[decided] != labels)
    if different.any():
        row = int(np.argmax(different))
        raise _difference(
            "decisions", estimator, estimator.classes_[decided[row]], np.asarray(labels[row])
        )


def _difference(what: str, estimator: Estimator, got: Array, expected: Array) -> NetworkError:
    return NetworkError(
        f"the combination's {what} differ from those of {type(estimator).__name__}: got "
        f"{got.tolist()}; expected {expected.tolist()}; please report this estimator"
    )


def _predictions(combination: Ensemble, scores: Matrix, outputs: int) -> Matrix:
    """Return what the source predicts, from the scores."""
    if combination.link != "logit":
        return scores
    if scores.shape[1] == 1:
        shares = sigmoids(scores)
        return np.hstack([1 - shares, shares]) if outputs > 1 else shares
    powers = np.exp(scores - scores.max(axis=1, keepdims=True))
    return np.asarray(powers / powers.sum(axis=1, keepdims=True))


def _decisions(scores: Matrix, errors: Matrix) -> tuple[Array, Array]:
    """Return the classes that the scores choose, and whether rounding cannot change them."""
    if scores.shape[1] == 1:
        return (scores[:, 0] > 0).astype(np.int64), np.abs(scores[:, 0]) > errors[:, 0]
    ranked = np.sort(scores, axis=1)
    return np.argmax(scores, axis=1), ranked[:, -1] - ranked[:, -2] > 2 * errors.max(axis=1)


def _source(
    estimator: Estimator, inputs: TreeInputs, people: Matrix
) -> tuple[Matrix, Array | None]:
    """Return the estimator's own predictions, and its labels if it is a classifier."""
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            table = inputs.table(people)
            features = table if inputs.steps is None else run_step(inputs.steps, table)
            labels = estimator.predict(features)
            if not hasattr(estimator, "classes_"):
                return np.asarray(labels).reshape(len(people), -1), None
            predicted = _responses(estimator, features)
    except Exception as error:  # the user's code may raise anything
        reason = " ".join(str(error).split())[:MAX_QUOTED]
        raise NetworkError(
            f"{type(estimator).__name__} rejects people of this space: {reason}; compare the "
            "schema's columns with the table that the estimator was trained on"
        ) from error
    return predicted.reshape(len(people), -1), labels


def _responses(estimator: Estimator, features: object) -> Matrix:
    """Return probabilities, or the scores of a vote, or the shares of its members' votes."""
    if type(estimator).__name__ == "AdaBoostClassifier":
        return np.asarray(estimator.decision_function(features))
    if getattr(estimator, "voting", "soft") == "hard":
        return _shares_of_votes(estimator, features)
    if hasattr(estimator, "predict_proba"):
        return np.asarray(estimator.predict_proba(features))
    return np.asarray(estimator.decision_function(features))


def _shares_of_votes(estimator: Estimator, features: object) -> Matrix:
    chosen = estimator.transform(features)
    weights = estimator._weights_not_none  # noqa: SLF001 - there is no public name
    sizes = np.ones(chosen.shape[1]) if weights is None else np.asarray(weights, dtype=np.float64)
    totals = [(chosen == index) @ sizes for index in range(len(estimator.classes_))]
    return np.stack(totals, axis=1) / sizes.sum()
