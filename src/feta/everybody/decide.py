"""Exact decisions about people: who has counterparts with different decisions."""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from feta.arrays import Flags, Matrix, Vector
from feta.checker.admit import admit
from feta.engine.protocol import UNLIMITED, Budget
from feta.engine.registry import choose, is_ours
from feta.model import Model
from feta.query import CountOf, FairAt
from feta.verdict.counterexample import Counterexample
from feta.verdict.verdict import Fair, Unfair, Verdict


@dataclass(frozen=True, slots=True, eq=False)
class Treated:
    """Who is treated unfairly, and about whom nothing is known; everybody else is fair."""

    unfair: Flags
    undecided: Flags

    @property
    def fair(self) -> Flags:
        """Who is treated fairly."""
        return ~(self.unfair | self.undecided)


def treated(model: Model, people: Matrix, budget: Budget = UNLIMITED) -> Treated:
    """Decide each person exactly, with the engine that fits the model."""
    if not len(people):
        return Treated(np.zeros(0, dtype=bool), np.zeros(0, dtype=bool))
    relation = model.relation
    counted = model.rule.tolerance is None and relation.finite and relation.complete
    if not counted:
        verdicts = _verdicts(model, people, budget)
        unfair = np.array([isinstance(verdict, Unfair) for verdict in verdicts])
        fair = np.array([isinstance(verdict, Fair) for verdict in verdicts])
        return Treated(unfair, ~(unfair | fair))
    tally = choose(CountOf(model)).tally(model, people, budget, until="all")
    unfair = (tally.by_class > 0).sum(axis=1) > 1
    return Treated(np.asarray(unfair), np.asarray(~unfair & (tally.undecided > 0)))


def counterexample(
    model: Model, person: Vector, budget: Budget = UNLIMITED
) -> Counterexample | None:
    """Return a pair for a person who is treated unfairly, evaluated again exactly."""
    verdict = _verdicts(model, person[None, :], budget)[0]
    return verdict.counterexample if isinstance(verdict, Unfair) else None


def _verdicts(model: Model, people: Matrix, budget: Budget) -> Sequence[Verdict]:
    queries = FairAt.each(model, people)
    chosen = choose(queries[0])
    solved = chosen.solve_many(queries, budget)
    return [
        admit(query, verdict, trusted=is_ours(chosen))
        for query, verdict in zip(queries, solved, strict=True)
    ]
