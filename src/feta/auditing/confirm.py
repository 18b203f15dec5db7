"""Confirmation of "fair" findings of an earlier session: a stored claim is not a proof."""

from collections.abc import Sequence
from dataclasses import replace

import numpy as np

from feta.arrays import Counts, Matrix
from feta.auditing.finding import Finding
from feta.engine.lattice import LatticeEngine
from feta.engine.protocol import Budget, Engine
from feta.engine.registry import engines
from feta.model import Model
from feta.query import CountOf
from feta.rule import Tolerance
from feta.scorer.network.native_kernel import ENUMERABLE


def confirm(
    model: Model, people: Matrix, findings: Sequence[Finding], budget: Budget
) -> list[Finding | None]:
    """Return the "fair" findings that the compiled engine proves, and None for the others.

    People with None must be audited anew. They include everyone if the engine does not accept the
    model, if there are too many counterparts to count, or if scores are compared: in these cases
    a proof costs as much as an audit.
    """
    lattice = engines()[LatticeEngine.name]
    if not _is_fast(lattice, model):
        return [None] * len(findings)
    if budget.seconds is not None:
        budget = replace(budget, seconds=budget.seconds * len(people))
    counts = lattice.tally(model, people, budget, until="all")
    proved = counts.unanimous & (counts.undecided == 0)
    rows = zip(
        findings, proved.tolist(), counts.winner.tolist(), counts.runtime_safe.tolist(), strict=True
    )
    return [
        finding
        if fair and _agrees(finding, decision) and (runtime_safe or finding.runtime == "sensitive")
        else None
        for finding, fair, decision, runtime_safe in rows
    ]


def _is_fast(lattice: Engine, model: Model) -> bool:
    finite = model.space.finite and model.space.lattice.size <= ENUMERABLE
    return finite and not isinstance(model.rule, Tolerance) and lattice.accepts(CountOf(model))


def _agrees(finding: Finding, decision: int) -> bool:
    """Return whether the stored decisions are the one that all counterparts get."""
    stored = (finding.decision, finding.fair_decision)
    return all(outcome is not None and int(outcome) == decision for outcome in stored)


def rows_to_confirm(known: Sequence[tuple[Finding | None, bool]]) -> Counts:
    """Return the rows that an earlier session called fair.

    Each entry is a stored finding, and whether the present session wrote it.
    """
    return np.flatnonzero(
        [
            finding is not None and finding.status == "fair" and not current
            for finding, current in known
        ]
    )
