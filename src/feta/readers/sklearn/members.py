"""Members of a combination: their scores as probabilities, votes or predictions."""

from collections.abc import Callable
from typing import Any

from feta.errors import NetworkError
from feta.scorer.ensemble.curves import Chosen, ClassVote, Pair, SideVote
from feta.scorer.ensemble.ensemble import Member
from feta.scorer.ensemble.probability import Sigmoid, Softmax
from feta.scorer.protocol import Scorer

Estimator = Any  # scikit-learn ships no types

# Reads a fitted member, after the steps before the whole combination.
ReadMember = Callable[[Estimator], Scorer]


def probabilities(estimator: Estimator, read: ReadMember, n_classes: int) -> Member:
    """Return the member whose values are the probabilities of all classes."""
    check_classes(estimator, n_classes)
    scorer = read(estimator)
    if n_classes > 2:  # noqa: PLR2004 - one score decides between two
        return Member(scorer, () if scorer.link == "share" else (_softmax(estimator, scorer),))
    if scorer.link == "share" and scorer.outputs == n_classes:
        return Member(scorer)
    return Member(scorer, (_sigmoid(estimator, scorer), Pair()))


def second_probability(estimator: Estimator, read: ReadMember) -> Member:
    """Return the member whose value is the probability of the second of two classes."""
    check_classes(estimator, 2)
    scorer = read(estimator)
    if scorer.link == "share" and scorer.outputs > 1:
        return Member(scorer, (Chosen(1, scorer.outputs),))
    return Member(scorer, (_sigmoid(estimator, scorer),))


def votes(estimator: Estimator, read: ReadMember, n_classes: int) -> Member:
    """Return the member whose values are 1 for the class that it predicts, and 0 for others."""
    check_classes(estimator, n_classes)
    scorer = read(estimator)
    if scorer.outputs > 1:
        return Member(scorer, (ClassVote(scorer.outputs),))
    return Member(scorer, (SideVote(scorer.equality), Pair()))


def decision_scores(estimator: Estimator, read: ReadMember) -> Member:
    """Return the member whose values are those of `decision_function`."""
    scorer = read(estimator)
    if scorer.link not in ("identity", "logit"):
        raise _unknown(estimator, "scores of decision_function")
    return Member(scorer)


def prediction(estimator: Estimator, read: ReadMember) -> Member:
    """Return the member whose value is what a regressor predicts."""
    scorer = read(estimator)
    if scorer.link != "identity" or scorer.outputs != 1:
        raise _unknown(estimator, "predictions that are its scores")
    return Member(scorer)


def check_classes(estimator: Estimator, n_classes: int) -> None:
    """Raise unless a member knows all classes of the combination."""
    known = len(getattr(estimator, "classes_", ()))
    if known != n_classes:
        raise NetworkError(
            f"a member knows other classes than the combination: got {known} classes of "
            f"{type(estimator).__name__}; expected {n_classes}"
        )


def _sigmoid(estimator: Estimator, scorer: Scorer) -> Sigmoid:
    if scorer.link != "logit" or scorer.outputs != 1:
        raise _unknown(estimator, "probabilities that are a sigmoid of its score, or shares")
    return Sigmoid()


def _softmax(estimator: Estimator, scorer: Scorer) -> Softmax:
    if scorer.link != "logit":
        raise _unknown(estimator, "probabilities that are a softmax of its scores, or shares")
    return Softmax(scorer.outputs)


def _unknown(estimator: Estimator, expected: str) -> NetworkError:
    return NetworkError(
        f"a member of a combination is not read exactly: got {type(estimator).__name__}; "
        f"expected {expected}"
    )
