"""Checks that the description of a layer means what Keras's own layer computes."""

from collections.abc import Iterator
from typing import Any, Literal

import numpy as np

from feta.arrays import Array
from feta.errors import NetworkError

Precision = Literal["float32", "float64"]

PACKAGES = ("keras", "tf_keras")

# Names of a policy with one format, in Keras 2 and 3.
POLICIES = ("DTypePolicy", "FloatDTypePolicy", "Policy")

# What to do about a model whose code is not in the file.
EXPORT = "export the model as ONNX: model.export('model.onnx', format='onnx')"


def check_class(entry: dict[str, Any], where: str, *, within: str = "") -> None:
    """Reject a class that is not Keras's own, if the file shows it: its code is not in the file."""
    if "module" not in entry:
        return
    parts = str(entry["module"]).split(".")
    is_keras = parts[0] in PACKAGES and (not within or within in parts)
    plain_names = (None, entry.get("class_name"), entry.get("config"))
    if not is_keras or entry.get("registered_name") not in plain_names:
        name = entry.get("registered_name") or entry.get("class_name")
        raise NetworkError(
            f"{where} is not one of Keras's own {within or 'classes'}: "
            f"got {name!r} of the module {entry['module']!r}, whose code is not in the file; "
            f"{EXPORT}"
        )


def check_call(node: object, where: str) -> None:
    """Reject a layer that is called with more than its inputs, such as training=True."""
    if not all(_is_unset(argument) for argument in _extra_arguments(node)):
        raise NetworkError(
            f"{where} is called with further arguments, such as training=True; "
            "expected its inputs alone; build the model without them"
        )


def is_reference(nested: object) -> bool:
    """Return whether a list refers to a layer: name, node, tensor, and possibly arguments."""
    return (
        isinstance(nested, list | tuple)
        and len(nested) >= 3  # noqa: PLR2004 - name, node, tensor
        and isinstance(nested[0], str)
        and isinstance(nested[1], int)
    )


def _extra_arguments(node: object) -> Iterator[object]:
    """Yield the arguments of a call after the first, as Keras 3 or 2 writes them."""
    if isinstance(node, dict):
        yield from node.get("args", [])[1:]
        yield from node.get("kwargs", {}).values()
    elif isinstance(node, list | tuple):
        if is_reference(node):
            yield from (value for arguments in node[3:] for value in arguments.values())
            return
        for item in node:
            yield from _extra_arguments(item)


def _is_unset(value: object) -> bool:
    return (
        value is None or value is False or (isinstance(value, list) and all(map(_is_unset, value)))
    )


def policy_of(config: dict[str, Any], where: str) -> Precision | None:
    """Return the one format in which a layer stores and computes; None if the file omits it."""
    policy = config.get("dtype")
    if policy is None:
        return None
    name = policy
    if isinstance(policy, dict):
        is_single = policy.get("class_name") in POLICIES
        name = policy.get("config", {}).get("name") if is_single else None
    if name == "float32":
        return "float32"
    if name == "float64":
        return "float64"
    shown = policy if isinstance(policy, str) else name or policy.get("class_name")
    raise NetworkError(
        f"{where} has an unsupported dtype policy: got {shown!r}; expected 'float32' or "
        "'float64'; save the model before it is quantized, with the policy 'float32'"
    )


def check_numbers(
    arrays: tuple[Array, ...], policy: Precision | None, where: str
) -> Precision | None:
    """Return the format of a layer's weights; reject other formats and numbers not finite."""
    for array in arrays:
        if array.dtype.name not in ((policy,) if policy else ("float32", "float64")):
            expected = policy or "float32 or float64"
            raise NetworkError(
                f"{where} has weights of an unsupported format: got {array.dtype.name}; "
                f"expected {expected}; save the model before it is quantized"
            )
        if not np.isfinite(array).all():
            raise NetworkError(
                f"{where} has weights that are not finite: got an infinite number or NaN; "
                "expected finite numbers; train the model again"
            )
    if policy or not arrays:
        return policy
    return "float64" if all(array.dtype == np.float64 for array in arrays) else "float32"
