"""Compiled: a network handed over to the kernel in src/native/, for whoever asks it something."""

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

try:
    native: Any = import_module("feta._native")
except ImportError:  # installed without a compiler
    native = None

# PERFORMANCE.md, "engine exhaustive" divided by "engine lattice, a batch".
SLOWER = "about 6 times slower on Law School (6 counterparts per person), 460 times on German credit (456) and 180 times on UCI Adult (212,380)"

BUILD = "install a C++20 compiler and CMake, then run `pip install --force-reinstall --no-deps .` in the source folder, or `pip install --force-reinstall --no-deps --no-binary feta-fair feta-fair`"

MISSING = f"FETA's compiled kernel is missing: answers stay exact, but finite lattices are {SLOWER}; {BUILD}"

# What the kernel takes: longer axes would take it seconds to split, and numbers are 64 bits; sums of
# two counts must fit as well.
LONGEST_AXIS = 4096
MAX_COUNTERPARTS = 2**62

# The kernel computes in float32, which ends at 3e38; sums of products must stay far below.
LARGEST_ACTIVATION = 1e30


@cache  # once per process
def warn_without_kernel() -> None:
    """Warn that answers take longer, at the first use that would have taken the kernel."""
    warnings.warn(MISSING, RuntimeWarning, stacklevel=3)


@dataclass(frozen=True, slots=True, eq=False)
class RealAxis:
    """A sensitive number that takes every value of its range, and its slope in the first layer."""

    low: float
    high: float
    slopes: Vector


# What one sensitive attribute adds to the first layer: each value's terms and their sizes, or a line.
Axis = tuple[Matrix, Matrix] | RealAxis


def fits(network: Network, magnitudes: Vector) -> bool:
    """Say whether float32 can hold the network over a space."""
    sizes = [largest.max() for largest in largest_activations(network, magnitudes)]
    weights = [np.abs(layer.weight).max() for layer in network.layers]
    slopes = np.abs(network.first.slopes).max(initial=0.0)
    cancelled_magnitude = [
        network.first.cancelled_magnitude.max(),
        *(layer.cancelled_magnitude.max() for layer in network.layers),
    ]
    return all(one < LARGEST_ACTIVATION for one in (*sizes, *weights, *cancelled_magnitude, slopes))


def fits_line(low: float, high: float) -> bool:
    """Say whether a real-valued attribute's range can be cut into pieces."""
    return high - low < LARGEST_ACTIVATION


def kernel_of(network: Network, axes: Sequence[Axis], *, source_error: float = 0.0) -> Any:  # noqa: ANN401 - compiled
    """Hand over the layers; a rule, if any, is still to be set, and `finish` to be called."""
    first, arithmetic = network.first, network.arithmetic
    kernel = native.Kernel(
        first.bias, first.cancelled_magnitude + np.zeros(first.outputs), first.width
    )
    for axis in axes:
        if isinstance(axis, RealAxis):
            kernel.add_real_axis(axis.low, axis.high, np.ascontiguousarray(axis.slopes))
        else:
            kernel.add_axis(*map(np.ascontiguousarray, axis))
    for activation, layer in network.steps:
        bends = (activation.breaks, activation.slopes, activation.intercepts)
        kernel.add_layer(
            *bends, layer.weight, layer.bias, layer.cancelled_magnitude + np.zeros_like(layer.bias)
        )
    kernel.set_source(
        arithmetic.unit, arithmetic.tiny, arithmetic.huge, arithmetic.extra, source_error
    )
    return kernel
