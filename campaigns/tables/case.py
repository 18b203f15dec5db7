"""A combination's table, its files, and the pipeline that the user fits on it."""

import csv
import warnings
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import joblib
import numpy as np
import pandas as pd
from numpy.typing import NDArray
from sklearn.compose import ColumnTransformer
from sklearn.linear_model import LogisticRegression
from sklearn.neural_network import MLPClassifier
from sklearn.pipeline import Pipeline, make_pipeline
from sklearn.preprocessing import StandardScaler

from campaigns.tables.combinations import Combination
from campaigns.tables.contents import COLUMN, Content
from campaigns.tables.encoders import ENCODERS

ROWS = 60
RARE = 7  # rows with the content's last cell: fewer than MIN_FREQUENCY of all
NETWORKS = 5  # every fifth pipeline ends in a network
NUMBERS = ["age", "income"]
LABEL = "loan"
OUTCOMES = ("denied", "granted")  # no words that a content declares to be booleans

Codes = NDArray[np.int64]


class LeftOut(Exception):
    """A combination that scikit-learn or pandas refuses."""


@dataclass(frozen=True, slots=True, eq=False)
class Case:
    """A table as the user has read it, and the pipeline fitted on it."""

    combination: Combination
    frame: pd.DataFrame  # with the label
    pipeline: Pipeline
    sensitive: str
    model_file: Path
    table_file: Path
    shared_file: Path  # the table without the sensitive column

    @property
    def people(self) -> pd.DataFrame:
        """The columns that the pipeline reads."""
        return self.frame.drop(columns=[LABEL])


def make_case(combination: Combination, folder: Path, *, seed: int) -> Case:
    """Write a combination's files and fit its pipeline; raise `LeftOut` if that is refused."""
    rng = np.random.default_rng([seed, combination.number])
    codes = _draw_codes(rng, len(combination.content.values))
    others = _draw_others(rng, codes)
    sensitive = COLUMN if combination.sensitive else NUMBERS[0]
    paths = [folder / f"{name}.{_suffix(combination)}" for name in ("people", "shared")]
    frame = _write_and_read(combination, codes, others, paths[0])
    _write_shared(combination, codes, others, sensitive, paths[1])
    pipeline = _fit(combination, frame, seed)
    model_file = folder / "model.joblib"
    joblib.dump(pipeline, model_file)
    return Case(combination, frame, pipeline, sensitive, model_file, *paths)


def _draw_codes(rng: np.random.Generator, n_values: int) -> Codes:
    """Draw each row's cell; all cells occur, the last one rarely."""
    common = np.arange(ROWS - RARE) % (n_values - 1)
    return np.asarray(rng.permutation(np.append(common, np.full(RARE, n_values - 1))))


def _draw_others(rng: np.random.Generator, codes: Codes) -> pd.DataFrame:
    """Draw the other columns; the label depends on all of them."""
    age = rng.integers(20, 61, ROWS)
    income = rng.integers(100, 900, ROWS) / 8
    effects = np.linspace(-1.5, 1.5, int(codes.max()) + 1)
    score = effects[codes] + (age - 40) / 12 + (income - 60) / 25 + rng.normal(scale=0.3, size=ROWS)
    label = np.where(score > np.median(score), OUTCOMES[1], OUTCOMES[0])
    return pd.DataFrame({"age": age, "income": income, LABEL: label})


def _suffix(combination: Combination) -> str:
    return "parquet" if combination.file == "parquet" else "csv"


def _write_and_read(
    combination: Combination, codes: Codes, others: pd.DataFrame, path: Path
) -> pd.DataFrame:
    """Write the table, and read it as the user does."""
    content = combination.content
    frame = pd.concat([content.column(codes), others], axis=1)
    if combination.file == "frame":
        return frame
    try:
        if combination.file == "parquet":
            frame.to_parquet(path)
            return pd.read_parquet(path)
        _write_csv(content, codes, others, path)
        options: dict[str, Any] = dict(content.options) if combination.reading == "options" else {}
        return pd.read_csv(path, **options)
    except (TypeError, ValueError) as error:
        raise LeftOut(f"pandas: {error}") from None


def _write_csv(content: Content, codes: Codes | None, others: pd.DataFrame, path: Path) -> None:
    """Write the cells as the content spells them; without codes, only the other columns."""
    columns = {} if codes is None else {COLUMN: [content.spellings[code] for code in codes]}
    for name in others.columns:
        texts = others[name].astype(str).tolist()
        columns[name] = [text.replace(".", content.decimal) for text in texts]
    with path.open("w", encoding="utf-8", newline="") as file:
        writer = csv.writer(file, delimiter=content.sep)
        writer.writerow(columns)
        writer.writerows(zip(*columns.values(), strict=True))


def _write_shared(
    combination: Combination, codes: Codes, others: pd.DataFrame, sensitive: str, path: Path
) -> None:
    """Write the table without its sensitive column and without the label."""
    content = combination.content
    shared = others.drop(columns=[LABEL, sensitive], errors="ignore")
    shared_codes = None if combination.sensitive else codes
    if combination.file == "csv":
        _write_csv(content, shared_codes, shared, path)
    elif combination.file == "parquet":
        table = (
            shared
            if shared_codes is None
            else pd.concat([content.column(shared_codes), shared], axis=1)
        )
        table.to_parquet(path)


def _fit(combination: Combination, frame: pd.DataFrame, seed: int) -> Pipeline:
    """Fit the pipeline as the user does."""
    columns = ColumnTransformer(
        [
            ("column", ENCODERS[combination.encoder](combination.content), [COLUMN]),
            ("numbers", StandardScaler(), NUMBERS),
        ]
    )
    network = combination.number // 2 % NETWORKS == 0
    last = (
        MLPClassifier((6,), solver="lbfgs", max_iter=60, alpha=0.05, random_state=seed)
        if network
        else LogisticRegression(C=10.0)
    )
    pipeline = make_pipeline(columns, last)
    people = frame.drop(columns=[LABEL])
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            pipeline.fit(people, frame[LABEL])
            pipeline.predict(people)
    except (TypeError, ValueError) as error:
        raise LeftOut(f"scikit-learn: {str(error).splitlines()[0]}") from None
    return pipeline
