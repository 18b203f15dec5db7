"""Probabilities as scores and back, the same on every machine.

The functions of the C library round differently on different machines. Logits are computed in
decimal arithmetic, whose rounding is defined.
"""

from decimal import Decimal, localcontext
from statistics import NormalDist

from feta.errors import SchemaError
from feta.scorer.protocol import SHARES, Link

# Links whose prediction is a probability of the favorable side.
PROBABILITY_LINKS: tuple[Link, ...] = ("logit", "probit", *SHARES)

# Links of several scores whose predictions are the probabilities of the classes.
CLASS_LINKS: tuple[Link, ...] = ("logit", "share")

# Digits of decimal arithmetic; float64 has 17.
DIGITS = 30

# Decimals of a quantile of the normal distribution: far fewer than its error on any machine.
PROBIT_DECIMALS = 9

# Beyond this, a probability is 0 or 1 in float64.
LARGEST_LOGIT = 700.0


def score_of(probability: float, link: Link) -> float:
    """Return the score at which a link gives this probability, 0 < probability < 1."""
    match link:
        case "logit":
            with localcontext() as context:
                context.prec = DIGITS
                exact = Decimal(probability)
                return float((exact / (1 - exact)).ln())
        case "probit":
            return round(NormalDist().inv_cdf(probability), PROBIT_DECIMALS)
        case "share":
            return probability
        case "share_margin":
            return 2 * probability - 1
        case _:
            raise no_probability(link)


def probability_at(score: float, link: Link) -> float:
    """Return the probability that a link gives to a score."""
    match link:
        case "logit":
            with localcontext() as context:
                context.prec = DIGITS
                exact = Decimal(max(-LARGEST_LOGIT, min(score, LARGEST_LOGIT)))
                return float(1 / (1 + (-exact).exp()))
        case "probit":
            return round(NormalDist().cdf(score), PROBIT_DECIMALS)
        case "share":
            return score
        case "share_margin":
            return (1 + score) / 2
        case _:
            raise no_probability(link)


def no_probability(link: Link) -> SchemaError:
    """Return the error for a model whose scores are no probabilities."""
    return SchemaError(
        f"the model has no probabilities: got scores with the link {link!r}; expected a sigmoid, "
        "a softmax, or shares of votes; use vote='mean_score'"
    )
