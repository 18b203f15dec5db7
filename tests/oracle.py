"""The oracle: fairness by its definition, in exact fractions; simple code, never optimized.

It lists counterparts from the attributes themselves and encodes their values itself. It uses
neither axes nor lattices nor relations, so it detects their mistakes.
"""

from fractions import Fraction
from itertools import product

import numpy as np

from feta.arrays import Vector
from feta.model import Model
from feta.rule import Argmax, OneVsRest, Rule, Threshold, Tolerance
from feta.scorer.network.activation import Activation
from feta.space.attribute import (
    OTHER,
    Attribute,
    Categorical,
    Derived,
    Integer,
    Levels,
    Real,
    Value,
)
from feta.space.feature_space import FeatureSpace
from feta.space.vote_weights import VoteWeights


def counterparts(model: Model, person: Vector) -> list[Vector]:
    """List all combinations of sensitive values; the first attribute changes slowest."""
    attributes = model.space.attributes
    sensitive = [a for a in attributes if not isinstance(a, Derived) and a.sensitive]
    rows = []
    for values in product(*(values_of(attribute) for attribute in sensitive)):
        row = np.array(person)
        for attribute, value in zip(sensitive, values, strict=True):
            _write(row, attributes, attribute, columns_of_value(attribute, value))
            for other in attributes:
                if isinstance(other, Derived) and other.source == attribute.name:
                    _write(row, attributes, other, columns_of_band(other, value))
        rows.append(row)
    return rows


def values_of(attribute: Attribute) -> list[Value]:
    """List the values of a finite attribute; None is the missing value."""
    match attribute:
        case Categorical(values=values, missing=missing, other=other):
            return [*values, *[OTHER] * other, *[None] * missing]
        case Integer(low=low, high=high, missing=missing):
            return [*range(low, high + 1), None] if missing else [*range(low, high + 1)]
        case Levels(numbers=numbers, missing=missing):
            return [*numbers, None] if missing else [*numbers]
        case _:
            raise AssertionError(f"{attribute.name} has no list of values")


def columns_of_value(attribute: Attribute, value: Value) -> list[float]:
    """Encode one value: a category by one column per value, a number by itself and a flag."""
    if isinstance(attribute, Categorical):
        return [float(value == other) for other in values_of(attribute)]
    numbers = [number for number in values_of(attribute) if number is not None]
    number = min(numbers, key=float) if value is None else value
    if None in values_of(attribute):
        return [float(number), float(value is None)]
    return [float(number)]


def columns_of_band(derived: Derived, value: Value) -> list[float]:
    """Encode the band that a number falls into."""
    assert isinstance(value, int | float)
    return [float(low <= value <= high) for _, low, high in derived.bands]


def _write(
    row: Vector, attributes: tuple[Attribute, ...], attribute: Attribute, columns: list[float]
) -> None:
    """Write the columns of one attribute; they follow those of all attributes before it."""
    start = 0
    for before in attributes[: attributes.index(attribute)]:
        if isinstance(before, Derived):
            start += len(before.bands)
        elif isinstance(before, Categorical):
            start += len(before.values) + before.other + before.missing
        else:
            start += 1 + before.missing
    for offset, column in enumerate(columns):
        row[start + offset] = column


def scores(model: Model, person: Vector) -> list[Fraction]:
    first = model.network.first
    values = [Fraction(float(bias)) for bias in first.bias]
    for neuron in range(len(values)):
        values[neuron] += sum(
            Fraction(float(w)) * Fraction(float(x))
            for w, x in zip(first.slopes[neuron], person, strict=True)
            if w and x
        )
        for table in first.tables:
            index = table.numbers.tolist().index(person[table.column])
            values[neuron] += Fraction(float(table.rows[index, neuron]))
    for activation, layer in model.network.steps:
        activated = [activate(activation, neuron, value) for neuron, value in enumerate(values)]
        values = [
            sum(
                (Fraction(float(w)) * a for w, a in zip(row, activated, strict=True) if w),
                Fraction(float(b)),
            )
            for row, b in zip(layer.weight, layer.bias, strict=True)
        ]
    return values


def score(model: Model, person: Vector) -> Fraction:
    return scores(model, person)[0]


def activate(activation: Activation, neuron: int, value: Fraction) -> Fraction:
    column = neuron if activation.width > 1 else 0
    piece = sum(value >= Fraction(float(at)) for at in activation.breaks[:, column])
    slope, intercept = activation.slopes[piece, column], activation.intercepts[piece, column]
    return Fraction(float(slope)) * value + Fraction(float(intercept))


def decide(model: Model, person: Vector) -> int:
    return decision(model.rule, scores(model, person))


def decision(rule: Rule, values: list[Fraction]) -> int:
    """Return the decision for these scores."""
    match rule:
        case Threshold(value=value, favors=favors, equality=equality):
            if values[0] == Fraction(value):
                return int(equality == "favorable")
            return int((values[0] > Fraction(value)) == (favors == "above"))
        case Argmax():
            return values.index(max(values))
        case OneVsRest(classes=classes, chosen=chosen):
            return int(classes[values.index(max(values))] == chosen)
        case _:
            raise AssertionError(f"{rule} makes no decisions")


def differs(model: Model, person: Vector, other: Vector) -> bool:
    if isinstance(model.rule, Tolerance):
        distance = abs(score(model, person) - score(model, other))
        return distance > Fraction(model.rule.epsilon)
    return decide(model, person) != decide(model, other)


