"""Objectives of LightGBM: what the raw score means, and how it decides.

The score of the ensemble is the raw score, before the link of the objective: the log-odds of binary
(times its setting `sigmoid`), the logarithm of the prediction for poisson, gamma and tweedie, one
score per class for multiclass, and otherwise the prediction itself.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass

from feta.errors import NetworkError, unknown_choice
from feta.scorer.protocol import Link, Side


@dataclass(frozen=True, slots=True)
class Objective:
    """How LightGBM turns raw scores into decisions.

    LGBMClassifier takes the first of the largest probabilities. With two classes, a raw score of 0
    gives 0.5 for both, so it is below the threshold (`equality`). `prediction` "logit" states
    that a sigmoid or softmax in float64 comes first, which rounds tiny positive scores to 0.5.
    """

    equality: Side | None = None
    prediction: Link = "identity"
    several: bool = False  # one score per class


PLAIN = Objective()
LOG = Objective(prediction="log")
OBJECTIVES = {
    "binary": Objective("below", prediction="logit"),
    "multiclass": Objective(prediction="logit", several=True),
    "cross_entropy": Objective(prediction="logit"),
    "regression": PLAIN,
    "regression_l1": PLAIN,
    "huber": PLAIN,
    "fair": PLAIN,
    "quantile": PLAIN,
    "mape": PLAIN,
    "poisson": LOG,
    "gamma": LOG,
    "tweedie": LOG,
    "lambdarank": PLAIN,
    "rank_xendcg": PLAIN,
}


# Objectives whose predictions LGBMClassifier turns into classes as FETA does. It reads others as
# probabilities too: it compares a number or a count with 0.5.
CLASSIFIERS = ("binary", "cross_entropy", "multiclass")


def classifier_objective(words: Sequence[str], n_outputs: int, n_classes: int) -> tuple[str, ...]:
    """Return the objective that describes the decisions of a classifier; refuse others."""
    name = words[0] if words else "a custom objective"
    if name not in CLASSIFIERS:
        raise NetworkError(
            f"a classifier with this objective decides in another way: got {name}, whose "
            f"predictions LGBMClassifier compares with 0.5; expected {', '.join(CLASSIFIERS)}"
        )
    if n_outputs != (n_classes if name == "multiclass" else 1):
        raise NetworkError(
            f"wrong number of scores of a classifier with {n_classes} classes: got {n_outputs} by "
            f"its objective {name}; expected one per class, or one for two classes"
        )
    # The same sigmoid, and the same comparison.
    return ("binary", "sigmoid:1") if name == "cross_entropy" else tuple(words)


def find_objective(words: Sequence[str], n_outputs: int) -> Objective:
    """Return a known objective; refuse others, and numbers of outputs that do not fit it."""
    if not words:
        raise NetworkError(
            "the model has no objective, so its own code turns scores into predictions: "
            "got a custom objective; expected an objective of LightGBM"
        )
    name, settings = words[0], words[1:]
    if name not in OBJECTIVES:
        raise NetworkError(f"the objective is not supported: {unknown_choice(name, OBJECTIVES)}")
    if "sqrt" in settings:
        raise NetworkError(
            f"the objective is not supported: got {name} with reg_sqrt, whose predictions are "
            "squares of the scores; expected reg_sqrt=False"
        )
    objective = OBJECTIVES[name]
    if objective.several != (n_outputs > 1):
        expected = "2 or more" if objective.several else "1"
        raise NetworkError(
            f"wrong number of outputs of {name}: got {n_outputs}; expected {expected}"
        )
    return objective


def score_factor(words: Sequence[str]) -> float:
    """Return the factor between raw scores and log-odds: the setting `sigmoid` of binary.

    A power of two changes no digit, so sums remain those of LightGBM.
    """
    if words[0] != "binary":
        return 1.0
    texts = [word.removeprefix("sigmoid:") for word in words if word.startswith("sigmoid:")]
    try:
        factor = float(texts[0]) if texts else 1.0
    except ValueError:
        factor = math.nan
    if not (math.isfinite(factor) and factor > 0 and math.frexp(factor)[0] == 0.5):  # noqa: PLR2004 - a power of two
        raise NetworkError(
            f"the setting sigmoid of the objective is not supported: got {texts[0][:40]}; "
            "expected a power of two, such as the default 1; train it with sigmoid=1"
        )
    return factor
