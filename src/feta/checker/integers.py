"""Conversion of float64 numbers to integers times a power of two, without rounding."""

import numpy as np
from numpy.typing import ArrayLike

from feta.dyadic import Dyadic
from feta.errors import CertificateError


def exact(values: ArrayLike) -> Dyadic:
    """Convert float64 numbers exactly.

    The power of two is the largest one, at most 1, of which all numbers are multiples. So 0 and 1
    remain 0 and 1, and integers that are multiplied layer by layer remain short.
    """
    array = np.asarray(values, dtype=np.float64)
    if not np.isfinite(array).all():
        raise CertificateError(
            "invalid number in what is re-checked: got NaN or infinity; expected finite numbers"
        )
    ratios = [number.as_integer_ratio() for number in array.ravel().tolist()]
    largest = max((denominator for _, denominator in ratios), default=1)
    numerators = [numerator * (largest // denominator) for numerator, denominator in ratios]
    exponent = 1 - largest.bit_length()  # a denominator is a power of two
    return Dyadic(np.array(numerators, dtype=object).reshape(array.shape), exponent)
