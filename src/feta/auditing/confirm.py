"""Confirm: proves again what an earlier session called fair; a journal's word is not a proof."""

from collections.abc import Sequence
from dataclasses import replace

import numpy as np

from feta.arrays import Counts, Matrix
from feta.auditing.finding import Finding
from feta.engine.lattice import LatticeEngine
from feta.engine.lattice_kernel import ENUMERABLE
from feta.engine.protocol import Budget, Engine
from feta.engine.registry import engines
from feta.model import Model
from feta.rule import Tolerance


def confirmed(
    model: Model, people: Matrix, findings: Sequence[Finding], budget: Budget
) -> list[Finding | None]:
    """Return the "fair" findings that the compiled engine proves again; None asks the person again.

    People are asked again as well where that engine does not take the model or has too many
    counterparts to count, and where scores are compared: then a proof costs as much as the answer.
    """
    lattice = engines()[LatticeEngine.name]
    if not _is_quick(lattice, model):
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


def _is_quick(lattice: Engine, model: Model) -> bool:
    finite = model.space.finite and model.space.lattice.size <= ENUMERABLE
    return finite and not isinstance(model.rule, Tolerance) and lattice.accepts(model)


def _agrees(finding: Finding, decision: int) -> bool:
    """Whether the stored decisions are the one that all counterparts get."""
    stored = (finding.decision, finding.fair_decision)
    return all(one is not None and int(one) == decision for one in stored)


def places_to_confirm(known: Sequence[tuple[Finding | None, bool]]) -> Counts:
    """List the rows that an earlier session called fair."""
    return np.flatnonzero(
        [one is not None and one.status == "fair" and not reference for one, reference in known]
    )
