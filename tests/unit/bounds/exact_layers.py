"""Exact values of layers, and fractions of float64 numbers."""

from collections.abc import Iterable
from fractions import Fraction
from typing import SupportsFloat

import numpy as np
from numpy.typing import NDArray

import feta
from feta.arrays import Vector
from feta.interval_box import IntervalBox
from feta.model import Model
from tests import oracle

# Bounds are computed in float64. They may exceed their formula by this, relative to it.
ROUNDING = Fraction(1, 10**9)


def fraction(number: SupportsFloat) -> Fraction:
    return Fraction(float(number))


def fractions(numbers: Iterable[float]) -> list[Fraction]:
    return [fraction(number) for number in numbers]


def dot(left: Iterable[Fraction], right: Iterable[Fraction]) -> Fraction:
    return sum((a * b for a, b in zip(left, right, strict=True)), Fraction(0))


def is_barely_above(number: SupportsFloat, exact: Fraction) -> bool:
    """Return whether a bound is not below its formula in exact arithmetic, and not far above."""
    return exact <= fraction(number) <= exact * (1 + ROUNDING)


def eighths(rng: np.random.Generator, *shape: int) -> NDArray[np.float64]:
    """Draw numbers in eighths: float64 computes their sums and products without rounding."""
    return rng.integers(-16, 17, shape) / 8


def layers_of(model: Model, person: Vector) -> list[list[Fraction]]:
    """Return the exact inputs of each activation, then the scores."""
    network, values = model.network, []
    for depth in range(len(network.layers) + 1):
        cut = feta.Network(network.first, network.activations[:depth], network.layers[:depth])
        rule = feta.Argmax(tuple(str(n) for n in range(cut.outputs))) if cut.outputs > 1 else None
        part = Model(model.space, cut, rule) if rule else Model(model.space, cut)
        values.append(oracle.scores(part, person))
    return values


def contains(box: IntervalBox, row: int, values: list[Fraction]) -> bool:
    pairs = zip(box.lower[row], values, box.upper[row], strict=True)
    return all(fraction(low) <= value <= fraction(high) for low, value, high in pairs)
