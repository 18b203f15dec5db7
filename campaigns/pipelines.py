"""Campaign of scikit-learn pipelines of many shapes, compared with their predict.

    python -m campaigns.pipelines [--pipelines 30] [--rows 10000] [--seed 0] [--people 60]

It draws raw rows from the whole space and compares decisions and scores. Then it audits some people
and evaluates the pipeline's predict on every pair. A decision may differ only if FETA calls it
runtime-sensitive.
"""

import argparse
import sys
import time
import warnings
from collections import Counter

import numpy as np
import pandas as pd
from sklearn.base import BaseEstimator
from sklearn.compose import ColumnTransformer
from sklearn.decomposition import PCA, FactorAnalysis, TruncatedSVD
from sklearn.feature_selection import SelectKBest, VarianceThreshold
from sklearn.impute import KNNImputer, MissingIndicator, SimpleImputer
from sklearn.linear_model import LinearRegression, LogisticRegression
from sklearn.neural_network import MLPClassifier, MLPRegressor
from sklearn.pipeline import FeatureUnion, Pipeline, make_pipeline
from sklearn.preprocessing import (
    Binarizer,
    FunctionTransformer,
    KBinsDiscretizer,
    MaxAbsScaler,
    MinMaxScaler,
    OneHotEncoder,
    OrdinalEncoder,
    PolynomialFeatures,
    PowerTransformer,
    QuantileTransformer,
    RobustScaler,
    SplineTransformer,
    StandardScaler,
    TargetEncoder,
)

import feta
from campaigns.result import finish
from feta.arrays import Answers, Matrix
from feta.io.raw_table import RawTable
from feta.model import Model
from feta.readers.sklearn.pipeline import raw_table
from feta.space.sampling import draw_people

SPACE = feta.FeatureSpace(
    (
        feta.Integer("age", 18, 80, sensitive=True),
        feta.Categorical("sex", ("female", "male"), sensitive=True),
        feta.Derived("age_band", "age", (("young", 18, 30), ("middle", 31, 55), ("old", 56, 80))),
        feta.Categorical("town", ("Bonn", "Kiel", "Ulm", "Wien"), missing=True),
        feta.Categorical("member", (False, True)),
        feta.Integer("hours", 0, 60, missing=True),
        feta.Levels("rooms", (1.0, 1.5, 2.0, 2.5, 3.0, 4.0)),
        feta.Real("income", 0.0, 120_000.0, missing=True),
        feta.Real("debt", -500.0, 9_000.0),
    )
)
NUMBERS = ["income", "debt"]
FINITE = ["age", "rooms"]
TEXTS = ["sex", "town", "age_band", "member"]


def people_and_labels(rng: np.random.Generator, n_people: int) -> tuple[pd.DataFrame, Answers]:
    """Draw a raw table, and a score to learn."""
    people = draw_people(SPACE, rng, n_people)
    names = tuple(attribute.name for attribute in SPACE.attributes)
    frame = RawTable(SPACE, names)(people)
    assert isinstance(frame, pd.DataFrame)
    weights = rng.normal(size=4)
    score = weights[0] * (frame["age"] - 45) / 15 + weights[1] * (frame["sex"] == "male")
    score += weights[2] * (frame["income"].fillna(40_000) / 60_000 - 1) + weights[3] * frame[
        "member"
    ].astype(float)
    score = score.to_numpy(dtype=np.float64)
    return frame, score - np.median(score) + rng.normal(scale=0.3, size=n_people)


def one_hot(**options: object) -> OneHotEncoder:
    """Return a one-hot encoder."""
    return OneHotEncoder(**({"handle_unknown": "ignore"} | options))


def imputed(*steps: BaseEstimator, **options: object) -> Pipeline:
    """Return an imputer and steps after it."""
    return make_pipeline(SimpleImputer(**options), *steps)


def columns(*parts: tuple[BaseEstimator, list[str]], **options: object) -> ColumnTransformer:
    """Transform columns by different steps."""
    steps = [(f"part{index}", step, names) for index, (step, names) in enumerate(parts)]
    return ColumnTransformer(steps, **options)


def scaled_numbers() -> tuple[Pipeline, list[str]]:
    """Return the part that many shapes have: numbers, imputed and scaled."""
    return imputed(StandardScaler()), [*NUMBERS, *FINITE, "hours"]


