"""Made-up measurements for tests of the page."""

import math
from dataclasses import replace

import numpy as np

from feta_paper.measurements import Measurements
from feta_paper.paper import BLIND, COUNTERPART, comparable, published
from feta_paper.trade_off import SHORT

TITLES = {
    "german": "German credit",
    "adult": "UCI Adult",
    "ipums": "IPUMS Adult",
    "law": "Law School",
}
ROWS = {"german": 1_000, "adult": 45_222, "ipums": 45_850, "law": 49_449}
COUNTERPARTS = {"german": 456, "adult": 212_380, "ipums": 212_380, "law": 6}

FRESH, FIXED = BLIND
BLIND_KEYS = (FIXED, FRESH)
RAW_KEYS = ("nn_b.accuracy", "nn_b.flip_rate", "nn_b.ce_rate", "trained.accuracy", FRESH)

# Key, mean, deviation.
EXTRA = (
    ("lcifr.certified", 95, 1),
    ("lcifr_original.certified", 54, 2),
    ("lcifr_original.ce_rate_categories", 30, 1),
    ("printed.tied", 5, 1),
    ("printed.treated_apart", 4, 1),
)


def made_up(dataset: str, *, seed: int = 0, folds: int = 5) -> Measurements:
    """Return measurements of a complete run: the paper's figures with random changes."""
    random = np.random.default_rng(seed)
    return Measurements(
        dataset,
        TITLES[dataset],
        folds,
        quick=False,
        seed=seed,
        rows=ROWS[dataset],
        counterparts=COUNTERPARTS[dataset],
        figures=_figures(dataset, random, folds),
        curves=_curves(random, folds),
        times=_times(folds),
        notes=["These figures are made up."],
        settings={
            "epochs": "500, then 50",
            "grid by fold": "lr 0.01, batch 64; lr 0.001, batch 128; lr 0.001, batch 64",
            "chosen.fold0": "blind network, 75.1 % on validation",
        },
        versions={"feta": "0.1.0", "data sha256": "9" * 64},
    )


def _figures(  # noqa: C901 - a list
    dataset: str, random: np.random.Generator, folds: int
) -> dict[str, list[float]]:
    figures: dict[str, list[float]] = {}

    def add(key: str, mean: float, std: float) -> None:
        values = random.normal(mean, std, folds)
        figures[key] = [round(max(0.0, float(value)), 4) for value in values]

    for key, cell in comparable(COUNTERPART[dataset]).items():
        for name in BLIND_KEYS if key.startswith("blind") else (key,):
            add(name, cell.mean + random.normal(0, 1.5) * (cell.std or 1), cell.std or 1)
    base = figures["trained_vote.accuracy"][0]
    for arm in SHORT:
        if f"{arm}.accuracy" not in figures:
            add(f"{arm}.accuracy", base + random.normal(0, 1), 0.5)
    for arm in ("other_batch", "default", "span", "lcifr", "lcifr_original"):
        add(f"{arm}.ce_rate", random.uniform(1, 15), 1)
        add(f"{arm}.flip_rate", random.uniform(1, 5), 0.3)
    for key, mean, std in EXTRA:
        add(key, mean, std)
    for arm in ("nn_b", "trained"):
        figures[f"{arm}.ce_rate_real"] = list(figures[f"{arm}.ce_rate"])
    if dataset == "law":
        for key in RAW_KEYS:
            paper = published("law", key)
            assert paper is not None
            add(f"raw.{key}", paper.mean, 4)
        add("nn_b.accuracy", 88.96, 0.38)
    if dataset in {"adult", "ipums"}:
        for key in ("nn_b.accuracy", "nn_b.ce_rate", "vote.accuracy"):
            add(f"sample.{key}", figures[key][0], 2)
    figures["cost.sizes"] = [6.0, 456.0, 4_000.0, 40_000.0, 212_380.0]
    return figures


def _times(folds: int) -> dict[str, list[float]]:
    per_fold = {
        "vote.seconds": 4e-6,
        "vote.single_seconds": 6e-5,
        "forward.seconds": 3e-7,
        "forward.single_seconds": 5e-5,
        "trained_vote.seconds": 3e-6,
        "trained_vote.single_seconds": 5e-5,
        "counting.naive_seconds": 21.0,
        "counting.vectorized_seconds": 0.015,
        "counting.milp_seconds": 1.3,
        "counting.compiled_seconds": 2e-4,
        "arm.nn_b.seconds": 22.0,
        "arm.lcifr.seconds": 41.0,
    }
    by_size = {
        "cost.naive_seconds": [6e-4, 4.5e-2, 0.4, 4.0, 21.2],
        "cost.vectorized_seconds": [3e-5, 6e-5, 3e-4, 3e-3, 1.6e-2],
        "cost.compiled_seconds": [2e-6, 1e-5, 3e-5, 9e-5, 2.1e-4],
    }
    times = {key: [seconds] * folds for key, seconds in per_fold.items()}
    return times | by_size | {"total.seconds": [813.2]}


def _curves(random: np.random.Generator, folds: int) -> dict[str, list[list[float]]]:
    epochs = np.arange(51)
    shapes = {
        "loss": 0.5 + 0.1 * np.exp(-epochs / 9),
        "accuracy": 76 - 0.02 * epochs,
        "ce_rate": 16 + 14 * np.exp(-epochs / 6),
        "average_violation": 1.8 * np.exp(-epochs / 10),
        "maximum_violation": 4 * np.exp(-epochs / 14),
    }
    return {
        f"trained.{name}": [
            [float(value) for value in shape + random.normal(0, 0.02 * np.ptp(shape), 51)]
            for _ in range(folds)
        ]
        for name, shape in shapes.items()
    }


def without(measured: Measurements, *keys: str, reason: str = "") -> Measurements:
    """Remove figures."""
    others = {key: values for key, values in measured.figures.items() if key not in keys}
    missing = dict.fromkeys(keys, reason) if reason else {}
    return replace(measured, figures=others, missing=missing)


def with_figures(measured: Measurements, **figures: list[float]) -> Measurements:
    """Add figures; a double underscore in a name means a dot."""
    by_key = {key.replace("__", "."): values for key, values in figures.items()}
    assert all(math.isfinite(value) for values in by_key.values() for value in values)
    return replace(measured, figures=measured.figures | by_key)
