"""Models, schemas and tables of the golden tests, built from fixed numbers.

`python -m tests.golden.make_models` writes them to `tests/golden/models`. Weights are multiples of
1/8 and scales are powers of two, so every score is exact in float64 on every processor.
"""

import csv
import io
from collections.abc import Iterator
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray
from onnx import TensorProto, helper, numpy_helper
from safetensors.numpy import save

import feta

MODELS = Path(__file__).parent / "models"

Layers = list[tuple[NDArray[np.float64], NDArray[np.float64]]]

COLUMNS = """
[columns]
age = { type = "integer", min = 18, max = 75, sensitive = true, center = 48.0, scale = 16.0 }
sex = { type = "category", values = ["female", "male"], sensitive = true }
months = { type = "integer", min = 4, max = 72, center = 24.0, scale = 16.0 }
amount = { type = "number", min = 0, max = 16000, unit = "EUR", center = 4096.0, scale = 4096.0 }
savings = { type = "levels", values = [0, 100, 500, 1000], scale = 512.0 }
housing = { type = "category", values = ["own", "rent", "free"] }
employed = { type = "integer", min = 0, max = 50, missing = true, center = 8.0, scale = 8.0 }
dependents = { type = "integer", min = 0, max = 5, strict = true }
"""
WIDTH = 12  # inputs of a network over these columns

DECISIONS = {
    "threshold": '[decision]\nthreshold = 0.5\nfavorable = "granted"\nunfavorable = "refused"\n',
    "below": '[decision]\nthreshold = 0.5\nfavors = "below"\nfavorable = "granted"\n'
    'unfavorable = "refused"\n',
    "classes": '[decision]\nclasses = ["basic", "silver", "gold"]\n',
    "limit": '[decision]\ntolerance = 2.5\nunit = "EUR"\n',
}

CELLS = ["age", "sex", "months", "amount", "savings", "housing", "employed", "dependents"]
HEADER = ["id", *CELLS, "approved", "tier", "limit"]

# One fault per row: a cell that no schema allows, by column.
FAULTS = {
    7: ("age", "seventy"),
    15: ("sex", "unknown"),
    23: ("months", "12.5"),
    31: ("housing", ""),
    39: ("dependents", "9"),
    47: ("age", "17"),
}
OUTSIDE = {11: "20480", 35: "-512"}  # amounts outside the limits, which are allowed
N_PEOPLE = 60


def draw(seed: int) -> Iterator[int]:
    """Generate integers below 2^31, the same with every version of every library."""
    state = seed
    while True:
        state = (state * 6364136223846793005 + 1442695040888963407) % 2**64
        yield state >> 33


def layers(seed: int, *widths: int) -> Layers:
    """Return layers between these widths, with weights of at most 1 in multiples of 1/8."""
    numbers = draw(seed)
    network: Layers = []
    for inputs, outputs in pairwise(widths):
        eighths = [next(numbers) % 17 - 8 for _ in range(outputs * (inputs + 1))]
        table = np.array(eighths, dtype=np.float64).reshape(outputs, inputs + 1) / 8
        network.append((table[:, 1:].copy(), table[:, 0].copy()))
    return network


def networks() -> dict[str, Layers]:
    """Return the layers of each model, by name."""
    threshold = layers(187, WIDTH, 8, 6, 1)
    later = [(weight.copy(), bias.copy()) for weight, bias in threshold]
    later[-1][1][0] += 0.375  # the same network with a lower threshold
    blind = [(weight.copy(), bias.copy()) for weight, bias in threshold]
    blind[0][0][:, :3] = 0.0  # age and sex
    return {
        "threshold": threshold,
        "blind": blind,
        "later": later,
        "below": layers(45, WIDTH, 8, 1),
        "classes": layers(105, WIDTH, 8, 3),
        "limit": layers(89, WIDTH, 8, 6, 1),
        "real": layers(31, 4, 6, 4, 1),
    }


