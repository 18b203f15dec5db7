"""ONNX operators that are smooth activations."""

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import numpy as np

from feta.errors import NetworkError
from feta.readers.onnx.fuse import SILU
from feta.readers.onnx.state import GraphState, options_of
from feta.scorer.network.smooth.activation import SELU_ALPHA, SELU_SCALE, Smooth

if TYPE_CHECKING:
    import onnx

Reader = Callable[[GraphState, "onnx.NodeProto", str], None]

# Defaults of the operators; attributes are float32 numbers.
SELU_DEFAULTS = {"alpha": float(np.float32(SELU_ALPHA)), "gamma": float(np.float32(SELU_SCALE))}


def _plain(name: str) -> Reader:
    def read(state: GraphState, node: "onnx.NodeProto", where: str) -> None:
        options_of(node, {})
        state.builder.activate(Smooth(name), where)

    return read


def _scaled(name: str) -> Reader:
    """Read s·f(x / s), if there is a second input s."""

    def read(state: GraphState, node: "onnx.NodeProto", where: str) -> None:
        options_of(node, {})
        _activate_scaled(state, node, Smooth(name), where)

    return read


def _activate_scaled(state: GraphState, node: "onnx.NodeProto", step: Smooth, where: str) -> None:
    if len(node.input) == 1:
        state.builder.activate(step, where)
        return
    scale = float(state.finite_constant(node.input[1], where).item())
    zeros = np.zeros(state.width)
    state.builder.scale(np.full(state.width, 1 / scale), zeros, state.width)
    state.builder.activate(step, where)
    state.builder.scale(np.full(state.width, scale), zeros, state.width)


def _with_alpha(name: str) -> Reader:
    def read(state: GraphState, node: "onnx.NodeProto", where: str) -> None:
        alpha = options_of(node, {"alpha": 1.0})["alpha"]
        state.builder.activate(Smooth(name, float(alpha)), where)

    return read


def _selu(state: GraphState, node: "onnx.NodeProto", where: str) -> None:
    options: dict[str, Any] = options_of(node, SELU_DEFAULTS)
    if options != SELU_DEFAULTS:
        raise NetworkError(
            f"{where} has unusual constants: got {options}; expected {SELU_DEFAULTS}"
        )
    # With these constants in float32, it is another function than SELU in float64.
    state.builder.activate(Smooth("elu", options["alpha"]), where)
    width = state.width
    state.builder.scale(np.full(width, options["gamma"]), np.zeros(width), width)


def _gelu(state: GraphState, node: "onnx.NodeProto", where: str) -> None:
    forms = [
        attribute.s.decode() for attribute in node.attribute if attribute.name == "approximate"
    ]
    form = forms[0] if forms else "none"
    if form not in ("none", "tanh") or len(forms) != len(node.attribute):
        raise NetworkError(
            f"{where} has an unsupported form: got {form!r}; expected 'none' or 'tanh'"
        )
    _activate_scaled(state, node, Smooth("gelu_tanh" if form == "tanh" else "gelu"), where)


SMOOTH_READERS: dict[str, Reader] = {
    "Celu": _with_alpha("celu"),
    "Elu": _with_alpha("elu"),
    "Gelu": _gelu,
    SILU: _plain("silu"),
    "HardSwish": _scaled("hardswish"),
    "Mish": _plain("mish"),
    "Selu": _selu,
    "Softplus": _plain("softplus"),
    "Softsign": _plain("softsign"),
    "Tanh": _plain("tanh"),
}
