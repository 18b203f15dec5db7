"""Raw table: rows of numbers turned back into a table as people have it, a column an attribute."""

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Protocol

import numpy as np
from numpy.typing import NDArray

from feta.arrays import Matrix
from feta.space.attribute import Attribute, Categorical, Derived, Integer
from feta.space.feature_space import FeatureSpace

if TYPE_CHECKING:
    import pandas as pd


def raw_values(attribute: Attribute, codes: Matrix) -> NDArray[Any]:
    """Turn an attribute's columns back into raw values; a missing one is NaN, as pandas has it."""
    match attribute:
        case Categorical():
            named = [np.nan if value is None else value for value in attribute.all_values]
            return np.array(named, dtype=object)[np.argmax(codes, axis=1)]
        case Derived():
            labels = [label for label, _, _ in attribute.bands]
            return np.array(labels, dtype=object)[np.argmax(codes, axis=1)]
        case _ if attribute.missing:
            return np.where(codes[:, 1] == 1.0, np.nan, codes[:, 0])
        case Integer():
            return codes[:, 0].astype(np.int64)
        case _:
            return codes[:, 0]


class TableMaker(Protocol):
    """Turns a space's rows into a table that somebody's code takes."""

    @property
    def names(self) -> tuple[str, ...]:
        """What the table's columns are called, in order."""
        ...

    def __call__(self, people: Matrix) -> "pd.DataFrame | NDArray[Any]":
        """Turn rows into such a table."""
        ...


@dataclass(frozen=True, slots=True)
class RawTable:
    """Makes tables with these columns, in the order given; those that the space lacks are all 0.

    `as_frame` makes a pandas frame whose types pandas chooses, as when it reads a file; else an array.
    """

    space: FeatureSpace
    names: tuple[str, ...]
    as_frame: bool = True

    def __call__(self, people: Matrix) -> "pd.DataFrame | NDArray[Any]":
        """Turn rows back into such a table."""
        columns = {name: self._column(name, people) for name in self.names}
        if not self.as_frame:
            return np.stack(list(columns.values()), axis=1)
        import pandas as pd  # noqa: PLC0415 - import feta stays light

        typed = {name: pd.Series(one, dtype=self._dtype(name)) for name, one in columns.items()}
        return pd.DataFrame(typed, index=range(len(people)))

    def _column(self, name: str, people: Matrix) -> NDArray[Any]:
        if name not in {attribute.name for attribute in self.space.attributes}:
            return np.zeros(len(people))
        attribute = self.space.attribute(name)
        return raw_values(attribute, people[:, self.space.columns_of(attribute)])

    def _dtype(self, name: str) -> Any:  # noqa: ANN401 - a type of pandas or numpy
        """Choose the type by all that a category can be, not by the few that happen to be there."""
        import pandas as pd  # noqa: PLC0415 - import feta stays light

        known = {attribute.name: attribute for attribute in self.space.attributes}
        attribute = known.get(name)
        if isinstance(attribute, Derived):
            return pd.Series([label for label, _, _ in attribute.bands]).dtype
        if not isinstance(attribute, Categorical):
            return None
        dtype = pd.Series(list(attribute.values)).dtype
        if attribute.missing and dtype.kind in "iu":
            return np.dtype(np.float64)
        return np.dtype(object) if attribute.missing and dtype.kind == "b" else dtype
