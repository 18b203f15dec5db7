"""Finding: what an audit says about one person."""

from dataclasses import dataclass
from typing import Literal

from feta.rule import Outcome
from feta.verdict.counterexample import Counterexample, RuntimeStatus

Status = Literal["fair", "unfair", "undecided", "not audited"]


@dataclass(frozen=True, slots=True, eq=False)
class Finding:
    """One person: fair, unfair with the farthest pair, undecided, or not audited and why."""

    row: int
    status: Status
    decision: Outcome | None = None  # the model's own; regression: its score
    fair_decision: Outcome | None = None  # the majority's; regression: the median
    pair: Counterexample | None = None
    alone: tuple[str, ...] = ()  # the attributes each of which is enough by itself
    runtime: RuntimeStatus = "sensitive"
    replayed: bool | None = None  # whether the user's own runtime decides the pair apart, if asked
    reason: str = ""
    span: float | None = None  # regression: how far apart the counterparts' scores are
