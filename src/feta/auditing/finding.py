"""The finding of an audit about one person: a verdict with its evidence, and the decisions."""

from dataclasses import dataclass
from enum import StrEnum
from typing import Literal

from feta.rule import Outcome
from feta.verdict.certificate import Certificate
from feta.verdict.counterexample import Counterexample, RuntimeStatus
from feta.verdict.verdict import Fair, Reason, Unfair, Unknown, Verdict

Status = Literal["fair", "unfair", "undecided", "not audited"]


class AuditFault(StrEnum):
    """Why a person whose row was read has no verdict; nothing is proved about the person."""

    WORKER_DIED = (
        "the worker process died during the audit of this person, possibly for lack of memory"
    )
    ENGINE_CONTRADICTION = (
        "the engine contradicts itself: its count and its proof disagree on whether a counterpart "
        "gets a different decision; please report this error"
    )


@dataclass(frozen=True, slots=True, eq=False)
class Finding:
    """One person: the verdict, and what else was found.

    Without a verdict, `reason` states why: the row could not be read, or an `AuditFault`.
    """

    row: int
    verdict: Verdict | None = None
    decision: Outcome | None = None  # of the model; regression: its score
    fair_decision: Outcome | None = None  # of the majority; regression: the median
    alone: tuple[str, ...] = ()  # the attributes of which each is enough by itself
    replayed: bool | None = None  # whether the pair differs in the user's runtime; None: not tested
    reason: str = ""  # why there is no answer
    span: float | None = None  # regression: highest less lowest score of the counterparts
    plausible: bool = True  # False: the relation does not admit the person's own values
    own_differs: bool = False  # whether an implausible person's decision differs from all others
    counterparts: int | None = None  # the number of plausible ones; None: it is always the same

    def __post_init__(self) -> None:
        if isinstance(self.verdict, Unknown) and self.verdict.best is None and not self.reason:
            object.__setattr__(self, "reason", reason_of(self.verdict))

    def numbered(self, row: int) -> "Finding":
        """Return the finding with another row number."""
        return self._with(row, self.alone, self.replayed)

    def completed(self, row: int, *, alone: tuple[str, ...], replayed: bool | None) -> "Finding":
        """Return the finding with a row number, and with what was found out about its pair."""
        return self._with(row, alone, replayed)

    def _with(self, row: int, alone: tuple[str, ...], replayed: bool | None) -> "Finding":
        if (row, alone, replayed) == (self.row, self.alone, self.replayed):
            return self
        return Finding(
            row,
            self.verdict,
            self.decision,
            self.fair_decision,
            alone,
            replayed,
            self.reason,
            self.span,
            self.plausible,
            self.own_differs,
            self.counterparts,
        )

    @property
    def status(self) -> Status:
        """Fair and unfair only with evidence; undecided without, not audited if not read."""
        if self.verdict is None:
            return "undecided" if isinstance(self.reason, AuditFault) else "not audited"
        if isinstance(self.verdict, Fair):
            return "fair"
        return "undecided" if self.pair is None else "unfair"

    @property
    def nobody(self) -> bool:
        """Whether there is nobody to compare with."""
        verdict = self.verdict
        reasons = (Reason.NOBODY, Reason.NO_COUNTERPART)
        return isinstance(verdict, Unknown) and verdict.reason in reasons

    @property
    def pair(self) -> Counterexample | None:
        """The worst counterexample, or the best one that was found in time."""
        return pair_of(self.verdict)

    @property
    def certificate(self) -> Certificate | None:
        """The proof that the person is treated fairly; every fair person has one."""
        return self.verdict.certificate if isinstance(self.verdict, Fair) else None

    @property
    def runtime(self) -> RuntimeStatus:
        """Whether rounding in the user's runtime provably does not change the answer."""
        if isinstance(self.verdict, Fair):
            return self.verdict.runtime
        pair = self.pair
        return "sensitive" if pair is None or self.replayed is False else pair.runtime


def reason_of(verdict: Unknown) -> str:
    """Return why there is no verdict, with the solver that failed or the row that explains it."""
    solver = f"{verdict.solver}: " if verdict.solver else ""
    detail = f": {verdict.detail}" if verdict.detail else ""
    return f"{solver}{verdict.reason}{detail}"


def pair_of(verdict: Verdict | None) -> Counterexample | None:
    """Return the counterexample of a verdict, if it has one."""
    if isinstance(verdict, Unfair):
        return verdict.counterexample
    return verdict.best if isinstance(verdict, Unknown) else None
