"""Checks of a dataset's rows; every error names the file, the row and the column."""

from collections.abc import Collection, Iterable

import pandas as pd

from feta.errors import DatasetError, missing
from feta.space.attribute import Categorical, Integer, Real
from feta.space.feature_space import FeatureSpace


def require_columns(table: pd.DataFrame, names: Iterable[str], file: str) -> None:
    """Raise if a column is missing."""
    for name in names:
        if name not in table.columns:
            raise DatasetError(f"{file}: {missing(name, table.columns)}; is it the right file?")


def as_numbers(table: pd.DataFrame, names: Collection[str], file: str) -> None:
    """Convert columns of text to numbers in place; raise for other texts."""
    for name in names:
        column = pd.to_numeric(table[name], errors="coerce")
        _raise_if_any(table, name, column.isna(), "a number", file)
        table[name] = column


def check_domains(table: pd.DataFrame, space: FeatureSpace, file: str) -> None:
    """Raise for a row outside the space, which shows another file or version of it."""
    for attribute in space.attributes:
        column = table[attribute.name]
        if isinstance(attribute, Categorical):
            bad = ~column.isin(list(attribute.values))
        elif isinstance(attribute, Integer | Real):
            bad = pd.Series(~attribute.valid(column.to_numpy(float)[:, None]), column.index)
        else:
            raise TypeError(f"unexpected kind of attribute: {attribute.kind!r}")
        _raise_if_any(table, attribute.name, bad, attribute.domain(), file)
        if isinstance(attribute, Integer):
            table[attribute.name] = column.astype("int64")


def _raise_if_any(
    table: pd.DataFrame, name: str, bad: "pd.Series[bool]", expected: str, file: str
) -> None:
    """Raise for the first bad row; the index counts the file's rows from 1, without a header."""
    if bad.any():
        position = int(bad.to_numpy().argmax())
        row, value = table.index[position], table[name].iloc[position : position + 1].tolist()[0]
        raise DatasetError(
            f"{file}: row {row}: invalid value for {name!r}: got {value!r}; expected {expected}"
        )
