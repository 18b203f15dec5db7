"""Any rule, and comparisons of people by it."""

import numpy as np

from feta.arrays import Flags
from feta.dyadic import Dyadic
from feta.rounding import DIFFERENCE, FLOAT64
from feta.rule.argmax import Argmax
from feta.rule.comparator import UNDECIDED
from feta.rule.one_vs_rest import OneVsRest
from feta.rule.threshold import Threshold
from feta.rule.tolerance import Tolerance
from feta.scorer.protocol import Enclosure

Deciding = Threshold | Argmax | OneVsRest
Rule = Deciding | Tolerance

# What a model returns for a person. Two decisions: True is favorable. Several classes: the index
# of the class. Regression: the score.
Outcome = bool | int | float

# What a tolerance compares, as named in files. Version 0.1.0 compared each counterpart's score
# with the person's score, which is a different question.
DEFINITION = "span"


def separates(rule: Rule, pair: Dyadic) -> bool:
    """Return whether exact scores of two people differ: in decision, or by more than epsilon."""
    if not isinstance(rule, Tolerance):
        first, second = rule.decide_exactly(pair)
        return bool(first != second)
    difference = pair[1, :1] - pair[0, :1]
    size = Dyadic(np.abs(difference.numerators), difference.exponent)
    return bool(size.compare(Dyadic.of(rule.epsilon))[0] > 0)


def differs_in_runtime(rule: Rule, reference: Dyadic, scores: Enclosure) -> Flags:
    """Return which points provably differ from the first one in the source's runtime, too."""
    if not isinstance(rule, Tolerance):
        return (rule.comparator(reference).decide(scores) == 1) & (
            rule.decide(scores)[0] != UNDECIDED
        )
    # The runtime rounds both scores of a pair, so both errors count.
    values, errors = scores.values[:, 0], scores.errors[:, 0]
    size = np.abs(values) + abs(values[0]) + rule.epsilon
    with np.errstate(invalid="ignore"):  # inf − inf where nothing is known: NaN proves nothing
        distance = np.abs(values - values[0]) - rule.epsilon
    return np.asarray(distance > errors + errors[0] + DIFFERENCE * size + FLOAT64.tiny)
