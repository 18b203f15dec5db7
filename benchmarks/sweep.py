"""Sweep: random networks of many shapes over lattices from 6 to a billion, and a plot of what they cost."""

import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import product
from pathlib import Path

import numpy as np
from matplotlib.figure import Figure

from benchmarks.networks import random_model
from benchmarks.ways import enumeration
from feta.arrays import Matrix
from feta.engine.lattice import LatticeEngine
from feta.engine.protocol import Budget
from feta.model import Model
from feta_paper.timing import REPEATS, forward_seconds

# A number and categories; 456 and 212,380 are German credit's and UCI Adult's own.
AXES = (
    (3, 2),
    (57, 4, 2),
    (57, 8, 5, 4),
    (74, 41, 7, 5, 2),
    (74, 41, 7, 5, 2, 8),
    (100, 41, 16, 10, 8, 3),
    (100, 50, 40, 20, 16, 16),
)
WIDTHS = (16, 32, 64, 128)
DEPTHS = (2, 3, 4, 5, 6)
QUICK_SHAPES = ((16, 3), (128, 3), (16, 6), (128, 6))

# People asked about on a large lattice.
FEW = 2

# Enumeration is timed on one person, as long as a neuron's work over the lattice stays under this.
MAX_PRODUCTS = 1e9


@dataclass(frozen=True)
class Cell:
    """One shape over one lattice: seconds a person, and how many people were settled in time."""

    width: int
    depth: int
    counterparts: int
    forward: float  # torch's, a single row
    seconds: float
    decided: int
    people: int
    enumeration: float | None  # the kernel's, every counterpart


def sweep(*, quick: bool, seconds: float, seed: int = 0) -> Iterator[Cell]:
    """Time shape by shape, lattice by lattice, so that all of it ends in about this many seconds."""
    shapes = QUICK_SHAPES if quick else tuple(product(WIDTHS, DEPTHS))
    ends, left = time.monotonic() + seconds, len(shapes) * len(AXES)
    for width, depth in shapes:
        for axes in AXES:
            model, people = random_model(axes, width, depth, seed)
            patience = max(0.1, (ends - time.monotonic()) / left)
            yield measure(model, people, width, depth, patience)
            left -= 1


def measure(model: Model, people: Matrix, width: int, depth: int, patience: float) -> Cell:
    """Time a batch for small lattices and a few people for large ones, the best of five if there is time."""
    engine, size = LatticeEngine(threads=1), model.space.lattice.size
    forward = forward_seconds(model, people[:1])
    asked = people if size <= 10**4 else people[:FEW]
    begun, best, decided = time.monotonic(), np.inf, 0
    engine.tally(model, asked, Budget(evaluations=1), until="majority")  # the kernel is built here
    for _ in range(REPEATS):
        started = time.process_time()
        told = engine.tally(model, asked, Budget(seconds=patience / 2), until="majority")
        best = min(best, time.process_time() - started)
        decided = int(told.decided.sum())
        if time.monotonic() - begun > patience / 2:
            break
    plain = None
    if size * width * width * depth < MAX_PRODUCTS:
        count, many = enumeration(model), asked if size <= 10**4 else asked[:1]
        started = time.process_time()
        count(many)
        plain = (time.process_time() - started) / len(many)
    forward = min(forward, forward_seconds(model, people[:1]))  # one busy moment would flatter
    return Cell(width, depth, size, forward, best / len(asked), decided, len(asked), plain)


def plot(cells: Sequence[Cell], trained: dict[str, tuple[int, float]], path: Path) -> None:
    """Draw cost against lattice size, in forward passes; depth 3, and the trained networks."""
    figure = Figure(figsize=(8, 5))
    axes = figure.subplots()
    for width in WIDTHS:
        some = [one for one in cells if (one.width, one.depth) == (width, 3)]
        if not some:
            continue
        done = [one for one in some if one.decided == one.people]
        (line,) = axes.plot(
            [one.counterparts for one in done],
            [one.seconds / one.forward for one in done],
            marker="o",
            label=f"lattice, random, 3 of {width}",
        )
        color = line.get_color()
        counted = [one for one in some if one.enumeration is not None]
        axes.plot(
            [one.counterparts for one in counted],
            [(one.enumeration or 0) / one.forward for one in counted],
            linestyle=":",
            color=color,
        )
        late = [one for one in some if one.decided < one.people]
        axes.scatter(
            [one.counterparts for one in late],
            [one.seconds / one.forward for one in late],
            marker="x",
            color=color,
        )
    for name, (size, ratio) in trained.items():
        axes.scatter([size], [ratio], marker="*", s=120, color="black", zorder=3)
        axes.annotate(name, (size, ratio), textcoords="offset points", xytext=(6, -12))
    axes.axhline(1, color="gray", linewidth=0.8)
    axes.set(xscale="log", yscale="log", xlabel="counterparts a person")
    axes.set_ylabel("fair decision ÷ torch's forward of a single row")
    axes.set_title(
        "One thread; dotted: every counterpart; x: not settled in time; ★: trained", size=9
    )
    axes.legend(fontsize=8)
    figure.savefig(path, metadata={"Date": None})
