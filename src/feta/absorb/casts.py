"""Casts to float32 or float64 as steps of a pipeline.

A cast to float32 rounds once. Where all values of a raw column are float32 numbers, it changes
nothing. A finite column with other values becomes a table of the cast values. A real column, or a
number that was scaled before, keeps its slope; the cast is a rounding of the source, which the
bound on the source's error covers.
"""

import functools
import inspect
import operator
from collections.abc import Callable
from types import FunctionType
from typing import Any

import numpy as np

from feta.absorb.feature import Feature, nonlinear
from feta.space.attribute import Attribute, Integer, Levels
from feta.space.feature_space import FeatureSpace

Cast = type[np.float32] | type[np.float64]

# Integers up to this are float32 numbers.
LARGEST_SINGLE_INTEGER = 2**24

# A finite column with more values keeps its slope.
MAX_LISTED = 2**16

# Functions of NumPy that copy an array, with another type if that is given.
COPIES: tuple[object, ...] = (
    np.array,
    np.asarray,
    np.asanyarray,
    np.ascontiguousarray,
    np.asfortranarray,
    np.ndarray.astype,
)

# Options of these functions that do not change numbers.
NEUTRAL = {"copy", "order"}

# The usual ways to write a cast. Another function with the same code is the same cast.
WRITTEN: tuple[tuple[Callable[..., Any], Cast], ...] = (
    (lambda rows: rows.astype(np.float32), np.float32),
    (lambda rows: rows.astype("float32"), np.float32),
    (lambda rows: np.asarray(rows, dtype=np.float32), np.float32),
    (lambda rows: np.array(rows, dtype=np.float32), np.float32),
    (lambda rows: np.asarray(rows, np.float32), np.float32),
    (lambda rows: np.array(rows, np.float32), np.float32),
    (lambda rows: np.asarray(rows).astype(np.float32), np.float32),
    (lambda rows: np.asarray(rows).astype("float32"), np.float32),
    (lambda rows: np.float32(rows), np.float32),
    (lambda rows: rows.astype(np.float64), np.float64),
    (lambda rows: rows.astype(float), np.float64),
    (lambda rows: rows.astype("float64"), np.float64),
)


def cast_of(function: object, options: dict[str, Any] | None = None) -> Cast | None:
    """Return the type to which a function casts all its cells; None if it may do anything else."""
    given = dict(options or {})
    if isinstance(function, functools.partial):
        return None if function.args else cast_of(function.func, {**function.keywords, **given})
    if function in (np.float32, np.float64):
        return _cast(function) if not given else None
    if any(function is copy for copy in COPIES) or _is_frame_astype(function):
        return _cast(given.pop("dtype", None)) if set(given) <= {"dtype", *NEUTRAL} else None
    if given:
        return None
    if isinstance(function, operator.methodcaller):
        return _called_method(function)
    return _written(function) if isinstance(function, FunctionType) else None


def _cast(kind: object) -> Cast | None:
    """Return the type that a name or a type stands for."""
    try:
        dtype = np.dtype(kind) if kind is not None else None  # type: ignore[call-overload]
    except TypeError:
        return None
    if dtype == np.float32:
        return np.float32
    return np.float64 if dtype == np.float64 else None


def _is_frame_astype(function: object) -> bool:
    import pandas as pd  # noqa: PLC0415 - import feta stays light

    return function is pd.DataFrame.astype


def _called_method(function: operator.methodcaller) -> Cast | None:
    """Return the cast of `methodcaller("astype", kind)`."""
    parts: tuple[Any, ...] = tuple(function.__reduce__())
    if parts[0] is not operator.methodcaller or len(parts[1]) != 2:  # noqa: PLR2004 - name and type
        return None
    name, kind = parts[1]
    return _cast(kind) if name == "astype" else None


def _written(function: FunctionType) -> Cast | None:
    """Return the cast of a function whose code equals one of the usual ways to write it."""
    for template, cast in WRITTEN:
        assert isinstance(template, FunctionType)
        if _same_code(function, template):
            return cast
    return None


def _same_code(function: FunctionType, template: FunctionType) -> bool:
    """Return whether two functions do the same: equal code, constants, and names of globals."""
    one, other = function.__code__, template.__code__
    facts = ("co_code", "co_consts", "co_argcount", "co_kwonlyargcount", "co_freevars")
    if any(getattr(one, fact) != getattr(other, fact) for fact in facts):
        return False
    if (one.co_flags ^ other.co_flags) & ~inspect.CO_NESTED:
        return False
    if function.__defaults__ or len(one.co_names) != len(other.co_names):
        return False
    pairs = zip(one.co_names, other.co_names, strict=True)
    return all(_same_name(function, name, wanted) for name, wanted in pairs)


def _same_name(function: FunctionType, name: str, wanted: str) -> bool:
    scope = function.__globals__
    if wanted == "np":
        return scope.get(name) is np
    return name == wanted and (name != "float" or "float" not in scope)


def single(space: FeatureSpace, feature: Feature, where: str) -> Feature:
    """Return a feature after a cast to float32."""
    if not feature.linear or feature.opaque:
        return feature.rounded(1)
    attributes = [space.attribute(name) for name in feature.columns]
    raw = feature.roundings == 0 and len(attributes) == 1
    if raw and _fits(attributes[0]):
        return feature
    if raw and _is_short(attributes[0]):
        return nonlinear(space, feature, where)
    return feature.rounded(1)


def _fits(attribute: Attribute) -> bool:
    """Return whether all numbers of a column are float32 numbers."""
    if isinstance(attribute, Integer):
        return max(abs(attribute.low), abs(attribute.high)) <= LARGEST_SINGLE_INTEGER
    if not isinstance(attribute, Levels):
        return False
    numbers = np.asarray(attribute.numbers, dtype=np.float64)
    with np.errstate(over="ignore"):
        return bool((numbers.astype(np.float32).astype(np.float64) == numbers).all())


def _is_short(attribute: Attribute) -> bool:
    return isinstance(attribute, Integer | Levels) and attribute.n_values <= MAX_LISTED
