"""Finding: what an audit says about one person, and how a block of people is asked."""

from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Literal

import numpy as np

from feta.api import tally, verify
from feta.arrays import Flags, Matrix
from feta.engine.protocol import UNLIMITED, Budget
from feta.errors import SchemaError
from feta.model import Model
from feta.query import WorstAt
from feta.rule import OneVsRest, Threshold
from feta.verdict.counterexample import Counterexample, Runtime
from feta.verdict.tally import Tally
from feta.verdict.verdict import Reason, Unfair, Unknown

Status = Literal["fair", "unfair", "undecided", "not audited"]

# The user's own runtime, if at hand: rows in people's own units to its decisions, True is favorable.
Replay = Callable[[Matrix], Flags]


@dataclass(frozen=True, slots=True, eq=False)
class Finding:
    """One person: fair, unfair with the farthest pair, undecided, or not audited and why."""

    row: int
    status: Status
    decision: bool | None = None  # the model's own
    fair_decision: bool | None = None  # the majority's
    pair: Counterexample | None = None
    alone: tuple[str, ...] = ()  # the attributes each of which is enough by itself
    runtime: Runtime = "sensitive"
    replayed: bool | None = None  # whether the user's own runtime decides the pair apart, if asked
    reason: str = ""


@dataclass(frozen=True)
class Auditor:
    """Asks about people: a model, the engine, what each person may cost, and a runtime to replay in."""

    model: Model
    engine: str = "auto"
    budget: Budget = UNLIMITED
    replay: Replay | None = None

    def __post_init__(self) -> None:
        if not isinstance(self.model.rule, Threshold | OneVsRest):
            message = f"an audit needs a model with two decisions, got {type(self.model.rule).__name__}; take one class against the rest: model.one_vs_rest(name)"
            raise SchemaError(message)

    @cached_property
    def singles(self) -> dict[str, Model]:
        """The model with one attribute sensitive at a time."""
        sensitive = self.model.space.sensitive
        return {one.name: self.model.with_sensitive([one.name]) for one in sensitive}

    def ask(self, people: Matrix, start: int = 0) -> list[Finding]:
        """Ask about each of some people; rows are numbered from start."""
        self.model.space.check(people)
        counts = self._counts(self.model, people)
        settled, fair_decisions = counts.settled, counts.decision
        decisions = self.model.decide(people)
        split = (counts.favorable > 0) & (counts.unfavorable > 0)
        alone = self._alone(people, np.flatnonzero(split))
        findings = []
        for row in range(len(people)):
            fair = bool(fair_decisions[row]) if settled[row] else None
            finding = Finding(start + row, "fair", bool(decisions[row]), fair)
            if split[row]:
                finding = self._unfair(finding, people[row], alone[row])
            elif counts.undecided[row]:
                finding = replace(finding, status="undecided", reason=str(Reason.OUT_OF_TIME))
            else:
                finding = replace(finding, runtime="safe" if counts.safe[row] else "sensitive")
            findings.append(finding)
        return findings

    def _counts(self, model: Model, people: Matrix) -> Tally:
        """Count everybody's counterparts together, then those left open one by one.

        A budget is per person: one person's large lattice must not use up the others' share.
        """
        seconds = self.budget.seconds
        together = Budget(seconds=None if seconds is None else seconds * len(people))
        counts = tally(model, people, engine=self.engine, budget=together)
        by_class, undecided, safe = (
            counts.by_class.copy(),
            counts.undecided.copy(),
            counts.safe.copy(),
        )
        for row in np.flatnonzero(undecided) if len(people) > 1 else ():
            again = tally(model, people[row : row + 1], engine=self.engine, budget=self.budget)
            by_class[row], undecided[row], safe[row] = (
                again.by_class[0],
                again.undecided[0],
                again.safe[0],
            )
        return Tally(by_class, undecided, safe)

    def _alone(self, people: Matrix, rows: np.ndarray) -> dict[int, tuple[str, ...]]:
        """Find which attributes are enough by themselves, for people who have a counterexample."""
        found: dict[int, tuple[str, ...]] = {int(row): () for row in rows}
        if not len(rows):
            return found
        for name, model in self.singles.items():
            counts = self._counts(model, people[rows])
            for place in np.flatnonzero((counts.favorable > 0) & (counts.unfavorable > 0)):
                found[int(rows[place])] += (name,)
        return found

    def _unfair(self, finding: Finding, person: np.ndarray, alone: tuple[str, ...]) -> Finding:
        verdict = verify(WorstAt(self.model, person), engine=self.engine, budget=self.budget)
        match verdict:
            case Unfair(counterexample=pair):
                pass
            case Unknown(best=best) if best is not None:
                pair = best
            case _:
                return replace(finding, status="undecided", reason=str(Reason.OUT_OF_TIME))
        replayed = None if self.replay is None else self._replays(pair)
        runtime: Runtime = "sensitive" if replayed is False else pair.runtime
        return replace(
            finding, status="unfair", pair=pair, alone=alone, runtime=runtime, replayed=replayed
        )

    def _replays(self, pair: Counterexample) -> bool:
        assert self.replay is not None
        decided = self.replay(np.stack([pair.person, pair.counterpart]))
        return decided.tolist() == [decision == 1 for decision in pair.decisions]

    def simplest(self, finding: Finding, name: str | None) -> Counterexample | None:
        """Give a person's farthest pair that differs in one attribute only; None takes any."""
        assert finding.pair is not None  # only the unfair have a pair
        if name is None:
            return finding.pair
        query = WorstAt(self.singles[name], finding.pair.person)
        match verify(query, engine=self.engine, budget=self.budget):
            case Unfair(counterexample=pair):
                return pair
            case Unknown(best=best):
                return best
            case _:
                return None
