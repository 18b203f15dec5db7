"""Campaign of reasons: the smallest changes, compared with all changes, on German credit.

    python -m campaigns.reasons [--people 100] [--columns 3] [--values 8]

Refused people of the table of `feta demo`, with the recommended vote. For each of them, some random
columns may change, numbers in steps that give a few values. The brute force changes records,
encodes and decides all of them, and knows nothing of the search. Nobody's reason may be a sensitive
column.
"""

import argparse
import re
import sys
import time
from collections import Counter
from fractions import Fraction
from itertools import combinations, product
from typing import Any

import numpy as np

from campaigns.fair_onnx import german
from campaigns.result import finish
from feta import Categorical, Changeable, Derived, FairPredictor, FeatureSpace, explain
from feta.reasons.choices import spreads
from feta.reasons.explanation import Finding
from feta.reasons.words import sentences
from feta.space.limits import limits_of

Sizes = dict[str, dict[Any, Fraction]]


def drawn(
    space: FeatureSpace, rng: np.random.Generator, *, n_columns: int, n_values: int
) -> list[Changeable]:
    """Return random columns that may change."""
    free = [a for a in space.attributes if not (isinstance(a, Derived) or space.is_sensitive(a))]
    changes = []
    for index in rng.choice(len(free), n_columns, replace=False).tolist():
        attribute = free[index]
        assert not isinstance(attribute, Derived)
        if isinstance(attribute, Categorical):
            changes.append(Changeable(attribute.name))
            continue
        low, high = limits_of(attribute)
        step = max(1, round((high - low) / n_values))
        direction = ("any", "up", "down")[rng.integers(3)]
        changes.append(Changeable(attribute.name, direction, step=step))  # type: ignore[arg-type]  # a choice
    return changes


def sizes_of(
    space: FeatureSpace,
    record: dict[str, Any],
    changes: list[Changeable],
    units: dict[str, float],
) -> Sizes:
    """Return the new values of each column with their sizes, by the definition."""
    sizes: Sizes = {}
    for change in changes:
        attribute, own = space.attribute(change.column), record[change.column]
        assert not isinstance(attribute, Derived)
        if isinstance(attribute, Categorical):
            sizes[change.column] = {v: Fraction(1) for v in attribute.values if v != own}
            continue
        low, high = limits_of(attribute)
        assert change.step is not None
        step, unit = int(change.step), Fraction(units[change.column])
        numbers = [n for n in range(int(low), int(high) + 1) if n != own and not (n - own) % step]
        if change.direction != "any":
            numbers = [n for n in numbers if (n > own) is (change.direction == "up")]
        sizes[change.column] = {n: abs(n - own) / unit for n in numbers}
    return sizes


def smallest(
    predictor: FairPredictor, record: dict[str, Any], sizes: Sizes
) -> tuple[int, Fraction] | None:
    """Decide all changed records; return the fewest columns and the smallest size."""
    space = predictor.model.space
    for number in range(1, len(sizes) + 1):
        records, totals = [], []
        for names in combinations(sizes, number):
            for values in product(*(sizes[name].items() for name in names)):
                records.append(record | {n: v for n, (v, _) in zip(names, values, strict=True)})
                totals.append(sum((size for _, size in values), Fraction(0)))
        if not records:
            continue
        approved = predictor.decide(space.encode(records, sensitive="ignore", limits="open"))
        reached = [total for total, yes in zip(totals, approved.tolist(), strict=True) if yes]
        if reached:
            return number, min(reached)
    return None


def main() -> None:
    """Run the campaign."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--people", type=int, default=100)
    parser.add_argument("--columns", type=int, default=3)
    parser.add_argument("--values", type=int, default=8)
    parser.add_argument("--seed", type=int, default=0)
    options = parser.parse_args()
    started, counts = time.perf_counter(), Counter[str]()
    rng = np.random.default_rng(options.seed)
    model, table = german()
    people = np.asarray(table)
    predictor, units = FairPredictor.fitted(model, people), spreads(model, people)
    sensitive = [a.name for a in model.space.attributes if model.space.is_sensitive(a)]
    refused = people[~predictor.decide(people)]
    chosen = rng.permutation(len(refused))[: options.people]
    decided = 0
    for person in refused[chosen]:
        record = model.space.decode(person)
        changes = drawn(model.space, rng, n_columns=options.columns, n_values=options.values)
        got = explain(predictor, person, changes, spreads=units)
        expected = smallest(predictor, record, sizes_of(model.space, record, changes, units))
        decided += got.decided
        if expected is None:
            right = got.finding is Finding.NONE and got.minimal
        else:
            right = got.finding is Finding.FOUND and got.minimal
            right = right and len(got.changes) == expected[0]
            right = right and abs(got.size - float(expected[1])) < 1e-9 * max(1.0, got.size)
        words = " ".join(sentences(got))
        named = [name for name in sensitive if re.search(rf"\b{re.escape(name)}\b", words)]
        counts[f"{got.finding}, {len(got.changes)} columns"] += 1
        counts["WRONG: not minimal"] += not right
        counts["WRONG: a sensitive column is named"] += bool(named)
    print(f"{len(chosen)} people, {decided:,} decisions by the search")
    sys.exit(finish(counts, started))


if __name__ == "__main__":
    main()
