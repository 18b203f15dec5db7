"""FETA next to other tools, on the same people of German credit.

    python -m benchmarks.other_tools

Each tool makes a decision rule from 800 people; all rules are measured on the other 200: accuracy,
people with a counterexample among their 456 counterparts, people for whom the column foreign_worker
alone is enough, the largest difference between selection rates of groups of personal_status, and
AIF360's consistency. Every rule is evaluated on every counterpart. A random rule has a
counterexample if the probability of the favorable decision differs. Tools that are not installed
are left out: fairlearn, aif360, inFairness (with POT and cvxpy), fax-ai.
"""

import argparse
import time
import warnings
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from importlib.util import find_spec

import numpy as np
from sklearn.linear_model import LogisticRegression

import feta
from feta import datasets
from feta.arrays import Flags, Matrix, Vector
from feta.datasets.dataset import Dataset

# The probability of the favorable decision of each row; 0 or 1 for rules without chance.
Rule = Callable[[Matrix], Vector]

# Differences of probabilities that rounding may cause.
ROUNDING = 1e-9

MIN_PEOPLE = 10


@dataclass(frozen=True, eq=False)
class Task:
    """The people as numbers, with the same scaling for all tools."""

    dataset: Dataset
    people: Matrix
    test: Flags
    center: Vector
    scale: Vector

    @classmethod
    def load(cls, seed: int) -> "Task":
        """Split the people at random."""
        dataset = datasets.load("german")
        people = dataset.space.encode(dataset.frame)
        test = np.random.default_rng(seed).permutation(len(people)) < len(people) // 5
        train = people[~test]
        return cls(dataset, people, test, train.mean(axis=0), np.maximum(train.std(axis=0), 1e-9))

    def scaled(self, people: Matrix) -> Matrix:
        """Return people with mean 0 and deviation 1 per input."""
        return np.asarray((people - self.center) / self.scale)

    def columns(self, *names: str) -> list[int]:
        """Return the inputs of some attributes."""
        space = self.dataset.space
        chosen = [a for a in space.attributes if a.name in names]
        return [
            int(column) for a in chosen for column in np.arange(space.width)[space.columns_of(a)]
        ]

    def groups(self, people: Matrix) -> Vector:
        """Return the index of each person's personal_status."""
        return np.asarray(people[:, self.columns("personal_status")].argmax(axis=1))

    @property
    def labels(self) -> Flags:
        """The labels of the people on whom rules are fitted."""
        return np.asarray(self.dataset.labels[~self.test])

    @property
    def train(self) -> Matrix:
        """The people on whom rules are fitted."""
        return self.people[~self.test]


def logistic(task: Task, weights: Vector | None = None) -> LogisticRegression:
    """Fit the model that all tools start from."""
    model = LogisticRegression(max_iter=1000)
    return model.fit(task.scaled(task.train), task.labels, sample_weight=weights)


def decided(scores: Vector) -> Vector:
    """Return the probability of a favorable decision at the cut-off one half: 0 or 1."""
    return np.asarray(scores > 0.5, dtype=float)


def rules(task: Task) -> Iterator[tuple[str, Callable[[], Rule]]]:
    """Yield how each tool makes its rule."""
    yield "the model alone", lambda: _alone(task)
    yield "the model without the three columns", lambda: _without(task)
    if find_spec("fairlearn"):
        yield "Fairlearn, ThresholdOptimizer", lambda: _thresholds(task)
        yield "Fairlearn, ExponentiatedGradient", lambda: _gradient(task)
    if find_spec("aif360"):
        yield "AIF360, Reweighing", lambda: _reweighing(task)
    if find_spec("fax_ai"):
        yield "fax-ai, MIM on foreign_worker", lambda: _mixture(task)
    yield "FETA, votes of counterparts", lambda: _votes(task)


def _alone(task: Task) -> Rule:
    model = logistic(task)
    return lambda people: decided(model.predict_proba(task.scaled(people))[:, 1])


def _without(task: Task) -> Rule:
    sensitive = task.columns("age", "personal_status", "foreign_worker")
    kept = np.setdiff1d(np.arange(task.people.shape[1]), sensitive)
    model = LogisticRegression(max_iter=1000).fit(task.scaled(task.train)[:, kept], task.labels)
    return lambda people: decided(model.predict_proba(task.scaled(people)[:, kept])[:, 1])


