"""Objectives of XGBoost: what the margin means, and the margin of a base score.

The score of the ensemble is always the margin, before the link of the objective. With a logistic
objective it is the log-odds, with count:poisson, reg:gamma and reg:tweedie the logarithm of the
prediction, and otherwise the prediction itself.
"""

import ctypes
import sys
from dataclasses import dataclass
from typing import Literal

import numpy as np

from feta.arrays import Array
from feta.errors import NetworkError, unknown_choice
from feta.scorer.protocol import Link, Side

# From a base score to the margin that XGBoost starts with.
Base = Literal["identity", "logit", "log"]

# XGBoost moves a probability of 0 or 1 this far inside.
CLAMPED = np.float32(1e-6)

# The first version whose base score of binary:logitraw is known to be a margin.
RAW_MARGINS = (3, 1)


@dataclass(frozen=True, slots=True)
class Objective:
    """How XGBoost turns a base score into a margin, and margins into decisions.

    `equality` is the side of a margin on the threshold: XGBClassifier decides p > 0.5 after a
    sigmoid in float32, so a margin of 0 is below; for hinge the margin itself is compared with 0
    in the same strict way. `prediction` "logit" states that a
    sigmoid or softmax in float32 comes before the comparison. It rounds small positive margins to
    p = 0.5.
    """

    base: Base = "identity"
    equality: Side | None = None
    prediction: Link = "identity"
    several: bool = False  # one margin per class


OBJECTIVES = {
    "binary:logistic": Objective("logit", "below", prediction="logit"),
    "binary:logitraw": Objective(),  # predict of XGBClassifier compares the margin with 0.5
    "binary:hinge": Objective(equality="below"),
    "multi:softprob": Objective(prediction="logit", several=True),
    "multi:softmax": Objective(several=True),
    "reg:logistic": Objective("logit", prediction="logit"),
    "reg:squarederror": Objective(),
    "reg:squaredlogerror": Objective(),
    "reg:absoluteerror": Objective(),
    "reg:pseudohubererror": Objective(),
    "reg:quantileerror": Objective(),
    "count:poisson": Objective("log", prediction="log"),
    "reg:gamma": Objective("log", prediction="log"),
    "reg:tweedie": Objective("log", prediction="log"),
    "rank:ndcg": Objective(),
    "rank:map": Objective(),
    "rank:pairwise": Objective(),
}


# Objectives whose predictions XGBClassifier turns into classes as FETA does. It reads others as
# probabilities too: it compares a margin or a count with 0.5.
CLASSIFIERS = {
    "binary:logistic": "binary:logistic",
    "reg:logistic": "binary:logistic",  # the classifier decides by p > 0.5
    "binary:hinge": "binary:hinge",
    "multi:softmax": "multi:softmax",
    "multi:softprob": "multi:softprob",
}
TWO = 2


def classifier_objective(name: str, n_outputs: int) -> str:
    """Return the objective that describes the decisions of a classifier; refuse others."""
    if name not in CLASSIFIERS:
        raise NetworkError(
            f"a classifier with this objective decides in another way: got {name}, whose "
            f"predictions XGBClassifier compares with 0.5; expected one of {', '.join(CLASSIFIERS)}"
        )
    if name == "multi:softprob" and n_outputs == TWO:
        raise NetworkError(
            "a classifier of two classes with multi:softprob gives two labels per person: "
            "expected binary:logistic; train it with that objective"
        )
    return CLASSIFIERS[name]


def find_objective(name: str, n_outputs: int, version: tuple[int, ...]) -> Objective:
    """Return a known objective; refuse others, and numbers of outputs that do not fit it."""
    if name not in OBJECTIVES:
        raise NetworkError(f"the objective is not supported: {unknown_choice(name, OBJECTIVES)}")
    objective = OBJECTIVES[name]
    if objective.several != (n_outputs > 1):
        expected = "2 or more" if objective.several else "1"
        raise NetworkError(
            f"wrong number of outputs of {name}: got {n_outputs}; expected {expected}"
        )
    if name == "binary:logitraw" and version < RAW_MARGINS:
        raise NetworkError(
            "the base score of binary:logitraw has another meaning in older versions of XGBoost: "
            f"got version {'.'.join(map(str, version))}; expected 3.1 or newer; train it again"
        )
    return objective


def base_margins(base_score: Array, base: Base) -> Array:
    """Return the margins in float32 that XGBoost starts with."""
    if base == "identity":
        return base_score
    if base == "log":
        if not (base_score > 0).all():
            raise NetworkError(
                f"invalid base score: got {base_score.tolist()}; expected positive numbers"
            )
        return _logarithms(base_score)
    if not ((base_score >= 0) & (base_score <= 1)).all():
        raise NetworkError(f"invalid base score: got {base_score.tolist()}; expected probabilities")
    one = np.float32(1)
    probability = np.clip(base_score, CLAMPED, one - CLAMPED)
    return -_logarithms(one / probability - one)


def _logarithms(numbers: Array) -> Array:
    """Return logarithms in float32, as the C function logf rounds them.

    XGBoost calls it. It is not correctly rounded: about one result in 200 is off by the last bit.
    """
    try:
        library = ctypes.CDLL("ucrtbase" if sys.platform == "win32" else None)
        logf = library.logf
    except (OSError, AttributeError):
        return np.log(numbers.astype(np.float64)).astype(np.float32)
    logf.restype, logf.argtypes = ctypes.c_float, [ctypes.c_float]
    return np.array([logf(float(number)) for number in numbers], dtype=np.float32)
