"""Rounding: what each floating-point format can get wrong, and by how much at most.

Every tolerance of the program is here. All bounds hold for any order of summation, with or without
fused multiply-add, and whether tiny numbers are kept or flushed to zero (a library compiled with
-ffast-math switches that for a whole process).
"""

from dataclasses import dataclass

import numpy as np


@dataclass(frozen=True, slots=True)
class Arithmetic:
    """A floating-point format and how it is used: the constants of its error bounds."""

    name: str
    unit: float  # half the distance from 1 to the next number: the relative error of one operation
    tiny: float  # twice the smallest normal number: the absolute error where numbers underflow
    huge: float  # beyond this the format overflows
    extra: int  # roundings a term may suffer besides its own product and the additions

    def gamma(self, n_terms: int) -> float:
        """Bound the relative error of a sum of n products, each term rounded `extra` times more.

        Higham's γ_k = k·u / (1 − k·u) with k = n + 1 + extra: a product, at most n additions (the
        bias is one more term). Doubled, which also covers the rounding of the bound itself.
        """
        share = (n_terms + 1 + self.extra) * self.unit
        return 2 * share / (1 - share) if share < 0.5 else float("inf")  # noqa: PLR2004 - no bound beyond


# FETA's own arithmetic. One extra rounding: a table entry that was itself a rounded product.
FLOAT64 = Arithmetic("float64", 2.0**-53, 2.0**-1021, float(np.finfo(np.float64).max) / 4, 1)

# What the source of a network computes with. Inputs and weights may be rounded to the format first,
# scaling and batch norm are done step by step there: eight more roundings cover them.
SOURCE_FLOAT64 = Arithmetic("float64", 2.0**-53, 2.0**-1021, float(np.finfo(np.float64).max) / 4, 8)
SOURCE_FLOAT32 = Arithmetic("float32", 2.0**-24, 2.0**-125, float(np.finfo(np.float32).max) / 4, 8)

SOURCES = {"float32": SOURCE_FLOAT32, "float64": SOURCE_FLOAT64}

# A score of this size or more is refused when a model is made: float64 ends at 1.8e308, and error
# bounds need room above the scores they bound.
LARGEST_ACTIVATION = 1e300

# Sigmoids are accurate to a few units in the last place; eight is more than any library needs.
SIGMOID_ULPS = 8


def sigmoid_error(threshold: float, arithmetic: Arithmetic) -> float:
    """Bound how far from the threshold a rounded sigmoid can still confuse the two sides.

    The source compares p = σ(z) with σ(t), both rounded. σ' = p(1 − p), and p is rounded by up to
    SIGMOID_ULPS·unit·p, so z within SIGMOID_ULPS·unit / (1 − p) is in doubt; doubled, because σ' is
    not constant there. Where σ saturates the answer is infinity: every score is in doubt.
    """
    rest = 1.0 / (1.0 + np.exp(min(threshold, 700.0)))  # 1 − p; exp(700) is still finite
    source_error = 2 * SIGMOID_ULPS * arithmetic.unit / rest
    return float(source_error) if source_error < 0.5 else float("inf")  # noqa: PLR2004 - beyond, σ' changes too much


# Added to every absolute weight in an error bound, so that products with numbers flushed to zero are
# covered: at least tiny / unit of every format above, and far below any score that matters.
FLOOR = 2.0**-100

# Added, relative to their sizes, where two or three float64 numbers are subtracted: a difference is
# rounded once or twice, by half a unit (2^-53) each; eight times as much is on the safe side.
DIFFERENCE = 2.0**-50

# "Optimal" promises that no counterpart's gap is larger by more than this, relative to the gap.
OPTIMAL = 1e-9

# A reader's scores must equal the source's to within this, relative to 1 + Σ|terms|. In float64 two
# correct computations differ by summation order only, about 1e-13 in networks of this size; a wrong
# weight shows in the first digits.
AGREEMENT = 1e-9

# The same where preprocessing itself rounds to float32: sixteen times half a unit there.
AGREEMENT_FLOAT32 = 2.0**-20


def upward(n_terms: int) -> float:
    """Give a factor above 1 that outweighs the rounding of a bound with n terms."""
    return 1 + (n_terms + 16) * 2.0**-52
