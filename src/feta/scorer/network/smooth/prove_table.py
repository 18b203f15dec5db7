"""Polynomials of smooth functions with proved errors, in Arb's ball arithmetic (extra `smooth`).

`scripts/make_smooth_tables` stores them; a test proves stored cells again.
"""

import numpy as np
from flint import arb, arb_series

from feta.arrays import Matrix, Vector
from feta.scorer.network.smooth.arb_functions import FORMULAS, working_precision
from feta.scorer.network.smooth.table import CELLS_PER_UNIT, DEGREE, RANGES

# Coefficients up to this degree are computed at the center; the next one bounds the remainder over
# the whole cell, where its balls are wide, but its factor is 2^-96.
LONG = 24
PARTS = 8

PRECISION = 256

# A cell is evaluated up to 2^-40 beyond its ends, because the index of a cell is rounded.
STRETCH = arb(1) + arb(2) ** -40

# No bound may underflow.
SMALLEST = 2.0**-1000


def proved_table(name: str) -> tuple[Matrix, Vector]:
    """Return the coefficients (degrees, cells) and the error bounds of all cells of a function."""
    n_cells = _n_cells(name)
    cells = [proved_cell(name, cell) for cell in range(n_cells)]
    return np.array([found for found, _ in cells]).T.copy(), np.array([error for _, error in cells])


def proved_cell(name: str, cell: int) -> tuple[Vector, float]:
    """Return the coefficients of one cell, and a bound on the error of their evaluation."""
    with working_precision(PRECISION, terms=LONG + 1):
        center = arb(RANGES[name][0]) + arb(2 * cell + 1) / (2 * CELLS_PER_UNIT)
        exact = _series(name, center, LONG)
        coefficients = np.array([float(exact[k].mid()) for k in range(DEGREE + 1)])
        return coefficients, error_bound(name, cell, coefficients)


def error_bound(name: str, cell: int, coefficients: Vector) -> float:
    """Bound the distance between the float64 evaluation of coefficients and the function."""
    with working_precision(PRECISION, terms=LONG + 1):
        center = arb(RANGES[name][0]) + arb(2 * cell + 1) / (2 * CELLS_PER_UNIT)
        half = STRETCH / (2 * CELLS_PER_UNIT)
        exact = _series(name, center, LONG)
        total = _remainder(name, center, half)
        size = arb(0)
        for k in range(LONG):
            stored = arb(float(coefficients[k])) if k <= DEGREE else arb(0)
            total += abs(exact[k] - stored) * half**k
            # Horner's rule rounds a term 2k + 1 times, and x − c once for each of its k factors.
            size += (3 * k + 2) * abs(stored) * half**k
        total += size * arb(2) ** -53
        return float(np.nextafter(float(total.upper()), np.inf)) + SMALLEST


def _remainder(name: str, center: "arb", half: "arb") -> "arb":
    """Bound what the terms from the degree LONG on add, from balls that cover the cell."""
    width = half / PARTS
    parts = [center - half + (2 * part + 1) * width for part in range(PARTS)]
    largest = max(
        float(abs(_series(name, arb(0, width) + middle, LONG + 1)[LONG]).upper())
        for middle in parts
    )
    return arb(np.nextafter(largest, np.inf)) * half**LONG


def _series(name: str, center: "arb", length: int) -> list["arb"]:
    series = FORMULAS[name](arb_series([center, 1], prec=length))
    assert series.prec >= length  # a shorter series would have zeros instead of coefficients
    return [series[k] for k in range(length)]


def _n_cells(name: str) -> int:
    low, high = RANGES[name]
    return (high - low) * CELLS_PER_UNIT
