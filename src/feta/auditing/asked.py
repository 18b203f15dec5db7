"""Whom an audit asks about: the people themselves, or plausible people with the same key.

Whether somebody is treated fairly depends on the key only. If the relation does not admit a
person's own values, a counterpart of the same key is asked about, and the person's own decision is
compared besides.
"""

from dataclasses import dataclass, replace

import numpy as np

from feta.arrays import Counts, Flags, Matrix
from feta.auditing.counting import Counting
from feta.auditing.finding import Finding
from feta.model import Model
from feta.rule import Outcome
from feta.verdict.verdict import Fair, Reason, Unknown

# What a finding about other people says.
NOT_PLAUSIBLE = (
    "the person's own values are not plausible; compared are the plausible people with the same "
    "other columns"
)


@dataclass(frozen=True, slots=True, eq=False)
class AskedPeople:
    """One person per row to ask about, and whether it is the person of the row."""

    people: Matrix
    plausible: Flags
    counts: Counts | None  # of counterparts; None: everybody has the same number

    @classmethod
    def of(cls, model: Model, people: Matrix) -> "AskedPeople":
        """Replace everybody whom the relation does not admit by a counterpart, if there is one."""
        relation = model.relation
        if relation.complete or not relation.finite:  # nobody is listed
            return cls(people, np.ones(len(people), dtype=bool), None)
        plausible = relation.admits(people)
        counts = np.array([relation.count(person) for person in people], dtype=np.int64)
        asked = np.array(people)
        for row in np.flatnonzero(~plausible & (counts > 0)).tolist():
            asked[row] = next(iter(relation.counterparts(people[row])))[0]
        return cls(asked, plausible, counts)

    def findings(
        self, model: Model, people: Matrix, found: list[Finding], counting: Counting
    ) -> list[Finding]:
        """Return the findings about the people themselves."""
        if self.counts is None:
            return found
        results = [
            replace(finding, counterparts=count)
            for finding, count in zip(found, self.counts.tolist(), strict=True)
        ]
        rows = np.flatnonzero(~self.plausible)
        if rows.size:
            own, near = _own_outcomes(model, people[rows], counting)
            for index, row in enumerate(rows.tolist()):
                results[row] = _compared(results[row], own[index], same=near[index])
        return results

    def known(self, row: int, finding: Finding) -> Finding | None:
        """Return the finding that a journal stored; None if the person is audited again."""
        if self.counts is None:
            return finding
        # The comparison with the person's own decision is not stored.
        counted = replace(finding, counterparts=int(self.counts[row]))
        return counted if self.plausible[row] else None


def _own_outcomes(
    model: Model, people: Matrix, counting: Counting
) -> tuple[list[Outcome | None], list[bool | None]]:
    """Return people's own outcomes; regression: whether all counterparts are near enough."""
    if model.rule.tolerance is None:
        decisions = model.resolve(model.points(people), model.rule).decisions
        answers = model.rule.answers(decisions).tolist()
        own = [answers[row] if decisions[row] >= 0 else None for row in range(len(people))]
        return own, [None] * len(people)
    scores = model.exact_scores(people).floats()[:, 0]
    spread = counting.spread(model, people)
    with np.errstate(invalid="ignore"):
        # All numbers are rounded once: a distance that may be too large counts as too large.
        sizes = np.abs(scores) + np.abs(spread.lowest) + np.abs(spread.highest)
        distances = np.maximum(scores - spread.lowest, spread.highest - scores)
        near = distances + 2.0**-50 * sizes <= model.rule.tolerance
    return scores.tolist(), near.tolist()


def _compared(finding: Finding, own: Outcome | None, *, same: bool | None) -> Finding:
    """Return the finding with the person's own outcome; a fair one only if this is the same."""
    verdict = finding.verdict
    if same is None:
        same = own is not None and own == finding.decision
    if isinstance(verdict, Fair) and not same:
        verdict = Unknown(Reason.OWN_DIFFERS, provenance=verdict.provenance)
        return replace(
            finding,
            verdict=verdict,
            decision=own,
            plausible=False,
            own_differs=True,
            reason=str(Reason.OWN_DIFFERS),
        )
    reason = finding.reason or NOT_PLAUSIBLE
    return replace(finding, decision=own, plausible=False, reason=reason)
