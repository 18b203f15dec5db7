"""Reading of a model and of a certificate: plain arrays, checked against the stated digests."""

import hashlib
import json
import lzma
from collections.abc import Callable
from dataclasses import dataclass
from fractions import Fraction
from itertools import product
from math import prod
from pathlib import Path
from typing import Any

import numpy as np

# Arrays of NumPy; their shapes are stated in docstrings.
Array = Any

MOST_BYTES, MOST_VALUES, MOST_COMBINATIONS, LONGEST_TABLE = 2**29, 2**22, 64, 4096
UNIT = 2.0**-53
DESCRIBED = {"version", "space", "rule", "outcomes", "network", "fingerprints", "table"}
STATED = {"format", "version", "model", "schema", "population", "digest", "tree", "claims"}
TYPES = {"F64": "<f8", "I64": "<i8", "I8": "i1", "U8": "u1"}


class Refused(Exception):
    """The certificate is not accepted: damaged, another model, or more than this can check."""


def expect(valid: bool, problem: str) -> None:
    """Refuse with a problem."""
    if not valid:
        raise Refused(problem)


@dataclass(frozen=True)
class Axis:
    """A column of people: numbers with a slope, or the terms of listed values.

    `ends` are cumulative weights; real numbers have none.
    """

    slope: Array
    rows: Array
    start: float  # the number of the first value
    low: float
    high: float
    ends: Array
    size: Array
    exact: Callable[[float], list[Fraction]]  # the terms of a value, without rounding

    def trim(self, low: float, high: float) -> tuple[float, float]:
        """Leave out values at both ends that nobody has."""
        if self.ends is None:
            return low, high
        first = int(np.searchsorted(self.ends, self.ends[int(low)], side="right")) - 1
        last = int(np.searchsorted(self.ends, self.ends[int(high) + 1], side="left")) - 1
        return float(first), float(last)


@dataclass(frozen=True)
class Claim:
    """What a certificate states, with the model as arrays."""

    header: dict[str, Any]
    tree: bytes
    axes: list[Axis]
    constant: Array
    combinations: Array
    exact_combinations: list[list[Fraction]]
    combined_size: Array  # bounds the sum of the absolute sensitive terms of each neuron
    layers: list[tuple[Array, ...]]  # breaks, slopes, intercepts, weight, bias
    threshold: float
    ties_above: bool  # whether a score on the threshold gets the decision of higher scores


def read(model: Path, certificate: Path) -> Claim:
    """Read both files."""
    unpacker = lzma.LZMADecompressor()
    unpacked = unpacker.decompress(certificate.read_bytes(), MOST_BYTES)
    expect(unpacker.eof and not unpacker.unused_data, "the file is too long, or ends early")
    line, _, tree = unpacked.partition(b"\n")
    header = json.loads(line)
    expect(header["format"] == "feta-everybody" and header["version"] == 1, "another format")
    content = model.read_bytes()
    digest = hashlib.sha256(content).hexdigest()
    expect(digest == header["model"], "the certificate belongs to another model")
    expect(hashlib.sha256(tree).hexdigest() == header["tree"], "another tree")
    population = json.dumps(header["population"], sort_keys=True).encode()
    expect(hashlib.sha256(population).hexdigest() == header["digest"], "another population")
    size = int.from_bytes(content[:8], "little")
    entries = json.loads(content[8 : 8 + size])
    about = json.loads(entries.pop("__metadata__")["feta-model"])
    expect(set(about) <= DESCRIBED and "network" in about, "this kind of model is not checked")
    data = content[8 + size :]
    arrays = {}
    for name, entry in entries.items():
        start, end = entry["data_offsets"]
        arrays[name] = np.frombuffer(data[start:end], TYPES[entry["dtype"]]).reshape(entry["shape"])
        expect(bool(np.isfinite(arrays[name]).all()), "the model has numbers that are not finite")
    schema = about["fingerprints"]["space"]
    expect(set(header) == STATED and header["schema"] == schema, "another schema, or other fields")
    smooth = any(name.endswith(".parameter") for name in arrays)
    expect(about["rule"]["kind"] == "Threshold" and not smooth, "no threshold, or smooth steps")
    parts = ("breaks", "slopes", "intercepts", "weight", "bias")
    n_layers = len(about["network"]["activations"])
    layers = [tuple(arrays[f"layer{k}.{part}"] for part in parts) for k in range(n_layers)]
    outputs = len(layers[-1][4]) if layers else len(arrays["first.bias"])
    expect(outputs == 1, "more than one score")
    for breaks, slopes, starts, _, _ in layers:  # a jump would be outside of all lines
        left, right = slopes[:-1] * breaks + starts[:-1], slopes[1:] * breaks + starts[1:]
        expect(bool((left == right).all()), "an activation that is not exactly continuous")
    axes, rows, exact, size = _axes(about["space"], about["network"]["tables"], arrays, header)
    rule = about["rule"]
    ties = (rule["favors"] == "above") == (rule["equality"] == "favorable")
    expect(rule["equality"] in ("favorable", "unfavorable"), "ties without a decision")
    value = float(rule["value"])
    first = arrays["first.bias"]
    return Claim(header, tree, axes, first, rows, exact, size, layers, value, ties)


