"""Queries about many people of one model, counted and searched together."""

from collections.abc import Sequence

import numpy as np

from feta.engine.lattice_search import LatticeSearch
from feta.engine.lattice_tally import LatticeTally
from feta.engine.protocol import UNLIMITED
from feta.engine.query_state import QueryState
from feta.query import PersonQuery, WorstAt
from feta.scorer.kernel import KernelSearch, LatticeKernel, Limits
from feta.scorer.protocol import Objective
from feta.verdict.verdict import Verdict


def solve_batch(
    kernel: LatticeKernel, queries: Sequence[PersonQuery], *, engine: str, threads: int
) -> list[Verdict]:
    """Answer queries about the decisions of one model, without a budget.

    Counting proves most people fair at once. The others are searched.
    """
    if not queries:
        return []
    model = queries[0].model
    people = np.stack([query.person for query in queries])
    counting = LatticeTally(kernel, model, threads)
    counts = counting.count(people, UNLIMITED, until="all", weights=None)
    fair = counts.unanimous & (counts.undecided == 0)
    states = [QueryState(query, UNLIMITED, engine) for query in queries]
    verdicts: list[Verdict | None] = [
        state.fair(runtime_safe=bool(counts.runtime_safe[row])) if fair[row] else None
        for row, state in enumerate(states)
    ]
    rest = [row for row, verdict in enumerate(verdicts) if verdict is None]
    worst = [row for row in rest if isinstance(queries[row], WorstAt)]
    for rows, result in _search_worst(kernel, states, worst, threads=threads):
        for index, row in enumerate(rows):
            verdicts[row] = LatticeSearch(kernel, states[row]).worst_of(result, index)
    return [
        LatticeSearch(kernel, state).any() if verdict is None else verdict
        for state, verdict in zip(states, verdicts, strict=True)
    ]


def _search_worst(
    kernel: LatticeKernel, states: Sequence[QueryState], rows: Sequence[int], *, threads: int
) -> list[tuple[list[int], KernelSearch]]:
    """Search for the worst counterparts of these people; one search per kind of objective."""
    groups: dict[bool, list[int]] = {}
    for row in rows:
        groups.setdefault(states[row].objective.least, []).append(row)
    searches = []
    for group in groups.values():
        objectives = _shared_objectives([states[row].objective for row in group])
        floors = np.array([objective.level for objective in objectives])
        people = np.stack([states[row].query.person for row in group])
        result = kernel.worst(
            people, objectives, floors, approximate=False, limits=Limits(), threads=threads
        )
        searches.append((group, result))
    return searches


def _shared_objectives(objectives: Sequence[Objective]) -> list[Objective]:
    """Replace equal objectives by one value, which a kernel recognizes."""
    known: dict[bytes, Objective] = {}
    return [known.setdefault(objective.directions.tobytes(), objective) for objective in objectives]
