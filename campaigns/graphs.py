"""Campaign of networks with branches, from torch and ONNX, against their own evaluation.

    python -m campaigns.graphs [--models 500] [--seed 0]

Graphs are random: residual and joined layers, towers, shared values. Each is read from a torch
module and from ONNX files of two opsets. Scores are compared with an evaluation of the graph step
by step, and with torch. Verdicts are compared with the decisions of all counterparts. A graph that
is refused is counted with its reason.
"""

import argparse
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Callable
from itertools import product
from pathlib import Path
from typing import Any

import numpy as np
import onnx
import torch
from onnx import TensorProto, helper, numpy_helper
from torch import nn

import feta
from campaigns.result import finish
from feta.space.attribute import Integer, Real
from tests.graph_cases import Recipe, random_recipe

SPACE = feta.FeatureSpace(
    (
        Integer("age", 0, 4, sensitive=True),
        Integer("zone", -2, 2, sensitive=True),
        Real("income", -3.0, 3.0),
        Integer("debts", 0, 4),
        Real("saved", -2.0, 2.0),
    )
)
ROWS = 1000
OPSETS = (13, 14, 15, 16, 17, 18, 20)

CALLS: dict[str, Callable[[Any], Any]] = {
    "relu": torch.relu,
    "leaky": lambda x: nn.functional.leaky_relu(x, 0.25),
    "abs": torch.abs,
    "clip": lambda x: torch.clamp(x, -0.5, 0.75),
    "tanh": torch.tanh,
    "sigmoid": torch.sigmoid,
    "softplus": nn.functional.softplus,
}
OPERATORS = {"relu": "Relu", "abs": "Abs", "tanh": "Tanh", "sigmoid": "Sigmoid"}
OPERATORS |= {"leaky": "LeakyRelu", "softplus": "Softplus"}


class TorchGraph(nn.Module):
    """A recipe as a module."""

    def __init__(self, recipe: Recipe) -> None:
        super().__init__()
        self.recipe = recipe
        self.layers = nn.ModuleDict()
        for index, (name, _, numbers) in enumerate(recipe.steps):
            if name == "linear":
                weight = torch.tensor(numbers[0], dtype=torch.float64)
                layer = nn.Linear(weight.shape[1], weight.shape[0], dtype=torch.float64)
                layer.weight.data = weight
                layer.bias.data = torch.tensor(numbers[1], dtype=torch.float64)
                self.layers[str(index)] = layer

    def forward(self, x: Any) -> Any:  # noqa: ANN401 - of torch
        """Compute the score of rows."""
        found: list[Any] = []
        for index, (name, of, numbers) in enumerate(self.recipe.steps):
            sources = [found[source] for source in of]
            if name == "entry":
                found.append(x[:, numbers])
            elif name == "linear":
                found.append(self.layers[str(index)](sources[0]))
            elif name == "scale":
                found.append(sources[0] * numbers[0] + numbers[1])
            elif name == "join":
                found.append(torch.cat(sources, dim=1))
            elif name == "sum":
                found.append(sources[0] + sources[1])
            else:
                found.append(CALLS[name](sources[0]))
        return found[-1]


def onnx_graph(recipe: Recipe, path: Path, opset: int) -> Path:
    """Write a recipe as a graph in float64."""
    nodes: list[onnx.NodeProto] = []
    arrays: list[onnx.TensorProto] = []

    def constant(values: object, kind: type = np.float64) -> str:
        arrays.append(numpy_helper.from_array(np.asarray(values, kind), f"c{len(arrays)}"))
        return str(arrays[-1].name)

    def add(operator: str, inputs: list[str], output: str, **options: Any) -> str:  # noqa: ANN401 - of onnx
        nodes.append(helper.make_node(operator, inputs, [output], **options))
        return output

    names: list[str] = []
    for index, (name, of, numbers) in enumerate(recipe.steps):
        sources, output = [names[source] for source in of], f"v{index}"
        match name:
            case "entry":
                add("Gather", ["x", constant(numbers, np.int64)], output, axis=1)
            case "linear":
                weight, bias = (constant(part) for part in numbers)
                add("Gemm", [sources[0], weight, bias], output, transB=1)
            case "scale":
                scaled = add("Mul", [sources[0], constant([numbers[0]])], f"{output}s")
                add("Add", [constant([numbers[1]]), scaled], output)
            case "join":
                add("Concat", sources, output, axis=1)
            case "sum":
                add("Add", sources, output)
            case "clip":
                add("Clip", [sources[0], constant(-0.5), constant(0.75)], output)
            case _:
                add(
                    OPERATORS[name], sources, output, **({"alpha": 0.25} if name == "leaky" else {})
                )
        names.append(output)
    graph = helper.make_graph(
        nodes,
        "graph",
        [helper.make_tensor_value_info("x", TensorProto.DOUBLE, ["rows", recipe.n_columns])],
        [helper.make_tensor_value_info(names[-1], TensorProto.DOUBLE, ["rows", 1])],
        arrays,
    )
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", opset)], ir_version=8)
    onnx.save(model, path)
    return path


