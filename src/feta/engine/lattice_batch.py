"""Queries about many people of one model, counted and searched together."""

import time
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from feta.arrays import Counts
from feta.engine.counterparts import counterparts_of
from feta.engine.enumeration import solve_by_enumeration
from feta.engine.exact_blocks import together
from feta.engine.lattice_search import LatticeSearch
from feta.engine.lattice_tally import LatticeTally
from feta.engine.protocol import UNLIMITED
from feta.engine.query_state import QueryState, largest
from feta.query import PersonQuery, WorstAt
from feta.rule.comparator import UNDECIDED, Decisions
from feta.scorer.kernel import KernelSearch, LatticeKernel, Limits, References
from feta.verdict.certificate import Certificate, LatticeProof
from feta.verdict.counterexample import Counterexample
from feta.verdict.tally import Tally
from feta.verdict.verdict import Effort, Fair, Unfair, Verdict


def solve_batch(
    kernel: LatticeKernel, queries: Sequence[PersonQuery], *, engine: str, threads: int
) -> tuple[list[Verdict], Tally]:
    """Answer queries about the decisions of one model, without a budget; return also the counts.

    Counting proves most people fair at once. The worst counterparts of the others, or any
    counterexamples, are searched and replayed together, and so are near ties of few counterparts.
    """
    batch = _Batch(kernel, queries, engine, threads)
    verdicts = batch.fair() | batch.worst() | batch.any()
    rows = range(len(queries))
    return [verdicts[row] if row in verdicts else batch.alone(row) for row in rows], batch.counts


