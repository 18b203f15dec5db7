"""Clocks: what fair decisions cost a person, in steps that run with nothing beside them."""

import time
from dataclasses import replace

import numpy as np

import feta
from feta.arrays import Matrix
from feta.engine.milp.engine import Milp
from feta.engine.protocol import Budget
from feta.engine.registry import engines
from feta.model import Model
from feta.predict.fair_predictor import FairPredictor
from feta.query import FairAt
from feta.reproduce.bench import Bench
from feta.reproduce.outcome import Figures, Outcome
from feta.reproduce.ways import cost, forward_seconds, naive_seconds, vectorized

# People timed as a batch, and one call each.
BATCH, SINGLES = 1000, 50

# Numpy is timed on as many people as have this many counterparts.
ENUMERATED = 1_000_000

# People counted with a solver.
COUNTED = 3


def inference(bench: Bench) -> Outcome:
    """Time the vote on NN_b and on the trained network, and torch's forward pass beside them."""
    space = bench.space
    times: Figures = {}
    models = {name: feta.Model(space, bench.network(name)) for name in ("nn_b", "trained")}
    people = bench.test[:BATCH]
    # By turns, the unit before and after: the neighbors' load changes meanwhile.
    units = [forward_seconds(models["nn_b"], people[:1])]
    for name, arm in (("nn_b", "vote"), ("trained", "trained_vote")):
        times |= _votes(models[name], people, arm)
        units.append(forward_seconds(models["nn_b"], people[:1]))
    return Outcome(times={**times, "forward.seconds": min(units)})


def _votes(model: Model, people: Matrix, arm: str) -> Figures:
    predictor = FairPredictor(model)
    singles = [people[row : row + 1] for row in range(min(len(people), SINGLES))]
    single = cost(lambda: [predictor.decide(one) for one in singles]) / len(singles)
    batch = cost(lambda: predictor.decide(people)) / len(people)
    return {f"{arm}.seconds": batch, f"{arm}.single_seconds": single}


def counting(bench: Bench) -> Outcome:
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
        "vectorised": cost(lambda: [vote(one) for one in some]) / len(some),
        "compiled": cost(lambda: predictor.decide(people[:BATCH])) / len(people[:BATCH]),
    }


def _by_size(bench: Bench) -> Outcome:
    """Let one attribute after the other be sensitive, the shortest first."""
    network = bench.network("nn_b")
    axes = sorted(bench.space.lattice.axes, key=len)
    spaces = [
        bench.space.with_sensitive(tuple(one.attribute.name for one in axes[:last]))
        for last in range(1, len(axes) + 1)
    ]
    timed = [_ways(feta.Model(space, network), bench.test) for space in spaces]
    times: Figures = {f"cost.{way}_seconds": [one[way] for one in timed] for way in timed[0]}
    return Outcome({"cost.sizes": [float(one.lattice.size) for one in spaces]}, times=times)


def _solver() -> Milp:
    """Give a solver that is installed, one that counts by a pool of solutions if there is any."""
    here = [one for one in engines().values() if isinstance(one, Milp) and one.available()]
    return max(here, key=lambda one: one.backend.pools)  # the first of equals


def _milp(bench: Bench, model: Model) -> Outcome:
    """Find and count with a solver, until the majority is certain, for people with counterexamples."""
    some, patience = bench.test[:BATCH], bench.protocol.patience
    split = feta.tally(model, some).by_class
    chosen = some[np.flatnonzero((split > 0).all(axis=1))[:COUNTED]]
    key = "counting.milp_seconds"
    if not len(chosen):
        return Outcome(missing={key: "nobody in the test fold has a counterexample"})
    engine, budget, seconds = _solver(), Budget(seconds=patience), []
    find = cost(lambda: engine.solve(FairAt(model, chosen[0]), budget), clock=time.perf_counter)
    for person in chosen:
        started = time.perf_counter()
        counts = engine.tally(model, person[None, :], budget, until="majority")
        if not counts.settled[0]:  # nor would the others be
            break
        seconds.append(time.perf_counter() - started)
    words = f"{engine.backend.name}, {len(chosen)} people with counterexamples, at most {patience:g} s each"
    times: Figures = {"counting.milp_find_seconds": find}
    if len(seconds) < len(chosen):
        why = f"{engine.backend.name} did not count to the majority within {patience:g} s a person"
        return Outcome(times=times, missing={key: why}, settings={"counting.milp": words})
    return Outcome(times={**times, key: float(np.mean(seconds))}, settings={"counting.milp": words})