def span(model: Model, person: Vector) -> Fraction:
    """Return the highest score of all counterparts minus the lowest."""
    values = [score(model, other) for other in counterparts(model, person)]
    return max(values) - min(values)


def is_fair(model: Model, person: Vector) -> bool:
    if isinstance(model.rule, Tolerance):
        return span(model, person) <= Fraction(model.rule.epsilon)
    return not any(differs(model, person, other) for other in counterparts(model, person))


def gap(model: Model, person: Vector, other: Vector) -> Fraction:
    """Return the margin by which the other gets a different decision; regression: the distance."""
    return margin(model.rule, scores(model, person), scores(model, other))


def margin(rule: Rule, own: list[Fraction], theirs: list[Fraction]) -> Fraction:
    """Return the gap between a person with these scores and a counterpart."""
    if isinstance(rule, Threshold | Tolerance):
        return abs(theirs[0] - own[0])
    reference = decision(rule, own)
    if isinstance(rule, Argmax):
        return max(value - theirs[reference] for k, value in enumerate(theirs) if k != reference)
    assert isinstance(rule, OneVsRest)
    chosen = rule.classes.index(rule.chosen)
    lead = theirs[chosen] - max(value for k, value in enumerate(theirs) if k != chosen)
    return -lead if reference == 1 else lead


def worst_gap(model: Model, person: Vector) -> Fraction | None:
    if isinstance(model.rule, Tolerance):
        return None if is_fair(model, person) else span(model, person)
    others = [other for other in counterparts(model, person) if differs(model, person, other)]
    return max((gap(model, person, other) for other in others), default=None)


def tally(model: Model, person: Vector, weights: VoteWeights | None = None) -> list[int]:
    counts = [0] * model.rule.n_classes
    for assignment_id, other in enumerate(counterparts(model, person)):
        counts[decide(model, other)] += votes_of(assignment_id, weights)
    return counts


def votes_of(assignment_id: int, weights: VoteWeights | None) -> int:
    if weights is None:
        return 1
    votes = dict(zip(weights.assignment_ids.tolist(), weights.votes.tolist(), strict=True))
    return votes.get(assignment_id, 0)


def fair_decision(
    model: Model, person: Vector, weights: VoteWeights | None = None
) -> int | Fraction:
    if isinstance(model.rule, Tolerance):
        ordered = sorted(
            score(model, other)
            for assignment_id, other in enumerate(counterparts(model, person))
            for _ in range(votes_of(assignment_id, weights))
        )
        return ordered[(len(ordered) - 1) // 2]
    counts = tally(model, person, weights)
    if isinstance(model.rule, Argmax):
        return counts.index(max(counts))
    return int(counts[1] >= counts[0])


def highest_along(model: Model, person: Vector, name: str, *, upward: bool) -> Fraction:
    """Return the highest (or lowest) score of counterparts over all real values of one number."""
    attribute = model.space.attribute(name)
    assert isinstance(attribute, Integer | Real)
    column = model.space.columns_of(attribute).start
    ends = (Fraction(attribute.low), Fraction(attribute.high))
    single = Levels(name, (float(attribute.low),), sensitive=True)  # its value is replaced below
    others = FeatureSpace(tuple(single if a is attribute else a for a in model.space.attributes))
    values = []
    for other in counterparts(Model(others, model.network, model.rule), person):
        row = [Fraction(float(number)) for number in other]
        points = _break_points(model, row, column, ends)
        values += [_layers(model, row, column, at, None)[0] for at in points]
    return max(values) if upward else min(values)


def _break_points(
    model: Model, row: list[Fraction], column: int, ends: tuple[Fraction, Fraction]
) -> list[Fraction]:
    points = list(ends)
    for depth, activation in enumerate(model.network.activations):
        values = [_layers(model, row, column, at, depth) for at in points]
        more = []
        for index in range(len(points) - 1):
            low, high = points[index], points[index + 1]
            for neuron, (left, right) in enumerate(
                zip(values[index], values[index + 1], strict=True)
            ):
                for number in activation.breaks[:, neuron if activation.width > 1 else 0]:
                    at = Fraction(float(number))
                    if min(left, right) < at < max(left, right):
                        more.append(low + (at - left) / (right - left) * (high - low))
        points = sorted({*points, *more})
    return points


def _layers(
    model: Model, row: list[Fraction], column: int, at: Fraction, depth: int | None
) -> list[Fraction]:
    """Return the inputs of an activation, or the scores, with this number in the column."""
    first = model.network.first
    moved = [at if index == column else number for index, number in enumerate(row)]
    values = [
        sum((Fraction(float(w)) * x for w, x in zip(slopes, moved, strict=True)), Fraction(0))
        + Fraction(float(bias))
        for slopes, bias in zip(first.slopes, first.bias, strict=True)
    ]
    for index, (activation, layer) in enumerate(model.network.steps):
        if index == depth:
            return values
        activated = [activate(activation, neuron, value) for neuron, value in enumerate(values)]
        values = [
            sum(
                (Fraction(float(w)) * a for w, a in zip(weights, activated, strict=True)),
                Fraction(0),
            )
            + Fraction(float(bias))
            for weights, bias in zip(layer.weight, layer.bias, strict=True)
        ]
    return values
