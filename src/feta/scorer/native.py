"""The compiled module `feta._native`, and what to say if it is missing."""

import warnings
from functools import cache
from importlib import import_module
from typing import Any

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


def is_built() -> bool:
    """Return whether the kernel was compiled."""
    return native is not None


@cache  # once per process
def warn_without_kernel() -> None:
    """Warn that results take longer, at the first use that would need the kernel."""
    warnings.warn(MISSING, RuntimeWarning, stacklevel=3)
