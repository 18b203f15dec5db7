"""Layout: how the table given to `fit` looked, so that counterparts can be put into such a table."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Self, TypeGuard

import numpy as np
import pandas as pd
from numpy.typing import ArrayLike, NDArray

from feta.arrays import Matrix
from feta.errors import DomainError
from feta.space.attribute import Attribute, Categorical, Derived, Real
from feta.space.feature_space import FeatureSpace, Record
from feta.space.raw_table import raw_values

Table = pd.DataFrame | NDArray[Any]

# What people may come as where they are decided.
People = pd.DataFrame | ArrayLike | Record | Sequence[Record]


@dataclass(frozen=True, slots=True)
class Layout:
    """How a table looked in `fit`: which columns of the space, in what order and of what types."""

    space: FeatureSpace
    dtypes: tuple[tuple[str, Any], ...]  # name and pandas' type of each column; None: as it comes
    as_frame: bool

    @classmethod
    def of(
        cls,
        space: FeatureSpace,
        frame: pd.DataFrame,
        *,
        as_frame: bool,
        trained: Sequence[str] | None = None,
    ) -> Self:
        """Look at the table that `fit` was given; `trained` are the columns of a trained estimator.

        It gets its own columns in its own order, whatever the order of the table.
        """
        known = {attribute.name: attribute for attribute in space.attributes}
        names = [name for name in frame.columns if name in known] if trained is None else trained
        seen = set(frame.columns) & set(known)
        dtypes = tuple(
            (name, _wide_enough(frame[name].dtype, known[name]) if name in seen else None)
            for name in names
        )
        return cls(space, dtypes, as_frame)

    @property
    def names(self) -> tuple[str, ...]:
        """The columns' names, in order."""
        return tuple(name for name, _ in self.dtypes)

    def __call__(self, people: Matrix) -> Table:
        """Turn rows back into such a table."""
        columns = {name: self._column(name, dtype, people) for name, dtype in self.dtypes}
        frame = pd.DataFrame(columns)
        return frame if self.as_frame else frame.to_numpy()

    def _column(self, name: str, dtype: Any, people: Matrix) -> "pd.Series[Any]":  # noqa: ANN401 - a type of pandas or numpy
        if name not in {attribute.name for attribute in self.space.attributes}:
            return pd.Series(np.zeros(len(people)))  # the estimator drops it
        attribute = self.space.attribute(name)
        values = raw_values(attribute, people[:, self.space.columns_of(attribute)])
        if dtype is None:
            return pd.Series(values)
        column = pd.Series(values).astype(dtype)
        if column.dtype.kind in "iub" and (column.to_numpy() != values).any():
            lost = values[np.argmax(column.to_numpy() != values)].item()
            message = f"{name!r} must be able to hold {lost!r}, got the type {dtype} in the table given to fit; give it a wider type there"
            raise DomainError(message, column=name)
        return column


def is_records(table: object) -> TypeGuard[Record | Sequence[Record]]:
    """Say whether people come as a dict, or as a list of dicts, as in a service."""
    if isinstance(table, Mapping):
        return True
    return (
        isinstance(table, list) and bool(table) and all(isinstance(one, Mapping) for one in table)
    )


def named(frame: pd.DataFrame) -> pd.DataFrame:
    """Call columns by texts, as a space does; numbered ones as those of an array."""
    given: list[object] = list(frame.columns)
    names = [f"x{name}" if isinstance(name, int) else str(name) for name in given]
    return frame.set_axis(names, axis=1)


def _wide_enough(dtype: Any, attribute: Attribute) -> Any:  # noqa: ANN401 - a type of pandas or numpy
    """Add the categories that `fit` did not see: pandas would take their values for missing."""
    if not isinstance(dtype, pd.CategoricalDtype):
        plain = isinstance(dtype, np.dtype)
        if plain and isinstance(attribute, Real) and dtype.kind in "iu":
            return np.dtype(np.float64)  # whole numbers were seen, but others may come
        missing = not isinstance(attribute, Derived) and attribute.missing
        if plain and missing and dtype.kind in "iub":  # which cannot hold NaN
            return np.dtype(object if dtype.kind == "b" else np.float64)
        return dtype
    match attribute:
        case Categorical():
            values: list[object] = list(attribute.values)
        case Derived():
            values = [label for label, _, _ in attribute.bands]
        case _:  # numbers, of which there may be too many to list
            return dtype.categories.dtype
    seen = list(dtype.categories)
    unseen = [value for value in values if value not in seen]
    return pd.CategoricalDtype([*seen, *unseen], dtype.ordered)
