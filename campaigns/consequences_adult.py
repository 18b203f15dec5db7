"""UCI Adult with consequences: sex, marital status and age -> hours per week and occupation.

    python -m campaigns.consequences_adult [--people 150] [--trained 12000]

Age, marital status and sex are sensitive. The equation of the hours is fitted by least squares and
is answered by the kernel; occupations may change within four bands, and are enumerated.
"""

import argparse
import time
from collections import Counter
from dataclasses import replace
from typing import Any

import numpy as np

from campaigns.consequences_law import audit
from campaigns.result import finish
from feta import datasets
from feta.cli.demo import train_model
from feta.relation.consequences import Consequences
from feta.relation.fitting import fit_equations, read_graph

GRAPH = "sex, marital_status, age -> hours_per_week"

BANDS = {
    "professional": ["Exec-managerial", "Prof-specialty", "Protective-serv", "Tech-support"],
    "office": ["Adm-clerical", "Sales"],
    "manual": [
        "Armed-Forces",
        "Craft-repair",
        "Farming-fishing",
        "Handlers-cleaners",
        "Machine-op-inspct",
        "Transport-moving",
    ],
    "service": ["Other-service", "Priv-house-serv"],
}


def main() -> None:
    """Run the campaign."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--people", type=int, default=150)
    parser.add_argument("--trained", type=int, default=12_000)
    options = parser.parse_args()
    started = time.perf_counter()
    dataset = datasets.load("adult")
    people, labels = dataset.space.encode(dataset.frame), np.asarray(dataset.labels)
    order = np.random.default_rng(0).permutation(len(people))
    train = np.zeros(len(people), dtype=bool)
    train[order[: options.trained]] = True
    plain = train_model(dataset, people, train, 0)
    plain = plain.with_sensitive(("age", "marital_status", "sex"))
    others = order[options.trained :][: options.people]
    print(f"accuracy of the model: {(plain.decide(people[others]) == labels[others]).mean():.1%}")
    fitted = fit_equations(plain.space, people[train], read_graph(GRAPH, plain.space))
    print("\n".join(f"    {line}" for line in fitted[0].diagnostics))
    hours = fitted[0].entry
    groups = [{"when": {"sex": ["Female", "Male"]}, "map": BANDS}]
    occupation: dict[str, Any] = {"column": "occupation", "bands": groups}
    audit(plain, people[others], labels[others], people[train], "default")
    for name, entries in (("hours", [hours]), ("hours and occupation", [hours, occupation])):
        relation = Consequences.of(plain.space, *entries)
        model = replace(plain, relation=relation, threshold=None)
        print(f"by the kernel: {relation.separated is not None}")
        audit(model, people[others], labels[others], people[train], name)
    finish(Counter({"audits": 3}), started)


if __name__ == "__main__":
    main()