def people() -> list[list[str]]:
    """Return the table's rows without faults, as texts."""
    numbers = draw(2024)
    rows = []
    for number in range(1, N_PEOPLE + 1):
        age, months = 18 + next(numbers) % 58, 4 + next(numbers) % 69
        amount = OUTSIDE.get(number, str(next(numbers) % 501 * 32))
        employed = next(numbers) % 56
        cells = [
            f"p{number:03}",
            str(age),
            ("female", "male")[next(numbers) % 2],
            str(months),
            amount,
            ("0", "100", "500", "1000")[next(numbers) % 4],
            ("own", "rent", "free")[next(numbers) % 3],
            "" if employed > 50 else str(employed),
            str(next(numbers) % 6),
            ("refused", "granted")[next(numbers) % 2],
            ("basic", "silver", "gold")[next(numbers) % 3],
            f"{next(numbers) % 64 / 8 - 4:g}",
        ]
        rows.append(cells)
    return rows


def table(*, faults: bool) -> str:
    """Return the table as CSV: with the faulty rows, or without them."""
    text = io.StringIO()
    writer = csv.writer(text, lineterminator="\n")
    writer.writerow(HEADER)
    for number, cells in enumerate(people(), start=1):
        if number in FAULTS and faults:
            column, value = FAULTS[number]
            cells[HEADER.index(column)] = value
        if faults or number not in FAULTS:
            writer.writerow(cells)
    return text.getvalue()


def named_arrays(parts: Layers, kind: type[np.floating[Any]]) -> dict[str, Any]:
    """Return the layers as the arrays of a weight file."""
    arrays: dict[str, Any] = {}
    for number, (weight, bias) in enumerate(parts, start=1):
        arrays[f"fc{number}.weight"] = weight.astype(kind)
        arrays[f"fc{number}.bias"] = bias.astype(kind)
    return arrays


def onnx_bytes(parts: Layers) -> bytes:
    """Return a float32 graph: Gemm and Relu in turn, then Sigmoid."""
    nodes, stored, value = [], [], "x"
    for number, (weight, bias) in enumerate(parts, start=1):
        names = [f"w{number}", f"b{number}"]
        stored += [
            numpy_helper.from_array(array.astype(np.float32), name)
            for name, array in zip(names, (weight, bias), strict=True)
        ]
        last = number == len(parts)
        nodes.append(helper.make_node("Gemm", [value, *names], [f"s{number}"], transB=1))
        value = "y" if last else f"a{number}"
        nodes.append(helper.make_node("Sigmoid" if last else "Relu", [f"s{number}"], [value]))
    inputs = [helper.make_tensor_value_info("x", TensorProto.FLOAT, ["rows", WIDTH])]
    outputs = [helper.make_tensor_value_info("y", TensorProto.FLOAT, ["rows", 1])]
    graph = helper.make_graph(nodes, "below", inputs, outputs, stored)
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8)
    return model.SerializeToString(deterministic=True)


def real_model(parts: Layers) -> feta.Model:
    """Return a model whose sensitive age is a real number."""
    space = feta.FeatureSpace(
        (
            feta.Real("age", -2, 2, sensitive=True),
            feta.Categorical("sex", ("female", "male"), sensitive=True),
            feta.Real("income", -4, 4),
        )
    )
    return feta.Model(space, feta.Network.from_layers(parts, activation="relu"), threshold=0.0)


def write_models(folder: Path) -> None:
    """Write all models, schemas and tables to a folder."""
    folder.mkdir(parents=True, exist_ok=True)
    layers_by_name = networks()
    for name, decision in DECISIONS.items():
        (folder / f"{name}.toml").write_text(decision + COLUMNS, encoding="utf-8", newline="\n")
    for name in ("threshold", "later", "blind"):
        network = feta.Network.from_layers(layers_by_name[name], activation="relu", sigmoid=True)
        model = feta.read_schema(folder / "threshold.toml").model(network)
        feta.save_model(model, folder / f"{name}.feta")
    feta.save_model(real_model(layers_by_name["real"]), folder / "real.feta")
    (folder / "below.onnx").write_bytes(onnx_bytes(layers_by_name["below"]))
    np.savez(folder / "classes.npz", **named_arrays(layers_by_name["classes"], np.float32))
    (folder / "limit.safetensors").write_bytes(
        save(named_arrays(layers_by_name["limit"], np.float64))
    )
    (folder / "people.csv").write_text(table(faults=True), encoding="utf-8", newline="\n")
    (folder / "good.csv").write_text(table(faults=False), encoding="utf-8", newline="\n")


if __name__ == "__main__":
    write_models(MODELS)
