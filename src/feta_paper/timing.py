"""Times of fair decisions, and of the ways to count without FETA."""

import math
import time
from collections.abc import Callable
from dataclasses import replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

import feta
from feta.arrays import Matrix, Vector
from feta.engine.milp.engine import MilpEngine
from feta.engine.protocol import Budget
from feta.engine.registry import engines
from feta.model import Model
from feta.predict.fair_predictor import FairPredictor
from feta.query import FairAt
from feta.scorer.network.network import network_of
from feta.train.import_torch import import_torch
from feta.verdict.verdict import Unfair
from feta_paper.fold import Fold
from feta_paper.step_result import Figures, StepResult

Float32s = NDArray[np.float32]

REPEATS = 5

# A measurement repeats its work until it lasts this long, so that the clock's resolution is small.
MIN_SECONDS = 0.02

# Counterparts that a loop is measured on; the time of all of them is extrapolated.
LOOP_COUNTERPARTS = 50

# Counterparts scored at a time in numpy: 2^12 points of 16 neurons fit in the cache.
BLOCK = 2**12

# People measured as a batch, and people measured with one call each.
BATCH, SINGLES = 1000, 50

# Numpy is measured on as many people as have this many counterparts in total.
ENUMERATED = 1_000_000

# People counted with a solver, of those with a counterexample and of those without.
COUNTED = 3


def best_seconds(
    work: Callable[[], object],
    *,
    clock: Callable[[], float] = time.process_time,
    limit: float = 10.0,
) -> float:
    """Measure the seconds of some work: the best of five repeats, after a call to warm up.

    Other processes on the machine can only increase a time. Repeats stop when all calls together
    have taken `limit` seconds.
    """
    begun = time.monotonic()
    work()
    started = clock()
    work()
    best = clock() - started
    calls = max(1, math.ceil(MIN_SECONDS / max(best, 1e-9)))
    for _ in range(REPEATS if calls > 1 else REPEATS - 1):  # a long call is a repeat already
        if time.monotonic() - begun > limit:
            break
        started = clock()
        for _ in range(calls):
            work()
        best = min(best, (clock() - started) / calls)
    return best


def float32_layers(model: Model) -> list[tuple[Float32s, Float32s]]:
    """Return weights and biases in float32, as in torch."""
    first = network_of(model.scorer).first
    assert not first.tables  # trained networks have none
    layers = [(first.slopes, first.bias)]
    layers += [(layer.weight, layer.bias) for layer in network_of(model.scorer).layers]
    return [(w.astype(np.float32), b.astype(np.float32)) for w, b in layers]


def torch_network(model: Model) -> Callable[..., Any]:
    """Build the network in torch, as a function of a tensor of float32 rows."""
    torch = import_torch()
    parts = []
    for weight, bias in float32_layers(model):
        linear = torch.nn.Linear(weight.shape[1], weight.shape[0])
        linear.weight = torch.nn.Parameter(torch.from_numpy(weight.copy()))
        linear.bias = torch.nn.Parameter(torch.from_numpy(bias.copy()))
        parts += [linear, torch.nn.ReLU()]
    network = torch.nn.Sequential(*parts[:-1]).eval()

    def forward(rows: Any) -> Any:  # noqa: ANN401 - tensors
        with torch.inference_mode():
            return network(rows)

    return forward


def forward_seconds(model: Model, people: Matrix) -> float:
    """Measure torch's forward pass per person; that of a single row is the unit of the ratios."""
    rows, forward = import_torch().from_numpy(people.astype(np.float32)), torch_network(model)
    return best_seconds(lambda: forward(rows)) / len(people)


def _threshold(model: Model) -> float:
    threshold = model.rule.threshold
    assert threshold is not None  # the paper's models make two decisions
    return threshold


def loop_seconds(model: Model, person: Vector, max_counterparts: int = LOOP_COUNTERPARTS) -> float:
    """Measure the vote as a loop with one forward pass per counterpart, and extrapolate.

    The rows of the counterparts are prepared before: walking the lattice is not measured.
    """
    torch, forward, lattice = import_torch(), torch_network(model), model.space.lattice
    threshold, some = _threshold(model), next(lattice.counterparts(person))[:max_counterparts]
    rows = torch.from_numpy(some.astype(np.float32)).split(1)

    def loop() -> int:
        return sum(bool(forward(row) >= threshold) for row in rows)

    return best_seconds(loop) / len(rows) * lattice.size


def numpy_vote(model: Model) -> Callable[[Vector], bool]:
    """Return the vote in plain numpy; the part of the sensitive columns is computed only once."""
    threshold, lattice = _threshold(model), model.space.lattice
    (slopes, bias), *rest = float32_layers(model)
    columns = list(lattice.columns)
    shared = [column for column in range(model.space.width) if column not in columns]
    blocks: list[Float32s] = [
        (lattice.codes(start, min(start + BLOCK, lattice.size)) @ slopes[:, columns].T).astype("f4")
        for start in range(0, lattice.size, BLOCK)
    ]

    def vote(person: Vector) -> bool:
        constant = slopes[:, shared] @ person[shared].astype(np.float32) + bias
        favorable = 0
        for block in blocks:
            value = block + constant
            for weight, offset in rest:
                value = np.maximum(value, 0) @ weight.T + offset
            favorable += int((value >= threshold).sum())
        return 2 * favorable >= lattice.size

    return vote


