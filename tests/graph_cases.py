"""Random graphs of layers with branches, and their values neuron by neuron in floats.

The evaluation follows the recipe of a graph, one step after the other, and shares no code with the
lowering to chains.
"""

import math
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from feta.scorer.network.activation import Step, absolute, clip, leaky_relu, relu
from feta.scorer.network.smooth.activation import Smooth

Row = list[float]

FUNCTIONS: dict[str, tuple[Callable[[], Step], Callable[[float], float]]] = {
    "relu": (relu, lambda x: max(x, 0.0)),
    "leaky": (lambda: leaky_relu(0.25), lambda x: x if x > 0 else 0.25 * x),
    "abs": (absolute, abs),
    "clip": (lambda: clip(-0.5, 0.75), lambda x: min(max(x, -0.5), 0.75)),
    "tanh": (lambda: Smooth("tanh"), math.tanh),
    "sigmoid": (lambda: Smooth("sigmoid"), lambda x: 1 / (1 + math.exp(-x))),
    "softplus": (lambda: Smooth("softplus"), lambda x: math.log1p(math.exp(x))),
}


@dataclass
class Recipe:
    """Steps of a graph: a name, the values that it reads, and its numbers."""

    n_columns: int
    steps: list[tuple[str, tuple[int, ...], Any]] = field(default_factory=list)

    def values(self, row: Row) -> list[Row]:
        """Evaluate all steps for one person."""
        found: list[Row] = []
        for name, of, numbers in self.steps:
            sources = [found[index] for index in of]
            match name:
                case "entry":
                    found.append([row[column] for column in numbers])
                case "linear":
                    weight, bias = numbers
                    found.append(
                        [
                            math.fsum([b, *(w * x for w, x in zip(ws, sources[0], strict=True))])
                            for ws, b in zip(weight, bias, strict=True)
                        ]
                    )
                case "scale":
                    found.append([numbers[0] * x + numbers[1] for x in sources[0]])
                case "join":
                    found.append([x for source in sources for x in source])
                case "sum":
                    found.append([x + y for x, y in zip(*sources, strict=True)])
                case _:
                    found.append([FUNCTIONS[name][1](x) for x in sources[0]])
        return found


def random_recipe(
    rng: np.random.Generator, *, n_columns: int = 5, functions: tuple[str, ...] = tuple(FUNCTIONS)
) -> Recipe:
    """Draw a graph that ends in one score."""
    recipe = Recipe(n_columns)
    widths: list[int] = []

    def add(name: str, of: tuple[int, ...], numbers: Any, width: int) -> int:  # noqa: ANN401
        recipe.steps.append((name, of, numbers))
        widths.append(width)
        return len(widths) - 1

    def linear(of: int, width: int) -> int:
        weight = rng.normal(size=(width, widths[of])) / 2
        weight[rng.random(weight.shape) < 0.2] = 0.0
        return add("linear", (of,), (weight.tolist(), rng.normal(size=width).tolist()), width)

    add("entry", (), list(range(n_columns)), n_columns)
    if rng.random() < 0.3:
        add("entry", (), [0, n_columns - 1], 2)
    for _ in range(int(rng.integers(3, 9))):
        of = int(rng.integers(len(widths)))
        match int(rng.integers(7)):
            case 0:
                linear(of, int(rng.integers(1, 5)))
            case 1:
                add("scale", (of,), (float(rng.normal()), float(rng.normal())), widths[of])
            case 2:
                other = int(rng.integers(len(widths)))
                if widths[of] + widths[other] <= 12:
                    add("join", (of, other), None, widths[of] + widths[other])
            case 3:
                same = [index for index, width in enumerate(widths) if width == widths[of]]
                add("sum", (of, int(rng.choice(same))), None, widths[of])
            case 4:
                hidden = linear(of, int(rng.integers(1, 5)))
                curve = add(str(rng.choice(functions)), (hidden,), None, widths[hidden])
                pair = [linear(curve, widths[of]), of]
                add("sum", tuple(rng.permutation(pair).tolist()), None, widths[of])
            case _:
                hidden = linear(of, int(rng.integers(1, 5)))
                add(str(rng.choice(functions)), (hidden,), None, widths[hidden])
    used = {index for _, of, _ in recipe.steps for index in of}
    ends = [index for index in range(len(widths)) if index not in used]
    joined = add("join", tuple(ends), None, sum(widths[index] for index in ends))
    linear(joined, 1)
    return recipe
