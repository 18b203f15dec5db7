"""Ways: fair decisions for some people, from the plainest loop to the compiled engine, timed a person."""

import math
import time
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from functools import partial

import numpy as np

from benchmarks.networks import Trained, in_onnxruntime, with_real_age
from feta import FairPredictor, WorstAt
from feta.arrays import Matrix
from feta.engine.lattice import LatticeEngine
from feta.engine.protocol import UNLIMITED
from feta.engine.registry import engines
from feta.model import Model
from feta.rule import Threshold
from feta.train.worst_counterparts import worst_counterparts
from feta_paper.timing import REPEATS, best_seconds, forward_seconds, loop_seconds, numpy_vote

# What a loop in Python is timed on; the rest of the lattice is taken to cost the same each.
LOOPED = 50

# A batch is as many people as have this many counterparts, so that the slow ways end in seconds.
COUNTERPARTS_TIMED = {"exhaustive": 200_000, "numpy": 1_000_000, "kernel": 10_000_000}


# Seconds that one thread and two are tried for, by turns: a thousand people are over in a millisecond, in
# which a neighbor may have the other core.
THREADS_TIMED = 1.0

UNIT = "torch, forward of a single row"


@dataclass(frozen=True)
class Row:
    """One way's seconds a person; None where it does not answer, and the note says why."""

    way: str
    seconds: float | None
    note: str = ""


def compiled() -> LatticeEngine:
    """Give the engine that `FairPredictor` uses, so that its threads can be set."""
    engine = engines()[LatticeEngine.name]
    assert isinstance(engine, LatticeEngine)
    return engine


def compare(trained: Trained) -> Iterator[Row]:
    """Time every way on one data set."""
    model, people = trained.model, trained.people
    yield from _forwards(model, people)
    yield from _enumerations(model, people)
    yield from _lattice(model, people)
    yield from _real_age(model, people)


def with_best_unit(trained: Trained, rows: Iterable[Row]) -> list[Row]:
    """Time the unit again after each row, and keep its best.

    Measured once, in a moment when the machine is busy, it would flatter every ratio by half.
    """
    told, best = [], math.inf
    for row in rows:
        told.append(row)
        best = min(best, forward_seconds(trained.model, trained.people[:1]))
    return [Row(UNIT, best, "no fairness; the unit"), *told]


def _forwards(model: Model, people: Matrix) -> Iterator[Row]:
    batched = forward_seconds(model, people)
    yield Row("torch, forward of a batch", batched, f"{len(people):,} rows")
    try:
        session, row = in_onnxruntime(model), people[:1].astype(np.float32)
        yield Row("onnxruntime, a single row", best_seconds(lambda: session(row)))
    except ImportError:
        yield Row("onnxruntime, a single row", None, "not installed")


def _enumerations(model: Model, people: Matrix) -> Iterator[Row]:
    size = model.space.lattice.size
    looped = min(size, LOOPED)
    seconds = loop_seconds(model, people[0], looped)
    yield Row("a Python loop, torch a counterpart", seconds, f"from {looped} of {size:,}")

    some = _some(people, size, "numpy")
    vote = numpy_vote(model)
    yield Row(
        "numpy, float32 in blocks", best_seconds(lambda: [vote(one) for one in some]) / len(some)
    )

    some = _some(people, size, "exhaustive")
    slow, fast = FairPredictor(model, "exhaustive"), FairPredictor(model, LatticeEngine.name)
    if not np.array_equal(slow.decide(some), fast.decide(some)):
        raise AssertionError("exhaustive and lattice must decide alike, and do not")
    yield Row(
        "engine exhaustive",
        best_seconds(lambda: slow.decide(some)) / len(some),
        f"{len(some):,} people",
    )

    some = _some(people, size, "kernel")
    enumerate_all = enumeration(model)
    seconds = best_seconds(lambda: enumerate_all(some)) / len(some)
    yield Row("the kernel, every counterpart", seconds, "no bounds, no early stop")


