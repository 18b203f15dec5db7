"""A guided search for rare unfairness: people are moved until their counterparts' decisions differ.

Where no neuron that reads a sensitive column is active, all counterparts have equal scores, and
nothing shows a way. So the search first raises such a neuron, one for each person, and then moves
the scores of the counterparts to both sides of the threshold. It proves nothing: whoever it returns
is decided exactly by the caller.
"""

import time

import numpy as np

from feta.arrays import Counts, Flags, Matrix, Vector
from feta.everybody.population import (
    Column,
    Independent,
    Listed,
    Population,
    Span,
    with_derived,
)
from feta.model import Model
from feta.scorer.protocol import guides

# People who are moved at once, counterparts of each of them, and rounds of moves.
PEOPLE = 64
TWINS = 8
ROUNDS = 400

# Scores that differ by less than this, relative to their size, count as equal: they are rounded.
EQUAL = 1e-9

# Shares of moves to an end of a column, and of neurons that are raised, not lowered.
TO_AN_END = 0.5
RAISED = 0.75


def search(
    model: Model, population: Population, rng: np.random.Generator, *, deadline: float
) -> Matrix:
    """Return people who are probably treated unfairly; none if there is no guide."""
    columns = np.flatnonzero(model.space.sensitive_columns)
    if model.rule.threshold is None or not isinstance(population, Independent):
        return np.zeros((0, model.space.width))
    people = population.draw(rng, PEOPLE)
    values = guides(model.scorer, people, columns)
    if values is None or not values.shape[1]:
        return np.zeros((0, model.space.width))
    neurons = rng.integers(0, values.shape[1], PEOPLE)
    signs = np.where(rng.random(PEOPLE) < RAISED, 1.0, -1.0)
    shared = [c for c in population.columns if not model.space.is_sensitive(c.attribute)]
    apart, best = _values(model, people, columns, neurons, signs)
    for _ in range(ROUNDS):
        if time.monotonic() >= deadline or not shared:
            break
        moved = people.copy()
        for row in range(PEOPLE):
            column = shared[rng.integers(len(shared))]
            moved[row, model.space.columns_of(column.attribute)] = _move(column, rng)
        with_derived(model.space, moved)
        now_apart, found = _values(model, moved, columns, neurons, signs)
        better = (now_apart > apart) | ((now_apart == apart) & (found > best))
        people[better], best[better] = moved[better], found[better]
        apart |= now_apart
        if (apart & (best > 0)).any():
            break
    chosen = people[apart & (best > 0)]
    return chosen[population.where.holds(model.space, chosen)]


def _move(column: Column, rng: np.random.Generator) -> Vector:
    """Return a random value of a column, often one of its ends."""
    to_an_end, last = rng.random() < TO_AN_END, int(rng.integers(2))
    match column:
        case Listed(codes=codes, weights=weights) if to_an_end:
            possible = np.flatnonzero(weights)
            return np.asarray(codes[possible[-last]])
        case Span(low=low, high=high) if to_an_end:
            code = np.zeros(column.attribute.width)
            code[0] = (low, high)[last]
            return code
    return np.asarray(column.draw(rng, 1)[0])


def _values(
    model: Model,
    people: Matrix,
    columns: Counts,
    neurons: Counts,
    signs: Vector,
) -> tuple[Flags, Vector]:
    """Return whose counterparts have different scores, and how near people are to unfairness."""
    twins = _twins(model, people)
    scores = model.scorer(twins)[:, 0].reshape(len(people), -1)
    scores = scores - (model.rule.threshold or 0.0)
    found = guides(model.scorer, twins, columns)
    assert found is not None
    each = found.reshape(len(people), -1, found.shape[1])[np.arange(len(people)), :, neurons]
    raised = (each * signs[:, None]).max(axis=1)
    low, high = scores.min(axis=1), scores.max(axis=1)
    sides = np.minimum(high, -low)
    equal = high - low <= EQUAL * (1.0 + np.maximum(np.abs(low), np.abs(high)))
    apart = ~equal | (sides > 0)
    return apart, np.where(apart, sides, raised)


def _twins(model: Model, people: Matrix) -> Matrix:
    """Return some counterparts of each person: the ends of all axes, and others."""
    rng = np.random.default_rng(0)
    twins = np.repeat(people, TWINS, axis=0)
    for axis in model.relation.axes:
        low, high = axis.ends
        share = rng.random(TWINS)
        share[:4] = rng.integers(0, 2, 4)
        share[:2] = (0.0, 1.0)
        coordinates = low * (1 - share) + high * share
        if not axis.real:
            coordinates = np.rint(coordinates)
        twins[:, list(axis.columns)] = np.tile(axis.codes(coordinates), (len(people), 1))
    return twins