def _codes(entry: dict[str, Any], given: dict[str, Any]) -> tuple[Array, bool]:
    """Return the codes of all values of a column, and whether it is real-valued."""
    kind, missing = entry["kind"], bool(entry.get("missing"))
    if kind == "category":
        return np.eye(len(entry["values"]) + missing + bool(entry.get("other"))), False
    expect(kind in ("integer", "levels", "number"), f"a column of the kind {kind!r}")
    if kind == "number" and "numbers" not in given:
        expect(not missing, "a real-valued column that may be missing")
        return np.array([[entry["low"]], [entry["high"]]], dtype=float), True
    if kind == "integer":
        expect(entry["high"] - entry["low"] < MOST_VALUES, "too long a column")
        numbers = np.arange(entry["low"], entry["high"] + 1, dtype=float)
    else:
        listed = entry["numbers"] if kind == "levels" else given["numbers"]
        numbers = np.array(listed, dtype=float)
        expect(bool((np.diff(numbers) > 0).all()), "numbers that do not ascend")
        expect(kind == "levels" or entry["low"] <= numbers[0], "numbers outside of the schema")
        expect(kind == "levels" or numbers[-1] <= entry["high"], "numbers outside of the schema")
    if not missing:
        return numbers[:, None], False
    flags = np.append(np.zeros(len(numbers)), 1.0)
    lowest = entry["low"] if kind == "number" else numbers[0]
    return np.stack([np.append(numbers, lowest), flags], axis=1), False


def _axes(  # noqa: PLR0915 - one column after the other
    space: list[dict[str, Any]], tabled: list[int], arrays: dict[str, Any], header: dict[str, Any]
) -> tuple[list[Axis], Array, list[list[Fraction]], Array]:
    """Return the shared columns as axes, and the terms of all combinations of sensitive values.

    The last result bounds the absolute terms of which these are the sums.
    """
    slopes, tables = arrays["first.slopes"], dict(zip(tabled, range(len(tabled)), strict=True))
    axes, sensitive, every, start = list[Axis](), list[Any](), list[list[list[Fraction]]](), 0
    population, combined_size = header["population"], np.zeros(len(slopes))
    plain = population["kind"] == "uniform" and not population["condition"]
    for entry in space:
        given = population["columns"].get(entry["name"], {})
        expect(not (plain and given), "weights of people who are counted equally")
        codes, real = _codes(entry, given)
        columns = range(start, start + codes.shape[1])
        start += codes.shape[1]
        listed = [c for c in columns if c in tables]
        rows = None
        size: Array = None
        simple = (entry["kind"] == "integer" and codes.shape[1] == 1) or real
        if listed or not simple:
            expect(not real and len(codes) <= LONGEST_TABLE, "a table of too many values")
            rows = codes @ slopes[:, columns].T
            size = np.abs(codes) @ np.abs(slopes[:, columns]).T
            for c in listed:
                numbers, stored = (arrays[f"table{tables[c]}.{x}"] for x in ("numbers", "rows"))
                at = np.searchsorted(numbers, codes[:, c - columns[0]])
                expect(bool((numbers[at] == codes[:, c - columns[0]]).all()), "unknown value")
                rows, size = rows + stored[at], size + np.abs(stored[at])
            size = size.max(axis=0)
        slope = slopes[:, columns[0]]
        if rows is None:
            size = np.abs(slope) * np.abs(codes).max()
        if entry.get("sensitive"):
            expect(not real, "a sensitive real number")
            combined_size += size
            sensitive.append(codes * slope if rows is None else rows)
            every.append([_exact(codes[i], columns, arrays, tables) for i in range(len(codes))])
            continue
        ends = None
        low, high = 0.0, len(codes) - 1.0
        if real:
            low, high = given.get("span", [entry["low"], entry["high"]])
            expect(entry["low"] <= low <= high <= entry["high"], "a range outside of the schema")
        else:
            runs = given.get("runs", [[1, len(codes)]])
            expect(sum(int(count) for _, count in runs) == len(codes), "invalid weights")
            weights = np.repeat(
                *(np.array(part, dtype=np.int64) for part in zip(*runs, strict=True))
            )
            expect(len(weights) == len(codes) and weights.min() >= 0, "invalid weights")
            expect(0 < sum(map(int, weights.tolist())) < 2**62, "invalid weights")
            ends = np.concatenate([[0], np.cumsum(weights)])
        first = 0.0 if real or rows is not None else float(entry["low"])

        def exact(
            at: float, codes: Array = codes, columns: range = columns, real: bool = real
        ) -> list[Fraction]:
            row = np.array([at]) if real else codes[int(at)]
            return _exact(row, columns, arrays, tables)

        kind = slope if rows is None else None
        axis = Axis(kind, rows, first, low, high, ends, size, exact)
        axes.append(Axis(kind, rows, first, *axis.trim(low, high), ends, size, exact))
    expect(start == slopes.shape[1] and bool(sensitive), "columns that do not fit the network")
    expect(prod(map(len, sensitive)) <= MOST_COMBINATIONS, "too many combinations")
    combined = [sum(rows) for rows in product(*sensitive)]
    listed_exactly = [
        [sum(terms, start=Fraction(0)) for terms in zip(*rows, strict=True)]
        for rows in product(*every)
    ]
    return axes, np.array(combined), listed_exactly, combined_size


def _exact(
    codes: Array, columns: range, arrays: dict[str, Any], tables: dict[int, int]
) -> list[Fraction]:
    """Return the terms of a value in fractions."""
    total = [Fraction(0)] * len(arrays["first.bias"])
    for code, column in zip(codes.tolist(), columns, strict=True):
        slopes = arrays["first.slopes"][:, column].tolist()
        total = [
            t + Fraction(code) * Fraction(slope) for t, slope in zip(total, slopes, strict=True)
        ]
        if column in tables:
            numbers = arrays[f"table{tables[column]}.numbers"]
            row = arrays[f"table{tables[column]}.rows"][int(np.searchsorted(numbers, code))]
            total = [t + Fraction(x) for t, x in zip(total, row.tolist(), strict=True)]
    return total
