"""Campaign of whole lattices: FETA's answers on trees against the library's own predictions.

    python -m campaigns.tree_lattices [--german 200] [--adult 50]

Every counterpart of a person is a row of a table that the library predicts: German credit (456 per
person) with six models, Adult (212,380 per person; `FETA_DATA_DIR`) with XGBoost, one-hot and with
native categories. Verdicts, worst pairs, counts and majorities must be those of the predictions.
"""

import argparse
import sys
import time
from collections import Counter
from collections.abc import Callable, Iterator
from itertools import product

import lightgbm
import numpy as np
import pandas as pd
import xgboost
from sklearn import ensemble
from sklearn.pipeline import make_pipeline

import feta
from campaigns.result import finish
from campaigns.tree_sources import (
    Table,
    Trained,
    lightgbm_reading,
    preprocessing,
    sklearn_reading,
    xgboost_reading,
)
from feta import datasets
from feta.api import verify_many
from feta.arrays import Array
from feta.readers.xgboost.read import read_xgboost
from feta.space.attribute import Categorical, Derived, Integer, Real
from feta.space.feature_space import FeatureSpace
from tests import oracle

# Scores are compared within the rounding of the library's sums, relative to the largest score.
ROUNDING = {"float32": 1e-4, "float64": 1e-11}


def counterpart_table(space: FeatureSpace, row: pd.DataFrame) -> pd.DataFrame:
    """List all counterparts of a table's only row, in the types of its columns."""
    attributes = [a for a in space.attributes if not isinstance(a, Derived) and a.sensitive]
    values = list(product(*(oracle.values_of(attribute) for attribute in attributes)))
    table = row.loc[row.index.repeat(len(values))].reset_index(drop=True)
    for index, attribute in enumerate(attributes):
        column = pd.Series([combination[index] for combination in values], dtype=object)
        table[attribute.name] = column.astype(row[attribute.name].dtype)
    return table


def compare_people(
    model: feta.Model, trained: Trained, frame: pd.DataFrame, counts: Counter[str]
) -> list[str]:
    """Name what differs from the library's predictions for the people of a table."""
    people = model.space.encode(frame)
    answers = Answers(model, people)
    wrong: list[str] = []
    for row in range(len(frame)):
        table = counterpart_table(model.space, frame.iloc[[row]])
        wrong += differences(answers, row, trained, table)
        counts["counterparts compared"] += len(table)
        counts["people compared"] += 1
        counts["unfair people"] += isinstance(answers.fair[row], feta.Unfair)
        counts["runtime-sensitive people"] += not answers.tally.runtime_safe[row]
    return wrong


class Answers:
    """FETA's answers about some people."""

    def __init__(self, model: feta.Model, people: Array) -> None:
        self.model, self.people = model, people
        self.fair = verify_many(feta.FairAt.each(model, people), engine="lattice")
        self.worst = verify_many(feta.WorstAt.each(model, people), engine="lattice")
        self.tally = feta.tally(model, people, engine="lattice")
        self.decisions = feta.FairPredictor(model, "lattice").decide(people).astype(int)


def differences(answers: Answers, row: int, trained: Trained, table: pd.DataFrame) -> Iterator[str]:
    """Name what differs for one person, whose counterparts are the rows of a table."""
    assert trained.labels is not None
    labels = np.asarray(trained.labels(table)).astype(int)
    counted = np.bincount(labels, minlength=answers.model.rule.n_classes)
    kind = "" if answers.tally.runtime_safe[row] else " (runtime-sensitive)"
    if len(table) != answers.model.space.lattice.size:
        yield "number of counterparts"
    if isinstance(answers.fair[row], feta.Fair) != (len(set(labels.tolist())) == 1):
        yield f"verdict{kind}"
    if answers.tally.by_class[row].tolist() != counted.tolist():
        yield f"tally{kind}"
    majority = counted.argmax() if len(counted) > 2 else int(counted[1] >= counted[0])
    if answers.decisions[row] != majority:
        yield f"majority{kind}"
    yield from _wrong_worst(answers, row, trained, table, labels)


def _wrong_worst(
    answers: Answers, row: int, trained: Trained, table: pd.DataFrame, labels: Array
) -> Iterator[str]:
    """Compare the worst pair with the library's own scores."""
    model, verdict = answers.model, answers.worst[row]
    if model.rule.n_classes > 2 or not isinstance(verdict, feta.Unfair):
        return
    scores = trained.scores(table)
    score = scores[:, 1] - scores[:, 0] if scores.shape[1] == 2 else scores[:, 0]
    places = [
        int(model.space.lattice.assignment_ids(person[None, :])[0])
        for person in (verdict.counterexample.person, verdict.counterexample.counterpart)
    ]
    own, other = places
    if labels[own] == labels[other]:
        yield "worst: the library decides the same"
    gaps = np.abs(score - score[own])[labels != labels[own]]
    rounding = ROUNDING[trained.forest.summation.format] * max(1.0, float(np.abs(score).max()))
    if not verdict.optimal or abs(abs(score[other] - score[own]) - gaps.max()) > rounding:
        yield "worst: gap"
    if abs(verdict.counterexample.gap - gaps.max()) > rounding:
        yield "worst: reported gap"


