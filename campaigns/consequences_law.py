"""Law School admissions with a fitted causal model: race, gender -> GPA, LSAT.

    python -m campaigns.consequences_law [--people 1500] [--epochs 30]

A network is trained on 70 % of the rows. The equations are fitted to the same people by least
squares. The other people are audited three times: with the default relation (only race and gender
differ), with the equations, and with the equations and GPA -> LSAT, a chain.
"""

import argparse
import time
from collections import Counter
from dataclasses import replace

import numpy as np

import feta
from campaigns.result import finish
from feta import datasets
from feta.arrays import Flags, Matrix
from feta.auditing.auditor import Auditor
from feta.auditing.block import blocks_in_memory
from feta.auditing.results import AuditResults
from feta.cli.demo import train_model
from feta.model import Model
from feta.relation.consequences import Consequences
from feta.relation.fitting import fit_equations, read_graph
from feta.space.attribute import Attribute, Integer, Levels
from feta.space.feature_space import FeatureSpace

BLOCK = 200

# Attributes with more values have no groups in the output.
MANY = 10

# People to whom votes are fitted.
FITTED = 1000

GRAPHS = {
    "race, gender -> GPA, LSAT": "race, gender -> gpa; race, gender -> lsat",
    "with the chain GPA -> LSAT": "race, gender -> gpa; race, gender, gpa -> lsat",
}


def main() -> None:
    """Run the campaign."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--people", type=int, default=1500)
    parser.add_argument("--rows", type=int, default=20_000)
    options = parser.parse_args()
    started = time.perf_counter()
    dataset = datasets.load("law")
    frame = dataset.frame
    whole = frame["lsat"] == frame["lsat"].round()
    exact = (frame["gpa"] * 100).round() / 100 == frame["gpa"]
    n_left_out = int((~(whole & exact)).sum())
    print(f"{n_left_out:,} of {len(frame):,} rows have other digits, and are left out")
    kept = np.flatnonzero(whole & exact)
    kept = np.sort(np.random.default_rng(0).permutation(kept)[: options.rows])
    with_steps: dict[str, Attribute] = {
        "lsat": Integer("lsat", 120, 184),
        "gpa": Levels.spaced("gpa", 0, 5, step=0.01),
    }
    space = FeatureSpace(tuple(with_steps.get(one.name, one) for one in dataset.space.attributes))
    dataset = replace(
        dataset,
        space=space,
        frame=frame.iloc[kept].reset_index(drop=True),
        labels=dataset.labels[kept],
    )
    people, labels = space.encode(dataset.frame), np.asarray(dataset.labels)
    train = np.random.default_rng(0).random(len(people)) < 0.7
    plain = train_model(dataset, people, train, 0)
    others = np.flatnonzero(~train)[: options.people]
    print(f"accuracy of the model: {(plain.decide(people[others]) == labels[others]).mean():.1%}")
    audit(plain, people[others], labels[others], people[train], "default")
    for name, graph in GRAPHS.items():
        fitted = fit_equations(space, people[train], read_graph(graph, space))
        for one in fitted:
            print("\n".join(f"    {line}" for line in one.diagnostics))
        relation = Consequences.of(space, *(one.entry for one in fitted))
        model = replace(plain, relation=relation, threshold=None)
        audit(model, people[others], labels[others], people[train], name)
    finish(Counter({"audits": 3}), started)


def audit(model: Model, people: Matrix, labels: Flags, known: Matrix, name: str) -> None:
    """Print the figures of one relation."""
    auditor, results = Auditor(model), AuditResults.of(model)
    began = time.process_time()
    for block in blocks_in_memory(people, BLOCK, [bool(label) for label in labels]):
        results.add(block.audited(auditor.audit(block.people)))
    seconds = (time.process_time() - began) / len(people)
    summary = results.summary
    counts = np.array([model.relation.count(person) for person in people])
    print(f"{name}: {seconds * 1e3:.2f} ms of processor time per person")
    print(f"    CE rate {summary.ce_rate:.1%}, alone {dict(summary.alone)}")
    print(f"    undecided {summary.statuses['undecided']}, nobody {summary.nobody}")
    print(f"    counterparts left out {1 - counts.mean() / model.relation.size:.2%}")
    for attribute in [axis.attribute.name for axis in model.relation.axes if len(axis) < MANY]:
        for group, members in results.groups.present(attribute):
            rate = members.unfair / members.people
            print(f"    CE rate, {attribute} {group}: {rate:.1%} of {members.people}")
    for view in results.top_pairs.pairs(auditor)[:2]:
        changes = {key: (view.before[key], view.after[key]) for key in view.changed}
        print("    pair:", changes, [model.outcomes[index] for index in view.pair.decisions])
    equal = feta.FairPredictor(model).decide(people)
    own = model.decide(people)
    print(f"    equal majority: flips {(equal != own).mean():.1%}, ", end="")
    print(f"accuracy {(equal == labels).mean():.1%}")
    fitted = feta.FairPredictor.fitted(model, known[:FITTED], vote="mean_score")
    decided = fitted.decide(people)
    print(f"    mean score, fitted: flips {(decided != own).mean():.1%}, ", end="")
    print(f"accuracy {(decided == labels).mean():.1%}")


if __name__ == "__main__":
    main()