def _thresholds(task: Task) -> Rule:
    from fairlearn.postprocessing import ThresholdOptimizer  # noqa: PLC0415 - optional

    rule = ThresholdOptimizer(estimator=logistic(task), prefit=True, predict_method="predict_proba")
    groups = task.groups(task.train)
    rule.fit(task.scaled(task.train), task.labels, sensitive_features=groups)
    chance = rule._pmf_predict  # noqa: SLF001 - the probabilities behind its random decisions
    return lambda people: np.asarray(
        chance(task.scaled(people), sensitive_features=task.groups(people))[:, 1]
    )


def _gradient(task: Task) -> Rule:
    from fairlearn.reductions import DemographicParity, ExponentiatedGradient  # noqa: PLC0415

    rule = ExponentiatedGradient(LogisticRegression(max_iter=1000), DemographicParity())
    groups = task.groups(task.train)
    rule.fit(task.scaled(task.train), task.labels, sensitive_features=groups)
    chance = rule._pmf_predict  # noqa: SLF001 - the probabilities behind its random decisions
    return lambda people: np.asarray(chance(task.scaled(people))[:, 1])


def _reweighing(task: Task) -> Rule:
    from aif360.sklearn.preprocessing import Reweighing  # noqa: PLC0415 - optional
    from pandas import DataFrame, MultiIndex, Series  # noqa: PLC0415

    index = MultiIndex.from_arrays([task.groups(task.train)], names=["status"])
    frame = DataFrame(task.scaled(task.train), index=index)
    _, weights = Reweighing("status").fit_transform(frame, Series(task.labels, index=index))
    model = logistic(task, np.asarray(weights))
    return lambda people: decided(model.predict_proba(task.scaled(people))[:, 1])


def _mixture(task: Task) -> Rule:
    import torch  # noqa: PLC0415 - fax-ai takes tensors
    from fax_ai import MIM  # noqa: PLC0415 - optional

    binary = task.columns("foreign_worker")
    kept = np.setdiff1d(np.arange(task.people.shape[1]), binary)
    rows = task.scaled(task.train)
    rule = MIM(rows[:, kept], rows[:, binary[:1]], task.labels)
    return lambda people: decided(
        rule.predict_proba(torch.from_numpy(task.scaled(people)[:, kept]))[:, 1]
    )


def _votes(task: Task) -> Rule:
    model = logistic(task)
    slopes = model.coef_[0] / task.scale
    bias = float(model.intercept_[0] - slopes @ task.center)
    network = feta.Network.from_layers([([slopes.tolist()], [bias])], sigmoid=True)
    fair = feta.FairPredictor.fitted(
        feta.Model(task.dataset.space, network, feta.Threshold.at_probability(0.5)),
        task.train,
        vote="mean_probability",
    )
    return lambda people: np.asarray(fair.decide(people), dtype=float)


@dataclass(frozen=True)
class Figures:
    """What was measured of a rule."""

    accuracy: float
    unfair: float
    by_foreign_worker: float
    difference: float
    consistency: float | None
    seconds: float

    def __str__(self) -> str:
        consistency = "-" if self.consistency is None else f"{self.consistency:.3f}"
        return (
            f"{self.accuracy:.1%} | {self.unfair:.1%} | {self.by_foreign_worker:.1%} | "
            f"{100 * self.difference:.1f} | {consistency} | {self.seconds:.1f}"
        )


def measured(task: Task, make: Callable[[], Rule]) -> Figures:
    """Fit a rule and measure it on the people that were held out."""
    started = time.process_time()
    rule = make()
    seconds = time.process_time() - started
    people, labels = task.people[task.test], task.dataset.labels[task.test]
    chances = rule(people)
    spans, alone = zip(*(_spans(task, rule, person) for person in people), strict=True)
    groups = task.groups(people)
    counts = np.bincount(groups)
    rates = [chances[groups == g].mean() for g in range(len(counts)) if counts[g] >= MIN_PEOPLE]
    return Figures(
        float(np.where(labels, chances, 1 - chances).mean()),
        float((np.array(spans) > ROUNDING).mean()),
        float((np.array(alone) > ROUNDING).mean()),
        float(max(rates) - min(rates)),
        _consistency(task.scaled(people), chances),
        seconds,
    )


