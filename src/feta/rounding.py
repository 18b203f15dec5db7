"""Bounds on the rounding errors of floating-point formats.

All tolerances of the program are defined here, and docs/explanation/rounding.md proves the bounds.
They hold for any order of summation, with or without fused multiply-add. They also hold if
subnormal numbers are flushed to zero, which a library compiled with -ffast-math enables for the
whole process.
"""

from dataclasses import dataclass

import numpy as np


@dataclass(frozen=True, slots=True)
class Arithmetic:
    """A floating-point format and the constants of its error bounds."""

    name: str
    unit: float  # half the distance from 1 to the next number: the relative error of one operation
    tiny: float  # twice the smallest normal number: the absolute error where numbers underflow
    huge: float  # the format may overflow beyond this
    extra: int  # roundings of a term in addition to its product and the sums

    def gamma(self, n_terms: int) -> float:
        """Bound the relative error of a sum of n products, each rounded `extra` more times.

        Higham's γ_k = k·u / (1 − k·u) with k = n + 1 + extra: one product and at most n additions,
        because the bias is one more term. The factor 2 covers the rounding of the bound itself.
        """
        share = (n_terms + 1 + self.extra) * self.unit
        return 2 * share / (1 - share) if share < 0.5 else float("inf")  # noqa: PLR2004 - no bound


# The arithmetic of FETA. One extra rounding: a table entry may itself be a rounded product.
FLOAT64 = Arithmetic("float64", 2.0**-53, 2.0**-1021, float(np.finfo(np.float64).max) / 4, 1)

# The arithmetic of a network's source. It may first round inputs and weights to the format, and
# applies scaling and batch norm step by step: eight extra roundings cover this.
SOURCE_FLOAT64 = Arithmetic("float64", 2.0**-53, 2.0**-1021, float(np.finfo(np.float64).max) / 4, 8)
SOURCE_FLOAT32 = Arithmetic("float32", 2.0**-24, 2.0**-125, float(np.finfo(np.float32).max) / 4, 8)

SOURCES = {"float32": SOURCE_FLOAT32, "float64": SOURCE_FLOAT64}

# Models whose scores can reach this size are rejected: float64 ends at 1.8e308, and error bounds
# are larger than the scores they bound.
LARGEST_ACTIVATION = 1e300

# Sigmoids are accurate to a few units in the last place; no known library needs more than eight.
SIGMOID_ULPS = 8


def sigmoid_error(threshold: float, arithmetic: Arithmetic) -> float:
    """Bound the distance from the threshold at which a rounded sigmoid can change the decision.

    The source compares p = σ(z) with σ(t), both rounded. σ' = p(1 − p), and p is rounded by up to
    SIGMOID_ULPS·unit·p, so the decision is unknown for z within SIGMOID_ULPS·unit / (1 − p). The
    factor 2 covers that σ' is not constant there. Where σ saturates, the bound is infinite.
    """
    rest = 1.0 / (1.0 + np.exp(min(threshold, 700.0)))  # 1 − p; exp(700) is still finite
    source_error = 2 * SIGMOID_ULPS * arithmetic.unit / rest
    # Beyond 0.5, σ' changes too much.
    return float(source_error) if source_error < 0.5 else float("inf")  # noqa: PLR2004


# Added to each absolute weight in an error bound, to cover products with numbers that were flushed
# to zero: at least tiny / unit of each format above, and much smaller than any relevant score.
FLOOR = 2.0**-100

# Relative error of a difference of two or three float64 numbers. It is rounded once or twice, by
# half a unit (2^-53) each; eight times as much is conservative.
DIFFERENCE = 2.0**-50

# "Optimal" promises that no counterpart's gap is larger by more than this, relative to the gap.
OPTIMAL = 1e-9

# A reader's scores must equal the source's to within this, relative to 1 + Σ|terms|. In float64,
# two correct computations differ by the order of summation only, about 1e-13 in networks of this
# size. A wrong weight changes the first digits.
AGREEMENT = 1e-9

# The same where the preprocessing rounds to float32: sixteen times half a unit.
AGREEMENT_FLOAT32 = 2.0**-20

# Two runs of a network in float32 differ more: the sums of its layers cancel, and errors add up. A
# larger bound decides fewer people near a threshold, and never anybody wrongly.
AGREEMENT_NETWORK_FLOAT32 = 2.0**-16


def upward(n_terms: int, arithmetic: Arithmetic = FLOAT64) -> float:
    """Return a factor above 1 that exceeds the rounding of a bound with n terms."""
    return 1 + (n_terms + 16) * 2 * arithmetic.unit
