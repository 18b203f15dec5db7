"""Verdicts of a block of people about decisions, and the counts of those not proved fair."""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from feta.api import verify_counted, verify_many
from feta.arrays import Counts, Flags, Matrix
from feta.auditing.counting import Counting
from feta.auditing.finding import pair_of
from feta.checker.admit import admit
from feta.engine.protocol import UNLIMITED, check_countable
from feta.engine.registry import choose, is_ours
from feta.model import Model
from feta.query import CountOf, WorstAt
from feta.verdict.certificate import Certificate, LatticeProof
from feta.verdict.tally import Tally
from feta.verdict.verdict import Fair, Reason, Unknown, Verdict


@dataclass(frozen=True, slots=True, eq=False)
class BlockVerdicts:
    """One verdict per person, and the counts of the people in `rows`.

    A verdict is None if the engine's count and its proof contradict each other.
    """

    verdicts: list[Verdict | None]
    rows: Counts  # of all people who are not proved fair
    counts: Tally | None = None  # None if there are no such people

    @property
    def contradicted(self) -> list[bool]:
        """Whether the count and the proof of each person in `rows` contradict each other."""
        if self.counts is None:
            return []
        complete = _complete(self.counts).tolist()
        verdicts = [self.verdicts[row] for row in self.rows.tolist()]
        return [
            verdict is None or (denied and pair_of(verdict) is not None)
            for verdict, denied in zip(verdicts, complete, strict=True)
        ]


def block_verdicts(model: Model, people: Matrix, counting: Counting) -> BlockVerdicts:
    """Find the worst counterexample of each person, or prove that there is none."""
    check_countable(model)
    queries = WorstAt.each(model, people)
    if not queries:
        return BlockVerdicts([], np.zeros(0, dtype=np.int64))
    engine = choose(CountOf(model), counting.engine)
    if counting.budget != UNLIMITED and is_ours(engine):
        return _count_first(queries, people, counting, engine.name)
    answers, known = verify_counted(queries, engine=counting.engine, budget=counting.budget)
    verdicts: list[Verdict | None] = [*answers]
    trusted = is_ours(engine)
    # An engine of another package also counts the people it proved fair: it may contradict itself.
    rows = _not_fair(verdicts) if trusted else np.arange(len(queries))
    if not len(rows):
        return BlockVerdicts(verdicts, rows)
    if known is None or known.undecided[rows].any():
        counts = counting.tally(model, people[rows])
    else:
        counts = known.rows(rows)
    complete, split = _complete(counts).tolist(), (~counts.unanimous).tolist()
    for index, row in enumerate(rows.tolist()):
        if isinstance(verdicts[row], Fair):
            verdicts[row] = None if split[index] else verdicts[row]
        elif trusted and complete[index] and pair_of(verdicts[row]) is None:
            # The search gave up, and the count is a proof.
            safe = bool(counts.runtime_safe[index])
            verdicts[row] = _counted(queries[row], engine.name, runtime_safe=safe)
    return _without_fair(verdicts, rows, counts)


def _count_first(
    queries: Sequence[WorstAt], people: Matrix, counting: Counting, engine: str
) -> BlockVerdicts:
    """Count within the budgets, which proves most people fair at once; search for the others."""
    counts = counting.tally(queries[0].model, people)
    untimed = counting.budget.seconds is None
    reason = Reason.OUT_OF_NODES if untimed else Reason.OUT_OF_TIME
    complete, split = _complete(counts).tolist(), (~counts.unanimous).tolist()
    asked = [query for query, differs in zip(queries, split, strict=True) if differs]
    found = iter(verify_many(asked, engine=counting.engine, budget=counting.budget))
    verdicts: list[Verdict | None] = []
    for row, query in enumerate(queries):
        if split[row]:
            verdict = next(found)
            verdicts.append(None if isinstance(verdict, Fair) else verdict)
        elif complete[row]:
            safe = bool(counts.runtime_safe[row])
            verdicts.append(_counted(query, engine, runtime_safe=safe))
        else:
            verdicts.append(admit(query, Unknown(reason), trusted=True))
    return _without_fair(verdicts, np.arange(len(queries)), counts)


def _without_fair(verdicts: list[Verdict | None], counted: Counts, counts: Tally) -> BlockVerdicts:
    """Keep the counts of the people who are not proved fair."""
    indices = _not_fair([verdicts[row] for row in counted.tolist()])
    part = counts.rows(indices) if len(indices) else None
    return BlockVerdicts(verdicts, counted[indices], part)


def _complete(counts: Tally) -> Flags:
    """Return who provably has no counterpart with a different decision."""
    return np.asarray(counts.unanimous & (counts.undecided == 0))


def _not_fair(verdicts: Sequence[Verdict | None]) -> Counts:
    return np.flatnonzero([not isinstance(verdict, Fair) for verdict in verdicts])


def _counted(query: WorstAt, engine: str, *, runtime_safe: bool) -> Verdict:
    """Return the verdict of a complete count by an engine of FETA, which the checker confirms."""
    proof = LatticeProof(query.model.relation.count(query.person))
    certificate = Certificate(query.digest, engine, proof)
    fair = Fair(certificate, "safe" if runtime_safe else "sensitive")
    return admit(query, fair, trusted=True)
