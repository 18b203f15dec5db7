"""Networks passed to the compiled kernel in `src/native/`."""

import warnings
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache
from importlib import import_module
from typing import Any

import numpy as np

from feta.arrays import Matrix, Vector
from feta.scorer.network.error_bounds import largest_activations
from feta.scorer.network.network import Network
from feta.scorer.protocol import Scorer

try:
    native: Any = import_module("feta._native")
except ImportError:  # installed without a compiler
    native = None

# PERFORMANCE.md, "engine exhaustive" divided by "engine lattice, a batch".
SLOWER = (
    "about 6 times slower on Law School (6 counterparts per person), 460 times on German credit "
    "(456) and 180 times on UCI Adult (212,380)"
)

BUILD = (
    "install a C++20 compiler and CMake, then run `pip install --force-reinstall --no-deps .` in "
    "the source folder, or `pip install --force-reinstall --no-deps --no-binary feta-fair "
    "feta-fair`"
)

MISSING = (
    "FETA's compiled kernel is missing: results are still exact, but finite lattices are "
    f"{SLOWER}; {BUILD}"
)

# Limits of the kernel. It would take seconds to split longer axes. Counts have 64 bits, and so do
# sums of two counts.
LONGEST_AXIS = 4096
MAX_COUNTERPARTS = 2**62

# The kernel uses float32, which ends at 3e38; sums of products must be much smaller.
LARGEST_ACTIVATION = 1e30


@cache  # once per process
def warn_without_kernel() -> None:
    """Warn that results take longer, at the first use that would need the kernel."""
    warnings.warn(MISSING, RuntimeWarning, stacklevel=3)


@dataclass(frozen=True, slots=True, eq=False)
class RealTerms:
    """A real-valued sensitive attribute: its range, and its slopes in the first layer."""

    low: float
    high: float
    slopes: Vector


# The first-layer terms of one sensitive attribute: each value's terms and sizes, or slopes.
AxisTerms = tuple[Matrix, Matrix] | RealTerms


def fits(scorer: Scorer, magnitudes: Vector) -> bool:
    """Return whether it is a network, and float32 can represent all its values over a space."""
    if not isinstance(scorer, Network):
        return False
    network = scorer
    sizes = [largest.max() for largest in largest_activations(network, magnitudes)]
    weights = [np.abs(layer.weight).max() for layer in network.layers]
    slopes = np.abs(network.first.slopes).max(initial=0.0)
    magnitudes_cancelled = [
        network.first.cancelled_magnitude.max(),
        *(layer.cancelled_magnitude.max() for layer in network.layers),
    ]
    largest_values = (*sizes, *weights, *magnitudes_cancelled, slopes)
    return all(value < LARGEST_ACTIVATION for value in largest_values)


def fits_line(low: float, high: float) -> bool:
    """Return whether the kernel can split the range of a real-valued attribute."""
    return high - low < LARGEST_ACTIVATION


def kernel_of(network: Network, axes: Sequence[AxisTerms], *, source_error: float = 0.0) -> Any:  # noqa: ANN401 - compiled
    """Return a kernel with the layers of a network.

    The caller sets a rule, if any, and calls `finish`.
    """
    first, arithmetic = network.first, network.arithmetic
    kernel = native.Kernel(
        first.bias, first.cancelled_magnitude + np.zeros(first.outputs), first.width
    )
    for axis in axes:
        if isinstance(axis, RealTerms):
            kernel.add_real_axis(axis.low, axis.high, np.ascontiguousarray(axis.slopes))
        else:
            kernel.add_axis(*map(np.ascontiguousarray, axis))
    for activation, layer in network.steps:
        pieces = (activation.breaks, activation.slopes, activation.intercepts)
        kernel.add_layer(
            *pieces, layer.weight, layer.bias, layer.cancelled_magnitude + np.zeros_like(layer.bias)
        )
    kernel.set_source(
        arithmetic.unit, arithmetic.tiny, arithmetic.huge, arithmetic.extra, source_error
    )
    return kernel
