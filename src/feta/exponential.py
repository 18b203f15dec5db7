"""The exponential function with proved error bounds, the same on every machine.

The functions of the C library and of numpy round differently on different machines. These use
additions and products only, whose rounding is defined.
"""

from decimal import Decimal, localcontext
from fractions import Fraction
from math import factorial

import numpy as np

from feta.arrays import Matrix

# Logarithms below this count as this: e^-700 is no multiple of any grade.
LOWEST = -700.0

# ln 2 = LN2_HIGH + LN2_LOW; the first has 42 bits, so that products with exponents are exact.
LN2_HIGH = float.fromhex("0x1.62e42fefa38p-1")
LN2_LOW = float.fromhex("0x1.ef35793c7673p-45")

# Taylor's series; its remainder is below 2^-60 for |x| ≤ ln 2 / 2.
TERMS = tuple(1.0 / factorial(power) for power in range(15))

# Relative error of `exponentials`, and of a quotient of sums of up to 127 of them, including the
# rounding of differences down to -700 before: below 2^-42.
RELATIVE_ERROR = 2.0**-40


# Of `power_of_e`: the reduced exponent is below 2^-8, and the guard covers the growth of errors.
HALVINGS = 21
GUARD = 40


def exponentials(logarithms: Matrix) -> Matrix:
    """Return e^x for x ≤ 0."""
    x = np.maximum(logarithms, LOWEST)
    exponents = np.rint(x / (LN2_HIGH + LN2_LOW))
    rest = (x - exponents * LN2_HIGH) - exponents * LN2_LOW
    series = np.full_like(rest, TERMS[-1])
    for term in TERMS[-2::-1]:
        series = series * rest + term
    return np.asarray(np.ldexp(series, exponents.astype(np.int64)))


def power_of_e(exponent: Fraction, bits: int) -> int:
    """Return e^exponent · 2^bits for −2^13 < exponent ≤ 0, with an error below 2.

    The series of e^r for r = exponent / 2^HALVINGS is squared HALVINGS times. One operation has an
    error of at most one unit, 2^-(bits + GUARD), and a square doubles the error. There are fewer
    than bits + GUARD terms, so the guard covers all of it; the last shift rounds down.
    """
    unit = bits + GUARD + bits.bit_length()
    rest = (exponent.numerator << unit) // (exponent.denominator << HALVINGS)
    total = term = 1 << unit
    count = 0
    while term not in (0, -1):  # floors of small numbers end at one of these
        count += 1
        term = (term * rest >> unit) // count
        total += term
    for _ in range(HALVINGS):
        total = total * total >> unit
    return total >> (unit - bits)


def softmax_bounds(scores: list[Fraction], digits: int) -> tuple[list[Fraction], Fraction]:
    """Return the probabilities of exact scores, and a bound on the error of each."""
    highest = max(scores)
    with localcontext() as context:
        context.prec = digits
        powers = [_power(max(score - highest, Fraction(int(LOWEST) * 10))) for score in scores]
        total = sum(powers, Decimal(0))
        # Arguments have at most four digits before the point, and there are at most 127 sums.
        return [Fraction(power / total) for power in powers], Fraction(1, 10 ** (digits - 8))


def _power(logarithm: Fraction) -> Decimal:
    return (Decimal(logarithm.numerator) / Decimal(logarithm.denominator)).exp()
