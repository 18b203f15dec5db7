"""The auditor: audits a block of people, for every kind of rule."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from operator import attrgetter

import numpy as np

from feta.api import verify_many
from feta.arrays import Counts, Flags, Matrix
from feta.auditing.asked import AskedPeople
from feta.auditing.block_verdicts import block_verdicts
from feta.auditing.counting import Counting
from feta.auditing.finding import AuditFault, Finding, pair_of
from feta.auditing.outcome import fair_outcomes, majorities, where_decided
from feta.engine.protocol import UNLIMITED, Budget
from feta.errors import ModelChanged, SchemaError, UnreliableAnswer
from feta.model import Model
from feta.predict.fair_predictor import FairPredictor
from feta.query import FairAt, WorstAt
from feta.readers.runtime import Replay, replays
from feta.rule import UNDECIDED, Outcome
from feta.scorer.protocol import confirm
from feta.space.vote_weights import VoteWeights
from feta.verdict.counterexample import Counterexample
from feta.verdict.verdict import Unfair, Verdict
from feta.vote.stored_votes import StoredVotes
from feta.wider_limits import MAX_KEPT, groups


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
    votes: StoredVotes | None = None  # of the fair decisions, instead of `weights`
    origin: Model | None = None  # the model within its limits, if `model` has wider ones
    refusal: str = ""  # why this auditor must not answer

    def __post_init__(self) -> None:
        relation = self.model.relation
        if not relation.has_key and (self.weights is not None or self.votes is not None):
            raise SchemaError(
                f"votes are for fair decisions, and the relation {type(relation).__name__} has "
                "none: expected an audit without votes; remove them, or use another relation"
            )
        if not relation.has_key and not self.model.space.finite:
            raise SchemaError(
                "a real-valued sensitive column is not audited: got "
                f"{', '.join(a.name for a in self.model.space.sensitive)}; expected finitely many "
                "values; declare it integer, or give a step"
            )
        if not relation.has_key and self.model.rule.tolerance is not None:
            raise SchemaError(
                "a regression is not audited with this relation: got a Tolerance, which holds for "
                f"any two counterparts, and {type(relation).__name__}, in which two counterparts "
                "of a person may not be related; expected decisions, or another relation"
            )
        if self.budget == UNLIMITED:  # engines recognize the value itself
            object.__setattr__(self, "budget", UNLIMITED)

    def check_certifiable(self) -> None:
        """Raise if a certificate could not say what was compared."""
        if not self.model.relation.has_key:
            raise SchemaError(
                f"no certificate for the relation {type(self.model.relation).__name__}: a "
                "certificate also holds fair decisions, which do not exist; expected another "
                "relation; omit --certify"
            )

    @cached_property
    def models_by_attribute(self) -> dict[str, Model]:
        """The model with only one attribute sensitive, for each sensitive attribute."""
        sensitive = self.model.space.sensitive
        return {
            attribute.name: self.model.with_sensitive([attribute.name]) for attribute in sensitive
        }

    @property
    def counting(self) -> Counting:
        """The engine and its budget, for counts and spreads."""
        return Counting(self.engine, self.budget)

    def audit(self, people: Matrix, start: int = 0) -> list[Finding]:
        """Audit each person; rows are numbered from `start`."""
        if self.refusal:
            raise ModelChanged(self.refusal)
        self.model.space.check(people, limits="open")
        findings: list[Finding] = []
        for model, rows in groups(self.model, people):
            auditor = self._over(model)
            findings += auditor._audit_inside(people[rows], rows + start)  # noqa: SLF001 - same class
        confirm(self.model.scorer)  # answers of two models must not be mixed
        return sorted(findings, key=attrgetter("row"))

    def admit(self, people: Matrix) -> None:
        """Raise `OutsideLimits` unless everybody outside the limits can be audited."""
        if self.model.relation.has_key:
            FairPredictor(self.model, self.engine).admit(people)
        else:
            groups(self.model, people)

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

    def _audit_inside(self, people: Matrix, rows: Counts) -> list[Finding]:
        """Audit people who are inside the limits of this auditor's model."""
        regression = self.model.rule.tolerance is not None
        asked = AskedPeople.of(self.model, people)
        audit = self._audit_scores if regression else self._audit_decisions
        findings = asked.findings(self.model, people, audit(asked.people), self.counting)
        pairs = [pair_of(finding.verdict) for finding in findings]
        replayed, alone = self._replay(pairs), self._alone(pairs, asked.people)
        return [
            finding.completed(row, alone=alone[index], replayed=replayed[index])
            for index, (finding, row) in enumerate(zip(findings, rows.tolist(), strict=True))
        ]

    def _audit_decisions(self, people: Matrix) -> list[Finding]:
        """Answer everybody; find the fair decisions of the people who are not proved fair."""
        if not self.model.relation.has_key:  # no fair decisions exist
            pairs = zip(self._worst(self.model, people), self._decisions(people), strict=True)
            return [Finding(row, verdict, own) for row, (verdict, own) in enumerate(pairs)]
        answered = block_verdicts(self.model, people, self.counting)
        decisions = self._decisions(people)
        # All counterparts of a person proved fair get the same decision, whatever their votes.
        # A mean has its own cut-off, so it decides everybody.
        by_mean = self.votes is not None and self.votes.vote != "majority"
        fair = self._weighted_outcomes(people) if by_mean else list(decisions)
        if answered.counts is not None and not by_mean:
            outcomes = majorities(self.model.rule, answered.counts)
            if self._weighted:
                outcomes = self._weighted_outcomes(people[answered.rows])
            contradicted = answered.contradicted
            for index, row in enumerate(answered.rows.tolist()):
                # A count that contradicts a proof decides nothing.
                fair[row] = None if contradicted[index] else outcomes[index]
        return [
            Finding(
                row,
                verdict,
                decisions[row],
                fair[row],
                reason="" if verdict is not None else AuditFault.ENGINE_CONTRADICTION,
            )
            for row, verdict in enumerate(answered.verdicts)
        ]

    def _decisions(self, people: Matrix) -> list[Outcome | None]:
        """Return the model's decisions; None where its scores cannot be separated from a tie."""
        rule = self.model.rule
        decisions = self.model.resolve(self.model.points(people), rule).decisions
        return where_decided(decisions != UNDECIDED, rule.answers(decisions))

    @property
    def _weighted(self) -> bool:
        return self.weights is not None or self.votes is not None

    def _weighted_outcomes(self, people: Matrix) -> list[Outcome | None]:
        # The votes are declared for the space within its limits.
        model = self.origin or self.model
        votes = self.votes or StoredVotes(weights=self.weights)
        predictor = FairPredictor.voting(model, votes, self.engine, self.budget)
        return [
            outcome
            for part in self.counting.parts(people)
            for outcome in fair_outcomes(predictor, part)
        ]

    def _audit_scores(self, people: Matrix) -> list[Finding]:
        """Find median and span of the counterparts' scores, and the worst counterexample."""
        if not len(people):
            return []
        # Rounded once, like the medians, so that equal scores are equal floats.
        scores = self._scores(people)
        spread = self.counting.spread(self.model, people)
        decided, spans = spread.decided.tolist(), spread.span.tolist()
        fair = spread.median.tolist()
        if self._weighted:
            fair = self._weighted_outcomes(people)
        verdicts = self._worst(self.model, people)
        return [
            # If all counterparts' scores are known, so is any weighted median.
            Finding(row, verdict, scores[row], fair[row], span=spans[row])
            if decided[row]
            else Finding(row, verdict, scores[row])
            for row, verdict in enumerate(verdicts)
        ]

    def _scores(self, people: Matrix) -> list[Outcome | None]:
        """Return the model's scores; None where a counted model has no reliable one."""
        try:
            scores: list[Outcome | None] = self.model.exact_scores(people).floats()[:, 0].tolist()
        except UnreliableAnswer:
            if len(people) == 1:
                return [None]
            return [score for person in people for score in self._scores(person[None, :])]
        return scores

    def _worst(self, model: Model, people: Matrix) -> list[Verdict]:
        queries = WorstAt.each(model, people)
        return verify_many(queries, engine=self.engine, budget=self.budget)

    def _replay(self, pairs: Sequence[Counterexample | None]) -> list[bool | None]:
        """Replay all pairs in the user's runtime in one call: calls are costly, rows are not."""
        present = [pair for pair in pairs if pair is not None]
        if self.replay is None or not present:
            return [None] * len(pairs)
        results = iter(replays(self.replay, self.model, present))
        return [None if pair is None else next(results) for pair in pairs]

    def _alone(
        self, pairs: Sequence[Counterexample | None], people: Matrix
    ) -> list[tuple[str, ...]]:
        """Find the attributes that are enough by themselves, for people with a counterexample."""
        alone: list[tuple[str, ...]] = [()] * len(pairs)
        rows = [row for row, pair in enumerate(pairs) if pair is not None]
        for name, model in self.models_by_attribute.items() if rows else ():
            for index in np.flatnonzero(self._unfair(model, people[rows])).tolist():
                alone[rows[index]] = (*alone[rows[index]], name)
        return alone

    def _unfair(self, model: Model, people: Matrix) -> Flags:
        """Return who provably has a counterexample under a model."""
        if model.rule.tolerance is None and model.relation.has_key:
            return ~self.counting.tally(model, people).unanimous
        queries = FairAt.each(model, people)
        verdicts = verify_many(queries, engine=self.engine, budget=self.budget)
        return np.array([isinstance(verdict, Unfair) for verdict in verdicts])

    def simplest_pairs(self, attribute: str, people: Matrix) -> list[Counterexample | None]:
        """Return the worst counterexamples that differ in one attribute only.

        None for people for whom none was found in time.
        """
        pairs: dict[int, Counterexample | None] = {}
        for model, rows in groups(self.models_by_attribute[attribute], people):
            found = map(pair_of, self._worst(model, people[rows]))
            pairs |= dict(zip(rows.tolist(), found, strict=True))
        return [pairs[row] for row in range(len(people))]
