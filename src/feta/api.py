"""The public functions on one or several people: verify, worst, tally, spread."""

import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Literal

import numpy as np

from feta.arrays import Matrix, Vector
from feta.checker.admit import admit, no_question
from feta.engine.protocol import UNLIMITED, Budget
from feta.engine.registry import choose, is_ours
from feta.errors import EngineError
from feta.everybody.prove import verify_everywhere
from feta.local_query import local_query
from feta.model import Model
from feta.progress import Advance
from feta.query import CountOf, FairAt, FairEverywhere, PersonQuery, SpreadOf, WorstAt
from feta.scorer.protocol import doubt_at
from feta.verdict.counterexample import Counterexample
from feta.verdict.spread import Spread
from feta.verdict.tally import Tally
from feta.verdict.verdict import DOUBT_REASONS, Fair, Reason, Unfair, Unknown, Verdict

SolveCounted = Callable[[Sequence[PersonQuery], Budget], tuple[list[Verdict], Tally | None]]


def verify(
    query: PersonQuery | FairEverywhere, *, engine: str = "auto", budget: Budget = UNLIMITED
) -> Verdict:
    """Answer a query with the given engine, or with the first that accepts it.

    The checker confirms the evidence of each verdict. Without evidence, there is no verdict.

    Parameters
    ----------
    query
        `FairAt(model, person)`, `WorstAt(model, person)`, or `FairEverywhere(model)`.
    engine
        The name of an engine, or "auto"; `FairEverywhere` has only "auto" and "branch".
    budget
        Limits on time and evaluations. A spent budget gives `Unknown`. `FairEverywhere` takes
        60 seconds unless there is another limit.

    Returns
    -------
    Verdict
        `Fair`, `Unfair` with a counterexample, or `Unknown` with the reason.

    Examples
    --------
    >>> import feta
    >>> age = feta.Integer("age", 18, 90, sensitive=True)
    >>> space = feta.FeatureSpace((age, feta.Real("income", 0, 9)))
    >>> network = feta.Network.from_layers([([[0.1, 1.0]], [-5.0])])
    >>> model = feta.Model(space, network, threshold=0.0)
    >>> person = space.encode({"age": 18, "income": 2})[0]
    >>> match feta.verify(feta.FairAt(model, person), engine="exhaustive"):
    ...     case feta.Fair():
    ...         print("the same decision for every age")
    ...     case feta.Unfair(counterexample=pair):
    ...         print(space.decode(pair.counterpart))
    {'age': 30, 'income': 2.0}
    """
    if isinstance(query, FairEverywhere):
        return verify_everywhere(query, engine=engine, budget=budget)
    reason = no_question(query)
    if reason is not None:  # nothing is claimed
        return Unknown(reason)
    local = local_query(query)
    chosen = choose(local, engine)
    verdict = _replayed(query, local, chosen.solve(local, budget))
    return admit(query, _unless_random(query, verdict), trusted=is_ours(chosen))


def verify_many(
    queries: Sequence[PersonQuery], *, engine: str = "auto", budget: Budget = UNLIMITED
) -> list[Verdict]:
    """Answer queries, those about one model together; the budget is for each of them.

    The checker confirms the evidence of each verdict.
    """
    reasons = [no_question(query) for query in queries]
    verdicts: dict[int, Verdict] = {
        row: Unknown(reason) for row, reason in enumerate(reasons) if reason is not None
    }
    for rows in _rows_by_model(queries, verdicts).values():
        if not queries[rows[0]].model.relation.has_key:
            verdicts |= {row: verify(queries[row], engine=engine, budget=budget) for row in rows}
            continue
        asked = [queries[row] for row in rows]
        chosen = choose(asked[0], engine)
        solved, trusted = chosen.solve_many(asked, budget), is_ours(chosen)
        for row, query, verdict in zip(rows, asked, solved, strict=True):
            verdicts[row] = admit(query, _unless_random(query, verdict), trusted=trusted)
    return [verdicts[row] for row in range(len(queries))]


