"""Campaign of distillation on real people: how well one network imitates the fair decisions.

    python -m campaigns.distil [--datasets law adult] [--seeds 1] [--people N] [--scale 1]

A plain network is trained on four fifths of the people; `--scale` is the scale of the sensitive
columns in that training. The vote (mean probability, empirical weights, kept level) is fitted to
them and distilled with them. On the last fifth, whom neither the vote nor the network has seen, the
decisions of both are compared. Then the slopes of the sensitive columns are inspected, and people's
counterparts are drawn and compared.
"""

import argparse
import sys
import time
from collections import Counter
from dataclasses import asdict

import numpy as np

from campaigns.result import finish
from feta import FairPredictor, FeatureSpace, Model, datasets
from feta.arrays import Matrix
from feta.train.distil import distil
from feta.train.distil_report import DistilReport
from feta.train.plain import PlainTrainer

# What the imitation must reach on people that nothing was trained on.
AGREEMENT, KEPT, CONFIRMED = 0.97, 0.9, 0.9

# Counterparts drawn per person.
COUNTERPARTS = 20


def plain_trainer(space: FeatureSpace, seed: int, scale: float) -> PlainTrainer:
    """Return the trainer of three hidden layers of 16, without regard to fairness."""
    return PlainTrainer(
        space,
        learning_rates=(3e-3,),
        batch_sizes=(256,),
        epochs=20,
        seed=seed,
        sensitive_scale=scale,
    )


def counterexamples(model: Model, people: Matrix, rng: np.random.Generator) -> int:
    """Count the people of whom a drawn counterpart gets another decision."""
    lattice = model.space.lattice
    own, differs = model.decide(people), np.zeros(len(people), dtype=bool)
    for _ in range(COUNTERPARTS):
        ids = rng.integers(lattice.size, size=len(people))
        differs |= model.decide(lattice.moved(people, ids)) != own
    return int(differs.sum())


def run(name: str, seed: int, n_people: int | None, scale: float) -> Counter[str]:
    """Distil one vote; print the figures and count what falls short."""
    dataset = datasets.load(name)
    rng = np.random.default_rng(seed)
    order = rng.permutation(len(dataset.frame))[:n_people]
    people, labels = dataset.space.encode(dataset.frame)[order], np.asarray(dataset.labels)[order]
    test = np.arange(len(people)) < len(people) // 5
    plain = plain_trainer(dataset.space, seed, scale).train(people[~test], labels[~test])
    model = Model(dataset.space, plain.network.with_link("logit"))
    predictor = FairPredictor.fitted(model, people[~test])
    started = time.process_time()
    result = distil(predictor, people[~test], labels=labels[~test], seed=seed)
    seconds = time.process_time() - started
    report = DistilReport.of(
        result.model.decide(people[test]),
        predictor.decide(people[test]),
        labels[test],
        n_trained=result.report.n_trained,
        two_sided=True,
    )
    unseen = counterexamples(result.model, people[test], rng)
    own = float(np.mean(model.decide(people[test]) == labels[test]))
    print(
        f"{name} seed {seed}: {_words(report)}; plain network {own:.2%}; {seconds:.0f} s",
        flush=True,
    )
    return Counter(_shortfalls(name, report, result.model, unseen))


def _words(report: DistilReport) -> str:
    return ", ".join(
        f"{key} {value:.2%}" if isinstance(value, float) else f"{key} {value}"
        for key, value in asdict(report).items()
    )


def _shortfalls(name: str, report: DistilReport, model: Model, unseen: int) -> list[str]:
    """Name everything that falls short."""
    slopes = model.network.first.slopes[:, model.space.sensitive_columns]
    checks = {
        "agreement": report.agreement >= AGREEMENT,
        "kept": (report.kept or 0.0) >= KEPT,
        "confirmed": (report.confirmed or 0.0) >= CONFIRMED,
        "slopes": not slopes.any() and not model.network.first.tables,
        "counterexamples": not unseen,
    }
    return ["distilled", *(f"WRONG: {name}, {key}" for key, good in checks.items() if not good)]


def main() -> None:
    """Run the campaign."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--datasets", nargs="+", default=["law", "adult"])
    parser.add_argument("--seeds", type=int, default=1)
    parser.add_argument("--people", type=int, default=None)
    parser.add_argument("--scale", type=float, default=1.0)
    options = parser.parse_args()
    started, counts = time.perf_counter(), Counter[str]()
    for name in options.datasets:
        for seed in range(options.seeds):
            counts.update(run(name, seed, options.people, options.scale))
    sys.exit(finish(counts, started))


if __name__ == "__main__":
    main()