def load_table(name: str) -> Table:
    """Return a dataset with native categories."""
    data = datasets.load(name)
    attributes = [a for a in data.space.attributes if not isinstance(a, Derived)]
    frame = data.frame[[a.name for a in attributes]].copy()
    for attribute in attributes:
        if isinstance(attribute, Categorical):
            frame[attribute.name] = pd.Categorical(frame[attribute.name], attribute.values)
    labels = {2: data.labels.astype(int)}
    return Table(name, frame, labels, FeatureSpace(tuple(attributes)), native=True)


def one_hot_columns(space: FeatureSpace, frame: pd.DataFrame) -> pd.DataFrame:
    """Return one column of 0 and 1 per category."""
    columns: dict[str, Array] = {}
    for attribute in space.attributes:
        values = frame[attribute.name]
        if isinstance(attribute, Categorical):
            codes = values.cat.codes.to_numpy()
            known = [values.cat.categories.get_loc(value) for value in attribute.values]
            for index, code in enumerate(known):
                columns[f"{attribute.name}_{index}"] = (codes == code).astype(np.int8)
        else:
            columns[attribute.name] = values.to_numpy()
    return pd.DataFrame(columns)


def xgboost_one_hot(table: Table, **settings: int) -> Trained:
    """Train on one column per category; the columns are those of encoded people."""
    space = table.space
    frame = one_hot_columns(space, table.frame)
    columns = tuple(
        Integer(name, 0, 1, sensitive=True) if set(frame[name]) <= {0, 1} else Real(name, -1e9, 1e9)
        for name in map(str, frame)
    )
    wrapper = xgboost.XGBClassifier(**settings, n_jobs=1).fit(frame, table.labels[2])
    forest = read_xgboost(wrapper, FeatureSpace(columns))
    assert forest.width == space.width

    def margins(rows: pd.DataFrame) -> Array:
        scores = wrapper.predict(one_hot_columns(space, rows), output_margin=True)
        return np.asarray(scores, dtype=np.float64)[:, None]

    def labels(rows: pd.DataFrame) -> Array:
        return np.asarray(wrapper.predict(one_hot_columns(space, rows)))

    return Trained("XGBoost, one-hot", 2, forest, margins, labels)


def xgboost_native(table: Table, **settings: int) -> Trained:
    """Train with native categories."""
    wrapper = xgboost.XGBClassifier(**settings, enable_categorical=True, n_jobs=1)
    wrapper.fit(table.frame, table.labels[2])
    return xgboost_reading("XGBoost, native categories", wrapper, 2, table.space)


def german_models(table: Table) -> Iterator[Trained]:
    """Yield the six models of German credit."""
    yield xgboost_one_hot(table, n_estimators=100, max_depth=6)
    yield xgboost_native(table, n_estimators=100, max_depth=6)
    model = lightgbm.LGBMClassifier(n_estimators=200, verbose=-1, n_jobs=1)
    model.fit(table.frame, table.labels[2])
    yield lightgbm_reading("LightGBM", model, 2, table.space)
    forest = ensemble.RandomForestClassifier(100, random_state=0)
    boosted = ensemble.GradientBoostingClassifier(random_state=0)
    for name, last in (("RandomForest", forest), ("GradientBoosting", boosted)):
        piped = make_pipeline(preprocessing(table, name), last)
        yield sklearn_reading(name, piped, table, 2)
    hist = ensemble.HistGradientBoostingClassifier(
        categorical_features="from_dtype", random_state=0
    )
    yield sklearn_reading("HistGradientBoosting, native", hist, table, 2)


def adult_models(table: Table) -> Iterator[Trained]:
    """Yield the models of Adult."""
    yield xgboost_one_hot(table, n_estimators=100, max_depth=6)
    yield xgboost_native(table, n_estimators=100, max_depth=6)


def run(
    name: str,
    n_people: int,
    models: Callable[[Table], Iterator[Trained]],
    counts: Counter[str],
) -> None:
    """Compare all models of a data set."""
    table = load_table(name)
    people = table.frame.sample(n_people, random_state=2)
    for trained in models(table):
        started = time.perf_counter()
        model, part = feta.Model(table.space, trained.forest), Counter[str]()
        wrong = compare_people(model, trained, people, part)
        for difference in wrong:
            counts[f"WRONG {name}, {trained.name}: {difference}"] += 1
        counts += part
        seconds = time.perf_counter() - started
        facts = ", ".join(f"{count:,} {kind}" for kind, count in part.items())
        print(f"{name}, {trained.name}: {facts}; {len(wrong)} differences, {seconds:.0f} s")
        sys.stdout.flush()


def main() -> int:
    """Run from the command line; exit 1 on any difference."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--german", type=int, default=200)
    parser.add_argument("--adult", type=int, default=50)
    options = parser.parse_args()
    started = time.perf_counter()
    counts: Counter[str] = Counter()
    if options.german:
        run("german", options.german, german_models, counts)
    if options.adult:
        run("adult", options.adult, adult_models, counts)
    return finish(counts, started)


if __name__ == "__main__":
    sys.exit(main())
