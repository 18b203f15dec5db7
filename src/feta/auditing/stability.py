"""When an audit of a counted model stops: too many people get different answers."""

from collections.abc import Sequence
from dataclasses import dataclass

from feta.auditing.finding import Finding
from feta.verdict.verdict import DOUBT_REASONS, Reason, Unknown

# The largest share of people whose rows get different answers. It is taken of at least so many
# people: one of the first few does not stop an audit.
MAX_SHARE = 0.01
MIN_PEOPLE = 100


@dataclass
class Stability:
    """A count of people whose rows got different answers; mutable, one per audit."""

    people: int = 0
    different: int = 0
    first: str = ""  # the row of the first of them

    def add(self, findings: Sequence[Finding]) -> None:
        """Count people."""
        self.people += len(findings)
        for finding in findings:
            verdict = finding.verdict
            if isinstance(verdict, Unknown) and verdict.reason is Reason.NONDETERMINISTIC:
                self.different += 1
                self.first = self.first or verdict.detail

    @property
    def objection(self) -> str:
        """Why the audit must stop; empty if it may continue."""
        if self.different <= MAX_SHARE * max(self.people, MIN_PEOPLE):
            return ""
        return (
            f"the model is not deterministic: got different answers to the same row for "
            f"{self.different:,} of {self.people:,} people; expected at most {MAX_SHARE:.0%}; fix "
            "its random state, and evaluate it without state and independently of the batch; "
            f"the first is {self.first}"
        )


def is_answer(finding: Finding) -> bool:
    """Return whether a finding is worth keeping: a later audit retries doubts."""
    verdict = finding.verdict
    doubtful = isinstance(verdict, Unknown) and verdict.reason in DOUBT_REASONS.values()
    return verdict is not None and not doubtful
