"""Adult with and without constraints, side by side: rates, accuracy, proxies, pairs and times.

    python -m campaigns.relations_adult [--people 2000] [--rows 1000000] [--exhaustive 20000]

A network is trained on 70 % of UCI Adult. Constraints are learned from the same people: the
combinations of marital status, sex, relationship and age, and of race and country, that occur, and
years of education less than the age. The other people are audited twice. Then people get other
sensitive values, plausible or not, in batches of different sizes: fair decisions must be the same
for everybody with the same other columns, and have one hash for both engines.
"""

import argparse
import hashlib
import sys
import time
from collections import Counter
from dataclasses import replace
from typing import Any

import numpy as np

import feta
from campaigns.result import finish
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
from feta.vote.settings import WeightsName

BLOCK = 200

VOTES: tuple[VoteName, ...] = ("majority", "mean_probability")


def main() -> None:
    """Run the campaign."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--people", type=int, default=2000)
    parser.add_argument("--rows", type=int, default=1_000_000)
    parser.add_argument("--exhaustive", type=int, default=20_000)
    options = parser.parse_args()
    started, counts = time.perf_counter(), Counter[str]()
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
    predictor = feta.FairPredictor.fitted(model, people[train][:5000], level="threshold")
    counts.update(invariance(predictor, people[chosen], options.rows, options.exhaustive))
    sys.exit(finish(counts, started))


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
            weights: WeightsName = "equal" if vote == "majority" else "empirical"
            fitted = feta.FairPredictor.fitted(one, known[:5000], vote=vote, weights=weights)
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


def invariance(
    predictor: feta.FairPredictor, people: Matrix, n_rows: int, n_exhaustive: int
) -> Counter[str]:
    """Decide people with other sensitive values; return counts, WRONG if decisions differ."""
    model, rng, counts = predictor.model, np.random.default_rng(1), Counter[str]()
    people = people[[model.relation.count(person) > 0 for person in people]][:200]
    hashes = {}
    for engine, rows in (("lattice", n_rows), ("exhaustive", n_exhaustive)):
        asked = replace(predictor, engine=engine)
        known: dict[int, bool] = {}
        done = 0
        while done < rows:
            size = int(rng.integers(1, 2000 if engine == "lattice" else 50))
            chosen = rng.integers(0, len(people), min(size, rows - done))
            if not done:
                chosen = np.arange(len(people))
            ids = rng.integers(0, model.space.lattice.size, len(chosen))
            moved = model.space.lattice.moved(people[chosen], ids)
            for row, decision in zip(chosen.tolist(), asked.decide(moved).tolist(), strict=True):
                if known.setdefault(row, decision) != decision:
                    counts[f"WRONG: decisions of one class differ, {engine}"] += 1
            done += len(chosen)
        counts[f"rows decided by {engine}"] = done
        decisions = bytes(known[row] for row in range(len(people)))
        hashes[engine] = hashlib.sha256(decisions).hexdigest()
    print(f"hashes: {hashes}")
    counts["WRONG: two hashes"] += len(set(hashes.values())) - 1
    return +counts


if __name__ == "__main__":
    main()
