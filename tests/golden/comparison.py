"""Comparison of results with recorded ones: numbers within a tolerance, everything else exactly."""

import math
from collections.abc import Iterator, Mapping
from typing import Any

Json = Any

# Keys of audit.json that are not compared, wherever they occur: versions, times, and numbers of
# another program (onnxruntime).
OMITTED = {"feta", "seconds", "latency", "function", "largest_difference"}

# Keys whose texts are wording. Lists are compared by their length, mappings by their keys.
WORDING = {"doubts", "notes", "reason", "files", "question_changes"}


def without_wording(value: Json) -> Json:
    """Return a JSON value without versions, times and wording."""
    if isinstance(value, Mapping):
        return {
            key: _shape(part) if key in WORDING else without_wording(part)
            for key, part in value.items()
            if key not in OMITTED
        }
    if isinstance(value, list | tuple):
        return [without_wording(part) for part in value]
    return value


def _shape(value: Json) -> Json:
    if isinstance(value, Mapping):
        return sorted(value)
    if isinstance(value, list):
        return f"{len(value)} texts"
    return "a text" if value else ""


def differences(
    got: Json, expected: Json, *, tolerance: float = 1e-9, path: str = ""
) -> Iterator[str]:
    """Describe each difference between two JSON values, with its path."""
    if isinstance(got, Mapping) and isinstance(expected, Mapping):
        for key in sorted({*got, *expected}):
            if key not in got or key not in expected:
                yield f"{path}/{key}: only in {'expected' if key in expected else 'results'}"
            else:
                yield from differences(
                    got[key], expected[key], tolerance=tolerance, path=f"{path}/{key}"
                )
    elif isinstance(got, list) and isinstance(expected, list) and len(got) == len(expected):
        for place, (left, right) in enumerate(zip(got, expected, strict=True)):
            yield from differences(left, right, tolerance=tolerance, path=f"{path}/{place}")
    elif not _is_same(got, expected, tolerance):
        yield f"{path}: got {got!r}; expected {expected!r}"


def _is_same(got: Json, expected: Json, tolerance: float) -> bool:
    if isinstance(got, float) and isinstance(expected, float):
        if math.isnan(got) and math.isnan(expected):
            return True
        return math.isclose(got, expected, rel_tol=tolerance, abs_tol=tolerance)
    return type(got) is type(expected) and bool(got == expected)
