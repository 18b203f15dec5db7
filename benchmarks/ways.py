"""Times of fair decisions per person, from a plain loop to the lattice engine."""

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
from feta.scorer.network.native_kernel import NetworkKernel
from feta.train.worst_counterparts import worst_counterparts
from feta_paper.timing import REPEATS, best_seconds, forward_seconds, loop_seconds, numpy_vote

# Counterparts that a loop in Python is measured on; the time of all of them is extrapolated.
N_LOOPED = 50

# A batch is as many people as have this many counterparts, so that the slow ways take seconds.
COUNTERPARTS_MEASURED = {"exhaustive": 200_000, "numpy": 1_000_000, "kernel": 10_000_000}

# Seconds for alternating measurements of one thread and two: a thousand people take a millisecond,
# during which another process may use the other core.
THREADS_SECONDS = 1.0

UNIT = "torch, forward of a single row"


@dataclass(frozen=True)
class Row:
    """Seconds per person of one way to decide; None if not available, with the reason as note."""

    way: str
    seconds: float | None
    note: str = ""


def lattice_engine() -> LatticeEngine:
    """Return the engine that `FairPredictor` uses, so that its threads can be set."""
    engine = engines()[LatticeEngine.name]
    assert isinstance(engine, LatticeEngine)
    return engine


def compare(trained: Trained) -> Iterator[Row]:
    """Measure all ways on one data set."""
    model, people = trained.model, trained.people
    yield from _forwards(model, people)
    yield from _enumerations(model, people)
    yield from _lattice(model, people)
    yield from _real_age(model, people)


def with_best_unit(trained: Trained, rows: Iterable[Row]) -> list[Row]:
    """Measure the unit after each row, and use its best time.

    A single measurement at a busy moment could halve every ratio.
    """
    measured, best = [], math.inf
    for row in rows:
        measured.append(row)
        best = min(best, forward_seconds(trained.model, trained.people[:1]))
    return [Row(UNIT, best, "no fairness; the unit"), *measured]


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
    looped = min(size, N_LOOPED)
    seconds = loop_seconds(model, people[0], looped)
    yield Row("a Python loop, torch per counterpart", seconds, f"from {looped} of {size:,}")

    some = _limited_people(people, size, "numpy")
    vote = numpy_vote(model)
    yield Row(
        "numpy, float32 in blocks",
        best_seconds(lambda: [vote(person) for person in some]) / len(some),
    )

    some = _limited_people(people, size, "exhaustive")
    slow, fast = FairPredictor(model, "exhaustive"), FairPredictor(model, LatticeEngine.name)
    if not np.array_equal(slow.decide(some), fast.decide(some)):
        raise AssertionError("exhaustive and lattice give different decisions")
    yield Row(
        "engine exhaustive",
        best_seconds(lambda: slow.decide(some)) / len(some),
        f"{len(some):,} people",
    )

    some = _limited_people(people, size, "kernel")
    enumerate_all = enumeration(model)
    seconds = best_seconds(lambda: enumerate_all(some)) / len(some)
    yield Row("the kernel, every counterpart", seconds, "no bounds, no early stop")


def _lattice(model: Model, people: Matrix) -> Iterator[Row]:
    engine, predictor = lattice_engine(), FairPredictor(model, LatticeEngine.name)
    engine.threads = 1
    some = [people[row : row + 1] for row in range(min(len(people), 100))]
    single = best_seconds(lambda: [predictor.decide(person) for person in some]) / len(some)
    yield Row("engine lattice, a single call", single, f"mean of {len(some)} people")
    many = _limited_people(
        people, model.space.lattice.size // 10, "kernel"
    )  # with bounds, fewer are scored
    yield Row("engine lattice, a batch", decide_batch(model, many), f"{len(many):,} people")
    yield from _threads(predictor, many)


