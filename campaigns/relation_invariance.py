"""Campaign: fair decisions of counterparts are equal, whatever the batch, the order or the engine.

    python -m campaigns.relation_invariance [--relation constrained] [--rows 1000000]
        [--exhaustive 20000]

German credit. `constrained`: combinations of age, status and employment learned from the table;
people get other sensitive values, plausible or not. `consequences`: duration and amount follow
from age and status; people get any counterpart's row. Batches have different sizes and orders.
Everybody with one key must get one decision, and all decisions have one hash for both engines.
"""

import argparse
import hashlib
import sys
import time
from collections import Counter
from dataclasses import replace

import numpy as np

import feta
from campaigns.result import finish
from feta import datasets
from feta.arrays import Counts, Matrix
from feta.cli.demo import train_model
from feta.relation.consequences import Consequences
from feta.relation.constrained import Constrained
from feta.relation.learning import learn_support
from feta.relation.protocol import Relation
from feta.space.attribute import Categorical
from feta.space.feature_space import FeatureSpace
from feta.space.lattice import Lattice

LEAST = 3


def main() -> None:
    """Run the campaign."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--rows", type=int, default=1_000_000)
    parser.add_argument("--exhaustive", type=int, default=20_000)
    parser.add_argument("--relation", choices=KINDS, default="constrained")
    options = parser.parse_args()
    started, counts = time.perf_counter(), Counter[str]()
    dataset = datasets.load("german")
    people = dataset.space.encode(dataset.frame)
    plain = train_model(dataset, people, np.arange(len(people)) < 800, 0)
    relation = KINDS[options.relation](plain.space, people)
    model = replace(plain, relation=relation, threshold=None)
    for vote in ("majority", "mean_score"):
        predictor = feta.FairPredictor.fitted(
            model,
            people,
            vote=vote,
            level=None,
        )
        counts.update(_decided(predictor, people, options.rows // 2, options.exhaustive // 2))
    sys.exit(finish(counts, started))


def _constrained(space: FeatureSpace, people: Matrix) -> Relation:
    return Constrained.of(
        space,
        learn_support(space, people, ["employed_since", "age"], LEAST),
        learn_support(space, people, ["personal_status", "housing", "age"], LEAST),
    )


def _consequences(space: FeatureSpace, people: Matrix) -> Relation:
    del people
    status = space.attribute("personal_status")
    assert isinstance(status, Categorical)
    shifts = {str(value): -3.0 * index for index, value in enumerate(status.values)}
    relation = Consequences.of(
        space,
        {"column": "duration_months", "slopes": {"age": 0.1}},
        {
            "column": "amount_dm",
            "slopes": {"duration_months": 40, "age": 12.5},
            "shifts": {"personal_status": shifts},
        },
    )
    assert relation.separated is not None  # the kernel answers
    return relation


KINDS = {"constrained": _constrained, "consequences": _consequences}


def _moved(relation: Relation, people: Matrix, chosen: Counts, rng: np.random.Generator) -> Matrix:
    """Return one person per row with the same key as the chosen one."""
    if not relation.reads_sensitive:
        ids = rng.integers(0, relation.size, len(chosen))
        return Lattice(relation.axes).moved(people[chosen], ids)
    rows = []
    for person in people[chosen]:
        listed = relation.assignment_ids(person)
        assert listed is not None  # the relation is not complete
        rows.append(relation.counterpart(person, int(listed[rng.integers(len(listed))])))
    return np.array(rows)


def _decided(
    predictor: feta.FairPredictor, people: Matrix, n_rows: int, n_exhaustive: int
) -> Counter[str]:
    """Decide people with other sensitive values; return counts, WRONG if decisions differ."""
    model, rng, counts = predictor.model, np.random.default_rng(1), Counter[str]()
    sizes = np.array([model.relation.count(person) for person in people])
    people = people[sizes > 0]
    hashes = {}
    for engine, rows in (("lattice", n_rows), ("exhaustive", n_exhaustive)):
        asked = replace(predictor, engine=engine)
        known: dict[int, bool] = {}
        done = 0
        while done < rows:
            size = int(rng.integers(1, 2000 if engine == "lattice" else 50))
            chosen = rng.integers(0, len(people), min(size, rows - done))
            if not done:
                chosen = np.arange(len(people))[:rows]
            moved = _moved(model.relation, people, chosen, rng)
            for row, decision in zip(chosen.tolist(), asked.decide(moved).tolist(), strict=True):
                if known.setdefault(row, decision) != decision:
                    counts[f"WRONG: decisions of one class differ, {engine}"] += 1
            done += len(chosen)
        counts[f"rows decided by {engine}"] = done
        decisions = bytes(known[row] for row in range(len(people)))
        counts["people"] = len(people)
        hashes[engine] = hashlib.sha256(decisions).hexdigest()
    print(f"hashes: {hashes}")
    counts["WRONG: two hashes"] += len(set(hashes.values())) - 1
    return +counts


if __name__ == "__main__":
    main()