def _replayed(query: PersonQuery, local: PersonQuery, verdict: Verdict) -> Verdict:
    """Return a verdict about a local query with its pair replayed in the model that was asked."""
    if local is query:
        return verdict
    match verdict:
        case Unfair(counterexample=pair):
            replayed = Counterexample.witness(query.model, query.person, pair.counterpart)
            if replayed is None:
                return Unknown(Reason.NOT_REPRODUCED, effort=verdict.effort)
            return replace(verdict, counterexample=replayed)
        case Unknown(best=best) if best is not None:
            again = Counterexample.witness(query.model, query.person, best.counterpart)
            return replace(verdict, best=again)
        case _:
            return verdict


def _unless_random(query: PersonQuery, verdict: Verdict) -> Verdict:
    """Return a verdict, but none about a person to whom a counted model gave different answers.

    Two people who happened to get the same answers twice are no counterexample then.
    """
    if not isinstance(verdict, Unfair) or query.model.scorer.provenance != "counted":
        return verdict
    doubt = doubt_at(query.model.restricted, query.person)
    if doubt is None or doubt.kind != "nondeterministic":
        return verdict
    return Unknown(DOUBT_REASONS[doubt.kind], detail=doubt.message, effort=verdict.effort)


def verify_counted(
    queries: Sequence[PersonQuery], *, engine: str = "auto", budget: Budget = UNLIMITED
) -> tuple[list[Verdict], Tally | None]:
    """Answer queries about one model as `verify_many` does; return also the counts, if known.

    An engine of FETA that counts all counterparts anyway passes the counts on.
    """
    chosen = choose(queries[0], engine)
    solve: SolveCounted | None = getattr(chosen, "solve_counted", None)
    if solve is None or not is_ours(chosen) or not queries[0].model.relation.complete:
        return verify_many(queries, engine=engine, budget=budget), None
    solved, counts = solve(queries, budget)
    pairs = zip(queries, solved, strict=True)
    return [admit(query, verdict, trusted=True) for query, verdict in pairs], counts


@dataclass(frozen=True, slots=True)
class UnfairShare:
    """How many people are proved fair, have a counterexample, or are undecided."""

    people: int
    fair: int
    unfair: int
    undecided: int
    seconds: float

    @property
    def share(self) -> float:
        """The share of people with a counterexample; a lower bound if some are undecided."""
        return self.unfair / self.people if self.people else 0.0


def share_unfair(
    model: Model,
    people: Matrix,
    *,
    engine: str = "auto",
    budget: Budget = UNLIMITED,
    progress: Advance | None = None,
) -> UnfairShare:
    """Count the people with a counterexample, for any relation; the budget is per person.

    Parameters
    ----------
    model
        Space, relation, scorer and rule.
    people
        Rows encoded by `model.space`.
    engine
        The name of an engine, or "auto".
    budget
        Limits on time and evaluations.
    progress
        Called with the share of people who are done.

    Examples
    --------
    >>> import feta
    >>> from feta.relation.similar import Similar
    >>> space = feta.FeatureSpace(
    ...     (feta.Integer("age", 18, 90, sensitive=True), feta.Integer("income", 0, 99))
    ... )
    >>> network = feta.Network.from_layers([([[0.0, 1.0]], [-50.0])])
    >>> model = feta.Model(space, network, threshold=0.0, relation=Similar({"income": 5}))
    >>> people = space.encode([{"age": 30, "income": income} for income in (44, 45, 50, 55)])
    >>> share_unfair(model, people).unfair
    2
    """
    started = time.monotonic()
    model.space.check(np.asarray(people))
    counts = {Fair: 0, Unfair: 0, Unknown: 0}
    for row, query in enumerate(FairAt.each(model, people)):
        counts[type(verify(query, engine=engine, budget=budget))] += 1
        if progress is not None:
            progress((row + 1) / len(people))
    seconds = time.monotonic() - started
    return UnfairShare(len(people), counts[Fair], counts[Unfair], counts[Unknown], seconds)


def _rows_by_model(
    queries: Sequence[PersonQuery], answered: Mapping[int, Verdict]
) -> dict[int, list[int]]:
    """Group queries by model; those that are answered already are left out."""
    rows: dict[int, list[int]] = {}
    for row, query in enumerate(queries):
        if row not in answered:
            rows.setdefault(id(query.model), []).append(row)
    return rows