def shapes() -> dict[str, BaseEstimator]:
    """Return preprocessing of many shapes, by name."""
    texts = (one_hot(), TEXTS)
    bins = KBinsDiscretizer(5, encode="onehot", quantile_method="averaged_inverted_cdf")
    ordinal = KBinsDiscretizer(4, encode="ordinal", strategy="uniform")
    codes = OrdinalEncoder(
        handle_unknown="use_encoded_value", unknown_value=-1, encoded_missing_value=-2
    )
    log = FunctionTransformer(np.log1p, feature_names_out="one-to-one")
    return {
        "scaled, one-hot": columns(scaled_numbers(), texts),
        "robust": columns((imputed(RobustScaler()), NUMBERS), (RobustScaler(), FINITE), texts),
        "min and max": columns((imputed(MinMaxScaler()), [*NUMBERS, *FINITE]), texts),
        "clipped ages": columns(
            (MinMaxScaler(clip=True), FINITE), (imputed(MaxAbsScaler()), NUMBERS)
        ),
        "median and indicator": columns(
            (imputed(StandardScaler(), strategy="median", add_indicator=True), [*NUMBERS, "hours"]),
            texts,
        ),
        "constant fill": columns(
            (imputed(strategy="constant", fill_value=-1.0), [*NUMBERS, "hours", "age"]),
            (one_hot(), ["sex"]),
        ),
        "most frequent town": columns(
            scaled_numbers(), (imputed(one_hot(), strategy="most_frequent"), ["town", "sex"])
        ),
        "drop first": columns(scaled_numbers(), (one_hot(drop="first"), TEXTS)),
        "drop if binary": columns(scaled_numbers(), (one_hot(drop="if_binary"), TEXTS)),
        "infrequent": columns(
            scaled_numbers(),
            (one_hot(handle_unknown="infrequent_if_exist", min_frequency=0.22), TEXTS),
        ),
        "dense": columns(
            scaled_numbers(),
            (one_hot(sparse_output=False, max_categories=3), TEXTS),
            sparse_threshold=0.0,
        ),
        "ordinal": columns(scaled_numbers(), (codes, TEXTS)),
        "target": columns(
            scaled_numbers(), (TargetEncoder(random_state=0), ["sex", "town", "age_band"])
        ),
        "target of ages": columns(
            (TargetEncoder(random_state=0), ["age", "rooms"]), (imputed(StandardScaler()), NUMBERS)
        ),
        "bins of ages": columns((bins, ["age"]), (imputed(StandardScaler()), NUMBERS), texts),
        "ordinal bins": columns((ordinal, ["age", "rooms"]), (imputed(ordinal), ["hours"]), texts),
        "splines": columns(
            (SplineTransformer(4), ["age"]), (imputed(SplineTransformer(3)), ["hours"]), texts
        ),
        "quantiles": columns(
            (QuantileTransformer(n_quantiles=50), FINITE), (imputed(StandardScaler()), NUMBERS)
        ),
        "power": columns((PowerTransformer(), FINITE), (imputed(MinMaxScaler()), NUMBERS), texts),
        "log of integers": columns((log, FINITE), (imputed(StandardScaler()), NUMBERS)),
        "binarized": columns((Binarizer(threshold=40.5), ["age"]), scaled_numbers()),
        "age and its square": columns(
            (make_pipeline(PolynomialFeatures(3, include_bias=True), StandardScaler()), ["age"]),
            (imputed(StandardScaler()), NUMBERS),
            texts,
        ),
        "age and its band": columns(
            (make_pipeline(FeatureUnion([("one", StandardScaler()), ("two", bins)])), ["age"]),
            (one_hot(), ["age_band"]),
            (imputed(StandardScaler()), NUMBERS),
        ),
        "PCA after one-hot": make_pipeline(
            columns(scaled_numbers(), (one_hot(sparse_output=False), TEXTS), sparse_threshold=0.0),
            PCA(6),
        ),
        "whitened PCA, scaled again": make_pipeline(
            columns(scaled_numbers(), texts, sparse_threshold=0.0),
            PCA(5, whiten=True),
            StandardScaler(),
        ),
        "truncated SVD": make_pipeline(
            columns(scaled_numbers(), texts), TruncatedSVD(6, random_state=0)
        ),
        "factor analysis": make_pipeline(
            columns(scaled_numbers(), texts, sparse_threshold=0.0),
            FactorAnalysis(4, random_state=0),
        ),
        "selected": make_pipeline(
            columns(scaled_numbers(), texts, sparse_threshold=0.0),
            VarianceThreshold(),
            SelectKBest(k=6),
        ),
        "missingness only": columns(
            (MissingIndicator(features="all"), [*NUMBERS, "hours"]),
            (StandardScaler(), ["age"]),
            (one_hot(), ["sex"]),
        ),
        "nothing missing for the neighbors": columns(
            (KNNImputer(), ["debt", "rooms", "age"]), texts
        ),
        "passed through": columns(
            ("passthrough", ["age", "rooms", "debt"]), (one_hot(), ["sex"]), remainder="drop"
        ),
        "pandas between": columns(
            scaled_numbers(), (one_hot(sparse_output=False), TEXTS), verbose_feature_names_out=True
        ).set_output(transform="pandas"),
        "custom code": make_pipeline(
            columns(scaled_numbers(), texts, sparse_threshold=0.0), FunctionTransformer(halved)
        ),
        "custom code on ages": columns(
            (FunctionTransformer(decades), ["age"]), (imputed(StandardScaler()), NUMBERS), texts
        ),
    }


