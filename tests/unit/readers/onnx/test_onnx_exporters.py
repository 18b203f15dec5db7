"""ONNX files of torch's two exporters."""

import pytest

pytest.importorskip("torch", reason="torch is not installed")
pytest.importorskip("onnxscript", reason="onnxscript is not installed")
pytest.importorskip("onnxruntime", reason="onnxruntime is not installed")

import logging
import warnings
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import torch
from torch import nn

from feta import read_onnx
from tests.unit.readers.onnx.test_onnx import PEOPLE, compare


class Largest(nn.Module):
    """Maxout as a reshape and a maximum."""

    def forward(self, values: torch.Tensor) -> torch.Tensor:
        return values.view(-1, 3, 2).amax(dim=2)


class FunctionActivation(nn.Module):
    """An activation that is a function, not a module."""

    def __init__(self, function: Callable[[torch.Tensor], torch.Tensor]) -> None:
        super().__init__()
        self.bend = function

    def forward(self, values: torch.Tensor) -> torch.Tensor:
        return self.bend(values)


def export(module: nn.Module, path: Path, *, dynamo: bool, batched: bool = True) -> Path:
    """Export a module with torch, without its output."""
    file = path / "model.onnx"
    options: dict[str, Any] = {"dynamo": dynamo}
    if batched and dynamo:
        options["dynamic_shapes"] = ({0: torch.export.Dim("rows")},)
    elif batched:
        options |= {"input_names": ["x"], "dynamic_axes": {"x": {0: "rows"}}}
    if dynamo:
        options |= {"external_data": False, "verbose": False}
    logging.disable(logging.WARNING)
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            row = torch.randn(2 if batched else 1, 4)
            torch.onnx.export(module.eval(), (row,), str(file), **options)
    finally:
        logging.disable(logging.NOTSET)
    return file


# An export takes a second, so each module has several activations.
@pytest.mark.parametrize("dynamo", [False, True])
@pytest.mark.parametrize(
    "activations",
    [
        lambda: (nn.LeakyReLU(0.1), nn.PReLU(), nn.PReLU(6), nn.ReLU6()),
        lambda: (nn.Hardtanh(-0.5, 0.75), nn.Hardsigmoid(), FunctionActivation(torch.abs)),
        lambda: (
            FunctionActivation(lambda values: values.clamp(min=-0.3)),
            FunctionActivation(lambda values: values.clamp(max=0.3)),
        ),
        lambda: (
            FunctionActivation(lambda values: torch.maximum(values, torch.tensor(0.2))),
            FunctionActivation(lambda values: torch.minimum(values, torch.tensor(0.4))),
            Largest(),
        ),
    ],
    ids=["rectifiers", "saturating", "clamp", "maximum"],
)
def test_activations_are_read_as_torchs_exporters_write_them(
    activations: Callable[[], tuple[nn.Module, ...]], tmp_path: Path, *, dynamo: bool
) -> None:
    torch.manual_seed(1)
    layers: list[nn.Module] = [nn.Linear(4, 6)]
    for step in activations():
        layers += [step, nn.Linear(3 if isinstance(step, Largest) else 6, 6)]
    module = nn.Sequential(*layers, nn.ReLU(), nn.Linear(6, 2))
    compare(export(module, tmp_path, dynamo=dynamo), PEOPLE[:40])


@pytest.mark.parametrize("dynamo", [False, True])
@pytest.mark.parametrize("batched", [False, True])
def test_both_of_torchs_exporters_are_read(tmp_path: Path, *, dynamo: bool, batched: bool) -> None:
    torch.manual_seed(0)
    norm = nn.BatchNorm1d(6)
    layers = [
        nn.Linear(4, 6),
        norm,
        nn.ReLU(),
        nn.Dropout(0.5),
        nn.Linear(6, 5),
        nn.ReLU(),
        nn.Linear(5, 1),
    ]
    module = nn.Sequential(*layers)
    module(torch.randn(64, 4))
    module.eval()
    path = export(module, tmp_path, dynamo=dynamo, batched=batched)
    compare(path, PEOPLE[:40])
    with torch.no_grad():
        expected = module.double()(torch.from_numpy(PEOPLE)).numpy()
    np.testing.assert_allclose(read_onnx(path)(PEOPLE), expected, rtol=1e-4, atol=1e-5)
