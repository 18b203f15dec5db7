"""Benchmark of proofs about everybody: trained networks, next to intervals and signs.

    python -m benchmarks.domain [--folder FOLDER] [--seconds 10] [--long 60] [--only NAME ...]

Ten networks are trained on German credit and UCI Adult by `PlainTrainer`. The population is
everybody, all values counted equally. The baseline, in NumPy, bounds hundreds of boxes at once by
intervals and looks at signs only. Times are processor seconds.
"""

import argparse
import heapq
import sys
import time
from pathlib import Path

import numpy as np

from feta import datasets
from feta.arrays import Matrix, Vector
from feta.bounds import interval
from feta.everybody.half_spaces.problem import Problem, share_of
from feta.everybody.half_spaces.prover import HalfSpaces
from feta.everybody.half_spaces.tree import halves, middle
from feta.everybody.population import uniform
from feta.everybody.where import Where
from feta.interval_box import IntervalBox
from feta.io.model_file import load_model, save_model
from feta.model import Model
from feta.train.plain import PlainTrainer

NETWORKS: dict[str, tuple[str, tuple[int, ...]]] = {
    "AC-16": ("adult", (16,)),
    "AC-50": ("adult", (50,)),
    "AC-32-16": ("adult", (32, 16)),
    "AC-100": ("adult", (100,)),
    "AC-16-16-16": ("adult", (16, 16, 16)),
    "AC-16x5": ("adult", (16,) * 5),
    "GC-16": ("german", (16,)),
    "GC-50": ("german", (50,)),
    "GC-16-16-16": ("german", (16, 16, 16)),
    "GC-32x4": ("german", (32,) * 4),
}
PROTECT = {"adult": ("race", "sex"), "german": ("foreign_worker",)}
EPOCHS = {"adult": 6, "german": 100}
BATCH = 256


def trained(name: str, folder: Path) -> Model:
    """Return a network; it is trained once and kept."""
    path = folder / f"{name}.feta"
    if not path.exists():
        data, hidden = NETWORKS[name]
        dataset = datasets.load(data)
        trainer = PlainTrainer(
            dataset.space,
            hidden=hidden,
            learning_rates=(1e-3,),
            batch_sizes=(256 if data == "adult" else 64,),
            epochs=EPOCHS[data],
        )
        run = trainer.train(dataset.space.encode(dataset.frame), dataset.labels)
        model = Model(dataset.space, run.network).with_sensitive(PROTECT[data])
        save_model(model, path)
    model = load_model(path)
    assert isinstance(model, Model)
    return model


class Signs:
    """The baseline: interval bounds of boxes with all counterparts; a box is fair by its sign."""

    def __init__(self, problem: Problem) -> None:
        self.problem = problem
        self.fair, self.n_boxes, self._n = 0.0, 0, 0
        self._waiting: list[tuple[float, int, Vector, Vector]] = []
        lower, upper = problem.box
        self._add(lower[None], upper[None])

    def step(self) -> None:
        """Cut the largest boxes along the axis that moves the first layer most."""
        taken = [heapq.heappop(self._waiting) for _ in range(min(BATCH, len(self._waiting)))]
        lows, highs = [], []
        for _, _, lower, upper in taken:
            moves = [
                -1.0
                if middle(axis, lower[a], upper[a]) is None
                else float(np.ptp(axis.ends_of(lower[a], upper[a]) @ self.slopes, axis=0).sum())
                for a, axis in enumerate(self.problem.axes)
            ]
            if max(moves) < 0:
                continue
            for low, high in halves(self.problem, lower, upper, int(np.argmax(moves))):
                lows.append(low)
                highs.append(high)
        if lows:
            self._add(np.stack(lows), np.stack(highs))

    @property
    def slopes(self) -> Matrix:
        """Weights of the neurons of the first layer: the size of their weights after it."""
        layers = self.problem.layers
        if not layers:
            return np.ones((1, 1))
        return np.diag(np.abs(layers[0].weight).sum(axis=0))

    def _add(self, lower: Matrix, upper: Matrix) -> None:
        problem = self.problem
        least = np.tile(problem.constant + problem.combinations.min(axis=0), (len(lower), 1))
        most = np.tile(problem.constant + problem.combinations.max(axis=0), (len(lower), 1))
        for a, axis in enumerate(problem.axes):
            if axis.table is None:
                assert axis.slope is not None
                ends = [
                    (at[:, a] + axis.start)[:, None] * axis.slope[None] for at in (lower, upper)
                ]
                least += np.minimum(*ends)
                most += np.maximum(*ends)
                continue
            values = np.arange(len(axis.table))
            inside = (values >= lower[:, a, None]) & (values <= upper[:, a, None])
            least += np.where(inside[:, :, None], axis.table, np.inf).min(axis=1)
            most += np.where(inside[:, :, None], axis.table, -np.inf).max(axis=1)
        box = IntervalBox(least - problem.errors[0], most + problem.errors[0])
        for activation, layer in zip(problem.activations, problem.layers, strict=True):
            box = interval.affine(layer, interval.activate(activation, box))
        self.n_boxes += len(lower)
        decided = (box.lower[:, 0] > problem.threshold) | (box.upper[:, 0] < problem.threshold)
        for row in range(len(lower)):
            share = float(share_of(problem.axes, lower[row], upper[row]))
            if decided[row]:
                self.fair += share
            else:
                self._n += 1
                heapq.heappush(self._waiting, (-share, self._n, lower[row], upper[row]))


def measure(name: str, model: Model, seconds: float, *, baseline: bool) -> float:
    """Print one row; return the undecided share."""
    proof = HalfSpaces.of(model, uniform(model.space, Where()))
    assert isinstance(proof, HalfSpaces)
    started = time.process_time()
    proof.step()
    while not proof.done and time.process_time() - started < seconds:
        proof.step(0.1)
    used = time.process_time() - started
    undecided = float(1 - proof.fair - proof.unfair)
    row = (
        f"{name}: {seconds:g} s: fair {float(proof.fair):.4%}, unfair {float(proof.unfair):.4%}, "
        f"undecided {undecided:.4%}, {proof.n_boxes / used:,.0f} boxes/s"
    )
    if baseline:
        signs = Signs(proof.problems[0])
        started = time.process_time()
        while time.process_time() - started < seconds:
            signs.step()
        used = time.process_time() - started
        row += f"; signs: undecided {1 - signs.fair:.4%}, {signs.n_boxes / used:,.0f} boxes/s"
        row += f"; ratio {undecided / (1 - signs.fair):.3f}"
    print(row, flush=True)
    return undecided


def main() -> int:
    """Measure all networks."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--folder", type=Path, default=Path("networks"))
    parser.add_argument("--seconds", type=float, default=10.0)
    parser.add_argument("--long", type=float, default=60.0)
    parser.add_argument("--only", nargs="*", default=list(NETWORKS))
    parser.add_argument("--train", action="store_true", help="only train")
    options = parser.parse_args()
    options.folder.mkdir(parents=True, exist_ok=True)
    for name in options.only:
        model = trained(name, options.folder)
        if options.train:
            continue
        if options.seconds:
            measure(name, model, options.seconds, baseline=True)
        if options.long:
            measure(name, model, options.long, baseline=False)
    return 0


if __name__ == "__main__":
    sys.exit(main())
