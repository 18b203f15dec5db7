"""Campaign of tree ensembles: scores of the readers against those of the libraries, bit for bit.

    python -m campaigns.tree_bits [--rows 10000] [--quick] [--only "one-hot: XGBoost.*dart"]

Models are trained on Adult (`FETA_DATA_DIR`) and German, with one cell of ten missing. Tables have
one column per category ("one-hot") or native categories. All scores are compared, and decisions of
classifiers. `--quick` trains a tenth of the trees. `--only` is a regular expression; models whose
line of the output does not match it are not trained.
"""

import argparse
import re
import sys
import time
from collections import Counter
from collections.abc import Callable
from dataclasses import replace

import numpy as np
import pandas as pd

import feta
from campaigns.other_trees import compare_catboost, compare_onnx, other_versions
from campaigns.result import finish
from campaigns.tree_sources import LIBRARIES, REGRESSION, Part, Table, Trained
from feta import datasets
from feta.arrays import Array, Matrix
from feta.space.attribute import Attribute, Categorical
from feta.space.feature_space import FeatureSpace

MISSING_SHARE = 0.1

# Libraries that need tables of their own: CatBoost's categories are never missing, and ONNX graphs
# are converted from models of other libraries and compared with onnxruntime with one thread.
OTHERS = {"CatBoost": compare_catboost, "ONNX": compare_onnx}

# Rows that are evaluated at once: memory grows with rows times trees.
CHUNK = 1000


def load_tables(name: str) -> tuple[Table, Table]:
    """Return a dataset with native categories, and with one column per category."""
    data = datasets.load(name)
    attributes = [a for a in data.space.attributes if not isinstance(a, feta.Derived)]
    frame = data.frame[[a.name for a in attributes]].copy()
    numbers = [a.name for a in attributes if not isinstance(a, Categorical)]
    middle = (frame[numbers[0]] > frame[numbers[0]].median()).to_numpy()
    labels = {2: data.labels.astype(int), 3: data.labels.astype(int) + middle}
    labels[REGRESSION] = frame[numbers[1]].to_numpy(dtype=float) + data.labels
    rng = np.random.default_rng(0)
    for attribute in attributes:
        column = frame[attribute.name]
        if isinstance(attribute, Categorical):
            column = column.astype(object)
            frame[attribute.name] = pd.Categorical(
                column.where(rng.random(len(frame)) >= MISSING_SHARE, None),
                categories=sorted(attribute.values),
            )
        else:
            frame[attribute.name] = column.astype(float).mask(
                rng.random(len(frame)) < MISSING_SHARE
            )
    space = FeatureSpace(tuple(replace(attribute, missing=True) for attribute in attributes))
    native = Table(f"{name}, native categories", frame, labels, space, native=True)
    return native, one_hot(name, native)


def one_hot(name: str, native: Table) -> Table:
    """Return the table with one column of 0 and 1 per category."""
    columns: dict[str, pd.Series] = {}
    attributes: list[Attribute] = []
    for attribute in native.space.attributes:
        column = native.frame[attribute.name]
        if not isinstance(attribute, Categorical):
            columns[attribute.name] = column
            attributes.append(attribute)
            continue
        for index, value in enumerate(attribute.values):
            columns[f"{attribute.name}_{index}"] = (column == value).astype(int)
            attributes.append(Categorical(f"{attribute.name}_{index}", (0, 1)))
    frame, space = pd.DataFrame(columns), FeatureSpace(tuple(attributes))
    return Table(f"{name}, one-hot", frame, native.labels, space, native=False)


def in_chunks(function: Callable[[Matrix], Array], people: Matrix) -> Array:
    """Return the results of a function for all people, in parts that fit in memory."""
    parts = [function(people[start : start + CHUNK]) for start in range(0, len(people), CHUNK)]
    return np.concatenate(parts)


def resolved(model: feta.Model, people: Matrix) -> Array:
    """Return decisions, and whether they are safe in the library's arithmetic."""
    batch = model.resolve(model.points(people), model.rule)
    return np.stack([batch.decisions, batch.runtime_safe], axis=1)


def compare(table: Table, trained: Trained, rows: pd.DataFrame, counts: Counter[str]) -> float:
    """Compare scores and decisions; return the share of equal scores."""
    people = table.space.encode(rows)
    expected = trained.scores(rows)
    same = in_chunks(trained.forest, people).reshape(expected.shape) == expected
    counts["scores compared"] += same.size
    counts["WRONG scores"] += int((~same).sum())
    if trained.same_from_files is not None:
        counts["models read from files"] += 1
        counts["WRONG models from files"] += not trained.same_from_files
    if trained.labels is not None:
        rule = feta.Argmax(tuple("abc")) if trained.classes > 2 else feta.Threshold(0.0)
        model = feta.Model(table.space, trained.forest, rule)
        decided = in_chunks(lambda part: resolved(model, part), people)
        different = decided[:, 0] != trained.labels(rows)
        counts["decisions compared"] += len(different)
        counts["WRONG decisions"] += int((different & (decided[:, 1] == 1)).sum())
        # The library's rounded sum ties, or the exact sum does; the label says so.
        counts["decisions that differ, labeled sensitive"] += int(
            (different & (decided[:, 1] == 0)).sum()
        )
    return float(same.mean())


def compare_all(table: Table, options: argparse.Namespace, counts: Counter[str]) -> None:
    """Compare the models of all libraries on one table."""

    def part(library: str) -> Part:
        """Return the models of a library that the options select."""
        line = f"{table.name}: {library}, "
        return Part(
            lambda model: re.search(options.only, line + model) is not None,
            10 if options.quick else 1,
            options.rows,
        )

    for library, models in LIBRARIES.items():
        begun = time.perf_counter()
        for trained in models(table, part(library)):
            share = compare(table, trained, part(library).rows(table), counts)
            seconds, begun = time.perf_counter() - begun, time.perf_counter()
            report = f"{table.name}: {library}, {trained.name}"
            report += f", {len(trained.forest.trees.roots)} trees"
            print(f"{report}: {share:.4%} of the scores, {seconds:.1f} s", flush=True)
    for library, compare_models in OTHERS.items():
        compare_models(table, part(library), counts)


def main() -> int:
    """Run the campaign."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rows", type=int, default=10_000)
    parser.add_argument("--quick", action="store_true")
    parser.add_argument("--data", nargs="*", default=["german", "adult"])
    parser.add_argument("--only", default="", help="a pattern of models, such as CatBoost")
    options = parser.parse_args()
    started = time.perf_counter()
    print(", ".join(LIBRARIES), other_versions(), sep=", ")
    counts: Counter[str] = Counter({"WRONG scores": 0, "WRONG decisions": 0})
    for name in options.data:
        for table in load_tables(name):
            compare_all(table, options, counts)
    return finish(counts, started)


if __name__ == "__main__":
    sys.exit(main())