def _lattice(model: Model, people: Matrix) -> Iterator[Row]:
    engine, predictor = compiled(), FairPredictor(model, LatticeEngine.name)
    engine.threads = 1
    some = [people[row : row + 1] for row in range(min(len(people), 100))]
    single = best_seconds(lambda: [predictor.decide(one) for one in some]) / len(some)
    yield Row("engine lattice, a single call", single, f"mean of {len(some)} people")
    many = _some(people, model.space.lattice.size // 10, "kernel")  # bounds leave less to score
    yield Row("engine lattice, a batch", decide_batch(model, many), f"{len(many):,} people")
    yield from _threads(predictor, many)


def _threads(predictor: FairPredictor, people: Matrix) -> Iterator[Row]:
    """Time one thread and two by the clock on the wall, by turns: the neighbors' load changes meanwhile."""
    engine, best = compiled(), {1: (math.inf, 0.0), 2: (math.inf, 0.0)}
    tries, begun = 0, time.monotonic()
    while tries < 2 * REPEATS or time.monotonic() - begun < THREADS_TIMED:
        tries += 1
        for threads in (1, 2):
            engine.threads = threads
            wall, processor = time.perf_counter(), time.process_time()
            predictor.decide(people)
            wall, processor = time.perf_counter() - wall, time.process_time() - processor
            best[threads] = min(best[threads], (wall, processor / wall))
    engine.threads = 1
    (one, _), (two, cores) = best[1], best[2]
    yield Row("  one thread, by the clock on the wall", one / len(people))
    note = f"{one / two:.2f}x one thread; {cores:.2f} cores were to be had"
    yield Row("  two threads, by the clock on the wall", two / len(people), note)


def _real_age(model: Model, people: Matrix) -> Iterator[Row]:
    way, real = "lattice, maximum violation with real age", with_real_age(model)
    if real is None:
        yield Row(way, None, "age is not among the sensitive")
        return
    engine, some = compiled(), people[:20]
    seconds = best_seconds(lambda: [engine.solve(WorstAt(real, one), UNLIMITED) for one in some])
    yield Row(f"{way}, a single call", seconds / len(some), "both directions, proved")
    many = _some(people, model.space.lattice.size // 10, "kernel")
    note = f"{len(many):,} people, as in training"
    yield Row(f"{way}, a batch", real_age_batch(model, many), note)
    seconds = real_age_batch(model, many, everyone=True)
    yield Row("  the farthest counterpart even of people treated alike, a batch", seconds)


def real_age_batch(model: Model, people: Matrix, *, everyone: bool = False) -> float:
    """Time the farthest counterpart on the other side, with age real-valued, for all people at once."""
    assert isinstance(model.rule, Threshold)
    border, upward = model.rule.value, model.score(people) < model.rule.value
    beyond = None if everyone else border
    search = partial(worst_counterparts, model.space, model.network, people, upward)
    return best_seconds(lambda: search(numbers="real", beyond=beyond)) / len(people)


def decide_batch(model: Model, people: Matrix) -> float:
    """Time fair decisions of all people at once, in one thread."""
    compiled().threads = 1
    predictor = FairPredictor(model, LatticeEngine.name)
    return best_seconds(lambda: predictor.decide(people)) / len(people)


def spread(trained: Trained, many: int) -> Iterator[Row]:
    """Time people one by one, who differ much on a large lattice; and all, those alike asked once."""
    model, some = trained.model, trained.people[:many]
    predictor = FairPredictor(model, LatticeEngine.name)
    ways = {"engine lattice": predictor.decide, "the kernel, every counterpart": enumeration(model)}
    for way, decide in ways.items():
        times = np.array([best_seconds(lambda: decide(one)) for one in some[:, None, :]])  # noqa: B023 - called at once
        yield Row(f"{way}, mean of {len(some)} people", float(times.mean()), "a call a person")
        for share in (50, 99):
            yield Row(f"{way}, p{share}", float(np.percentile(times, share)))
    all_of_them = trained.everyone[: 30 * many]
    _, first = np.unique(all_of_them[:, ~model.space.sensitive_columns], axis=0, return_index=True)
    for rows, name in ((all_of_them[first], "different"), (all_of_them, "as they come")):
        seconds = best_seconds(lambda: predictor.decide(rows), limit=0.0) / len(rows)  # noqa: B023 - called at once
        yield Row(f"engine lattice, people {name}", seconds, f"a batch of {len(rows):,}, one try")


def enumeration(model: Model) -> Callable[[Matrix], object]:
    """Count every counterpart with the compiled kernel: after its first node it gives up bounding."""
    kernel = compiled()._kernel(model)  # noqa: SLF001 - the engine itself never enumerates all

    def count(people: Matrix) -> object:
        everything = {
            "majority": False,
            "seconds": -1.0,
            "evaluations": 0,
            "nodes": 1,
            "threads": 1,
        }
        return kernel.native.tally(*kernel.constants(people), *everything.values())

    return count


def _some(people: Matrix, size: int, way: str) -> Matrix:
    return people[: max(1, COUNTERPARTS_TIMED[way] // max(1, size))]
