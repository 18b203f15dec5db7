"""The oracle: fairness by the book, in fractions; twenty dull lines that nobody optimises."""

from fractions import Fraction
from itertools import product

import numpy as np

from feta.arrays import Matrix, Vector
from feta.model import Model
from feta.network.activation import Activation


def counterparts(model: Model, person: Vector) -> list[Vector]:
    rows = []
    for values in product(*(range(len(axis)) for axis in model.space.lattice.axes)):
        row = np.array(person)
        for axis, value in zip(model.space.lattice.axes, values, strict=True):
            row[list(axis.columns)] = axis.codes(np.array([value]))[0]
        rows.append(row)
    return rows


def score(model: Model, person: Vector) -> Fraction:
    first = model.network.first
    values = [Fraction(float(bias)) for bias in first.bias]
    for neuron in range(len(values)):
        values[neuron] += sum(
            Fraction(float(w)) * Fraction(float(x))
            for w, x in zip(first.slopes[neuron], person, strict=True)
        )
        for table in first.tables:
            place = table.numbers.tolist().index(person[table.column])
            values[neuron] += Fraction(float(table.rows[place, neuron]))
    for activation, layer in model.network.steps:
        bent = [bend(activation, neuron, value) for neuron, value in enumerate(values)]
        values = [
            sum(
                (Fraction(float(w)) * a for w, a in zip(row, bent, strict=True)), Fraction(float(b))
            )
            for row, b in zip(layer.weight, layer.bias, strict=True)
        ]
    return values[0]


def bend(activation: Activation, neuron: int, value: Fraction) -> Fraction:
    column = neuron if activation.width > 1 else 0
    piece = sum(value >= Fraction(float(at)) for at in activation.breaks[:, column])
    slope, intercept = activation.slopes[piece, column], activation.intercepts[piece, column]
    return Fraction(float(slope)) * value + Fraction(float(intercept))


def decide(model: Model, person: Vector) -> bool:
    distance = score(model, person) - Fraction(model.rule.value)
    if distance == 0:
        return model.rule.equality == "favorable"
    return (distance > 0) == (model.rule.favors == "above")


def is_fair(model: Model, person: Vector) -> bool:
    return len({decide(model, other) for other in counterparts(model, person)}) == 1


def worst_gap(model: Model, person: Vector) -> Fraction:
    own, mine = decide(model, person), score(model, person)
    apart = [other for other in counterparts(model, person) if decide(model, other) != own]
    return max((abs(score(model, other) - mine) for other in apart), default=Fraction(0))


def tally(model: Model, person: Vector) -> tuple[int, int]:
    decisions = [decide(model, other) for other in counterparts(model, person)]
    return sum(decisions), len(decisions) - sum(decisions)


def fair_decision(model: Model, person: Vector) -> bool:
    favorable, unfavorable = tally(model, person)
    return favorable >= unfavorable


def all_scores(model: Model, people: Matrix) -> list[Fraction]:
    return [score(model, person) for person in people]
