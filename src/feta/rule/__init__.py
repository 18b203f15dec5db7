"""Rules: how scores become decisions, and when two counterparts get different ones.

A decision is the index of a class, or UNDECIDED where an error bound does not decide it. For a
threshold, 1 is favorable and 0 is unfavorable. A `Tolerance` makes no decisions: it compares the
scores of any two counterparts. A `Band` of that width reduces this to one counterpart at a time.
"""

from feta.rule.argmax import Argmax
from feta.rule.comparator import UNDECIDED, Comparator, Decisions
from feta.rule.one_vs_rest import OneVsRest
from feta.rule.rule import DEFINITION, Deciding, Outcome, Rule, differs_in_runtime, separates
from feta.rule.threshold import Threshold
from feta.rule.tolerance import Band, Tolerance

__all__ = [
    "DEFINITION",
    "UNDECIDED",
    "Argmax",
    "Band",
    "Comparator",
    "Deciding",
    "Decisions",
    "OneVsRest",
    "Outcome",
    "Rule",
    "Threshold",
    "Tolerance",
    "differs_in_runtime",
    "separates",
]
