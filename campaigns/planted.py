"""Campaign of a planted discrimination: how much of it blind networks and votes re-learn.

    python -m campaigns.planted [--seeds 8] [--correlation 0.9] [--scales 1 2 4 8]
                                [--rate 1e-3] [--epochs 60]

Networks 16-16, trained on 6,000 generated people per seed; the epoch with the lowest validation
loss is taken. "Plain" is the network itself, "vote" the mean probability over the counterparts with
empirical weights, by the scale of the sensitive columns in training. All figures are for 6,000
other people: the re-learned share of the planted effect with a 95 % interval over seeds, agreement
with the decisions of the true fair probability, and accuracy on the labels.
"""

import argparse
import time
from collections import defaultdict
from dataclasses import replace

import numpy as np

from feta import FairPredictor, Model, Threshold
from feta.arrays import Vector
from feta.train.plain import PlainTrainer
from feta.train.split import Split
from feta.train.task import Task
from feta_paper.planted import SPACE, Planted

N_PEOPLE = 6000

# Test people have other seeds than training people.
TEST_SEEDS = 10_000

# The 97.5 % quantile of Student's t distribution by degrees of freedom, from 1.
QUANTILES = (12.71, 4.30, 3.18, 2.78, 2.57, 2.45, 2.36, 2.31, 2.26, 2.23, 2.20, 2.18, 2.16, 2.14)

Figures = tuple[float, float, float]  # re-learned, agreement, accuracy


def probabilities(model: Model, people: Planted, trained: Planted | None) -> Vector:
    """Return what a model predicts, or what a vote fitted to other people predicts."""
    if trained is None:
        return np.asarray(1 / (1 + np.exp(-model.score(people.people))))
    vote = FairPredictor.fitted(model, trained.people, level="threshold")
    return vote.means(people.people).means


def figures(predictions: Vector, people: Planted) -> Figures:
    """Measure predictions."""
    favorable = predictions >= 0.5
    accuracy = float(np.mean(favorable == people.labels))
    return people.relearned(predictions), people.agreement(favorable), accuracy


def measure(
    trainer: PlainTrainer, trained: list[Planted], tested: list[Planted]
) -> dict[str, list[Figures]]:
    """Train one network per seed; measure it, and its vote unless it is blind."""
    task = Task(Threshold(0.0))
    splits = [
        Split.of(SPACE, task, people.people, people.labels, validation=None, seed=seed)
        for seed, people in enumerate(trained)
    ]
    results = defaultdict[str, list[Figures]](list)
    for run, own, others in zip(trainer.train_folds(splits), trained, tested, strict=True):
        model = Model(SPACE, run.network.with_link("logit"))
        name = "blind" if trainer.blind else "plain"
        results[name].append(figures(probabilities(model, others, None), others))
        if not trainer.blind:
            results["vote"].append(figures(probabilities(model, others, own), others))
    return results


def interval(shares: Vector) -> str:
    """Return the mean of one number per seed with its 95 % interval."""
    radius = QUANTILES[min(len(shares) - 1, len(QUANTILES)) - 1] * shares.std(ddof=1)
    return f"{shares.mean():.0%} ± {radius / np.sqrt(len(shares)):.0%}"


def show(name: str, results: list[Figures], first: list[Figures] | None) -> None:
    """Print the means over seeds; `first` is the vote to compare with, on the same people."""
    shares = np.array([share for share, _, _ in results])
    _, agreement, accuracy = np.mean(results, axis=0)
    line = f"{name}: re-learned {interval(shares)}"
    if first is not None:
        line += f" (minus the first: {interval(shares - [share for share, _, _ in first])})"
    print(f"{line}, agreement {agreement:.1%}, accuracy {accuracy:.2%}", flush=True)


def main() -> None:
    """Run the campaign."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--seeds", type=int, default=8)
    parser.add_argument("--correlation", type=float, default=0.9)
    parser.add_argument("--scales", type=float, nargs="*", default=[1.0, 2.0, 4.0, 8.0])
    parser.add_argument("--rate", type=float, default=1e-3)
    parser.add_argument("--epochs", type=int, default=60)
    options = parser.parse_args()
    seeds = range(options.seeds)
    trained = [Planted.of(N_PEOPLE, options.correlation, seed=seed) for seed in seeds]
    tested = [Planted.of(N_PEOPLE, options.correlation, seed=TEST_SEEDS + seed) for seed in seeds]
    trainer = PlainTrainer(
        SPACE,
        hidden=(16, 16),
        learning_rates=(options.rate,),
        batch_sizes=(128,),
        epochs=options.epochs,
    )
    blind = replace(trainer, blind=True)
    scaled = {f"scale {s:g}": replace(trainer, sensitive_scale=s) for s in options.scales}
    started, first = time.process_time(), None
    for label, variant in {"no group": blind, **scaled}.items():
        results = measure(variant, trained, tested)
        for name, values in results.items():
            show(f"{name}, {label}", values, first if name == "vote" else None)
        first = first or results.get("vote")
    print(f"{time.process_time() - started:.0f} s")


if __name__ == "__main__":
    main()