def time_votes(fold: Fold) -> StepResult:
    """Measure the vote on NN_b and on the trained network, and torch's forward pass."""
    space = fold.space
    times: Figures = {}
    models = {name: feta.Model(space, fold.network(name)) for name in ("nn_b", "trained")}
    people = fold.test[:BATCH]
    # The unit is measured before and after each vote, because the machine's load changes.
    units = [_forward(models["nn_b"], people)]
    for name, arm in (("nn_b", "vote"), ("trained", "trained_vote")):
        times |= _vote_seconds(models[name], people, arm)
        units.append(_forward(models["nn_b"], people))
    batch, single = map(min, zip(*units, strict=True))
    return StepResult(times=times | {"forward.seconds": batch, "forward.single_seconds": single})


def _forward(model: Model, people: Matrix) -> tuple[float, float]:
    return forward_seconds(model, people), forward_seconds(model, people[:1])


def _vote_seconds(model: Model, people: Matrix, arm: str) -> Figures:
    predictor = FairPredictor(model)
    singles = [people[row : row + 1] for row in range(min(len(people), SINGLES))]
    single = best_seconds(lambda: [predictor.decide(person) for person in singles]) / len(singles)
    batch = best_seconds(lambda: predictor.decide(people)) / len(people)
    return {f"{arm}.seconds": batch, f"{arm}.single_seconds": single}


def time_counting(fold: Fold) -> StepResult:
    """Measure the ways to count on NN_b, and how they depend on the size of the lattice."""
    model = feta.Model(fold.space, fold.network("nn_b"))
    seconds = _counting_seconds(model, fold.test)
    times = {f"counting.{way}_seconds": value for way, value in seconds.items()}
    milp, sizes = _milp(fold, model), _by_size(fold)
    return replace(milp, figures=sizes.figures, times={**times, **milp.times, **sizes.times})


def _counting_seconds(model: Model, people: Matrix) -> dict[str, float]:
    some = people[: max(1, min(len(people), ENUMERATED // model.relation.size))]
    vote, predictor = numpy_vote(model), FairPredictor(model)
    batch = people[:BATCH]
    return {
        "naive": loop_seconds(model, people[0]),
        "vectorized": best_seconds(lambda: [vote(person) for person in some]) / len(some),
        "compiled": best_seconds(lambda: predictor.decide(batch)) / len(batch),
    }


def _by_size(fold: Fold) -> StepResult:
    """Measure with one more sensitive attribute at a time, the shortest axis first."""
    network = fold.network("nn_b")
    axes = sorted(fold.space.lattice.axes, key=len)
    spaces = [
        fold.space.with_sensitive(tuple(axis.attribute.name for axis in axes[:last]))
        for last in range(1, len(axes) + 1)
    ]
    seconds = [_counting_seconds(feta.Model(space, network), fold.test) for space in spaces]
    times: Figures = {
        f"cost.{way}_seconds": [values[way] for values in seconds] for way in seconds[0]
    }
    sizes = [float(space.lattice.size) for space in spaces]
    return StepResult({"cost.sizes": sizes}, times=times)


def _solver() -> MilpEngine:
    """Return an installed MILP engine, preferably one that counts by a solution pool."""
    installed = [
        engine
        for engine in engines().values()
        if isinstance(engine, MilpEngine) and engine.available()
    ]
    return max(installed, key=lambda engine: engine.backend.pools)  # the first of equals


def _milp(fold: Fold, model: Model) -> StepResult:
    """Find a counterexample with a solver, and count until the majority is certain."""
    some, limit = fold.test[:BATCH], fold.protocol.patience
    unfair = (feta.tally(model, some).by_class > 0).all(axis=1)
    engine, budget = _solver(), Budget(seconds=limit)
    solver, times, missing = engine.backend.name, Figures(), {}
    find = _find_seconds(engine, model, some[unfair][:1], budget)
    if find is not None:
        times["counting.milp_find_seconds"] = find
    elif unfair.any():
        missing["counting.milp_find_seconds"] = f"{solver} found none within {limit:g} s"
    else:
        missing["counting.milp_find_seconds"] = "nobody has a counterexample"
    unfair_seconds = _count_seconds(engine, model, some[unfair][:COUNTED], budget)
    fair_seconds = None
    if unfair_seconds is not None:
        fair_seconds = _count_seconds(engine, model, some[~unfair][:COUNTED], budget)
    if unfair_seconds is None or fair_seconds is None:
        reason = f"{solver} did not count to the majority within {limit:g} s per person"
        missing["counting.milp_seconds"] = reason
    else:
        share = float(unfair.mean())
        times["counting.milp_seconds"] = share * unfair_seconds + (1 - share) * fair_seconds
    setting = (
        f"{solver}, {COUNTED} people with and {COUNTED} without a counterexample, "
        f"weighted by their numbers; at most {limit:g} s per person"
    )
    return StepResult(times=times, missing=missing, settings={"counting.milp": setting})


def _find_seconds(engine: MilpEngine, model: Model, person: Matrix, budget: Budget) -> float | None:
    """Measure the search for a counterexample of an unfair person; None if the time limit ends it.

    `person` has one row, or none if nobody has a counterexample.
    """
    if not len(person) or not isinstance(engine.solve(FairAt(model, person[0]), budget), Unfair):
        return None
    return best_seconds(
        lambda: engine.solve(FairAt(model, person[0]), budget), clock=time.perf_counter
    )


def _count_seconds(
    engine: MilpEngine, model: Model, people: Matrix, budget: Budget
) -> float | None:
    """Measure counting per person; None as soon as one person exceeds the time limit."""
    started = time.perf_counter()
    for person in people:
        if not engine.tally(model, person[None, :], budget, until="majority").decided[0]:
            return None
    return (time.perf_counter() - started) / max(len(people), 1)
