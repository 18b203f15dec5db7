"""Queries about real-valued attributes of which the scorer distinguishes finitely many intervals.

One value represents each interval, so a model over finitely many values has the same scores. Its
verdicts are replayed in the model that is asked about. A proof cuts the counterparts between the
intervals.
"""

from collections.abc import Callable
from dataclasses import replace
from weakref import WeakKeyDictionary

from feta.arrays import Vector
from feta.engine.protocol import Budget
from feta.engine.query_state import QueryState
from feta.model import Model
from feta.query import PersonQuery, WorstAt
from feta.rule.tolerance import Tolerance
from feta.scorer.sections import Sections, sections_of
from feta.verdict.certificate import BoundsProof
from feta.verdict.counterexample import Counterexample
from feta.verdict.verdict import Fair, Reason, Unfair, Unknown, Verdict

Solve = Callable[[PersonQuery, Budget], Verdict]


def finite_size(model: Model) -> int | None:
    """Return the number of counterparts, one per interval; None if there are infinitely many."""
    if model.relation.finite:
        return model.relation.size
    sections = sections_of(model.restricted)
    return None if sections is None else sections.space(model.space).lattice.size


class SectionModels:
    """The models over representative values, each created once per model."""

    def __init__(self) -> None:
        self._models: WeakKeyDictionary[Model, Model] = WeakKeyDictionary()

    def of(self, model: Model) -> Model | None:
        """Return the model over representative values; None if there is none."""
        sections = sections_of(model.restricted)
        if sections is None:
            return None
        if model not in self._models:
            self._models[model] = replace(model, space=sections.space(model.space), threshold=None)
        return self._models[model]

    def solve(self, query: PersonQuery, budget: Budget, *, engine: str, solve: Solve) -> Verdict:
        """Answer a query by the model over representative values."""
        finite, sections = self.of(query.model), sections_of(query.model.restricted)
        assert finite is not None  # the engine accepted the query
        assert sections is not None
        person = sections.represented(query.person[None, :])[0]
        state = QueryState(query, budget, engine)
        verdict = solve(type(query)(finite, person), budget)
        match verdict:
            case Fair():
                return _fair(verdict, state, sections, _ends(finite, person, budget, solve))
            case Unfair(counterexample=pair, optimal=optimal):
                replayed = _replay(state, pair)
                if replayed is None:
                    return Unknown(Reason.NOT_REPRODUCED, effort=verdict.effort)
                return Unfair(replayed, optimal=optimal, effort=verdict.effort)
            case Unknown(best=best):
                return replace(verdict, best=None if best is None else _replay(state, best))


def _replay(state: QueryState, pair: Counterexample) -> Counterexample | None:
    """Replay a pair; unless a tolerance is exceeded, the first one is the person in the query."""
    person = state.query.person if state.span is None else pair.person
    return Counterexample.witness(state.model, person, pair.counterpart)


def _ends(finite: Model, person: Vector, budget: Budget, solve: Solve) -> list[Vector]:
    """Return the counterparts with the lowest and the highest score, for a tolerance."""
    if finite.rule.tolerance is None:
        return []
    exact = replace(finite, rule=Tolerance(0.0), threshold=None)
    verdict = solve(WorstAt(exact, person), budget)
    if isinstance(verdict, Unfair) and verdict.optimal:
        return [verdict.counterexample.person, verdict.counterexample.counterpart]
    return []


def _fair(verdict: Fair, state: QueryState, sections: Sections, ends: list[Vector]) -> Verdict:
    """Return the verdict with a proof whose cells lie between representative values."""
    if state.span is not None:
        for end in ends:
            state.span.widen(end[None, :])
    fair = state.fair(runtime_safe=verdict.runtime == "safe", proof=BoundsProof(sections.cuts))
    return replace(fair, effort=verdict.effort)
