"""Campaign of people outside the limits of columns that are not sensitive, by brute force.

    python -m campaigns.limits [--shapes 40] [--networks 60] [--seed 0]

It fits scikit-learn pipelines of many shapes, and moves people to 1e12, 1e35, 1e300, −1, half
steps, ±inf and just beyond each limit. Results are compared with the pipeline's predict on every
counterpart, enumerated here. A refusal must name that column and a reason. A decision may differ
only if FETA calls it runtime-sensitive. Networks without preprocessing (layers, torch, ONNX, weight
files) are compared with scores in exact fractions, where nothing may differ.
"""

import argparse
import sys
import tempfile
import time
import warnings
from collections import Counter
from collections.abc import Iterator
from itertools import product
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
from sklearn.base import BaseEstimator, TransformerMixin
from sklearn.compose import ColumnTransformer
from sklearn.decomposition import PCA, TruncatedSVD
from sklearn.frozen import FrozenEstimator
from sklearn.impute import KNNImputer, SimpleImputer
from sklearn.linear_model import LogisticRegression
from sklearn.neural_network import MLPClassifier
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
from campaigns.limits_networks import check_networks
from campaigns.result import finish
from feta.estimators.fair_classifier import FairClassifier
from feta.model import Model
from feta.space.attribute import Categorical, Integer

SPACE = feta.FeatureSpace(
    (
        feta.Integer("age", 18, 30, sensitive=True),
        feta.Categorical("sex", ("female", "male"), sensitive=True),
        feta.Integer("hours", 0, 60),
        feta.Levels("rooms", (1.0, 1.5, 2.0, 2.5, 3.0, 3.5, 4.0)),
        feta.Real("income", 0.0, 1000.0),
        feta.Integer("year", 2020, 2023),
        feta.Integer("office", 7, 7),
    )
)
SHARED = ["hours", "rooms", "income", "year", "office"]
SCALED = ["age", *SHARED]
BEYOND: dict[str, list[float]] = {
    "hours": [61, 75, 600, -1, -40, 60.5, 1e12, -1e12, 2.0**52, 1e16],
    "rooms": [4.5, 0.5, 4.25, -1, 12, 1e12],
    "income": [np.nextafter(1000, 2000), 1000.5, 1200, 4000, -1, -0.5, -900, 1e6, 1e12, -1e12],
    "year": [2024, 2019, 1990, 2023.5, -1, 9999, 1e12],
    "office": [8, 6, 1e12],
}
HUGE = [1e35, -1e35, 1e300, -1e300, np.inf, -np.inf, np.nan]

Row = dict[str, Any]


def draw_people(rng: np.random.Generator, n_people: int) -> tuple[pd.DataFrame, np.ndarray]:
    """Draw a table inside the limits, and labels."""
    frame = pd.DataFrame(
        {
            "age": rng.integers(18, 31, n_people),
            "sex": rng.choice(["female", "male"], n_people),
            "hours": rng.integers(0, 61, n_people),
            "rooms": rng.integers(2, 9, n_people) / 2,
            "income": rng.uniform(0, 1000, n_people).round(2),
            "year": rng.integers(2020, 2024, n_people),
            "office": np.full(n_people, 7),
        }
    )
    score = (frame["age"] - 24) / 4 * rng.normal() + (frame["sex"] == "male") * rng.normal()
    score += (frame["income"] - 500) / 600 + (frame["hours"] - 30) / 40 * rng.normal()
    score += (frame["rooms"] - 2.5) * rng.normal() / 2
    noisy = score.to_numpy() + rng.normal(scale=0.2, size=n_people)
    return frame, (noisy > np.median(noisy)).astype(int)


class Halved(TransformerMixin, BaseEstimator):  # type: ignore[misc]  # scikit-learn ships no types
    """Unknown code: affine within the limits of these columns, and not beyond."""

    def fit(self, X: pd.DataFrame, y: object = None) -> "Halved":  # noqa: N803
        """Store the number of columns."""
        del y
        self.width_ = X.shape[1]
        return self

    def transform(self, X: pd.DataFrame) -> np.ndarray:  # noqa: N803
        """Halve numbers up to a thousand."""
        numbers = np.asarray(X, dtype=np.float64)
        return np.where((numbers > 1000) | (numbers < 0), 3 - numbers, numbers / 2)


def columns(*parts: tuple[Any, list[str]], **options: object) -> ColumnTransformer:
    """Transform columns by different steps."""
    steps = [(f"part{index}", step, names) for index, (step, names) in enumerate(parts)]
    return ColumnTransformer(steps, **options)


def one_column(step: BaseEstimator, names: list[str]) -> ColumnTransformer:
    """Transform some columns by a step, and scale the others."""
    rest = [name for name in SCALED if name not in names]
    return columns((step, names), (StandardScaler(), rest), (OneHotEncoder(), ["sex"]))


