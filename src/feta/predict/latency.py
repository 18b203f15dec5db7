"""Latency of one fair decision, compared with one forward pass; measured times vary."""

import time
from collections.abc import Callable
from dataclasses import dataclass
from statistics import median

from feta.arrays import Matrix
from feta.engine.protocol import Budget
from feta.model import Model
from feta.predict.fair_predictor import FairPredictor

# Limits on the measurement: the number of decisions, and the seconds for all of them together.
MAX_PEOPLE = 30
MAX_SECONDS = 2.0


@dataclass(frozen=True, slots=True)
class Latency:
    """Median seconds of a call with one person."""

    forward: float
    fair: float


def measure(model: Model, people: Matrix, engine: str = "auto") -> Latency | None:
    """Measure a few people; return None if the first one cannot be decided in time."""
    started = time.perf_counter()
    budget = Budget(seconds=MAX_SECONDS)
    predictor = FairPredictor(model, engine)
    forward_seconds: list[float] = []
    fair_seconds: list[float] = []
    if not model.relation.complete:  # those without counterparts have no decision
        people = people[[model.relation.count(person) > 0 for person in people]]
    for number in range(MAX_PEOPLE if len(people) else 0):  # few people are measured repeatedly
        row = people[number % len(people)][None, :]
        forward_seconds.append(_seconds(model.scorer, row))
        if not fair_seconds:  # without a limit, the first decision may take minutes
            first = FairPredictor(model, engine, budget)
            counts = first.medians(row) if not model.outcomes else first.votes(row)
            if not counts.decided.all():
                return None
        fair_seconds.append(_seconds(predictor.decide, row))
        if time.perf_counter() - started > MAX_SECONDS:
            break
    return Latency(median(forward_seconds), median(fair_seconds)) if fair_seconds else None


def _seconds(call: Callable[[Matrix], object], row: Matrix) -> float:
    started = time.perf_counter()
    call(row)
    return time.perf_counter() - started