def _threads(predictor: FairPredictor, people: Matrix) -> Iterator[Row]:
    """Measure the wall-clock time of one thread and two alternately, because the load changes."""
    engine, best = lattice_engine(), {1: (math.inf, 0.0), 2: (math.inf, 0.0)}
    n_tries, started = 0, time.monotonic()
    while n_tries < 2 * REPEATS or time.monotonic() - started < THREADS_SECONDS:
        n_tries += 1
        for threads in (1, 2):
            engine.threads = threads
            wall, processor = time.perf_counter(), time.process_time()
            predictor.decide(people)
            wall, processor = time.perf_counter() - wall, time.process_time() - processor
            best[threads] = min(best[threads], (wall, processor / wall))
    engine.threads = 1
    (single, _), (two, cores) = best[1], best[2]
    yield Row("  one thread, wall-clock time", single / len(people))
    note = f"{single / two:.2f}x one thread; {cores:.2f} cores were available"
    yield Row("  two threads, wall-clock time", two / len(people), note)


def _real_age(model: Model, people: Matrix) -> Iterator[Row]:
    way, real = "lattice, maximum violation with real age", with_real_age(model)
    if real is None:
        yield Row(way, None, "age is not sensitive")
        return
    engine, some = lattice_engine(), people[:20]
    seconds = best_seconds(
        lambda: [engine.solve(WorstAt(real, person), UNLIMITED) for person in some]
    )
    yield Row(f"{way}, a single call", seconds / len(some), "both directions, proved")
    many = _limited_people(people, model.space.lattice.size // 10, "kernel")
    note = f"{len(many):,} people, as in training"
    yield Row(f"{way}, a batch", real_age_batch(model, many), note)
    seconds = real_age_batch(model, many, everyone=True)
    yield Row("  the worst counterpart, also of people without a counterexample, a batch", seconds)


def real_age_batch(model: Model, people: Matrix, *, everyone: bool = False) -> float:
    """Measure the search for the worst counterpart with a real-valued age, in one batch.

    By default only counterparts on the other side of the threshold are searched for.
    """
    threshold = model.rule.threshold
    assert threshold is not None
    upward = model.score(people) < threshold
    beyond = None if everyone else threshold
    search = partial(worst_counterparts, model.space, model.network, people, upward)
    return best_seconds(lambda: search(numbers="real", beyond=beyond)) / len(people)


def decide_batch(model: Model, people: Matrix) -> float:
    """Measure fair decisions in one batch and one thread."""
    lattice_engine().threads = 1
    predictor = FairPredictor(model, LatticeEngine.name)
    return best_seconds(lambda: predictor.decide(people)) / len(people)


def spread(trained: Trained, many: int) -> Iterator[Row]:
    """Measure people one by one, because their times differ on a large lattice, and in a batch."""
    model, some = trained.model, trained.people[:many]
    predictor = FairPredictor(model, LatticeEngine.name)
    ways = {"engine lattice": predictor.decide, "the kernel, every counterpart": enumeration(model)}
    for way, decide in ways.items():
        times = np.array([best_seconds(lambda: decide(row)) for row in some[:, None, :]])  # noqa: B023 - called at once
        yield Row(f"{way}, mean of {len(some)} people", float(times.mean()), "one call per person")
        for share in (50, 99):
            yield Row(f"{way}, p{share}", float(np.percentile(times, share)))
    everyone = trained.everyone[: 30 * many]
    _, first = np.unique(everyone[:, ~model.space.sensitive_columns], axis=0, return_index=True)
    for rows, name in ((everyone[first], "different"), (everyone, "in the data's order")):
        seconds = best_seconds(lambda: predictor.decide(rows), limit=0.0) / len(rows)  # noqa: B023 - called at once
        yield Row(
            f"engine lattice, people {name}", seconds, f"a batch of {len(rows):,}, measured once"
        )


def enumeration(model: Model) -> Callable[[Matrix], object]:
    """Return a function that counts every counterpart with the kernel, without bounds."""
    kernel = model.restricted.kernel(
        model.space, model.rule.kernel_rule, source_error=model.runtime_error, simd=True
    )
    assert isinstance(kernel, NetworkKernel)
    native, constants = kernel._native, kernel._constants  # noqa: SLF001 - it never enumerates

    def count(people: Matrix) -> object:
        majority, seconds, evaluations, threads = False, -1.0, 0, 1
        nodes = 1  # afterwards the kernel does not bound, but enumerates
        terms = constants(people)
        return native.tally(*terms, majority, seconds, evaluations, nodes, threads)

    return count


def _limited_people(people: Matrix, size: int, way: str) -> Matrix:
    return people[: max(1, COUNTERPARTS_MEASURED[way] // max(1, size))]
