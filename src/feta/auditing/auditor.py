"""The auditor: audits a block of people, for every kind of rule."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import assert_never

import numpy as np

from feta.api import tally, verify
from feta.arrays import Flags, Matrix, Vector
from feta.auditing.finding import Finding
from feta.auditing.outcome import fair_outcomes, majorities
from feta.engine.protocol import UNLIMITED, Budget
from feta.engine.registry import choose, is_ours
from feta.model import Model
from feta.predict.fair_predictor import FairPredictor
from feta.query import CountOf, FairAt, WorstAt
from feta.readers.runtime import Replay, replays
from feta.rule import Outcome, Tolerance
from feta.space.vote_weights import VoteWeights
from feta.verdict.counterexample import Counterexample, RuntimeStatus
from feta.verdict.tally import Tally
from feta.verdict.verdict import Fair, Reason, Unfair, Unknown
from feta.wider_limits import MAX_KEPT, groups, model_for

# Stored as the reason of an undecided person.
ENGINE_CONTRADICTION = (
    "the engine contradicts itself: its count found a counterpart with a different decision, and "
    "its proof found none; please report this error"
)


@dataclass(frozen=True)
class Auditor:
    """A model, an engine, a budget per person, and optionally a runtime for replays.

    `weights` are the votes of the counterparts in the fair decisions; verdicts do not depend on
    them. People outside the limits of shared columns are audited over wider limits
    (`feta.wider_limits`).
    """

    model: Model
    engine: str = "auto"
    budget: Budget = UNLIMITED
    replay: Replay | None = None
    weights: VoteWeights | None = None
    origin: Model | None = None  # the model within its limits, if `model` has wider ones

    @cached_property
    def models_by_attribute(self) -> dict[str, Model]:
        """The model with only one attribute sensitive, for each sensitive attribute."""
        sensitive = self.model.space.sensitive
        return {
            attribute.name: self.model.with_sensitive([attribute.name]) for attribute in sensitive
        }

    def audit(self, people: Matrix, start: int = 0) -> list[Finding]:
        """Audit each person; rows are numbered from `start`."""
        self.model.space.check(people, limits="open")
        parts = groups(self.model, people)
        if all(model is self.model for model, _ in parts):
            return self._audit_inside(people, start)
        findings: dict[int, Finding] = {}
        for model, rows in parts:
            auditor = self._over(model)
            for finding in auditor._audit_inside(people[rows], 0):  # noqa: SLF001 - same class
                findings[int(rows[finding.row])] = finding
        return [replace(findings[row], row=start + row) for row in range(len(people))]

    def admit(self, people: Matrix) -> None:
        """Raise `OutsideLimits` unless everybody outside the limits can be audited."""
        FairPredictor(self.model, self.engine).admit(people)

    @cached_property
    def _wider_auditors(self) -> dict[Model, "Auditor"]:
        return {}

    def _over(self, model: Model) -> "Auditor":
        """Return the same auditor for a model with other limits."""
        if model is self.model:
            return self
        auditor = self._wider_auditors.get(model)
        if auditor is None:
            if len(self._wider_auditors) >= MAX_KEPT:
                self._wider_auditors.clear()
            auditor = replace(self, model=model, origin=self.origin or self.model)
            self._wider_auditors[model] = auditor
        return auditor

    def _audit_inside(self, people: Matrix, start: int) -> list[Finding]:
        """Audit people who are inside the limits of this auditor's model."""
        regression = isinstance(self.model.rule, Tolerance)
        findings = self._audit_scores(people) if regression else self._audit_decisions(people)
        findings = self._with_single_attributes(self._with_replay(findings), people)
        return [replace(finding, row=start + finding.row) for finding in findings]

    def _audit_decisions(self, people: Matrix) -> list[Finding]:
        """Count the counterparts; if they are not unanimous, find the worst counterexample."""
        counts = self._counts(self.model, people)
        fair = self._fair_outcomes(counts, people)
        findings = []
        for row, reference in enumerate(self.model.decide(people).tolist()):
            runtime: RuntimeStatus = "safe" if counts.runtime_safe[row] else "sensitive"
            finding = Finding(row, "fair", reference, fair[row], runtime=runtime)
            if not counts.unanimous[row]:
                finding = self._with_worst(finding, people[row], split=True)
            elif not self._trusted:  # a plug-in engine's count is not a proof
                finding = self._with_worst(finding, people[row])
            elif counts.undecided[row]:
                finding = replace(finding, status="undecided", reason=str(Reason.OUT_OF_TIME))
            findings.append(finding)
        return findings

    def _fair_outcomes(self, counts: Tally, people: Matrix) -> Sequence[Outcome | None]:
        if self.weights is None:
            return majorities(self.model.rule, counts)
        return self._weighted_outcomes(people)

    def _weighted_outcomes(self, people: Matrix) -> list[Outcome | None]:
        # The votes are declared for the space within its limits.
        model = self.origin or self.model
        predictor = FairPredictor(model, self.engine, self.budget, self.weights)
        return [
            outcome
            for part in self._budget_parts(people)
            for outcome in fair_outcomes(predictor, part)
        ]

    def _audit_scores(self, people: Matrix) -> list[Finding]:
        """Find median and span of the counterparts' scores, and the worst counterexample."""
        # Rounded once, like the medians, so that equal scores are equal floats.
        reference = self.model.points(people).exact_scores(np.arange(len(people))).floats()[:, 0]
        predictor = FairPredictor(self.model, self.engine, self.budget)
        spreads = [predictor.medians(part) for part in self._budget_parts(people)]
        decided, medians, spans = (
            np.concatenate([getattr(spread, name) for spread in spreads]).tolist()
            for name in ("decided", "median", "span")
        )
        fair = medians if self.weights is None else self._weighted_outcomes(people)
        findings = []
        for row, person in enumerate(people):
            finding = Finding(row, "fair", float(reference[row]))
            if decided[row]:  # if all counterparts' scores are known, so is any weighted median
                finding = replace(finding, fair_decision=fair[row], span=spans[row])
            findings.append(self._with_worst(finding, person))
        return findings

    def _budget_parts(self, people: Matrix) -> list[Matrix]:
        """Split people into single rows if the budget is limited: it is a budget per person."""
        return [people] if self.budget == UNLIMITED else list(people[:, None, :])

    def _counts(self, model: Model, people: Matrix) -> Tally:
        """Count everybody's counterparts together, then the undecided people one by one.

        The budget is per person: the large lattice of one person must not use up the budget of
        the others.
        """
        seconds = self.budget.seconds
        together = Budget(seconds=None if seconds is None else seconds * len(people))
        counts = tally(model, people, engine=self.engine, budget=together)
        by_class, undecided, runtime_safe = (
            counts.by_class.copy(),
            counts.undecided.copy(),
            counts.runtime_safe.copy(),
        )
        for row in np.flatnonzero(undecided) if len(people) > 1 else ():
            single = tally(model, people[row : row + 1], engine=self.engine, budget=self.budget)
            by_class[row], undecided[row], runtime_safe[row] = (
                single.by_class[0],
                single.undecided[0],
                single.runtime_safe[0],
            )
        return replace(counts, by_class=by_class, undecided=undecided, runtime_safe=runtime_safe)

    def _with_replay(self, findings: list[Finding]) -> list[Finding]:
        """Replay all pairs in the user's runtime in one call: calls are costly, rows are not."""
        pairs = [finding.pair for finding in findings if finding.pair is not None]
        if self.replay is None or not pairs:
            return findings
        results = iter(replays(self.replay, self.model, pairs))
        return [
            finding if finding.pair is None else _with_replayed(finding, same=next(results))
            for finding in findings
        ]

    def _with_single_attributes(self, findings: list[Finding], people: Matrix) -> list[Finding]:
        """Find the attributes that are enough by themselves, for people with a counterexample."""
        rows = [row for row, finding in enumerate(findings) if finding.pair is not None]
        for name, model in self.models_by_attribute.items() if rows else ():
            for index in np.flatnonzero(self._unfair(model, people[rows])):
                finding = findings[rows[index]]
                findings[rows[index]] = replace(finding, alone=(*finding.alone, name))
        return findings

    def _unfair(self, model: Model, people: Matrix) -> Flags:
        """Return who provably has a counterexample under a model."""
        if not isinstance(model.rule, Tolerance):
            return ~self._counts(model, people).unanimous
        queries = [FairAt(model, person) for person in people]
        verdicts = [verify(query, engine=self.engine, budget=self.budget) for query in queries]
        return np.array([isinstance(verdict, Unfair) for verdict in verdicts])

    @cached_property
    def _trusted(self) -> bool:
        return is_ours(choose(CountOf(self.model), self.engine))

    def _with_worst(self, finding: Finding, person: Vector, *, split: bool = False) -> Finding:
        """Find the worst counterexample; `split` means that counting has found one."""
        verdict = verify(WorstAt(self.model, person), engine=self.engine, budget=self.budget)
        match verdict:
            case Unfair(counterexample=pair) | Unknown(best=Counterexample() as pair):
                return replace(finding, status="unfair", pair=pair, runtime=pair.runtime)
            case Unknown(reason=reason, solver=solver):
                words = f"{solver}: {reason}" if solver else str(reason)
                return replace(finding, status="undecided", runtime="sensitive", reason=words)
            case Fair() if split:
                words = ENGINE_CONTRADICTION
                return replace(finding, status="undecided", runtime="sensitive", reason=words)
            case Fair(runtime=runtime):
                return replace(finding, runtime=runtime)
            case _:
                assert_never(verdict)

    def simplest_pair(
        self, finding: Finding, attribute: str | None, person: Vector | None = None
    ) -> Counterexample | None:
        """Return the worst counterexample that differs in one attribute only.

        Without an attribute, return the finding's pair. Return None if none was found in time.
        `person` is the audited person, if that is not the first of the pair.
        """
        assert finding.pair is not None  # only unfair people have a pair
        if attribute is None:
            return finding.pair
        audited = finding.pair.person if person is None else person
        query = WorstAt(model_for(self.models_by_attribute[attribute], audited), audited)
        match verify(query, engine=self.engine, budget=self.budget):
            case Unfair(counterexample=pair):
                return pair
            case Unknown(best=best):
                return best
            case _:
                return None


def _with_replayed(finding: Finding, *, same: bool) -> Finding:
    """Store the result of a replay; a pair that does not replay is runtime-sensitive."""
    return replace(finding, replayed=same, runtime=finding.runtime if same else "sensitive")
