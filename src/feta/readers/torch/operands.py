"""Operands of a traced call: values that depend on the input, and constants."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from feta.arrays import Matrix
from feta.errors import NetworkError
from feta.scorer.network.branches import Branch, BranchesError

Node = Any  # a node of torch.fx, or a number among a call's arguments
Values = Mapping[Any, Any]  # what each node so far gives: signals, TRUNK, an array, or None

ARITHMETIC = {"add", "sub", "mul", "truediv", "div", "neg", "rsub"}


@dataclass(frozen=True)
class _Trunk:
    """The single output of all layers so far."""


TRUNK = _Trunk()


def is_value(argument: object, values: Values) -> bool:
    """Return whether an argument depends on the module's input."""
    if isinstance(argument, int | float | slice | str | tuple | list):
        return False
    value = values.get(argument)
    return value is TRUNK or isinstance(value, list | Branch)


def number_of(argument: Node, values: Values, where: str) -> float:
    """Return an argument that is a number, or a tensor of the module with one number."""
    number = argument if isinstance(argument, int | float) else values.get(argument)
    if number is None or is_value(argument, values) or np.size(number) != 1:
        raise NetworkError(
            f"{where} takes an unsupported argument: got {argument}; expected one fixed number"
        )
    return float(np.ravel(number)[0])


def read_affine(
    node: Node, name: str, *, values: Values, width: int, where: str
) -> tuple[Matrix, Matrix]:
    """Return one factor and one shift per column for value + c, c − value, value · c and so on."""
    if name == "neg":
        return np.full(width, -1.0), np.zeros(width)
    first, second = operands_of(node, where)
    swapped = is_value(second, values)
    if (name in ("truediv", "div") and swapped) or (swapped and is_value(first, values)):
        raise BranchesError(_not_constant_message(where))
    constant = _constant_of(first if swapped else second, values, width, where)
    ones = np.ones(width)
    match name:
        case "add":
            return ones, constant
        case "sub":
            return (-ones, constant) if swapped else (ones, -constant)
        case "rsub":
            return -ones, constant
        case "mul":
            return constant, 0 * ones
        case _:
            if (constant == 0).any():
                raise NetworkError(f"{where} divides by 0")
            return 1 / constant, 0 * ones


def operands_of(node: Node, where: str) -> tuple[Node, Node]:
    """Return the operands of a call that takes two, and nothing else."""
    options = dict(zip(("input", "other"), node.args, strict=False)) | node.kwargs
    if set(options) != {"input", "other"}:
        raise NetworkError(
            f"{where} takes unsupported arguments: got {', '.join(options)}; "
            "expected input and other only"
        )
    return options["input"], options["other"]


def _constant_of(argument: Node, values: Values, width: int, where: str) -> Matrix:
    """Return a constant argument, one number per column."""
    number = argument if isinstance(argument, int | float) else values.get(argument)
    if number is None or is_value(argument, values):
        raise BranchesError(_not_constant_message(where))
    flat = np.ravel(np.asarray(number, dtype=np.float64))
    if flat.size not in (1, width):
        raise NetworkError(
            f"{where} has a constant of the wrong size: got {flat.size} numbers; "
            f"expected 1 or {width}"
        )
    if not np.isfinite(flat).all():
        raise NetworkError(
            f"{where} has constants that are not finite: got {flat.tolist()}; "
            "expected finite numbers"
        )
    return np.broadcast_to(flat, (width,)).astype(np.float64)


def _not_constant_message(where: str) -> str:
    return (
        f"{where} does not combine a value with a constant; products and quotients of two values "
        "that depend on the input are not supported"
    )
