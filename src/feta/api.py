"""The front door: verify, worst, tally, spread."""

import numpy as np

from feta.arrays import Matrix, Vector
from feta.checker.admit import admit
from feta.engine.protocol import UNLIMITED, Budget
from feta.engine.registry import choose, is_ours
from feta.errors import EngineError
from feta.model import Model
from feta.query import Query, WorstAt
from feta.rule import Tolerance
from feta.verdict.spread import Spread
from feta.verdict.tally import Tally
from feta.verdict.verdict import Verdict


def verify(query: Query, *, engine: str = "auto", budget: Budget = UNLIMITED) -> Verdict:
    """Answer a question with the engine named, or the first that accepts it.

    Whatever the engine says, the checker has the last word: no evidence, no verdict.

    Parameters
    ----------
    query
        `FairAt(model, person)`, or `WorstAt(model, person)`.
    engine
        An engine's name, or "auto".
    budget
        What may be spent; running out gives `Unknown`.

    Examples
    --------
    >>> import feta
    >>> space = feta.FeatureSpace((feta.Integer("age", 18, 90, sensitive=True), feta.Real("income", 0, 9)))
    >>> network = feta.Network.from_layers([([[0.1, 1.0]], [-5.0])])
    >>> model = feta.Model(space, network, threshold=0.0)
    >>> person = space.encode({"age": 18, "income": 2})[0]
    >>> match feta.verify(feta.FairAt(model, person), engine="exhaustive"):
    ...     case feta.Fair():
    ...         print("decided alike, whatever the age")
    ...     case feta.Unfair(counterexample=found):
    ...         print(space.decode(found.counterpart))
    {'age': 30, 'income': 2.0}
    """
    chosen = choose(query.model, engine)
    return admit(query, chosen.solve(query, budget), trusted=is_ours(chosen))


def worst(
    model: Model, person: Vector, *, engine: str = "auto", budget: Budget = UNLIMITED
) -> Verdict:
    """Find the counterpart farthest on the other side of the decision; regression: the widest pair.

    Returns `Unfair` with `optimal=True`, `Fair` if there is none, or `Unknown` with the best so far.
    Where a sensitive attribute is real-valued, optimal is within 1e-9 of the gap; `optimal=False` says
    that a farther one was neither found nor ruled out.

    Examples
    --------
    >>> import feta
    >>> space = feta.FeatureSpace((feta.Integer("age", 18, 90, sensitive=True),))
    >>> model = feta.Model(space, feta.Network.from_layers([([[0.5]], [-20.0])]), threshold=0.0)
    >>> found = feta.worst(model, space.encode({"age": 20})[0])
    >>> space.decode(found.counterexample.counterpart), found.optimal
    ({'age': 90}, True)
    """
    return verify(WorstAt(model, person), engine=engine, budget=budget)


def tally(
    model: Model, people: Matrix, *, engine: str = "auto", budget: Budget = UNLIMITED
) -> Tally:
    """Count how many counterparts of each person are decided each way.

    The people's own sensitive columns are not read and may be NaN.

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
    if isinstance(model.rule, Tolerance):
        raise EngineError(
            "a regression model decides nothing that could be counted; use feta.spread"
        )
    chosen = choose(model, engine)
    return chosen.tally(model, people, budget, until="all")


def spread(
    model: Model, people: Matrix, *, engine: str = "auto", budget: Budget = UNLIMITED
) -> Spread:
    """Find the median, lowest and highest score of each person's counterparts.

    The people's own sensitive columns are not read and may be NaN.

    Examples
    --------
    >>> import feta
    >>> space = feta.FeatureSpace((feta.Integer("age", 18, 90, sensitive=True),))
    >>> limit = feta.Network.from_layers([([[100.0]], [500.0])])
    >>> model = feta.Model(space, limit, rule=feta.Tolerance(50.0))
    >>> found = feta.spread(model, space.encode({"age": 20}))
    >>> found.median.tolist(), found.span.tolist()
    ([5900.0], [7200.0])
    """
    people = np.asarray(people, dtype=np.float64)
    model.space.check(people, sensitive="ignore")
    if model.network.outputs != 1:
        raise EngineError(f"a spread needs one score, got a network with {model.network.outputs}")
    return choose(model, engine).spread(model, people, budget)
