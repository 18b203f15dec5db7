"""Campaign of scikit-learn's combinations, compared with their own `predict`.

    python -m campaigns.ensembles [--name adult] [--rows 10000] [--people 100] [--train 4000]

Calibrated classifiers (sigmoid, isotonic, temperature), soft and hard voting, stacking, and
bagging are fitted to pipelines of UCI Adult or German credit, with linear models, networks and
trees as members. Decisions on `--rows` people must be those of `predict`. Verdicts of `--people`
people must be those of brute force: `predict` for all counterparts, on Adult 740 by age, race and
sex. UCI Adult is read from the folder FETA_DATA_DIR.
"""

import argparse
import sys
import time
import warnings
from collections import Counter
from collections.abc import Callable
from dataclasses import replace
from itertools import product
from typing import Any

import numpy as np
import pandas as pd
from sklearn.calibration import CalibratedClassifierCV
from sklearn.compose import make_column_transformer
from sklearn.ensemble import BaggingClassifier, StackingClassifier, VotingClassifier
from sklearn.linear_model import LogisticRegression
from sklearn.neural_network import MLPClassifier
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import OneHotEncoder, StandardScaler
from sklearn.svm import LinearSVC
from sklearn.tree import DecisionTreeClassifier

import feta
from campaigns.result import finish
from feta import FeatureSpace, Model, datasets
from feta.readers.read_model import read_model
from feta.space.attribute import Categorical, Integer

# Adult has 212,380 counterparts with all of its sensitive attributes: too many for brute force.
SENSITIVE = ("age", "race", "sex")


def load(name: str, rng: np.random.Generator) -> tuple[FeatureSpace, pd.DataFrame, np.ndarray]:
    """Return a data set in random order, with few counterparts per person."""
    dataset = datasets.load(name)
    attributes = [
        replace(attribute, sensitive=attribute.name in SENSITIVE)
        if name == "adult" and isinstance(attribute, Categorical | Integer)
        else attribute
        for attribute in dataset.space.attributes
    ]
    order = rng.permutation(len(dataset.frame))
    frame = dataset.frame.iloc[order].reset_index(drop=True)
    return FeatureSpace(tuple(attributes)), frame, np.asarray(dataset.labels)[order]


def kinds(seed: int) -> dict[str, Callable[[], Any]]:
    """Return the combinations."""

    def linear() -> LogisticRegression:
        return LogisticRegression(max_iter=200)

    def network(activation: str) -> MLPClassifier:
        return MLPClassifier((8,), activation=activation, max_iter=12, random_state=seed)

    def tree() -> DecisionTreeClassifier:
        return DecisionTreeClassifier(max_depth=6, random_state=seed)

    def members() -> list[tuple[str, Any]]:
        return [("linear", linear()), ("tanh", network("tanh")), ("relu", network("relu"))]

    return {
        "calibrated, sigmoid": lambda: CalibratedClassifierCV(LinearSVC(), method="sigmoid", cv=3),
        "calibrated, isotonic": lambda: CalibratedClassifierCV(
            network("relu"), method="isotonic", cv=3
        ),
        "calibrated, temperature": lambda: CalibratedClassifierCV(
            linear(), method="temperature", cv=2
        ),
        "voting, soft": lambda: VotingClassifier(members(), voting="soft"),
        "voting, hard": lambda: VotingClassifier([*members(), ("tree", tree())], voting="hard"),
        "stacking": lambda: StackingClassifier(members(), LogisticRegression(), cv=2),
        "bagging": lambda: BaggingClassifier(linear(), n_estimators=5, random_state=seed),
        "bagging of trees": lambda: BaggingClassifier(tree(), n_estimators=5, random_state=seed),
    }


def preparation(space: FeatureSpace, frame: pd.DataFrame) -> Any:  # noqa: ANN401 - no types
    """Return scaling of numbers and one-hot columns of categories, unfitted."""
    numbers = [a.name for a in space.attributes if isinstance(a, Integer)]
    names = [name for name in frame.columns if name not in numbers]
    return make_column_transformer(
        (StandardScaler(), numbers),
        (OneHotEncoder(handle_unknown="ignore", sparse_output=False), names),
    )


def brute_force(source: Any, space: FeatureSpace, frame: pd.DataFrame, person: int) -> set[object]:  # noqa: ANN401 - no types
    """Return all decisions that counterparts of one row get, listed from the raw values."""
    values: dict[str, list[object]] = {}
    for attribute in space.sensitive:
        if isinstance(attribute, Integer):
            values[attribute.name] = list(range(int(attribute.low), int(attribute.high) + 1))
        elif isinstance(attribute, Categorical):
            values[attribute.name] = list(attribute.values)
    grid = pd.DataFrame(list(product(*values.values())), columns=list(values))
    rows = pd.concat([frame.iloc[[person]]] * len(grid), ignore_index=True)
    for name in grid.columns:
        rows[name] = grid[name].astype(frame[name].dtype)
    return set(source.predict(rows).tolist())


def main() -> int:
    """Run from the command line; exit 1 on any disagreement."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--name", default="adult", choices=["adult", "german"])
    parser.add_argument("--rows", type=int, default=10_000)
    parser.add_argument("--people", type=int, default=100)
    parser.add_argument("--train", type=int, default=4_000)
    parser.add_argument("--seed", type=int, default=0)
    options = parser.parse_args()
    started, counts = time.perf_counter(), Counter[str]()
    space, frame, labels = load(options.name, np.random.default_rng(options.seed))
    fitted, asked = frame.iloc[: options.train], frame.iloc[options.train :]
    asked = asked.iloc[: options.rows].reset_index(drop=True)
    encoded = space.encode(asked)
    for name, make in kinds(options.seed).items():
        source = make_pipeline(preparation(space, frame), make())
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            source.fit(fitted, labels[: options.train])
        model = Model(space, read_model(source, space, method="exact", people=encoded[:500]))
        decisions = model.decide(encoded)
        different = int((decisions != source.predict(asked)).sum())
        counts[f"{name}: decisions compared"] += len(asked)
        if different:
            counts[f"WRONG {name}: decisions"] += different
        for person in range(options.people):
            verdict = feta.verify(feta.FairAt(model, encoded[person]))
            fair = len(brute_force(source, space, asked, person)) == 1
            counts["fair people" if fair else "unfair people"] += 1
            if not isinstance(verdict, feta.Fair if fair else feta.Unfair):
                counts[f"WRONG {name}: verdict"] += 1
                print(f"{name}, person {person}: {verdict}, brute force {fair}", file=sys.stderr)
        print(f"{name}: {time.perf_counter() - started:.0f} s", flush=True)
    return finish(counts, started)


if __name__ == "__main__":
    raise SystemExit(main())
