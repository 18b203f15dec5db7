"""Adult with and without constraints, side by side: rates, accuracy, proxies, pairs and times.

    python -m campaigns.relations_adult [--people 2000]

A network is trained on 70 % of UCI Adult. Constraints are learned from the same people: the
combinations of marital status, sex, relationship and age, and of race and country, that occur, and
years of education less than the age. The other people are audited twice.
"""

import argparse
import time
from dataclasses import replace
from typing import Any

import numpy as np

import feta
from feta import datasets
from feta.arrays import Matrix
from feta.auditing.auditor import Auditor
from feta.auditing.block import blocks_in_memory
from feta.auditing.results import AuditResults
from feta.cli.demo import train_model
from feta.metrics.proxy_measures import measure_proxies
from feta.model import Model
from feta.relation.constrained import Constrained
from feta.relation.learning import learn_support
from feta.report.proxy_words import proxy_lines
from feta.vote.mean_decision import VoteName

BLOCK = 200

VOTES: tuple[VoteName, ...] = ("majority", "mean_score")


def main() -> None:
    """Run the campaign."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--people", type=int, default=2000)
    options = parser.parse_args()
    started = time.perf_counter()
    dataset = datasets.load("adult")
    people = dataset.space.encode(dataset.frame)
    train = np.random.default_rng(0).random(len(people)) < 0.7
    plain = train_model(dataset, people, train, 0)
    entries: list[str | dict[str, Any]] = [
        learn_support(
            plain.space, people[train], ["marital_status", "sex", "relationship", "age"], 20
        ),
        learn_support(plain.space, people[train], ["race", "native_country"], 5),
        "age - education_num >= 5",
    ]
    relation = Constrained.of(plain.space, *entries)
    model = replace(plain, relation=relation, threshold=None)
    chosen = np.flatnonzero(~train)[: options.people]
    compare(plain, model, people[chosen], np.asarray(dataset.labels)[chosen], people[train])
    print(f"{time.perf_counter() - started:.0f} s")


def compare(plain: Model, model: Model, people: Matrix, labels: np.ndarray, known: Matrix) -> None:
    """Print the figures of both relations."""
    relation = model.relation
    sizes = np.array([relation.count(person) for person in people])
    print(f"own values plausible: {relation.admits(people).mean():.2%}")
    print(f"implausible counterparts before: {1 - sizes.mean() / plain.relation.size:.2%}")
    people, labels = people[sizes > 0], labels[sizes > 0]
    for name, one in (("all combinations", plain), ("plausible", model)):
        auditor, results = Auditor(one), AuditResults.of(one)
        began = time.process_time()
        outcomes = [bool(label) for label in labels]
        for block in blocks_in_memory(people, BLOCK, outcomes):
            results.add(block.audited(auditor.audit(block.people)))
        seconds = (time.process_time() - began) / len(people)
        print(f"{name}: audited in {seconds * 1e3:.2f} ms of processor time per person")
        for key, value in results.summary.as_dict().items():
            if value is not None and value != []:
                print(f"    {key}: {value}")
        for view in results.top_pairs.pairs(auditor)[:3]:
            print("    pair:", {key: (view.before[key], view.after[key]) for key in view.changed})
        for vote in VOTES:
            weights = "equal" if vote == "majority" else "empirical"
            fitted = feta.FairPredictor.fitted(
                one,
                known[:5000],
                vote=vote,
                weights=weights,  # type: ignore[arg-type]  # one of the two names
            )
            fitted.decide(people[:20])
            began = time.process_time()
            right = fitted.decide(people) == labels
            seconds = (time.process_time() - began) / len(people)
            print(
                f"    vote {vote}: accuracy {right.mean():.2%}, {seconds * 1e3:.3f} ms per person"
            )
        measured = measure_proxies(one, people, labels.astype(float))
        for line in [] if measured is None else proxy_lines(measured):
            print(f"    {line}")


if __name__ == "__main__":
    main()