def shapes() -> dict[str, BaseEstimator]:
    """Return preprocessing of many shapes, by name."""
    sex = (OneHotEncoder(sparse_output=False), ["sex"])
    ignore = OneHotEncoder(handle_unknown="ignore")
    codes = OrdinalEncoder(handle_unknown="use_encoded_value", unknown_value=-1)
    bins = KBinsDiscretizer(4, encode="ordinal", strategy="uniform")
    hot_bins = KBinsDiscretizer(4, quantile_method="averaged_inverted_cdf")
    twice = FeatureUnion([("one", StandardScaler()), ("two", StandardScaler())])
    finite = ["hours", "rooms"]
    transformers: dict[str, BaseEstimator] = {
        "standard": columns((StandardScaler(), SCALED), sex),
        "min and max": columns((MinMaxScaler(), SCALED), sex),
        "max abs": columns((MaxAbsScaler(), SCALED), sex),
        "robust": columns((RobustScaler(), SCALED), sex),
        "passed through": columns(("passthrough", SCALED), sex),
        "dropped": columns((StandardScaler(), ["age", "income"]), sex),
        "filled": columns((make_pipeline(SimpleImputer(), StandardScaler()), SCALED), sex),
        "filled where -1": columns(
            (make_pipeline(SimpleImputer(missing_values=-1), StandardScaler()), SCALED), sex
        ),
        "neighbors": columns((make_pipeline(KNNImputer(), StandardScaler()), SCALED), sex),
        "PCA": make_pipeline(columns((StandardScaler(), SCALED), sex), PCA(5)),
        "whitened PCA": make_pipeline(
            columns((MinMaxScaler(), SCALED), sex), PCA(4, whiten=True), StandardScaler()
        ),
        "SVD": make_pipeline(columns((RobustScaler(), SCALED), sex), TruncatedSVD(5)),
        "terms that cancel": columns((twice, SCALED), sex),
        "polynomial of degree 1": one_column(PolynomialFeatures(1), ["income", "hours"]),
        "nothing, as a function": one_column(FunctionTransformer(), ["income", "hours"]),
        "a plain function": one_column(FunctionTransformer(double), ["income"]),
        "unknown code": one_column(Halved(), ["income"]),
        "unknown code on both": one_column(Halved(), ["income", "hours"]),
    }
    nonlinear: dict[str, BaseEstimator] = {
        "clipped": MinMaxScaler(clip=True),
        "splines": SplineTransformer(4),
        "periodic splines": SplineTransformer(4, extrapolation="periodic"),
        "polynomial": make_pipeline(PolynomialFeatures(2), StandardScaler()),
        "bins": bins,
        "hot bins": hot_bins,
        "one-hot": ignore,
        "ordinal": codes,
        "target": TargetEncoder(random_state=0),
        "quantiles": QuantileTransformer(n_quantiles=20),
        "power": PowerTransformer(),
        "log": FunctionTransformer(np.log1p),
        "binarized": Binarizer(threshold=2.5),
    }
    for name, step in nonlinear.items():
        chosen = ["hours"] if name == "polynomial" else finite
        transformers[name] = one_column(step, chosen)
    return transformers


def double(table: Any) -> Any:  # noqa: ANN401 - a frame or an array
    """Double numbers that are not large."""
    return np.minimum(2 * np.asarray(table, dtype=np.float64), 2000.0)


def estimator(number: int, seed: int) -> BaseEstimator:
    """Return a perceptron or a linear model, alternately."""
    if number % 2:
        return LogisticRegression(max_iter=300)
    return MLPClassifier((6,), max_iter=40, random_state=seed + number)


def fit_pipeline(name: str, number: int, seed: int) -> tuple[Pipeline, pd.DataFrame]:
    """Fit a pipeline; in some, rounding or large numbers matter."""
    rng = np.random.default_rng([seed, number])
    frame, labels = draw_people(rng, 300)
    if number % 5 == 4:
        frame = frame.astype({"income": np.float32, "rooms": np.float32})
    last = estimator(number, seed)
    pipeline = make_pipeline(shapes()[name], last).fit(frame, labels)
    if name == "terms that cancel" and isinstance(last, LogisticRegression):
        n_scaled = len(SCALED)
        index = SCALED.index("income")
        last.coef_[0, n_scaled + index] = -last.coef_[0, index]
    return pipeline, frame


def counterparts(row: Row) -> pd.DataFrame:
    """Return all counterparts of a person."""
    names: list[str] = []
    domains: list[list[Any]] = []
    for attribute in SPACE.attributes:
        if isinstance(attribute, Integer) and attribute.sensitive:
            names.append(attribute.name)
            domains.append(list(range(attribute.low, attribute.high + 1)))
        elif isinstance(attribute, Categorical) and attribute.sensitive:
            names.append(attribute.name)
            domains.append(list(attribute.values))
    rows = [row | dict(zip(names, values, strict=True)) for values in product(*domains)]
    return pd.DataFrame(rows)[list(row)]


