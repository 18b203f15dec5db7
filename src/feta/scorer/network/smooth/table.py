"""Polynomials of smooth functions, stored as constants with proved errors."""

from dataclasses import dataclass
from functools import cache
from pathlib import Path

import numpy as np

from feta.arrays import Matrix, Vector
from feta.scorer.protocol import Enclosure

CELLS_PER_UNIT = 8  # a power of two, so centers are exact
DEGREE = 11

# Where a function is a polynomial; outside it is nearly a straight line (TAILS).
RANGES = {
    "tanh": (-20, 20),
    "sigmoid": (-40, 40),
    "silu": (-40, 40),
    "gelu": (-10, 10),
    "gelu_tanh": (-8, 8),
    "mish": (-44, 22),
    "softplus": (-40, 40),
    "expm1": (-40, 0),
}


@dataclass(frozen=True, slots=True)
class Tail:
    """A straight line, and the largest distance of the function from it."""

    slope: float
    intercept: float
    error: float


# Left and right. The distances decrease outward: they are at most (1 + |x|)·e^-|x|, or e^-2|x| for
# tanh, (1 + |x|)·e^(-x²/2) for both forms of gelu. A test compares the ends with Arb.
TAILS = {
    "tanh": (Tail(0, -1, 1e-17), Tail(0, 1, 1e-17)),
    "sigmoid": (Tail(0, 0, 5e-18), Tail(0, 1, 5e-18)),
    "silu": (Tail(0, 0, 2e-16), Tail(1, 0, 2e-16)),
    "gelu": (Tail(0, 0, 1e-21), Tail(1, 0, 1e-21)),
    "gelu_tanh": (Tail(0, 0, 1e-19), Tail(1, 0, 1e-19)),
    "mish": (Tail(0, 0, 5e-18), Tail(1, 0, 5e-18)),
    "softplus": (Tail(0, 0, 5e-18), Tail(1, 0, 5e-18)),
    "expm1": (Tail(0, -1, 5e-18), Tail(1, 0, 0.0)),  # the right one is never used
}


@dataclass(frozen=True, slots=True, eq=False)
class Table:
    """A function as polynomials."""

    low: float
    high: float
    coefficients: Matrix  # (degrees, cells)
    errors: Vector  # of each cell
    tails: tuple[Tail, Tail]

    def at(self, values: Matrix) -> Enclosure:
        """Enclose the function of each number; NaN stays NaN, with the error NaN."""
        inside = np.clip(np.nan_to_num(values), self.low, np.nextafter(self.high, self.low))
        cells = ((inside - self.low) * CELLS_PER_UNIT).astype(np.int64)
        np.minimum(cells, len(self.errors) - 1, out=cells)
        rest = inside - (self.low + (cells + 0.5) / CELLS_PER_UNIT)
        result = self.coefficients[-1][cells]
        for coefficients in self.coefficients[-2::-1]:
            result = result * rest + coefficients[cells]
        errors = self.errors[cells]
        for tail, beyond in zip(self.tails, (values < self.low, values >= self.high), strict=True):
            if beyond.any():
                result = np.where(beyond, tail.slope * values + tail.intercept, result)
                errors = np.where(beyond, tail.error, errors)
        unknown = np.isnan(values)
        return Enclosure(np.where(unknown, np.nan, result), np.where(unknown, np.nan, errors))


@cache
def table(name: str) -> Table:
    """Return a function's table."""
    with np.load(Path(__file__).with_name("tables.npz"), allow_pickle=False) as stored:
        coefficients, errors = stored[f"{name}.coefficients"], stored[f"{name}.errors"]
    low, high = RANGES[name]
    return Table(low, high, coefficients, errors, TAILS[name])