def _spans(task: Task, rule: Rule, person: Vector) -> tuple[float, float]:
    """Return how far the chances of all counterparts span, and of those by foreign_worker alone."""
    counterparts = np.concatenate(list(task.dataset.space.lattice.counterparts(person)))
    chances = rule(counterparts)
    others = np.setdiff1d(np.arange(len(person)), task.columns("foreign_worker"))
    alone = chances[(counterparts[:, others] == person[others]).all(axis=1)]
    return float(np.ptp(chances)), float(np.ptp(alone))


def _consistency(rows: Matrix, chances: Vector) -> float | None:
    if not find_spec("aif360"):
        return None
    from aif360.sklearn.metrics import consistency_score  # noqa: PLC0415 - optional

    return float(consistency_score(rows, chances))


def attack(task: Task, steps: int) -> str:
    """Compare the search of inFairness with the exact answer, for the model alone."""
    import torch  # noqa: PLC0415 - inFairness takes tensors
    from inFairness.auditor import SenSeIAuditor  # noqa: PLC0415 - optional
    from inFairness.distances import (  # noqa: PLC0415
        SensitiveSubspaceDistance,
        SquaredEuclideanDistance,
    )

    torch.manual_seed(0)
    model = logistic(task)
    linear = torch.nn.Linear(task.people.shape[1], 1).double()
    with torch.no_grad():
        linear.weight.copy_(torch.from_numpy(model.coef_))
        linear.bias.copy_(torch.from_numpy(model.intercept_))
    network = torch.nn.Sequential(linear, torch.nn.Sigmoid())
    sensitive = task.columns("age", "personal_status", "foreign_worker")
    basis = torch.eye(task.people.shape[1], dtype=torch.float64)[:, sensitive]
    near, far = SensitiveSubspaceDistance(), SquaredEuclideanDistance()
    near.fit(basis)
    near.sigma = near.sigma.double()
    far.fit(num_dims=1)
    far.sigma = far.sigma.double()
    auditor = SenSeIAuditor(near, far, num_steps=steps, lr=0.1)
    rows = torch.from_numpy(task.scaled(task.people[task.test]))
    started = time.process_time()
    worst = auditor.generate_worst_case_examples(network, rows, torch.tensor(100.0))
    seconds = time.process_time() - started
    with torch.no_grad():
        flips = ((network(rows) > 0.5) != (network(worst) > 0.5)).float().mean()
        distance = (worst - rows)[:, sensitive].abs().max()
    return (
        f"inFairness, SenSeIAuditor, {steps} steps, first split: the decision of {flips:.1%} of "
        f"the people flips, {seconds:.1f} s; sensitive inputs move by up to {distance:.1f} "
        "deviations"
    )


def mean(figures: list[Figures]) -> Figures:
    """Return the mean of each figure over the splits."""
    consistencies = [one.consistency for one in figures if one.consistency is not None]
    return Figures(
        accuracy=float(np.mean([one.accuracy for one in figures])),
        unfair=float(np.mean([one.unfair for one in figures])),
        by_foreign_worker=float(np.mean([one.by_foreign_worker for one in figures])),
        difference=float(np.mean([one.difference for one in figures])),
        consistency=float(np.mean(consistencies)) if consistencies else None,
        seconds=float(np.mean([one.seconds for one in figures])),
    )


def main() -> None:
    """Print one row per tool."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--seeds", type=int, default=5, help="random splits of the people")
    tasks = [Task.load(seed) for seed in range(parser.parse_args().seeds)]
    warnings.simplefilter("ignore")
    print("| rule | accuracy | counterexample | by foreign_worker | difference | consistency | s |")
    print("|---|---|---|---|---|---|---|")
    for name in dict(rules(tasks[0])):
        figures = [measured(task, dict(rules(task))[name]) for task in tasks]
        print(f"| {name} | {mean(figures)} |", flush=True)
    if find_spec("inFairness"):
        print(attack(tasks[0], 200))


if __name__ == "__main__":
    main()
