"""Reader of scorecards: points per bin of each attribute, and base points.

A scorecard is a sum of step functions of one attribute each, so it becomes one small tree per
attribute. The sum is exact.
"""

import math
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from feta.errors import NetworkError, SchemaError, missing
from feta.readers.scorecard.bins import Bin, parse_bin
from feta.readers.scorecard.steps import add_tree
from feta.scorer.forest.builder import TreesBuilder
from feta.scorer.forest.forest import Forest
from feta.scorer.forest.summation import Summation
from feta.space.feature_space import FeatureSpace

if TYPE_CHECKING:
    import pandas as pd

# Names of the columns of a table, and of a row that holds base points.
ATTRIBUTE = ("attribute", "variable", "characteristic", "feature", "column")
BIN = ("bin", "values", "value", "bins")
POINTS = ("points", "score")
BASE = ("base", "base points", "basepoints", "base_points", "intercept")

# Bins with their points; a number alone is for all values of a column.
Points = Mapping[Any, float] | Iterable[tuple[Any, float]] | float


@dataclass(frozen=True, slots=True)
class Row:
    """One row of a scorecard, as it is written."""

    attribute: str
    bin: object
    points: object


def read_scorecard(
    table: "Mapping[str, Points] | pd.DataFrame | str | Path",
    space: FeatureSpace,
    *,
    base: float = 0.0,
) -> Forest:
    """Read a scorecard; the score of a person is the sum of the base points and of their points.

    Parameters
    ----------
    table
        The points of each bin: a dict of dicts or of lists of pairs; a frame with the columns
        attribute, bin and points; or a CSV file of these. Bins of a number are intervals
        ("[18, 25)", "<= 30", a pandas.Interval). Bins of a category are values, lists of values, or
        texts of several values with %,% between them. "missing" is the bin of a missing value, and
        "else" that of all other values. A row of the attribute "base" holds base points.
    space
        The raw columns. Columns that the scorecard does not list get no points.
    base
        Base points, in addition to those of the table.

    Returns
    -------
    Forest
        The scorer, for `feta.Model(space, scorer, threshold=…)`.

    Raises
    ------
    SchemaError
        If a value of a column is in no bin or in several, or if a bin or its points are invalid.

    Examples
    --------
    >>> import feta
    >>> space = feta.FeatureSpace(
    ...     (feta.Integer("age", 18, 90, sensitive=True), feta.Categorical("home", ("own", "rent")))
    ... )
    >>> card = {"age": {"< 30": 10, ">= 30": 25}, "home": {"own": 40, "rent": 15}}
    >>> model = feta.Model(space, read_scorecard(card, space, base=300), threshold=345)
    >>> people = space.encode([{"age": 20, "home": "own"}, {"age": 20, "home": "rent"}])
    >>> model.score(people).tolist(), model.decide(people).tolist()
    ([350.0, 325.0], [True, False])
    >>> [type(feta.verify(feta.FairAt(model, person))).__name__ for person in people]
    ['Fair', 'Fair']
    """
    grouped: dict[str, list[tuple[Bin, float]]] = {}
    total = [_points("base", base)]
    known = [attribute.name for attribute in space.attributes]
    for row in _rows(table):
        if row.attribute not in known and row.attribute.strip().lower() in BASE:
            total.append(_points(row.attribute, row.points))
            continue
        if row.attribute not in known:
            reason = missing(row.attribute, known, owner="schema")
            raise SchemaError(f"the scorecard lists {row.attribute!r}: {reason}")
        parsed = parse_bin(row.bin, space.attribute(row.attribute))
        grouped.setdefault(row.attribute, []).append((parsed, _points(row.attribute, row.points)))
    if not grouped:
        raise NetworkError("the scorecard has no bins: got none; expected points per bin")
    builder = TreesBuilder(1)
    for name, bins in grouped.items():
        add_tree(builder, space, space.attribute(name), bins)
    start = np.array([math.fsum(total)])
    summation = Summation("a scorecard", "float64", start)
    return Forest(builder.build(), start, summation, space.width)


def _rows(table: "Mapping[str, Points] | pd.DataFrame | str | Path") -> Iterable[Row]:
    if isinstance(table, str | Path):
        import pandas as pd  # noqa: PLC0415 - import feta stays light

        table = pd.read_csv(table, dtype=str, keep_default_na=False)
    if isinstance(table, Mapping):
        return [
            Row(str(name), raw, points)
            for name, bins in table.items()
            for raw, points in _pairs(bins)
        ]
    columns = [_column(table, names) for names in (ATTRIBUTE, BIN, POINTS)]
    cells = (table[column].tolist() for column in columns)
    return [Row(str(name), raw, points) for name, raw, points in zip(*cells, strict=True)]


def _pairs(bins: Points) -> Iterable[tuple[object, object]]:
    """Return bins with their points."""
    if isinstance(bins, Mapping):
        return list(bins.items())
    return list(bins) if isinstance(bins, Iterable) else [("else", bins)]


def _column(table: "pd.DataFrame", names: tuple[str, ...]) -> str:
    by_name = {str(column).strip().lower(): str(column) for column in table.columns}
    for name in names:
        if name in by_name:
            return by_name[name]
    raise SchemaError(
        f"a column of the scorecard is missing: got {sorted(by_name)}; expected one named "
        f"{names[0]!r}"
    )


def _points(name: str, points: object) -> float:
    try:
        number = float(points)  # type: ignore[arg-type]  # anything may be in a table
    except (TypeError, ValueError):
        number = float("nan")
    if not np.isfinite(number):
        raise SchemaError(f"invalid points of {name!r}: got {points!r}; expected a finite number")
    return number
