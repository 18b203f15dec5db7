"""Losses of CatBoost: what the raw score means, and how it decides."""

from dataclasses import dataclass

from feta.errors import NetworkError, unknown_choice
from feta.scorer.protocol import Link, Side


@dataclass(frozen=True, slots=True)
class Loss:
    """How CatBoost turns raw scores into decisions.

    With two classes, CatBoostClassifier decides for the second if the raw score is above 0. So a
    tie is below the threshold (`equality`). Probabilities are computed by a sigmoid or softmax in
    float64 (`link`), which rounds tiny positive scores to 0.5. With one score per class, the
    first of the largest wins.
    """

    equality: Side | None = None
    link: Link = "identity"
    several: bool = False  # one score per class


PLAIN = Loss()
LOG = Loss(link="log")
BINARY = Loss("below", link="logit")
CLASSES = Loss(link="logit", several=True)
LOSSES = {
    "Logloss": BINARY,
    "CrossEntropy": BINARY,
    "MultiClass": CLASSES,
    # One sigmoid per class: no probability is one of a difference of scores.
    "MultiClassOneVsAll": Loss(several=True),
    "RMSE": PLAIN,
    "MAE": PLAIN,
    "MAPE": PLAIN,
    "Quantile": PLAIN,
    "LogLinQuantile": LOG,
    "Expectile": PLAIN,
    "Huber": PLAIN,
    "LogCosh": PLAIN,
    "Lq": PLAIN,
    "Poisson": LOG,
    "Tweedie": LOG,
    "YetiRank": PLAIN,
    "YetiRankPairwise": PLAIN,
    "PairLogit": PLAIN,
    "PairLogitPairwise": PLAIN,
    "QueryRMSE": PLAIN,
    "QuerySoftMax": PLAIN,
}


def find_loss(name: str, n_outputs: int) -> Loss:
    """Return a known loss; refuse others, and numbers of outputs that do not fit it."""
    if name not in LOSSES:
        raise NetworkError(f"the loss is not supported: {unknown_choice(name, LOSSES)}")
    loss = LOSSES[name]
    if loss.several != (n_outputs > 1):
        expected = "2 or more" if loss.several else "1"
        raise NetworkError(
            f"wrong number of outputs of {name}: got {n_outputs}; expected {expected}"
        )
    return loss