def people(rng: np.random.Generator, count: int) -> np.ndarray[Any, np.dtype[np.float64]]:
    """Draw encoded people."""
    columns = [
        rng.integers(0, 5, count),
        rng.integers(-2, 3, count),
        rng.normal(size=count).clip(-3, 3),
        rng.integers(0, 5, count),
        rng.normal(size=count).clip(-2, 2),
    ]
    return np.column_stack(columns).astype(np.float64)


def check(recipe: Recipe, network: feta.Network, rng: np.random.Generator, own: Any) -> list[str]:  # noqa: ANN401 - a module or None
    """Name what differs from the recipe's own evaluation."""
    rows = people(rng, ROWS)
    truth = np.array([recipe.values(row)[-1] for row in rows.tolist()])
    bound = 1e-9 * (1 + np.abs(truth))
    wrong = ["score"] * bool((np.abs(network(rows) - truth) > bound).any())
    if own is not None:
        with torch.no_grad():
            scores = own(torch.from_numpy(rows)).numpy()
        wrong += ["torch"] * bool((np.abs(scores - truth) > bound).any())
    for person in people(rng, 2):
        pairs = product(range(5), range(-2, 3))
        lattice = np.array([[*pair, *person[2:]] for pair in pairs], dtype=np.float64)
        scores = np.array([recipe.values(row)[-1][0] for row in lattice.tolist()])
        ends = np.sort(scores)
        gaps = np.diff(ends)
        places = [float(ends[0] - 1.0), float(ends[-1] + 1e-6)]
        if gaps.max() > 1e-6:
            places.append(float(ends[gaps.argmax()] + gaps.max() / 2))
        for threshold in places:
            model = feta.Model(SPACE, network, threshold=threshold)
            decisions = scores > threshold
            verdict = feta.verify(feta.FairAt(model, person))
            fair = bool(decisions.all() or not decisions.any())
            if not isinstance(verdict, feta.Fair if fair else feta.Unfair):
                wrong.append("verdict")
            if model.decide(lattice).tolist() != decisions.tolist():
                wrong.append("decisions")
    return wrong


def main() -> int:
    """Run from the command line; exit 1 on any disagreement."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--models", type=int, default=500)
    parser.add_argument("--seed", type=int, default=0)
    options = parser.parse_args()
    started, counts = time.perf_counter(), Counter[str]()
    with tempfile.TemporaryDirectory() as folder:
        for number in range(options.models):
            rng = np.random.default_rng([options.seed, number])
            recipe = random_recipe(rng)
            opset = int(rng.choice(OPSETS))
            module = TorchGraph(recipe).eval()
            path = onnx_graph(recipe, Path(folder) / "graph.onnx", opset)
            for source in ("torch", "ONNX"):
                try:
                    is_torch = source == "torch"
                    network = (
                        feta.read_torch(module, columns=5) if is_torch else feta.read_onnx(path)
                    )
                except feta.NetworkError as error:
                    counts[f"WRONG refused: {source}"] += 1
                    print(f"model {number}, {source} (opset {opset}): {error}", file=sys.stderr)
                    continue
                counts[f"graphs of {source}"] += 1
                for name in check(recipe, network, rng, module if is_torch else None):
                    counts[f"WRONG {name}"] += 1
                    print(f"model {number}, {source}: {name}", file=sys.stderr)
    return finish(counts, started)


if __name__ == "__main__":
    raise SystemExit(main())
