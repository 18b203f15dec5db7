"""Clocks: what fair decisions cost a person, in steps that run with nothing beside them."""

import time
from dataclasses import replace

import feta
from feta.arrays import Matrix
from feta.engine.milp.engine import MilpEngine
from feta.engine.protocol import Budget
from feta.engine.registry import engines
from feta.model import Model
from feta.predict.fair_predictor import FairPredictor
from feta.query import FairAt
from feta.verdict.verdict import Unfair
from feta_paper.fold import Bench
from feta_paper.outcome import Figures, StepResult
from feta_paper.ways import cost, forward_seconds, naive_seconds, vectorized

# People timed as a batch, and one call each.
BATCH, SINGLES = 1000, 50

# Numpy is timed on as many people as have this many counterparts.
ENUMERATED = 1_000_000

# People counted with a solver, of those with a counterexample and of those without.
COUNTED = 3


def votes(bench: Bench) -> StepResult:
    """Time the vote on NN_b and on the trained network, and torch's forward pass beside them."""
    space = bench.space
    times: Figures = {}
    models = {name: feta.Model(space, bench.network(name)) for name in ("nn_b", "trained")}
    people = bench.test[:BATCH]
    # By turns, the unit before and after: the neighbors' load changes meanwhile.
    units = [_forward(models["nn_b"], people)]
    for name, arm in (("nn_b", "vote"), ("trained", "trained_vote")):
        times |= _votes(models[name], people, arm)
        units.append(_forward(models["nn_b"], people))
    batch, single = map(min, zip(*units, strict=True))
    return StepResult(times=times | {"forward.seconds": batch, "forward.single_seconds": single})


def _forward(model: Model, people: Matrix) -> tuple[float, float]:
    return forward_seconds(model, people), forward_seconds(model, people[:1])


def _votes(model: Model, people: Matrix, arm: str) -> Figures:
    predictor = FairPredictor(model)
    singles = [people[row : row + 1] for row in range(min(len(people), SINGLES))]
    single = cost(lambda: [predictor.decide(one) for one in singles]) / len(singles)
    batch = cost(lambda: predictor.decide(people)) / len(people)
    return {f"{arm}.seconds": batch, f"{arm}.single_seconds": single}


def ways(bench: Bench) -> StepResult:
    """Time counting on NN_b: naive, vectorized, by a solver, compiled; and against the lattice's size."""
    model = feta.Model(bench.space, bench.network("nn_b"))
    times = {f"counting.{way}_seconds": one for way, one in _ways(model, bench.test).items()}
    milp, sizes = _milp(bench, model), _by_size(bench)
    return replace(milp, figures=sizes.figures, times={**times, **milp.times, **sizes.times})


def _ways(model: Model, people: Matrix) -> dict[str, float]:
    some = people[: max(1, min(len(people), ENUMERATED // model.space.lattice.size))]
    vote, predictor = vectorized(model), FairPredictor(model)
    return {
        "naive": naive_seconds(model, people[0]),
        "vectorized": cost(lambda: [vote(one) for one in some]) / len(some),
        "compiled": cost(lambda: predictor.decide(people[:BATCH])) / len(people[:BATCH]),
    }


def _by_size(bench: Bench) -> StepResult:
    """Let one attribute after the other be sensitive, the shortest first."""
    network = bench.network("nn_b")
    axes = sorted(bench.space.lattice.axes, key=len)
    spaces = [
        bench.space.with_sensitive(tuple(one.attribute.name for one in axes[:last]))
        for last in range(1, len(axes) + 1)
    ]
    timed = [_ways(feta.Model(space, network), bench.test) for space in spaces]
    times: Figures = {f"cost.{way}_seconds": [one[way] for one in timed] for way in timed[0]}
    return StepResult({"cost.sizes": [float(one.lattice.size) for one in spaces]}, times=times)


def _solver() -> MilpEngine:
    """Give a solver that is installed, one that counts by a pool of solutions if there is any."""
    here = [one for one in engines().values() if isinstance(one, MilpEngine) and one.available()]
    return max(here, key=lambda one: one.backend.pools)  # the first of equals


def _milp(bench: Bench, model: Model) -> StepResult:
    """Find a counterexample with a solver, and count until the majority is certain."""
    some, patience = bench.test[:BATCH], bench.protocol.patience
    apart = (feta.tally(model, some).by_class > 0).all(axis=1)
    engine, budget = _solver(), Budget(seconds=patience)
    solver, times, missing = engine.backend.name, Figures(), {}
    find = _find(engine, model, some[apart][:1], budget)
    if find is not None:
        times["counting.milp_find_seconds"] = find
    elif apart.any():
        missing["counting.milp_find_seconds"] = f"{solver} found none within {patience:g} s"
    else:
        missing["counting.milp_find_seconds"] = "nobody has a counterexample"
    unlike = _count(engine, model, some[apart][:COUNTED], budget)
    alike = None if unlike is None else _count(engine, model, some[~apart][:COUNTED], budget)
    if unlike is None or alike is None:
        why = f"{solver} did not count to the majority within {patience:g} s a person"
        missing["counting.milp_seconds"] = why
    else:
        share = float(apart.mean())
        times["counting.milp_seconds"] = share * unlike + (1 - share) * alike
    words = f"{solver}, {COUNTED} people with and {COUNTED} without a counterexample, weighted by how many there are of each; at most {patience:g} s a person"
    return StepResult(times=times, missing=missing, settings={"counting.milp": words})


def _find(engine: MilpEngine, model: Model, person: Matrix, budget: Budget) -> float | None:
    """Time the first counterexample of a person who has one; None if it is not found in time."""
    if not len(person) or not isinstance(engine.solve(FairAt(model, person[0]), budget), Unfair):
        return None
    return cost(lambda: engine.solve(FairAt(model, person[0]), budget), clock=time.perf_counter)


def _count(engine: MilpEngine, model: Model, people: Matrix, budget: Budget) -> float | None:
    """Time counting, a person; None as soon as one takes too long, since so would the others."""
    started = time.perf_counter()
    for person in people:
        if not engine.tally(model, person[None, :], budget, until="majority").decided[0]:
            return None
    return (time.perf_counter() - started) / max(len(people), 1)
