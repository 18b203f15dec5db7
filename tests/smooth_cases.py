"""Random networks with smooth activations, and an oracle in balls of 2,000 bits.

The oracle lists the counterparts from the attributes and evaluates networks neuron by neuron, with
Arb's own functions. It uses no code of FETA.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from itertools import product
from typing import Any

import numpy as np
from flint import arb, ctx

from feta import Argmax, FeatureSpace, Model, Network, Tolerance
from feta.scorer.network.activation import leaky_relu, relu
from feta.scorer.network.smooth.activation import FACTS, Smooth
from feta.space.attribute import Categorical, Integer, Real

BITS = 2000
Ball = Any  # python-flint ships no types

SPACE = FeatureSpace(
    (
        Integer("age", 18, 24, sensitive=True),
        Categorical("sex", ("f", "m", "x"), sensitive=True),
        Real("income", -3.0, 3.0),
        Integer("debts", 0, 4),
    )
)

# So many counterparts that the kernel bounds nodes before it scores points: 2,400.
WIDE_SPACE = FeatureSpace(
    (
        Integer("age", 0, 99, sensitive=True),
        Categorical("sex", ("f", "m", "x"), sensitive=True),
        Categorical("region", tuple("abcdefgh"), sensitive=True),
        Real("income", -3.0, 3.0),
    )
)


# The definitions of the functions, as textbooks have them.
TRUTH: dict[str, Callable[[Ball, Ball], Ball]] = {
    "celu": lambda x, a: x if x > 0 else a * ((x / a).exp() - 1),
    "elu": lambda x, a: x if x > 0 else a * (x.exp() - 1),
    "gelu": lambda x, _: x * (1 + (x / arb(2).sqrt()).erf()) / 2,
    "gelu_tanh": lambda x, _: (
        x * (1 + ((2 / arb.pi()).sqrt() * (x + arb("0.044715") * x**3)).tanh()) / 2
    ),
    "hardswish": lambda x, _: x if x > 3 else (arb(0) if x < -3 else x * (x + 3) / 6),
    "logsigmoid": lambda x, _: -((-x).exp().log1p()),
    "mish": lambda x, _: x * x.exp().log1p().tanh(),
    "selu": lambda x, _: (
        arb(1.0507009873554805) * (x if x > 0 else arb(1.6732632423543772) * (x.exp() - 1))
    ),
    "sigmoid": lambda x, _: 1 / (1 + (-x).exp()),
    "silu": lambda x, _: x / (1 + (-x).exp()),
    "softplus": lambda x, b: (b * x).exp().log1p() / b,
    "softsign": lambda x, _: x / (1 + abs(x)),
    "tanh": lambda x, _: x.tanh(),
    "relu": lambda x, _: x if x > 0 else arb(0),
    "leaky_relu": lambda x, a: x if x > 0 else a * x,
}


@dataclass(frozen=True, slots=True, eq=False)
class SmoothCase:
    """A model, its layers as lists, and people."""

    model: Model
    weights: list[list[list[float]]]
    biases: list[list[float]]
    functions: list[tuple[str, float]]
    people: np.ndarray[tuple[int, int], np.dtype[np.float64]]

    def score(self, person: Sequence[float]) -> Ball:
        """Return the first score of an encoded person."""
        before = ctx.prec
        ctx.prec = BITS
        try:
            values = [arb(float(number)) for number in person]
            for depth, (weight, bias) in enumerate(zip(self.weights, self.biases, strict=True)):
                if depth:
                    name, parameter = self.functions[depth - 1]
                    values = [TRUTH[name](value, arb(parameter)) for value in values]
                values = [
                    sum((arb(w) * v for w, v in zip(row, values, strict=True)), arb(b))
                    for row, b in zip(weight, bias, strict=True)
                ]
            return values[0]
        finally:
            ctx.prec = before

    def counterparts(self, person: Sequence[float]) -> list[list[float]]:
        """List the counterparts from the attributes."""
        rows = []
        for age, sex in product(range(18, 25), range(3)):
            rows.append([float(age), *(float(sex == n) for n in range(3)), *person[4:]])
        return rows

    def favorable(self, person: Sequence[float]) -> bool | None:
        """Return whether the score is above the threshold; None if balls do not decide it."""
        before = ctx.prec
        ctx.prec = BITS
        try:
            distance = self.score(person) - arb(float(self.model.rule.value))  # type: ignore[attr-defined]  # a Threshold
            if distance > 0:
                return True
            return False if distance < 0 else None
        finally:
            ctx.prec = before


def random_case(rng: np.random.Generator, *, edge: bool, people: int = 2) -> SmoothCase:
    """Draw a network and people; with `edge`, a threshold within 1e-12 of a counterpart's score."""
    widths = [SPACE.width, *rng.integers(2, 6, rng.integers(1, 4)).tolist(), 1]
    scale = float(rng.choice([0.3, 1.0, 3.0]))
    weights = [rng.normal(size=shape) * scale for shape in zip(widths[1:], widths, strict=False)]
    weights[0][:, 0] /= 10  # ages are large
    biases = [rng.normal(size=len(weight)) for weight in weights]
    functions = [_random_function(rng) for _ in widths[2:]]
    network = Network.from_layers(
        list(zip(weights, biases, strict=True)),
        activation=[_activation(*function) for function in functions],
        source="float64",
    )
    drawn = np.vstack([SPACE.encode(_random_record(rng)) for _ in range(people)])
    listed = [weight.tolist() for weight in weights], [bias.tolist() for bias in biases]
    case = SmoothCase(Model(SPACE, network, threshold=0.0), *listed, functions, drawn)
    rows = case.counterparts(drawn[0].tolist())
    score = float(case.score(rows[int(rng.integers(len(rows)))]).mid())
    shift = float(rng.choice([0.0, 1e-16, -1e-15, 1e-13, -1e-12])) if edge else rng.normal() / 10
    model = Model(SPACE, network, threshold=score + shift)
    return SmoothCase(model, *listed, functions, drawn)


