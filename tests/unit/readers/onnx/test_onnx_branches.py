"""ONNX files with branches, and with activations written as several operators."""

import pytest

pytest.importorskip("torch", reason="torch is not installed")
pytest.importorskip("onnxscript", reason="onnxscript is not installed")

import copy
import logging
import warnings
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import onnx
import torch
from numpy.typing import ArrayLike
from onnx import TensorProto, helper, numpy_helper
from torch import nn

from feta import NetworkError, read_onnx
from feta.scorer.network.smooth.activation import Smooth
from tests.unit.readers.torch.test_torch_branches import MODULES, seeded

ROWS = np.random.default_rng(2).normal(size=(40, 4)) * 3


def export(module: nn.Module, path: Path, opset: int, *, dynamo: bool = False) -> Path:
    """Export a module in single precision."""
    file = path / "model.onnx"
    options: dict[str, Any] = {"dynamo": dynamo, "opset_version": opset}
    if dynamo:
        options |= {"dynamic_shapes": ({0: torch.export.Dim("rows")},), "verbose": False}
        options["external_data"] = False
    else:
        options |= {"input_names": ["x"], "dynamic_axes": {"x": {0: "rows"}}}
    logging.disable(logging.WARNING)
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            torch.onnx.export(module.float().eval(), (torch.randn(2, 4),), str(file), **options)
    finally:
        logging.disable(logging.NOTSET)
    return file


@pytest.mark.parametrize(
    ("name", "opset"), [*zip(MODULES, (13, 14, 15, 16, 17, 18), strict=True), ("towers", 20)]
)
def test_exported_branches_are_read(name: str, opset: int, tmp_path: Path) -> None:
    module = seeded(MODULES[name])
    network = read_onnx(export(copy.deepcopy(module), tmp_path, opset))
    scores = network(ROWS)
    with torch.no_grad():
        own = module(torch.from_numpy(ROWS)).numpy()
    if name == "wide and deep":
        scores = 1 / (1 + np.exp(-scores))
    if name == "towers":
        scores = np.exp(scores) / np.exp(scores).sum(axis=1, keepdims=True)
    np.testing.assert_allclose(scores, own, rtol=1e-5, atol=1e-5)


SMOOTH: dict[str, tuple[Callable[[], nn.Module], str]] = {
    "gelu": (nn.GELU, "gelu"),
    "silu": (nn.SiLU, "silu"),
    "mish": (nn.Mish, "mish"),
    "hardswish": (nn.Hardswish, "hardswish"),
    "softsign": (nn.Softsign, "softsign"),
    "selu": (nn.SELU, "elu"),
    "softplus": (nn.Softplus, "softplus"),
}


@pytest.mark.parametrize("name", SMOOTH)
@pytest.mark.parametrize("opset", [13, 20])
def test_smooth_activations_of_torch_are_recognized(name: str, opset: int, tmp_path: Path) -> None:
    torch.manual_seed(3)
    build, expected = SMOOTH[name]
    module = nn.Sequential(nn.Linear(4, 5), build(), nn.Linear(5, 3), build(), nn.Linear(3, 1))
    network = read_onnx(export(module, tmp_path, opset))
    smooth = [step.name for step in network.activations if isinstance(step, Smooth)]
    assert smooth == [expected, expected]
    with torch.no_grad():
        own = module.double()(torch.from_numpy(ROWS)).numpy()
    np.testing.assert_allclose(network(ROWS), own, rtol=1e-6, atol=1e-6)


def test_the_newer_exporter_is_read(tmp_path: Path) -> None:
    module = seeded(MODULES["residual"])
    network = read_onnx(export(copy.deepcopy(module), tmp_path, 18, dynamo=True))
    with torch.no_grad():
        own = module(torch.from_numpy(ROWS)).numpy()
    np.testing.assert_allclose(network(ROWS), own, rtol=1e-5, atol=1e-5)


