"""What a model predicts for people, as one number: a probability where it has one."""

import math

import numpy as np

from feta.arrays import Matrix, Vector
from feta.model import Model


def favorable_score(model: Model, people: Matrix) -> Vector:
    """Return the probability of the favorable side; without one, the score towards it.

    Regression: the score. The numbers are rounded, for statistics only.
    """
    scores = np.asarray(model.scorer(people))[:, 0]
    match model.scorer.link:
        case "logit":
            scores = sigmoid(scores)
        case "probit":
            scores = np.array([math.erfc(-score / math.sqrt(2)) / 2 for score in scores])
        case "log":
            scores = np.exp(scores)
        case "identity" | "share":
            pass
    return np.asarray(-scores if model.rule.favors == "below" else scores)


def has_one_score(model: Model) -> bool:
    """Return whether people have one score: two decisions, or a regression."""
    return model.scorer.outputs == 1


def sigmoid(scores: Vector) -> Vector:
    """Return 1 / (1 + e^−score)."""
    return np.asarray(0.5 * (1.0 + np.tanh(scores / 2)))