def rows_outside(frame: pd.DataFrame, rng: np.random.Generator) -> Iterator[tuple[str, Row]]:
    """Move people beyond the limits of a column, and sometimes of two."""
    for column, values in BEYOND.items():
        for value in [*values, *HUGE]:
            drawn = frame.iloc[int(rng.integers(len(frame)))]
            row: Row = {name: drawn[name] for name in frame.columns}
            row[column] = int(value) if float(value).is_integer() and abs(value) < 2**60 else value
            yield column, row
            if rng.random() < 0.2:
                yield column, row | {"income": float(rng.choice([-1.0, 1500.0, 1e9]))}


def compare(pipeline: Pipeline, model: Model, column: str, row: Row) -> Counter[str]:
    """Compare the results of one person with brute force."""
    counts: Counter[str] = Counter(people=1)
    frame = pd.DataFrame([row])
    try:
        audit = feta.audit(model, frame)
        shared = model.space.encode(
            frame.drop(columns=["age", "sex"]), sensitive="ignore", limits="open"
        )
        fair = bool(feta.FairPredictor(model).decide(shared)[0])
    except feta.DomainError as error:
        named = error.column in (column, "income") and bool(error.what)
        return counts + Counter({"refused": 1, "WRONG refusals without a reason": int(not named)})
    finding = audit.findings[0]
    decisions = np.asarray(pipeline.predict(counterparts(row))).astype(int)
    model_decision = int(pipeline.predict(frame)[0])
    votes = 2 * int(decisions.sum()) >= len(decisions)
    same = len(set(decisions.tolist())) == 1
    counts[f"answered {finding.status}"] += 1
    agrees = (
        finding.status == ("fair" if same else "unfair")
        and int(bool(finding.decision)) == model_decision
        and fair == votes
        and bool(finding.fair_decision) == votes
    )
    if finding.runtime == "sensitive":
        counts["runtime-sensitive"] += 1
        counts["differ, all sensitive"] += not agrees
    else:
        counts["WRONG verdicts or decisions"] += not agrees
    if not agrees and finding.runtime == "safe":
        print(f"WRONG: {row} {finding} {same=} {model_decision=} {votes=}", file=sys.stderr)
    return counts


def compare_wrapped(pipeline: Pipeline, frame: pd.DataFrame, rows: list[Row]) -> Counter[str]:
    """Compare FairClassifier's decisions, read or voted by predict, with brute force."""
    counts: Counter[str] = Counter()
    frozen = FrozenEstimator(pipeline)
    fair = FairClassifier(frozen, SPACE, vote="majority", weights=None, level=None).fit(frame)
    for row in rows:
        try:
            decision = int(fair.predict(pd.DataFrame([row]).drop(columns=["age", "sex"]))[0])
        except (feta.FetaError, ValueError):  # the estimator refuses some numbers, too
            counts["wrapped: refused"] += 1
            continue
        decisions = np.asarray(pipeline.predict(counterparts(row))).astype(int)
        margin = abs(2 * int(decisions.sum()) - len(decisions))
        counts["wrapped: decided"] += 1
        wrong = decision != int(2 * int(decisions.sum()) >= len(decisions))
        near = margin <= 1  # rounding decides such a tie
        counts["WRONG wrapped decisions"] += wrong and not near
    return counts


def write_and_read(model: Model) -> Model:
    """Write a model to a file and read it back."""
    with tempfile.TemporaryDirectory() as folder:
        feta.save_model(model, Path(folder) / "model.feta")
        return feta.load_model(Path(folder) / "model.feta")


def check_pipelines(n_shapes: int, seed: int, only: str | None) -> Counter[str]:
    """Check this many pipelines, or those of one shape only."""
    counts: Counter[str] = Counter()
    names = list(shapes()) if only is None else [only]
    for number in range(n_shapes):
        name = names[(7 * number + seed) % len(names)]  # 7 mixes the kinds of shapes
        rng = np.random.default_rng([seed, number, 1])
        pipeline, frame = fit_pipeline(name, number, seed)
        model = Model(SPACE, feta.read_sklearn(pipeline, SPACE))
        if number % 3 == 0:
            model = write_and_read(model)
        rows = list(rows_outside(frame, rng))
        pipeline_counts: Counter[str] = Counter(pipelines=1)
        for column, row in rows:
            pipeline_counts.update(compare(pipeline, model, column, row))
        if number % 4 == 0:
            pipeline_counts.update(compare_wrapped(pipeline, frame, [row for _, row in rows[::5]]))
        n_refused, n_people = pipeline_counts["refused"], pipeline_counts["people"]
        print(f"{number}: {name}, {n_refused} of {n_people} refused", file=sys.stderr)
        counts.update(pipeline_counts)
    return counts


def main() -> int:
    """Run from the command line; exit 1 on any disagreement."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--shapes", type=int, default=62)
    parser.add_argument("--networks", type=int, default=60)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--only", choices=list(shapes()), help="this shape of pipeline only")
    options = parser.parse_args()
    started = time.perf_counter()
    with warnings.catch_warnings(), np.errstate(all="ignore"):
        warnings.simplefilter("ignore")
        counts = check_networks(options.networks, options.seed)
        counts.update(check_pipelines(options.shapes, options.seed, options.only))
    return finish(counts, started)


if __name__ == "__main__":
    sys.exit(main())