def halved(table: Matrix) -> Matrix:
    """Halve, in code that FETA does not know."""
    return table / 2 - 0.25


def decades(table: Matrix) -> Matrix:
    """Count decades, in code that FETA does not know."""
    return np.floor(np.asarray(table, dtype=np.float64) / 10) % 3


def estimator(number: int, seed: int) -> BaseEstimator:
    """Return a network or a linear model, alternately."""
    options = {"max_iter": 40, "random_state": seed, "hidden_layer_sizes": (12, 8)}
    return [
        MLPClassifier(**options),
        LogisticRegression(max_iter=40),
        MLPClassifier(**options | {"hidden_layer_sizes": (10,)}),
        MLPRegressor(**options),
        MLPClassifier(**options, alpha=0.1),
        LinearRegression(),
    ][number % 6]


def read(pipeline: Pipeline, spread: float) -> Model:
    """Read a fitted pipeline."""
    network = feta.read_sklearn(pipeline, SPACE)
    if not hasattr(pipeline, "classes_"):
        return Model(SPACE, network, feta.Tolerance(0.5 * spread))
    names = tuple(map(str, pipeline.classes_))
    return (
        Model(SPACE, network, outcomes=names)
        if len(names) == 2
        else Model(SPACE, network, feta.Argmax(names))
    )


def compare(
    pipeline: Pipeline, model: Model, rng: np.random.Generator, n_rows: int
) -> Counter[str]:
    """Compare decisions, or scores, on rows drawn from the whole space."""
    counts: Counter[str] = Counter()
    people = draw_people(SPACE, rng, n_rows)
    predictions = np.asarray(pipeline.predict(raw_table(pipeline, SPACE)(people)))
    counts["rows compared"] += n_rows
    points = model.points(people)
    if model.rule.tolerance is not None:
        bounded = model.runtime_scores(points)
        distances = np.abs(bounded.values[:, 0] - predictions.ravel())
        counts["WRONG scores beyond the bound"] += int((distances > bounded.errors[:, 0]).sum())
        return counts
    result = model.resolve(points, model.rule)
    same = np.array(model.outcomes)[result.decisions.astype(int)] == predictions.astype(str)
    counts["rows runtime-sensitive"] += int((~result.runtime_safe).sum())
    counts["rows that differ, all sensitive"] += int((~same & ~result.runtime_safe).sum())
    counts["WRONG decisions"] += int((~same & result.runtime_safe).sum())
    return counts


def replay(pipeline: Pipeline, model: Model, frame: pd.DataFrame) -> Counter[str]:
    """Audit people, and evaluate the pipeline's predict on every pair."""
    audit = feta.audit(model, frame, replay=feta.runtime_of(pipeline, model))
    counts: Counter[str] = Counter(people=len(audit.findings), pairs=len(audit.pairs))
    for finding in audit.pairs:
        assert finding.pair is not None
        counts["pairs replayed"] += finding.replayed is True
        counts["pairs labeled sensitive"] += finding.replayed is False
        counts["WRONG pairs"] += finding.replayed is False and finding.pair.runtime == "safe"
    return counts


def run(pipelines: int, rows: int, seed: int, people: int) -> Counter[str]:
    """Check this many pipelines."""
    counts: Counter[str] = Counter()
    named_shapes = list(shapes().items())
    for number in range(pipelines):
        name, preprocessing = named_shapes[number % len(named_shapes)]
        rng = np.random.default_rng([seed, number])
        frame, score = people_and_labels(rng, 500)
        last = estimator(number + number // len(named_shapes), seed)
        labels = (
            score
            if not hasattr(last, "predict_proba")
            else np.digitize(score, [0.0] if number % 4 else [-0.5, 0.5])
        )
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            pipeline = make_pipeline(preprocessing, last).fit(frame, labels)
            model = read(pipeline, float(np.std(score)))
            counts.update(compare(pipeline, model, rng, rows))
            counts.update(replay(pipeline, model, frame.head(people)))
        counts["pipelines"] += 1
        counts[f"{model.network.provenance} pipelines"] += 1
        print(
            f"{number}: {name}, {type(last).__name__}, {model.network.provenance}, "
            f"{len(model.network.first.tables)} tables",
            file=sys.stderr,
        )
    return counts


def main() -> int:
    """Run from the command line; exit 1 on any disagreement."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--pipelines", type=int, default=34)
    parser.add_argument("--rows", type=int, default=10_000)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--people", type=int, default=60)
    options = parser.parse_args()
    started = time.perf_counter()
    return finish(run(options.pipelines, options.rows, options.seed, options.people), started)


if __name__ == "__main__":
    sys.exit(main())