def wide_case(
    rng: np.random.Generator, *, edge: bool, people: int = 3
) -> tuple[Model, np.ndarray[tuple[int, int], np.dtype[np.float64]]]:
    """Draw a network over a large lattice and people; the rule may have classes or a tolerance."""
    outputs = int(rng.choice([1, 1, 1, 3]))
    widths = [WIDE_SPACE.width, *rng.integers(3, 17, rng.integers(1, 4)).tolist(), outputs]
    scale = float(rng.choice([0.3, 1.0, 3.0]))
    weights = [
        rng.normal(size=shape) * scale / np.sqrt(shape[1] / 4)
        for shape in zip(widths[1:], widths, strict=False)
    ]
    weights[0][:, 0] /= 40  # ages are large
    biases = [rng.normal(size=len(weight)) for weight in weights]
    network = Network.from_layers(
        list(zip(weights, biases, strict=True)),
        activation=[_activation(*_random_function(rng)) for _ in widths[2:]],
        source="float32" if rng.random() < 0.5 else "float64",
    )
    encoded = np.zeros((people, WIDE_SPACE.width))
    encoded[:, 0] = rng.integers(0, 100, people)
    encoded[np.arange(people), 1 + rng.integers(0, 3, people)] = 1
    encoded[np.arange(people), 4 + rng.integers(0, 8, people)] = 1
    encoded[:, -1] = np.clip(rng.normal(size=people), -3, 3)
    if outputs > 1:
        return Model(WIDE_SPACE, network, rule=Argmax(("a", "b", "c"))), encoded
    ids = rng.integers(WIDE_SPACE.lattice.size, size=40)
    scores = network(np.array(WIDE_SPACE.lattice.moved(np.repeat(encoded[:1], 40, axis=0), ids)))
    if rng.random() < 0.2:
        span = float(scores.max() - scores.min()) + 1e-3
        return Model(
            WIDE_SPACE, network, rule=Tolerance(span * float(rng.uniform(0.5, 2)))
        ), encoded
    shift = float(rng.choice([0.0, 1e-16, -1e-15, 1e-13, -1e-12])) if edge else 0.05
    return Model(WIDE_SPACE, network, threshold=float(scores[0, 0]) + shift), encoded


def _random_function(rng: np.random.Generator) -> tuple[str, float]:
    name = str(rng.choice([*FACTS, "relu", "leaky_relu"]))
    if name == "leaky_relu":
        return name, 0.125
    return name, float(rng.choice([1.0, 0.5, 1.7])) if name in ("celu", "elu", "softplus") else 1.0


def _activation(name: str, parameter: float) -> Any:  # noqa: ANN401 - an activation of any kind
    if name == "relu":
        return relu()
    return leaky_relu(parameter) if name == "leaky_relu" else Smooth(name, parameter)


def _random_record(rng: np.random.Generator) -> dict[str, object]:
    return {
        "age": int(rng.integers(18, 25)),
        "sex": str(rng.choice(["f", "m", "x"])),
        "income": round(min(max(float(rng.normal()), -3.0), 3.0), 3),
        "debts": int(rng.integers(0, 5)),
    }
