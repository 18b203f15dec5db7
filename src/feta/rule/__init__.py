"""Rules: how scores become decisions, and when two counterparts get different ones.

A decision is the index of a class, or UNDECIDED where an error bound does not decide it. For a
threshold, 1 is favorable and 0 is unfavorable. A `Tolerance` makes no decisions: it compares the
scores of any two counterparts. A `Band` of that width reduces this to one counterpart at a time.
"""

from feta.rule.argmax import Argmax
from feta.rule.band import Band
from feta.rule.comparator import UNDECIDED, Comparator, Decisions
from feta.rule.one_vs_rest import OneVsRest
from feta.rule.protocol import Outcome, Rule, rule_kind, rule_options
from feta.rule.threshold import Threshold, probability_of
from feta.rule.tolerance import DEFINITION, Tolerance

__all__ = [
    "DEFINITION",
    "UNDECIDED",
    "Argmax",
    "Band",
    "Comparator",
    "Decisions",
    "OneVsRest",
    "Outcome",
    "Rule",
    "Threshold",
    "Tolerance",
    "probability_of",
    "rule_kind",
    "rule_options",
]
