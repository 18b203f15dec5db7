"""Networks without preprocessing for the campaign `limits`, compared with exact fractions."""

import sys
import tempfile
from collections import Counter
from collections.abc import Callable
from fractions import Fraction
from pathlib import Path
from typing import Any

import numpy as np

import feta
from feta.model import Model

Layers = list[tuple[np.ndarray, np.ndarray]]

BARE = feta.FeatureSpace(
    (
        feta.Integer("age", 0, 12, sensitive=True),
        feta.Integer("hours", 0, 60),
        feta.Levels("rooms", (1.0, 1.5, 2.0)),
        feta.Real("income", 0.0, 1000.0),
        feta.Derived("band", "hours", (("few", -100, 60), ("many", 61, 1e13))),
    )
)


def exact_score(layers: Layers, row: list[float]) -> Fraction:
    """Score one row in fractions: affine layers with ReLU between."""
    values = [Fraction(value) for value in row]
    for index, (weight, bias) in enumerate(layers):
        if index:
            values = [max(value, Fraction(0)) for value in values]
        values = [
            sum((Fraction(float(w)) * v for w, v in zip(line, values, strict=True)), start)
            for line, start in zip(weight, map(Fraction, map(float, bias)), strict=True)
        ]
    return values[0]


def sources(folder: Path) -> dict[str, Callable[[Layers], feta.Network]]:
    """Return the ways to load a network without preprocessing, by name."""

    def from_layers(layers: Layers) -> feta.Network:
        return feta.Network.from_layers(layers, source="float64")

    def from_layers_float32(layers: Layers) -> feta.Network:
        return feta.Network.from_layers(layers)

    def from_onnx(layers: Layers) -> feta.Network:
        model = Model(BARE, from_layers(layers))
        feta.write_onnx(model.network, folder / "model.onnx")
        return feta.read_onnx(folder / "model.onnx")

    def from_torch(layers: Layers) -> feta.Network:
        import torch  # noqa: PLC0415 - an extra

        steps: list[torch.nn.Module] = []
        for weight, bias in layers:
            linear = torch.nn.Linear(weight.shape[1], len(bias)).double()
            linear.weight.data = torch.from_numpy(weight.copy())
            linear.bias.data = torch.from_numpy(bias.copy())
            steps += [linear, torch.nn.ReLU()]
        return feta.read_torch(torch.nn.Sequential(*steps[:-1]).eval())

    def from_weights(layers: Layers) -> feta.Network:
        arrays: dict[str, Any] = {}
        for index, (weight, bias) in enumerate(layers):
            arrays |= {f"{index}.weight": weight, f"{index}.bias": bias}
        np.savez(folder / "model.npz", **arrays)
        return feta.read_weights(folder / "model.npz", [str(n) for n in range(len(layers))])

    return {
        "layers": from_layers,
        "float32": from_layers_float32,
        "onnx": from_onnx,
        "torch": from_torch,
        "weights": from_weights,
    }


def check_networks(n_networks: int, seed: int) -> Counter[str]:
    """Compare networks without preprocessing with exact fractions: nothing may differ."""
    counts: Counter[str] = Counter()
    values = {
        "hours": [61.0, -1.0, -200.0, 75.0, 1e12, 60.5, 1e16],
        "rooms": [2.5, 0.5, 2.25, -1.0, 1e12],
        "income": [-1.0, 1000.25, 5e4, 1e12, 1e20, 1e35, -1e35, 1e300, np.inf, np.nan],
    }
    with tempfile.TemporaryDirectory() as folder:
        for number in range(n_networks):
            rng = np.random.default_rng([seed, number, 2])
            name, make = list(sources(Path(folder)).items())[number % 5]
            layers = random_layers(rng, tiny=10.0 ** -float(rng.choice([0, 3, 12, 34])))
            model = Model(BARE, make(layers))
            counts["bare networks"] += 1
            for column, column_values in values.items():
                for value in column_values:
                    row: dict[str, float] = {"hours": 20.0, "rooms": 1.5, "income": 250.0, "age": 3}
                    counts.update(
                        compare_with_fractions(model, layers, row | {column: value}, column)
                    )
            print(f"{number}: {name}", file=sys.stderr)
    return counts


def random_layers(rng: np.random.Generator, *, tiny: float) -> Layers:
    """Draw weights in eighths; those of income are tiny, so that huge incomes do not dominate."""
    first = rng.integers(-8, 9, (4, 6)) / 8
    first[:, 3] *= tiny
    last = rng.integers(-8, 9, (1, 4)) / 8
    return [(first, rng.integers(-40, 41, 4) / 8), (last, rng.integers(-16, 17, 1) / 8)]


def compare_with_fractions(
    model: Model, layers: Layers, row: dict[str, float], column: str
) -> Counter[str]:
    """Compare verdict, decision and fair decision with exact scores of every counterpart."""
    counts: Counter[str] = Counter(people=1)
    try:
        finding = feta.audit(model, [row]).findings[0]
        shared = {name: value for name, value in row.items() if name != "age"}
        encoded = model.space.encode(shared, sensitive="ignore", limits="open")
        fair = bool(feta.FairPredictor(model).decide(encoded)[0])
    except feta.DomainError as error:
        named = error.column in (column, "band") and bool(error.what)
        return counts + Counter({"refused": 1, "WRONG refusals without a reason": int(not named)})
    few = 1.0 if -100 <= row["hours"] <= 60 else 0.0
    shared_row = [row["hours"], row["rooms"], row["income"], few, 1.0 - few]
    decisions = [
        exact_score(layers, [float(age), *shared_row]) > 0
        or (exact_score(layers, [float(age), *shared_row]) == 0 and favors_ties(model))
        for age in range(13)
    ]
    counts[f"answered {finding.status}"] += 1
    correct = (
        finding.status == ("fair" if len(set(decisions)) == 1 else "unfair")
        and bool(finding.decision) == decisions[int(row["age"])]
        and bool(finding.fair_decision) == fair == (2 * sum(decisions) >= len(decisions))
    )
    counts["WRONG bare verdicts or decisions"] += not correct
    if not correct:
        print(f"WRONG: {row} {finding} {decisions}", file=sys.stderr)
    return counts


def favors_ties(model: Model) -> bool:
    """Return whether a score of 0 is favorable."""
    return bool(getattr(model.rule, "equality", None) == "favorable")