def worst(
    model: Model, person: Vector, *, engine: str = "auto", budget: Budget = UNLIMITED
) -> Verdict:
    """Find the counterexample with the largest gap; regression: the pair with the largest distance.

    If a sensitive attribute is real-valued, "optimal" means within 1e-9 of the largest gap.

    Parameters
    ----------
    model
        Space, network and rule.
    person
        One row encoded by `model.space`.
    engine
        The name of an engine, or "auto".
    budget
        Limits on time and evaluations.

    Returns
    -------
    Verdict
        `Unfair` with `optimal=True`, `Fair`, or `Unknown` with the best counterexample so far.
        With `optimal=False`, a larger gap was neither found nor ruled out.

    Examples
    --------
    >>> import feta
    >>> space = feta.FeatureSpace((feta.Integer("age", 18, 90, sensitive=True),))
    >>> model = feta.Model(space, feta.Network.from_layers([([[0.5]], [-20.0])]), threshold=0.0)
    >>> verdict = feta.worst(model, space.encode({"age": 20})[0])
    >>> space.decode(verdict.counterexample.counterpart), verdict.optimal
    ({'age': 90}, True)
    """
    return verify(WorstAt(model, person), engine=engine, budget=budget)


def tally(
    model: Model, people: Matrix, *, engine: str = "auto", budget: Budget = UNLIMITED
) -> Tally:
    """Count the counterparts of each person by decision.

    The sensitive columns of `people` are not read and may be NaN.

    Parameters
    ----------
    model
        Space, network and rule.
    people
        Rows encoded by `model.space`.
    engine
        The name of an engine, or "auto".
    budget
        Limits on time and evaluations.

    Examples
    --------
    >>> import feta
    >>> space = feta.FeatureSpace((feta.Integer("age", 18, 90, sensitive=True),))
    >>> model = feta.Model(space, feta.Network.from_layers([([[0.5]], [-20.0])]), threshold=0.0)
    >>> counts = feta.tally(model, space.encode({"age": 20}))
    >>> int(counts.favorable[0]), int(counts.unfavorable[0]), int(counts.undecided[0])
    (51, 22, 0)
    """
    people = np.asarray(people, dtype=np.float64)
    model.space.check(people, sensitive=_sensitive(model))
    if model.rule.tolerance is not None:
        raise EngineError(
            "invalid rule: got a Tolerance; expected a rule that makes decisions; use feta.spread "
            "for a regression model"
        )
    return choose(CountOf(model), engine).tally(model, people, budget, until="all")


def _sensitive(model: Model) -> Literal["check", "ignore"]:
    """Return how rows are checked: noise is recovered from the sensitive columns."""
    return "check" if model.relation.reads_sensitive else "ignore"


def spread(
    model: Model, people: Matrix, *, engine: str = "auto", budget: Budget = UNLIMITED
) -> Spread:
    """Compute the median, lowest and highest score of each person's counterparts.

    The sensitive columns of `people` are not read and may be NaN.

    Parameters
    ----------
    model
        Space, network and rule.
    people
        Rows encoded by `model.space`.
    engine
        The name of an engine, or "auto".
    budget
        Limits on time and evaluations.

    Examples
    --------
    >>> import feta
    >>> space = feta.FeatureSpace((feta.Integer("age", 18, 90, sensitive=True),))
    >>> limit = feta.Network.from_layers([([[100.0]], [500.0])])
    >>> model = feta.Model(space, limit, rule=feta.Tolerance(50.0))
    >>> spread = feta.spread(model, space.encode({"age": 20}))
    >>> spread.median.tolist(), spread.span.tolist()
    ([5900.0], [7200.0])
    """
    people = np.asarray(people, dtype=np.float64)
    model.space.check(people, sensitive=_sensitive(model))
    if model.scorer.outputs != 1:
        raise EngineError(
            f"wrong number of network outputs: got {model.scorer.outputs}; expected 1 for a spread"
        )
    return choose(SpreadOf(model), engine).spread(model, people, budget)
