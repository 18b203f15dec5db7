"""Comparison of results with recorded ones: numbers within a tolerance, everything else exactly."""

import math
from collections.abc import Iterator, Mapping
from typing import Any

Json = Any

# Keys of audit.json that are not compared, wherever they occur: versions, times, numbers of
# another program (onnxruntime), and statistics whose last digits depend on the processor.
OMITTED = {"feta", "seconds", "latency", "function", "largest_difference", "proxies"}

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
    actual: Json, expected: Json, *, tolerance: float = 1e-9, path: str = ""
) -> Iterator[str]:
    """Describe each difference between two JSON values, with its path."""
    if isinstance(actual, Mapping) and isinstance(expected, Mapping):
        for key in sorted({*actual, *expected}):
            if key not in actual or key not in expected:
                yield f"{path}/{key}: only in {'expected' if key in expected else 'results'}"
            else:
                yield from differences(
                    actual[key], expected[key], tolerance=tolerance, path=f"{path}/{key}"
                )
    elif isinstance(actual, list) and isinstance(expected, list) and len(actual) == len(expected):
        for index, (actual_item, expected_item) in enumerate(zip(actual, expected, strict=True)):
            yield from differences(
                actual_item, expected_item, tolerance=tolerance, path=f"{path}/{index}"
            )
    elif not _is_same(actual, expected, tolerance):
        yield f"{path}: got {actual!r}; expected {expected!r}"


def _is_same(actual: Json, expected: Json, tolerance: float) -> bool:
    if isinstance(actual, float) and isinstance(expected, float):
        if math.isnan(actual) and math.isnan(expected):
            return True
        return math.isclose(actual, expected, rel_tol=tolerance, abs_tol=tolerance)
    return type(actual) is type(expected) and bool(actual == expected)