@dataclass
class _Batch:
    """The queries, all about one model; it lives no longer than their answers."""

    kernel: LatticeKernel
    queries: Sequence[PersonQuery]
    engine: str
    threads: int

    def __post_init__(self) -> None:
        self.started = time.monotonic()
        self.model = self.queries[0].model
        self.people = np.stack([query.person for query in self.queries])
        counting = LatticeTally(self.kernel, self.model, self.threads)
        self.counts = counting.count(self.people, UNLIMITED, until="all", weights=None)
        self.unanimous = self.counts.unanimous & (self.counts.undecided == 0)

    def fair(self) -> dict[int, Verdict]:
        """Return the verdicts of people whose counterparts all get the same decision."""
        rows, effort = np.flatnonzero(self.unanimous).tolist(), self._effort()
        safe = self.counts.runtime_safe.tolist()
        return {
            row: Fair(
                Certificate(self.queries[row].digest, self.engine, self._proof(row)),
                "safe" if safe[row] else "sensitive",
                effort,
            )
            for row in rows
        }

    def _proof(self, row: int) -> LatticeProof:
        """Return the proof that all counterparts of a person were counted."""
        relation = self.model.relation
        complete = relation.complete
        return LatticeProof(relation.size if complete else relation.count(self.people[row]))

    def worst(self) -> dict[int, Verdict]:
        """Return the verdicts of people with one worst counterpart, as the kernel found it.

        The kernel searches all assignments. If the worst one is a counterpart, it is the worst.
        """
        rows = self._rows(worst=True)
        if not rows.size:
            return {}
        decisions = self.decisions
        found: dict[int, int] = {}  # assignment ids
        near: dict[int, Counts] = {}  # candidates for the worst one
        for group, result in self._searches(rows, decisions):
            for index, row in enumerate(group.tolist()):
                candidates = result.candidates(index)
                if result.finished[index] and len(candidates) == 1:
                    found[row] = int(candidates[0])
                elif result.finished[index] and self._exist(row, candidates):
                    near[row] = candidates
        return self._unfair(found | self._worst_of(near), optimal=True)

    def _exist(self, row: int, candidates: Counts) -> bool:
        """Return whether these assignments have scores.

        The kernel also bounds columns that move outside their domain. If such an assignment
        excluded others, the worst of the rest may not be the worst counterpart.
        """
        relation = self.model.relation
        if relation.enclosing is not None:
            return True
        listed = relation.assignment_ids(self.people[row])
        return listed is None or bool(np.isin(candidates, listed).all())

    def _worst_of(self, near: dict[int, Counts]) -> dict[int, int]:
        """Return the worst of each person's candidates, exactly, if it gets another decision."""
        rule, chosen = self.model.rule, dict[int, int]()
        for block in together(self.model, self.people, near):
            for row, ids, scores in block.by_person():
                decision, decisions = self.decisions[row], rule.decide_exactly(scores)
                differs = (decisions != decision).astype(np.int8)
                _, differs_there, worst = largest(rule.opposing(decision), scores, differs, ids)
                if differs_there and scores.radii is None:
                    chosen[row] = worst
        return chosen

    def any(self) -> dict[int, Verdict]:
        """Return the verdicts of people with a counterexample that the kernel found."""
        rows = self._rows(worst=False)
        if not rows.size:
            return {}
        references = References(self.decisions[rows].astype(np.int64), np.zeros(len(rows)))
        result = self.kernel.find(self.people[rows], references, Limits())
        found: dict[int, int] = {}
        near: dict[int, Counts] = {}
        for index, row in enumerate(rows.tolist()):
            if result.found[index]:
                found[row] = int(result.assignment_ids[index])
            elif result.finished[index]:
                near[row] = result.candidates(index)
        return self._unfair(found | self._first_of(near), optimal=False)

    def _first_of(self, near: dict[int, Counts]) -> dict[int, int]:
        """Return the first of each person's candidates with another decision, exactly."""
        chosen: dict[int, int] = {}
        for block in together(self.model, self.people, near):
            for row, ids, scores in block.by_person():
                decisions = self.model.rule.decide_exactly(scores)
                differs = (decisions != self.decisions[row]) & (decisions != UNDECIDED)
                if differs.any():
                    chosen[row] = int(ids[np.argmax(differs)])
        return chosen

    @cached_property
    def decisions(self) -> Decisions:
        """The decisions about the people themselves."""
        return self.model.resolve(self.model.points(self.people), self.model.rule).decisions

    def _rows(self, *, worst: bool) -> Counts:
        """Return the people with different counterparts whose query is of one kind."""
        asked = np.array([isinstance(query, WorstAt) == worst for query in self.queries])
        rows = np.flatnonzero(~self.unanimous & asked)
        return rows[self.decisions[rows] != UNDECIDED] if rows.size else rows

    def _unfair(self, ids_by_row: dict[int, int], *, optimal: bool) -> dict[int, Verdict]:
        """Replay counterparts by their assignment ids; leave out pairs that prove nothing."""
        rows, ids = (np.array([*part], np.int64) for part in (ids_by_row, ids_by_row.values()))
        people = self.people[rows]
        others = counterparts_of(self.model, people, ids)
        pairs = Counterexample.witnesses(self.model, people, others)
        effort = self._effort()
        return {
            row: Unfair(pair, optimal, effort)
            for row, pair in zip(rows.tolist(), pairs, strict=True)
            if pair is not None
        }

    def _searches(self, rows: Counts, decisions: Decisions) -> list[tuple[Counts, KernelSearch]]:
        """Search for the worst counterparts of these people, one decision after the other."""
        searches = []
        for decision in np.unique(decisions[rows]).tolist():
            group, objective = rows[decisions[rows] == decision], self.model.rule.opposing(decision)
            result = self.kernel.worst(
                self.people[group],
                [objective] * len(group),
                np.full(len(group), objective.level),
                approximate=False,
                limits=Limits(),
                threads=self.threads,
            )
            searches.append((group, result))
        return searches

    def alone(self, row: int) -> Verdict:
        """Answer one query."""
        query = self.queries[row]
        if not self.model.relation.complete:
            return solve_by_enumeration(query, UNLIMITED, self.engine)
        search = LatticeSearch(self.kernel, QueryState(query, UNLIMITED, self.engine))
        return search.worst() if isinstance(query, WorstAt) else search.any()

    def _effort(self) -> Effort:
        """Return the cost so far, in equal shares."""
        return Effort((time.monotonic() - self.started) / len(self.queries))
