"""Campaign of boosted trees: raw scores of the readers against those of the libraries, bit for bit.

    python -m campaigns.tree_bits [--rows 10000] [--quick]

Models are trained on Adult (`FETA_DATA_DIR`) and German, with one cell of ten missing. Tables have
one column per category ("one-hot") or native categories. All scores are compared, and decisions of
classifiers. `--quick` trains a tenth of the trees.
"""

import argparse
import sys
import time
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import Any

import lightgbm
import numpy as np
import pandas as pd
import xgboost

import feta
from campaigns.result import finish
from feta import datasets
from feta.arrays import Matrix
from feta.readers.lightgbm.read import read_lightgbm
from feta.readers.xgboost.read import read_xgboost
from feta.scorer.forest.forest import Forest
from feta.space.attribute import Attribute, Categorical
from feta.space.feature_space import FeatureSpace

MISSING_SHARE = 0.1

# Rows that are evaluated at once: memory grows with rows times trees.
CHUNK = 1000

RF = {"boosting_type": "rf", "bagging_freq": 1, "bagging_fraction": 0.632}


@dataclass(frozen=True)
class Table:
    """A table with missing cells, its labels for two and three classes, and its space."""

    name: str
    frame: pd.DataFrame
    labels: dict[int, np.ndarray]
    space: FeatureSpace


def load_tables(name: str) -> tuple[Table, Table]:
    """Return a dataset with native categories, and with one column per category."""
    data = datasets.load(name)
    attributes = [a for a in data.space.attributes if not isinstance(a, feta.Derived)]
    frame = data.frame[[a.name for a in attributes]].copy()
    numbers = [a.name for a in attributes if not isinstance(a, Categorical)]
    middle = frame[numbers[0]] > frame[numbers[0]].median()
    labels = {2: data.labels.astype(int), 3: data.labels.astype(int) + middle.to_numpy()}
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
    native = Table(f"{name}, native categories", frame, labels, space)
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
    frame = pd.DataFrame(columns)
    return Table(f"{name}, one-hot", frame, native.labels, FeatureSpace(tuple(attributes)))


def xgboost_models(table: Table, divisor: int) -> Iterator[tuple[str, Any, int]]:
    """Yield XGBoost's models with their names and numbers of classes."""
    common: dict[str, Any] = {"enable_categorical": True, "n_jobs": 2}
    cases: dict[str, tuple[dict[str, Any], int]] = {
        "100 x 6": ({"n_estimators": 100, "max_depth": 6}, 2),
        "500 x 8": ({"n_estimators": 500, "max_depth": 8}, 2),
        "dart": ({"n_estimators": 50, "max_depth": 6, "booster": "dart", "rate_drop": 0.1}, 2),
        "multi-class": ({"n_estimators": 50, "max_depth": 6}, 3),
        "multi-class dart": ({"n_estimators": 20, "booster": "dart", "rate_drop": 0.1}, 3),
    }
    for name, (settings, classes) in cases.items():
        settings["n_estimators"] = max(5, settings["n_estimators"] // divisor)
        model = xgboost.XGBClassifier(**settings, **common)
        yield name, model.fit(table.frame, table.labels[classes]), classes
    forest = xgboost.XGBRFClassifier(n_estimators=max(5, 100 // divisor), max_depth=8, **common)
    yield "rf", forest.fit(table.frame, table.labels[2]), 2


def lightgbm_models(table: Table, divisor: int) -> Iterator[tuple[str, Any, int]]:
    """Yield LightGBM's models with their names and numbers of classes."""
    cases: dict[str, tuple[dict[str, Any], int]] = {
        "gbdt": ({"n_estimators": 200}, 2),
        "dart": ({"n_estimators": 100, "boosting_type": "dart"}, 2),
        "rf": ({"n_estimators": 100, **RF}, 2),
        "multi-class": ({"n_estimators": 50}, 3),
        "multi-class rf": ({"n_estimators": 50, **RF}, 3),
        "zero is missing": ({"n_estimators": 100, "zero_as_missing": True}, 2),
        "nothing is missing": ({"n_estimators": 100, "use_missing": False}, 2),
        "sigmoid 2": ({"n_estimators": 50, "sigmoid": 2.0}, 2),
    }
    for name, (settings, classes) in cases.items():
        settings["n_estimators"] = max(5, settings["n_estimators"] // divisor)
        model = lightgbm.LGBMClassifier(verbose=-1, n_jobs=2, **settings)
        yield name, model.fit(table.frame, table.labels[classes]), classes


def forest_scores(forest: Forest, people: Matrix) -> Matrix:
    """Return the replayed scores, in parts that fit in memory."""
    parts = [forest(people[start : start + CHUNK]) for start in range(0, len(people), CHUNK)]
    return np.concatenate(parts)


def decisions(table: Table, forest: Forest, people: Matrix, classes: int) -> np.ndarray:
    """Return the decisions of a model with this scorer."""
    rule = feta.Argmax(tuple("abc")) if classes == 3 else feta.Threshold(0.0)
    model = feta.Model(table.space, forest, rule)
    parts = [model.decide(people[start : start + CHUNK]) for start in range(0, len(people), CHUNK)]
    return np.concatenate(parts).astype(int)


def compare(table: Table, library: str, divisor: int, n_rows: int, counts: Counter[str]) -> None:
    """Train, read and compare all models of a library on one table."""
    rows = table.frame.sample(min(n_rows, len(table.frame)), random_state=1)
    people = table.space.encode(rows)
    trained = xgboost_models if library == "XGBoost" else lightgbm_models
    for name, model, classes in trained(table, divisor):
        started = time.perf_counter()
        if library == "XGBoost":
            forest = read_xgboost(model, table.space)
            expected = model.predict(rows, output_margin=True)
            sources = {"": (forest, expected)}
            if "dart" in name:
                booster = model.get_booster()
                matrix = xgboost.DMatrix(rows, enable_categorical=True)
                margins = booster.predict(matrix, output_margin=True)
                sources[" (Booster)"] = (read_xgboost(booster, table.space), margins)
        else:
            forest = read_lightgbm(model, table.space)
            raw = model.predict(rows, raw_score=True) / forest.denominator
            sources = {"": (forest, raw * (2.0 if name == "sigmoid 2" else 1.0))}
        for kind, (scorer, scores) in sources.items():
            same = forest_scores(scorer, people).reshape(scores.shape) == scores
            report = f"{table.name}: {library} {name}{kind}, {len(scorer.trees.roots)} trees"
            seconds = time.perf_counter() - started
            print(f"{report}: {same.mean():.4%} of {same.size:,} scores, {seconds:.1f} s")
            counts["scores compared"] += same.size
            counts["WRONG scores"] += int((~same).sum())
        wrong = decisions(table, forest, people, classes) != model.predict(rows)
        counts["decisions compared"] += len(wrong)
        counts["WRONG decisions"] += int(wrong.sum())
        sys.stdout.flush()


def main() -> int:
    """Run the campaign."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rows", type=int, default=10_000)
    parser.add_argument("--quick", action="store_true")
    options = parser.parse_args()
    started = time.perf_counter()
    print(f"XGBoost {xgboost.__version__}, LightGBM {lightgbm.__version__}")
    counts: Counter[str] = Counter({"WRONG scores": 0, "WRONG decisions": 0})
    for name in ("german", "adult"):
        for table in load_tables(name):
            for library in ("XGBoost", "LightGBM"):
                compare(table, library, 10 if options.quick else 1, options.rows, counts)
    return finish(counts, started)


if __name__ == "__main__":
    sys.exit(main())
