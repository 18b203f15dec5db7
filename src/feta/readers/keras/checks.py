"""Keras checks: what a file must say of a layer for its numbers to mean what Keras's own layer does."""

from collections.abc import Iterator
from typing import Any, Literal

import numpy as np

from feta.arrays import Array
from feta.errors import NetworkError

Precision = Literal["float32", "float64"]

PACKAGES = ("keras", "tf_keras")
# What Keras 2 and 3 call a policy of one format.
POLICIES = ("DTypePolicy", "FloatDTypePolicy", "Policy")


def check_class(entry: dict[str, Any], where: str, *, within: str = "") -> None:
    """Refuse a class that is not Keras's own, where the file tells: its code is not in the file."""
    if "module" not in entry:
        return
    parts = str(entry["module"]).split(".")
    own = parts[0] in PACKAGES and (not within or within in parts)
    plain_names = (None, entry.get("class_name"), entry.get("config"))
    if not own or entry.get("registered_name") not in plain_names:
        told = entry.get("registered_name") or entry.get("class_name")
        what = f"one of Keras's own {within}" if within else "Keras's own"
        message = f"{where} must be {what}, got {told!r} of the module {entry['module']!r}, which is not read; export the model as ONNX: model.export('model.onnx', format='onnx')"
        raise NetworkError(message)


def check_call(node: object, where: str) -> None:
    """Refuse a layer that is called with more than its inputs, as with training=True."""
    if not all(_unset(one) for one in _settings(node)):
        raise NetworkError(
            f"{where} must be called with its inputs alone, got more, as training=True; build the model without it"
        )


def refers(nested: object) -> bool:
    """Say whether a list is a reference to a layer: its name, a node, a tensor, and maybe settings."""
    return (
        isinstance(nested, list | tuple)
        and len(nested) >= 3  # noqa: PLR2004 - name, node, tensor
        and isinstance(nested[0], str)
        and isinstance(nested[1], int)
    )


def _settings(node: object) -> Iterator[object]:
    """Find what a call was given beside its first argument, as Keras 3 or 2 writes it."""
    if isinstance(node, dict):
        yield from node.get("args", [])[1:]
        yield from node.get("kwargs", {}).values()
    elif isinstance(node, list | tuple):
        if refers(node):
            yield from (value for told in node[3:] for value in told.values())
            return
        for one in node:
            yield from _settings(one)


def _unset(value: object) -> bool:
    return value is None or value is False or (isinstance(value, list) and all(map(_unset, value)))


def policy_of(config: dict[str, Any], where: str) -> Precision | None:
    """Tell the one format that a layer stores and computes in; None where the file does not say."""
    told = config.get("dtype")
    if told is None:
        return None
    name = told
    if isinstance(told, dict):
        name = told.get("config", {}).get("name") if told.get("class_name") in POLICIES else None
    if name == "float32":
        return "float32"
    if name == "float64":
        return "float64"
    shown = told if isinstance(told, str) else name or told.get("class_name")
    raise NetworkError(
        f"{where} must store and compute in float32 or float64, got the dtype policy {shown!r}; save the model before it is quantized, with the policy 'float32'"
    )


def check_numbers(
    arrays: tuple[Array, ...], policy: Precision | None, where: str
) -> Precision | None:
    """Refuse weights that are no finite floating numbers of the layer's format, and tell the format."""
    for array in arrays:
        if array.dtype.name not in ((policy,) if policy else ("float32", "float64")):
            expected = policy or "float32 or float64"
            raise NetworkError(
                f"{where} must have weights of {expected}, got {array.dtype.name}; save the model before it is quantized"
            )
        if not np.isfinite(array).all():
            raise NetworkError(
                f"{where} must have finite weights, got one that is infinite or not a number; train the model again"
            )
    if policy or not arrays:
        return policy
    return "float64" if all(one.dtype == np.float64 for one in arrays) else "float32"
