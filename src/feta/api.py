"""The public functions on one or several people: verify, worst, tally, spread."""

from collections.abc import Callable, Sequence

import numpy as np

from feta.arrays import Matrix, Vector
from feta.checker.admit import admit, is_admitted
from feta.engine.protocol import UNLIMITED, Budget
from feta.engine.registry import choose, is_ours
from feta.errors import EngineError
from feta.model import Model
from feta.query import CountOf, PersonQuery, SpreadOf, WorstAt
from feta.verdict.spread import Spread
from feta.verdict.tally import Tally
from feta.verdict.verdict import Reason, Unknown, Verdict

SolveCounted = Callable[[Sequence[PersonQuery], Budget], tuple[list[Verdict], Tally | None]]


def verify(query: PersonQuery, *, engine: str = "auto", budget: Budget = UNLIMITED) -> Verdict:
    """Answer a query with the given engine, or with the first that accepts it.

    The checker confirms the evidence of each verdict. Without evidence, there is no verdict.

    Parameters
    ----------
    query
        `FairAt(model, person)`, or `WorstAt(model, person)`.
    engine
        The name of an engine, or "auto".
    budget
        Limits on time and evaluations. A spent budget gives `Unknown`.

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
    if not is_admitted(query):
        return NOT_ADMITTED
    chosen = choose(query, engine)
    return admit(query, chosen.solve(query, budget), trusted=is_ours(chosen))


def verify_many(
    queries: Sequence[PersonQuery], *, engine: str = "auto", budget: Budget = UNLIMITED
) -> list[Verdict]:
    """Answer queries, those about one model together; the budget is for each of them.

    The checker confirms the evidence of each verdict.
    """
    verdicts: dict[int, Verdict] = {}
    for rows in _rows_by_model(queries).values():
        asked = [queries[row] for row in rows]
        chosen = choose(asked[0], engine)
        solved, trusted = chosen.solve_many(asked, budget), is_ours(chosen)
        for row, query, verdict in zip(rows, asked, solved, strict=True):
            verdicts[row] = admit(query, verdict, trusted=trusted)
    return [verdicts.get(row, NOT_ADMITTED) for row in range(len(queries))]


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


# Nothing is claimed about a person who is nobody's counterpart.
NOT_ADMITTED = Unknown(Reason.NOT_ADMITTED)


def _rows_by_model(queries: Sequence[PersonQuery]) -> dict[int, list[int]]:
    """Group queries by model; people whom the relation does not admit are left out."""
    rows: dict[int, list[int]] = {}
    for row, query in enumerate(queries):
        if is_admitted(query):
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
    model.space.check(people, sensitive="ignore")
    if model.rule.tolerance is not None:
        raise EngineError(
            "invalid rule: got a Tolerance; expected a rule that makes decisions; use feta.spread "
            "for a regression model"
        )
    return choose(CountOf(model), engine).tally(model, people, budget, until="all")


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
    model.space.check(people, sensitive="ignore")
    if model.scorer.outputs != 1:
        raise EngineError(
            f"wrong number of network outputs: got {model.scorer.outputs}; expected 1 for a spread"
        )
    return choose(SpreadOf(model), engine).spread(model, people, budget)
