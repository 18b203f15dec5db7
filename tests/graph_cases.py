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


class _Drawing:
    """A recipe that grows by random steps."""

    def __init__(
        self, rng: np.random.Generator, recipe: Recipe, functions: tuple[str, ...]
    ) -> None:
        self.rng, self.recipe, self.functions = rng, recipe, functions
        self.widths: list[int] = []

    def add(self, name: str, of: tuple[int, ...], numbers: Any, width: int) -> int:  # noqa: ANN401
        """Append a step."""
        self.recipe.steps.append((name, of, numbers))
        self.widths.append(width)
        return len(self.widths) - 1

    def linear(self, of: int, width: int) -> int:
        """Append a layer with some weights that are 0."""
        weight = self.rng.normal(size=(width, self.widths[of])) / 2
        weight[self.rng.random(weight.shape) < 0.2] = 0.0
        return self.add(
            "linear", (of,), (weight.tolist(), self.rng.normal(size=width).tolist()), width
        )

    def curve(self, of: int) -> int:
        """Append a layer and an activation."""
        hidden = self.linear(of, int(self.rng.integers(1, 5)))
        return self.add(str(self.rng.choice(self.functions)), (hidden,), None, self.widths[hidden])

    def step(self) -> None:
        """Append a random step."""
        rng, widths = self.rng, self.widths
        of, other = rng.integers(len(widths), size=2).tolist()
        match str(rng.choice(["linear", "scale", "join", "sum", "residual", "curve", "curve"])):
            case "linear":
                self.linear(of, int(rng.integers(1, 5)))
            case "scale":
                self.add("scale", (of,), (float(rng.normal()), float(rng.normal())), widths[of])
            case "join" if widths[of] + widths[other] <= 12:
                self.add("join", (of, other), None, widths[of] + widths[other])
            case "sum":
                same = [index for index, width in enumerate(widths) if width == widths[of]]
                self.add("sum", (of, int(rng.choice(same))), None, widths[of])
            case "residual":
                pair = [self.linear(self.curve(of), widths[of]), of]
                self.add("sum", tuple(rng.permutation(pair).tolist()), None, widths[of])
            case _:
                self.curve(of)


def random_recipe(
    rng: np.random.Generator, *, n_columns: int = 5, functions: tuple[str, ...] = tuple(FUNCTIONS)
) -> Recipe:
    """Draw a graph that ends in one score."""
    recipe = Recipe(n_columns)
    drawing = _Drawing(rng, recipe, functions)
    drawing.add("entry", (), list(range(n_columns)), n_columns)
    if rng.random() < 0.3:
        drawing.add("entry", (), [0, n_columns - 1], 2)
    for _ in range(int(rng.integers(3, 9))):
        drawing.step()
    used = {index for _, of, _ in recipe.steps for index in of}
    ends = [index for index in range(len(drawing.widths)) if index not in used]
    width = sum(drawing.widths[index] for index in ends)
    drawing.linear(drawing.add("join", tuple(ends), None, width), 1)
    return recipe
