"""Times of random networks of many shapes over lattices of 6 to a billion points, and a plot."""

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

# An integer and categories; 456 and 212,380 are the sizes of German credit and UCI Adult.
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

# People measured on a large lattice.
N_PEOPLE_LARGE = 2

# Enumeration is measured on one person if lattice size × width² × depth is below this.
MAX_PRODUCTS = 1e9


@dataclass(frozen=True)
class Cell:
    """One shape over one lattice: seconds per person, and how many people were decided in time."""

    width: int
    depth: int
    counterparts: int
    forward: float  # of torch, for a single row
    seconds: float
    decided: int
    people: int
    enumeration: float | None  # of every counterpart by the kernel


def sweep(*, quick: bool, seconds: float, seed: int = 0) -> Iterator[Cell]:
    """Measure all shapes and lattices in about `seconds` in total."""
    shapes = QUICK_SHAPES if quick else tuple(product(WIDTHS, DEPTHS))
    deadline, remaining = time.monotonic() + seconds, len(shapes) * len(AXES)
    for width, depth in shapes:
        for axes in AXES:
            model, people = random_model(axes, width, depth, seed)
            limit = max(0.1, (deadline - time.monotonic()) / remaining)
            yield measure(model, people, width, depth, limit)
            remaining -= 1


def measure(model: Model, people: Matrix, width: int, depth: int, limit: float) -> Cell:
    """Measure a batch on a small lattice, a few people on a large one; at most five repeats."""
    engine, size = LatticeEngine(threads=1), model.space.lattice.size
    forward = forward_seconds(model, people[:1])
    measured = people if size <= 10**4 else people[:N_PEOPLE_LARGE]
    started_at, best, decided = time.monotonic(), np.inf, 0
    engine.tally(model, measured, Budget(evaluations=1), until="majority")  # builds the kernel
    for _ in range(REPEATS):
        started = time.process_time()
        tally = engine.tally(model, measured, Budget(seconds=limit / 2), until="majority")
        best = min(best, time.process_time() - started)
        decided = int(tally.decided.sum())
        if time.monotonic() - started_at > limit / 2:
            break
    enumeration_seconds = None
    if size * width * width * depth < MAX_PRODUCTS:
        count, enumerated = enumeration(model), measured if size <= 10**4 else measured[:1]
        started = time.process_time()
        count(enumerated)
        enumeration_seconds = (time.process_time() - started) / len(enumerated)
    forward = min(forward, forward_seconds(model, people[:1]))  # a busy moment would favor FETA
    return Cell(
        width,
        depth,
        size,
        forward,
        best / len(measured),
        decided,
        len(measured),
        enumeration_seconds,
    )


def plot(cells: Sequence[Cell], trained: dict[str, tuple[int, float]], path: Path) -> None:
    """Plot time in forward passes against lattice size: depth 3, and the trained networks."""
    figure = Figure(figsize=(8, 5))
    axes = figure.subplots()
    for width in WIDTHS:
        shape_cells = [cell for cell in cells if (cell.width, cell.depth) == (width, 3)]
        if not shape_cells:
            continue
        complete = [cell for cell in shape_cells if cell.decided == cell.people]
        (line,) = axes.plot(
            [cell.counterparts for cell in complete],
            [cell.seconds / cell.forward for cell in complete],
            marker="o",
            label=f"lattice, random, 3 of {width}",
        )
        color = line.get_color()
        counted = [cell for cell in shape_cells if cell.enumeration is not None]
        axes.plot(
            [cell.counterparts for cell in counted],
            [(cell.enumeration or 0) / cell.forward for cell in counted],
            linestyle=":",
            color=color,
        )
        late = [cell for cell in shape_cells if cell.decided < cell.people]
        axes.scatter(
            [cell.counterparts for cell in late],
            [cell.seconds / cell.forward for cell in late],
            marker="x",
            color=color,
        )
    for name, (size, ratio) in trained.items():
        axes.scatter([size], [ratio], marker="*", s=120, color="black", zorder=3)
        axes.annotate(name, (size, ratio), textcoords="offset points", xytext=(6, -12))
    axes.axhline(1, color="gray", linewidth=0.8)
    axes.set(xscale="log", yscale="log", xlabel="counterparts per person")
    axes.set_ylabel("fair decision ÷ torch's forward pass of a single row")
    axes.set_title(
        "One thread; dotted: every counterpart; x: not decided in time; ★: trained", size=9
    )
    axes.legend(fontsize=8)
    figure.savefig(path, metadata={"Date": None})
