"""The Open Inference Protocol (KServe V2): one tensor per raw column."""

from collections.abc import Mapping
from http import HTTPStatus
from typing import Any

from feta.serve.decisions import DecidedPeople, decide_records
from feta.serve.limits import LIMITS
from feta.serve.refusal import Refusal
from feta.serve.served import Served
from feta.space.attribute import Attribute, Categorical, Derived, Integer

NUMBERS = {"FP64", "FP32", "INT64", "INT32", "INT16", "INT8", "UINT32", "UINT16", "UINT8"}


def metadata_of(served: Served) -> dict[str, Any]:
    """Return the tensors that a request has; sensitive ones are neither required nor read."""
    attributes = {attribute.name: attribute for attribute in served.model.space.attributes}
    return {
        "name": served.name,
        "versions": [served.digest],
        "platform": "feta",
        "inputs": [
            {"name": name, "datatype": _datatype(attributes[name]), "shape": [-1]}
            for name in served.required
        ],
        "outputs": [{"name": "decision", "datatype": _answer_type(served), "shape": [-1]}],
    }


def infer(served: Served, body: object) -> tuple[dict[str, Any], DecidedPeople]:
    """Decide the people of a request; a row that cannot be decided refuses the request."""
    if not isinstance(body, dict):
        raise _invalid("the request", type(body).__name__, "an object with `inputs`")
    records = _records(served, body)
    decided = decide_records(served, records)
    if decided.refused:
        first = decided.refused[0]
        raise Refusal(
            HTTPStatus.BAD_REQUEST,
            f"row {first.row}: {first.why}",
            refused=[row.content for row in decided.refused],
        )
    output = {
        "name": "decision",
        "datatype": _answer_type(served),
        "shape": [len(records)],
        "data": decided.names,
    }
    answer: dict[str, Any] = {
        "model_name": served.name,
        "model_version": served.digest,
        "outputs": [output],
    }
    if isinstance(body.get("id"), str):
        answer["id"] = body["id"]
    return answer, decided


def _records(served: Served, body: Mapping[str, Any]) -> list[dict[str, object]]:
    inputs = body.get("inputs")
    if not isinstance(inputs, list) or not inputs:
        raise _invalid("`inputs`", inputs, "a list of tensors, one per column")
    columns: dict[str, list[object]] = {}
    for tensor in inputs:
        name, data = _tensor(tensor)
        if name in columns:
            raise _invalid("a tensor", f"{name!r} twice", "one tensor per column")
        columns[name] = data
    lengths = {len(data) for data in columns.values()}
    if len(lengths) != 1:
        raise _invalid("tensors", f"the lengths {sorted(lengths)}", "tensors of one length")
    if lengths.pop() > LIMITS.people:
        raise _invalid("a request", f"more than {LIMITS.people:,} people", "fewer")
    whole = _integer_columns(served)
    for name in whole & columns.keys():
        columns[name] = [_as_integer(value) for value in columns[name]]
    return [dict(zip(columns, row, strict=True)) for row in zip(*columns.values(), strict=True)]


def _tensor(tensor: object) -> tuple[str, list[object]]:
    """Return name and values of a tensor of one column, in the shape (n) or (n, 1)."""
    if not isinstance(tensor, dict) or not isinstance(tensor.get("name"), str):
        raise _invalid("a tensor", type(tensor).__name__, "an object with name, shape and data")
    name, data, shape = tensor["name"], tensor.get("data"), tensor.get("shape")
    if not isinstance(data, list):
        raise _invalid(f"the data of {name[:100]!r}", type(data).__name__, "a list")
    if data and all(isinstance(cell, list) and len(cell) == 1 for cell in data):
        data = [cell[0] for cell in data]
    if shape not in ([len(data)], [len(data), 1]):
        raise _invalid(f"the shape of {name[:100]!r}", shape, f"[{len(data)}], as in data")
    if tensor.get("datatype") not in {"BYTES", "BOOL", *NUMBERS}:
        raise _invalid(f"the datatype of {name[:100]!r}", tensor.get("datatype"), "BYTES or FP64")
    return name, data


def _integer_columns(served: Served) -> set[str]:
    """Return the categories that are integers: FP64 tensors may hold them as 3.0."""
    return {
        a.name
        for a in served.model.space.attributes
        if isinstance(a, Categorical) and any(type(value) is int for value in a.values)
    }


def _as_integer(value: object) -> object:
    return int(value) if isinstance(value, float) and value.is_integer() else value


def _datatype(attribute: Attribute) -> str:
    match attribute:
        case Categorical() if all(type(value) is bool for value in attribute.values):
            return "BOOL"
        case Categorical() if all(type(value) is int for value in attribute.values):
            return "INT64"
        case Categorical() | Derived():
            return "BYTES"
        case Integer(missing=False):
            return "INT64"
        case _:
            return "FP64"


def _answer_type(served: Served) -> str:
    return "BYTES" if served.model.rule.tolerance is None else "FP64"


def _invalid(what: str, got: object, expected: str) -> Refusal:
    shown = str(got)[:200]
    return Refusal(HTTPStatus.BAD_REQUEST, f"invalid {what}: got {shown}; expected {expected}")