def file_of(nodes: list[onnx.NodeProto], path: Path, **constants: ArrayLike) -> Path:
    rng = np.random.default_rng(0)
    tensors = {"w": rng.normal(size=(4, 3)), "v": rng.normal(size=(3, 1))}
    tensors |= {name: np.asarray(array) for name, array in constants.items()}
    graph = helper.make_graph(
        nodes,
        "g",
        [helper.make_tensor_value_info("x", TensorProto.DOUBLE, ["rows", 4])],
        [helper.make_tensor_value_info("y", TensorProto.DOUBLE, ["rows", 1])],
        [numpy_helper.from_array(array, name) for name, array in tensors.items()],
    )
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8)
    onnx.save(model, path / "model.onnx")
    return path / "model.onnx"


def gelu_nodes(first: str, *, one: str = "one") -> list[onnx.NodeProto]:
    product = {
        "x first": [("Mul", ["h", "e"], "p"), ("Mul", ["p", "half"], "a")],
        "half first": [("Mul", ["half", "h"], "p"), ("Mul", ["p", "e"], "a")],
        "gate first": [("Mul", ["e", "half"], "p"), ("Mul", ["h", "p"], "a")],
    }[first]
    steps = [
        ("MatMul", ["x", "w"], "h"),
        ("Div", ["h", "root"], "d"),
        ("Erf", ["d"], "f"),
        ("Add", [one, "f"], "e"),
        *product,
        ("MatMul", ["a", "v"], "y"),
    ]
    return [helper.make_node(name, inputs, [output]) for name, inputs, output in steps]


@pytest.mark.parametrize("first", ["x first", "half first", "gate first"])
@pytest.mark.parametrize("root", [np.sqrt(2), np.float64(np.float32(np.sqrt(2)))])
def test_the_order_and_the_constants_of_a_gelu_may_vary(
    first: str, root: float, tmp_path: Path
) -> None:
    path = file_of(gelu_nodes(first), tmp_path, root=root, half=np.float64(0.5), one=np.ones(1))
    assert [step.name for step in read_onnx(path).activations] == ["gelu"]


@pytest.mark.parametrize(
    "constants",
    [
        {"root": 1.5, "half": 0.5, "one": 1.0},
        {"root": 2**0.5, "half": 0.25, "one": 1.0},
        {"root": 2**0.5, "half": 0.5, "one": 0.5},
    ],
)
def test_other_constants_are_another_function(constants: dict[str, float], tmp_path: Path) -> None:
    path = file_of(gelu_nodes("x first"), tmp_path, **constants)
    with pytest.raises(NetworkError, match=r"\(Erf\) is not"):
        read_onnx(path)


def test_a_gate_of_another_value_is_a_product(tmp_path: Path) -> None:
    steps = [
        ("MatMul", ["x", "w"], "h"),
        ("MatMul", ["x", "w2"], "g"),
        ("Sigmoid", ["g"], "s"),
        ("Mul", ["h", "s"], "a"),
        ("MatMul", ["a", "v"], "y"),
    ]
    nodes = [helper.make_node(name, inputs, [output]) for name, inputs, output in steps]
    path = file_of(nodes, tmp_path, w2=np.random.default_rng(1).normal(size=(4, 3)))
    with pytest.raises(NetworkError, match="combines 2 values that depend on the input"):
        read_onnx(path)


def test_a_value_that_a_group_shares_is_still_read(tmp_path: Path) -> None:
    steps = [
        ("MatMul", ["x", "w"], "h"),
        ("Sigmoid", ["h"], "s"),
        ("Mul", ["h", "s"], "a"),
        ("Add", ["a", "s"], "b"),
        ("Sub", ["b", "h"], "c"),
        ("MatMul", ["c", "v"], "y"),
    ]
    nodes = [helper.make_node(name, inputs, [output]) for name, inputs, output in steps]
    network = read_onnx(file_of(nodes, tmp_path))
    assert {step.name for step in network.activations} >= {"silu", "sigmoid"}
