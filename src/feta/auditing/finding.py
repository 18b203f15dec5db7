"""The finding of an audit about one person."""

from dataclasses import dataclass
from typing import Literal

from feta.rule import Outcome
from feta.verdict.counterexample import Counterexample, RuntimeStatus

Status = Literal["fair", "unfair", "undecided", "not audited"]


@dataclass(frozen=True, slots=True, eq=False)
class Finding:
    """One person: fair, unfair with the worst pair, undecided or not audited with the reason."""

    row: int
    status: Status
    decision: Outcome | None = None  # of the model; regression: its score
    fair_decision: Outcome | None = None  # of the majority; regression: the median
    pair: Counterexample | None = None
    alone: tuple[str, ...] = ()  # the attributes of which each is enough by itself
    runtime: RuntimeStatus = "sensitive"
    replayed: bool | None = None  # whether the pair differs in the user's runtime; None: not tested
    reason: str = ""
    span: float | None = None  # regression: highest less lowest score of the counterparts
