"""Auditor: asks about a block of people, whatever the model's rule."""

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
from feta.query import FairAt, WorstAt
from feta.readers.runtime import Replay, replays
from feta.rule import Outcome, Tolerance
from feta.scorer.network.evaluation import Rows
from feta.space.vote_weights import VoteWeights
from feta.verdict.counterexample import Counterexample, RuntimeStatus
from feta.verdict.tally import Tally
from feta.verdict.verdict import Fair, Reason, Unfair, Unknown
from feta.wider_limits import MAX_KEPT, groups, model_for


@dataclass(frozen=True)
class Auditor:
    """Asks about people: a model, the engine, what each person may cost, and a runtime to replay in.

    With `weights` counterparts have votes in the fair decisions; verdicts do not hang on them. People
    outside the limits of shared columns are asked about over wider limits (`feta.wider_limits`).
    """

    model: Model
    engine: str = "auto"
    budget: Budget = UNLIMITED
    replay: Replay | None = None
    weights: VoteWeights | None = None
    origin: Model | None = None  # the model within its limits, where this one has wider limits

    @cached_property
    def singles(self) -> dict[str, Model]:
        """The model with one attribute sensitive at a time."""
        sensitive = self.model.space.sensitive
        return {one.name: self.model.with_sensitive([one.name]) for one in sensitive}

    def ask(self, people: Matrix, start: int = 0) -> list[Finding]:
        """Ask about each of some people; rows are numbered from start."""
        self.model.space.check(people, limits="open")
        parts = groups(self.model, people)
        if all(model is self.model for model, _ in parts):
            return self._ask(people, start)
        found: dict[int, Finding] = {}
        for model, rows in parts:
            asked = self._over(model)._ask(people[rows], 0)  # noqa: SLF001 - its own kind
            found |= {int(rows[one.row]): one for one in asked}
        return [replace(found[row], row=start + row) for row in range(len(people))]

    def admit(self, people: Matrix) -> None:
        """Raise `OutsideLimits` unless everybody outside the limits can be asked about."""
        FairPredictor(self.model, self.engine).admit(people)

    @cached_property
    def _wider(self) -> dict[Model, "Auditor"]:
        return {}

    def _over(self, model: Model) -> "Auditor":
        """Take the same auditor over other limits."""
        if model is self.model:
            return self
        made = self._wider.get(model)
        if made is None:
            if len(self._wider) >= MAX_KEPT:
                self._wider.clear()
            made = replace(self, model=model, origin=self.origin or self.model)
            self._wider[model] = made
        return made

    def _ask(self, people: Matrix, start: int) -> list[Finding]:
        regression = isinstance(self.model.rule, Tolerance)
        found = self._scored(people) if regression else self._decided(people)
        found = self._with_alone(self._with_replay(found), people)
        return [replace(finding, row=start + finding.row) for finding in found]

    def _decided(self, people: Matrix) -> list[Finding]:
        """Count everybody's counterparts; where they are not unanimous, look for the farthest."""
        counts = self._counts(self.model, people)
        fair = self._fair_answers(counts, people)
        found = []
        for row, reference in enumerate(self.model.decide(people).tolist()):
            runtime: RuntimeStatus = "safe" if counts.runtime_safe[row] else "sensitive"
            finding = Finding(row, "fair", reference, fair[row], runtime=runtime)
            if not counts.unanimous[row]:
                finding = self._with_worst(finding, people[row], split=True)
            elif not self._trusted:  # a count is no proof
                finding = self._with_worst(finding, people[row])
            elif counts.undecided[row]:
                finding = replace(finding, status="undecided", reason=str(Reason.OUT_OF_TIME))
            found.append(finding)
        return found

    def _fair_answers(self, counts: Tally, people: Matrix) -> Sequence[Outcome | None]:
        if self.weights is None:
            return majorities(self.model.rule, counts)
        return self._voted(people)

    def _voted(self, people: Matrix) -> list[Outcome | None]:
        # The votes belong to the space as it was declared.
        model = self.origin or self.model
        predictor = FairPredictor(model, self.engine, self.budget, self.weights)
        return [one for part in self._parts(people) for one in fair_outcomes(predictor, part)]

    def _scored(self, people: Matrix) -> list[Finding]:
        """Compare everybody's score with the farthest counterpart's, and find median and span."""
        # Rounded once like the medians: the same score must be the same number here and there.
        reference = (
            Rows(self.model.exact, people).exact_scores(np.arange(len(people))).floats()[:, 0]
        )
        predictor = FairPredictor(self.model, self.engine, self.budget)
        spreads = [predictor.medians(part) for part in self._parts(people)]
        settled, medians, spans = (
            np.concatenate([getattr(one, name) for one in spreads]).tolist()
            for name in ("decided", "median", "span")
        )
        fair = medians if self.weights is None else self._voted(people)
        found = []
        for row, person in enumerate(people):
            finding = Finding(row, "fair", float(reference[row]))
            if settled[row]:  # the votes of some counterparts are settled if those of all are
                finding = replace(finding, fair_decision=fair[row], span=spans[row])
            found.append(self._with_worst(finding, person))
        return found

    def _parts(self, people: Matrix) -> list[Matrix]:
        """Take people one by one where the budget is limited: nobody uses up another's share."""
        return [people] if self.budget == UNLIMITED else list(people[:, None, :])

    def _counts(self, model: Model, people: Matrix) -> Tally:
        """Count everybody's counterparts together, then those left open one by one.

        A budget is per person: one person's large lattice must not use up the others' share.
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
            again = tally(model, people[row : row + 1], engine=self.engine, budget=self.budget)
            by_class[row], undecided[row], runtime_safe[row] = (
                again.by_class[0],
                again.undecided[0],
                again.runtime_safe[0],
            )
        return replace(counts, by_class=by_class, undecided=undecided, runtime_safe=runtime_safe)

    def _with_replay(self, found: list[Finding]) -> list[Finding]:
        """Put all pairs to the user's own runtime at once: calls are dear there, rows are not."""
        pairs = [finding.pair for finding in found if finding.pair is not None]
        if self.replay is None or not pairs:
            return found
        answers = iter(replays(self.replay, self.model, pairs))
        return [
            finding if finding.pair is None else _replayed(finding, same=next(answers))
            for finding in found
        ]

    def _with_alone(self, found: list[Finding], people: Matrix) -> list[Finding]:
        """Find which attributes are enough by themselves, for people who have a counterexample."""
        rows = [row for row, finding in enumerate(found) if finding.pair is not None]
        for name, model in self.singles.items() if rows else ():
            for index in np.flatnonzero(self._apart(model, people[rows])):
                finding = found[rows[index]]
                found[rows[index]] = replace(finding, alone=(*finding.alone, name))
        return found

    def _apart(self, model: Model, people: Matrix) -> Flags:
        """Tell who has a counterpart treated apart."""
        if not isinstance(model.rule, Tolerance):
            return ~self._counts(model, people).unanimous
        queries = [FairAt(model, person) for person in people]
        verdicts = [verify(one, engine=self.engine, budget=self.budget) for one in queries]
        return np.array([isinstance(one, Unfair) for one in verdicts])

    @cached_property
    def _trusted(self) -> bool:
        return is_ours(choose(self.model, self.engine))

    def _with_worst(self, finding: Finding, person: Vector, *, split: bool = False) -> Finding:
        """Look for the farthest counterpart that is treated apart; `split`: counting has seen one."""
        verdict = verify(WorstAt(self.model, person), engine=self.engine, budget=self.budget)
        match verdict:
            case Unfair(counterexample=pair) | Unknown(best=Counterexample() as pair):
                return replace(finding, status="unfair", pair=pair, runtime=pair.runtime)
            case Unknown(reason=reason, solver=solver):
                words = f"{solver}: {reason}" if solver else str(reason)
                return replace(finding, status="undecided", runtime="sensitive", reason=words)
            case Fair() if split:
                words = "the engine counted counterparts decided otherwise, and then proved that there are none; this is an error in it, please report it"
                return replace(finding, status="undecided", runtime="sensitive", reason=words)
            case Fair(runtime=runtime):
                return replace(finding, runtime=runtime)
            case _:
                assert_never(verdict)

    def simplest(
        self, finding: Finding, name: str | None, person: Vector | None = None
    ) -> Counterexample | None:
        """Return a person's farthest pair that differs in one attribute only; None takes any.

        `person` is who was asked about, if that is not the first of the pair.
        """
        assert finding.pair is not None  # only the unfair have a pair
        if name is None:
            return finding.pair
        chosen = finding.pair.person if person is None else person
        query = WorstAt(model_for(self.singles[name], chosen), chosen)
        match verify(query, engine=self.engine, budget=self.budget):
            case Unfair(counterexample=pair):
                return pair
            case Unknown(best=best):
                return best
            case _:
                return None


def _replayed(finding: Finding, *, same: bool) -> Finding:
    """Note what the user's own runtime says; a pair that it decides alike is runtime-sensitive."""
    return replace(finding, replayed=same, runtime=finding.runtime if same else "sensitive")
