"""Table: a file's rows made clean, with every refusal naming the file, the row and the column."""

from collections.abc import Collection, Iterable

import pandas as pd

from feta.errors import DatasetError, missing
from feta.space.attribute import Categorical, Integer, Real
from feta.space.feature_space import FeatureSpace


def require_columns(table: pd.DataFrame, names: Iterable[str], file: str) -> None:
    """Refuse a table that lacks a column."""
    for name in names:
        if name not in table.columns:
            raise DatasetError(f"{file}: {missing(name, table.columns)}; is it the right file?")


def as_numbers(table: pd.DataFrame, names: Collection[str], file: str) -> None:
    """Turn columns of text into numbers in place; what is no number is refused."""
    for name in names:
        column = pd.to_numeric(table[name], errors="coerce")
        _refuse(table, name, column.isna(), "a number", file)
        table[name] = column


def check_domains(table: pd.DataFrame, space: FeatureSpace, file: str) -> None:
    """Refuse a row outside the space: another file, or another version of it."""
    for attribute in space.attributes:
        column = table[attribute.name]
        if isinstance(attribute, Categorical):
            bad = ~column.isin(list(attribute.values))
        elif isinstance(attribute, Integer | Real):
            bad = pd.Series(~attribute.valid(column.to_numpy(float)[:, None]), column.index)
        else:
            raise TypeError(f"no dataset has an attribute of the kind {attribute.kind!r}")
        _refuse(table, attribute.name, bad, attribute.domain(), file)
        if isinstance(attribute, Integer):
            table[attribute.name] = column.astype("int64")


def _refuse(table: pd.DataFrame, name: str, bad: "pd.Series[bool]", must: str, file: str) -> None:
    """Refuse the first bad row; the index is its number in the file, from 1, a header not counted."""
    if bad.any():
        place = int(bad.to_numpy().argmax())
        row, got = table.index[place], table[name].iloc[place : place + 1].tolist()[0]
        raise DatasetError(f"{file}: row {row}: {name!r} must be {must}, got {got!r}")
