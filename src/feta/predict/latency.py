"""Latency: what one fair decision takes, beside one forward pass; measured, so never twice the same."""

import time
from collections.abc import Callable
from dataclasses import dataclass
from statistics import median

from feta.arrays import Matrix
from feta.engine.protocol import Budget
from feta.model import Model
from feta.predict.fair_predictor import FairPredictor

# People measured one by one, and what all of them together may take.
MAX_PEOPLE = 30
MAX_SECONDS = 2.0


@dataclass(frozen=True, slots=True)
class Latency:
    """Median seconds of a call with one person."""

    forward: float
    fair: float


def measure(model: Model, people: Matrix, engine: str = "auto") -> Latency | None:
    """Measure a few people; None where nobody could be settled in the time there is."""
    started = time.perf_counter()
    budget = Budget(seconds=MAX_SECONDS)
    predictor = FairPredictor(model, engine)
    forwards: list[float] = []
    fairs: list[float] = []
    for person in people[:MAX_PEOPLE]:
        row = person[None, :]
        forwards.append(_seconds(model.network, row))
        if not fairs:  # the first may take minutes; then it is not measured at all
            first = FairPredictor(model, engine, budget)
            counts = first.medians(row) if not model.outcomes else first.votes(row)
            if not counts.decided.all():
                return None
        fairs.append(_seconds(predictor.decide, row))
        if time.perf_counter() - started > MAX_SECONDS:
            break
    return Latency(median(forwards), median(fairs)) if fairs else None


def _seconds(call: Callable[[Matrix], object], row: Matrix) -> float:
    started = time.perf_counter()
    call(row)
    return time.perf_counter() - started
