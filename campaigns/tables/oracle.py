"""The truth about a case, by the pipeline's predict on the user's frame.

Only the list of values comes from FETA.
"""

import warnings
from dataclasses import dataclass
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray
from sklearn.pipeline import Pipeline

from campaigns.tables.answers import Domain
from campaigns.tables.case import OUTCOMES, Case
from campaigns.tables.contents import is_missing

NEAR = 1e-9  # rounding decides a probability this close to one half
NULLABLE = ("boolean", "Int64")  # scikit-learn converts them to float64

Table = NDArray[np.bool_]


@dataclass(frozen=True, slots=True, eq=False)
class Truth:
    """One entry per row; `problems` describes values that the domain lacks or should not have."""

    unfair: Table
    model_decisions: tuple[str, ...]
    fair: tuple[str, ...]
    near: Table
    problems: tuple[str, ...]


def truth_of(case: Case, domain: Domain) -> Truth:
    """Evaluate all counterparts of all rows."""
    column = case.people[case.sensitive]
    cells = _distinct(column)
    problems = [*_missing_cells(cells, domain), *_unknown_values(case, domain)]
    evaluations = _evaluate(case.pipeline, case.people)
    counterpart_evaluations, refused = _evaluate_values(case, _counterparts(cells, domain))
    favorable = counterpart_evaluations[:, :, 0] == 1.0
    votes = favorable.sum(axis=0)
    distances = np.abs(np.concatenate([evaluations[None], counterpart_evaluations])[:, :, 1] - 0.5)
    return Truth(
        favorable.any(axis=0) & ~favorable.all(axis=0),
        tuple(OUTCOMES[int(row)] for row in evaluations[:, 0]),
        tuple(OUTCOMES[int(2 * n >= len(favorable))] for n in votes),  # a tie is favorable
        distances.min(axis=0) < NEAR,
        (*problems, *refused),
    )


def _evaluate_values(case: Case, values: list[object]) -> tuple[NDArray[np.float64], list[str]]:
    """Evaluate the people with each value, (values, rows, 2); describe refused values."""
    try:
        people_with_values = _substitute(case.people, case.sensitive, values)
        return _evaluate(case.pipeline, people_with_values).reshape(len(values), -1, 2), []
    except (TypeError, ValueError):
        tables, refused = [], []
    for value in values:
        try:
            tables.append(
                _evaluate(case.pipeline, _substitute(case.people, case.sensitive, [value]))
            )
        except (TypeError, ValueError) as error:
            refused.append(f"the pipeline refuses {value!r}: {str(error).splitlines()[0]}")
    return np.stack(tables), refused


def _evaluate(pipeline: Pipeline, people: pd.DataFrame) -> NDArray[np.float64]:
    """Return each row's decision, 1 if favorable, and its probability."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        decisions = np.asarray(pipeline.predict(people)) == OUTCOMES[1]
        return np.column_stack([decisions, pipeline.predict_proba(people)[:, 1]])


def _distinct(column: "pd.Series[Any]") -> list[object]:
    """Return a column's distinct cells as Python values; None, NaN and pd.NA differ."""
    cells: list[object] = []
    for cell in column.astype(object):
        if not any(_same(cell, other) for other in cells):
            cells.append(cell)
    return cells


def _python_value(value: object) -> object:
    return value.item() if isinstance(value, np.generic) else value


def _same(cell: object, other: object) -> bool:
    """Return whether two cells are equal in value and in kind: text, number, boolean or marker."""
    cell, other = _python_value(cell), _python_value(other)
    if is_missing(cell) or is_missing(other):
        return type(cell) is type(other) and is_missing(cell) and is_missing(other)
    if isinstance(cell, bool | str) or isinstance(other, bool | str):
        return type(cell) is type(other) and cell == other
    return bool(cell == other)


def _similar(cell: object, other: object) -> bool:
    """Return whether two cells have the same spelling, even if their kinds differ."""
    if is_missing(cell) or is_missing(other):
        return False
    if str(cell).casefold() == str(other).casefold():
        return True
    try:
        return float(str(cell)) == float(str(other))
    except ValueError:
        return False


def _missing_cells(cells: list[object], domain: Domain) -> list[str]:
    """Describe cells of the table that the domain lacks."""
    return [
        f"the table holds {cell!r}; the schema lists {list(domain.values)!r}"
        + (" and missing" if domain.missing else "")
        for cell in cells
        if not (domain.missing if is_missing(cell) else any(_same(cell, v) for v in domain.values))
    ]


def _unknown_values(case: Case, domain: Domain) -> list[str]:
    """Describe values of the domain that the encoder of the sensitive column does not know."""
    if not case.combination.sensitive:
        return []
    step = case.pipeline.steps[0][1].named_transformers_["column"]
    imputed = isinstance(step, Pipeline)
    encoder = step.steps[-1][1] if imputed else step
    if not hasattr(encoder, "categories_"):
        return []
    known = [_python_value(category) for category in encoder.categories_[0]]
    numbers = case.people[case.sensitive].dtype.name in NULLABLE
    problems = [
        f"the schema lists {value!r}; the encoder knows {known!r}"
        for value in domain.values
        if not any(_same(value, category) or (numbers and value == category) for category in known)
    ]
    if domain.missing and not imputed and not any(map(is_missing, known)):
        problems.append("the schema lists missing; the encoder knows no missing value")
    return problems


def _counterparts(cells: list[object], domain: Domain) -> list[object]:
    """Return the values to substitute, in the kinds that the user's table has.

    A listed value of another kind means the cell with the same spelling. Cells that the domain
    lacks are added, because the user's table has them.
    """
    values: list[object] = []
    for value in domain.values:
        exact = [cell for cell in cells if _same(cell, value)]
        similar = [cell for cell in cells if _similar(cell, value)]
        values.append((exact or similar or [value])[0])
    markers = [cell for cell in cells if is_missing(cell)]
    values += markers or ([float("nan")] if domain.missing else [])
    values += [cell for cell in cells if not is_missing(cell)]
    distinct: list[object] = []
    for value in values:
        if not any(_same(value, other) for other in distinct):
            distinct.append(value)
    return distinct


def _substitute(people: pd.DataFrame, name: str, values: list[object]) -> pd.DataFrame:
    """Repeat the rows with each value; the column keeps its dtype where it can hold the values."""
    repeated = people.iloc[np.tile(np.arange(len(people)), len(values))].reset_index(drop=True)
    cells = [value for value in values for _ in range(len(people))]
    try:
        column = pd.Series(cells, dtype=people[name].dtype)
    except (TypeError, ValueError):
        column = pd.Series(cells)
    if column.isna().sum() != sum(map(is_missing, cells)):
        column = pd.Series(cells, dtype="category")  # the dtype lists fewer categories
    return repeated.assign(**{name: column})
