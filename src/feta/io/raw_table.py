"""Raw tables: encoded people, converted back to tables in the format of the user's program."""

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Protocol, Self

import numpy as np
from numpy.typing import NDArray

from feta.arrays import Matrix
from feta.io.column_format import (
    ColumnFormat,
    Formats,
    dtype_with_missing,
    formats_of,
    plain_values,
)
from feta.space.attribute import Attribute, Categorical, Derived, Integer
from feta.space.feature_space import FeatureSpace

if TYPE_CHECKING:
    import pandas as pd


def raw_values(attribute: Attribute, codes: Matrix) -> NDArray[Any]:
    """Convert encoded columns of an attribute to raw values; a missing value is NaN."""
    match attribute:
        case Categorical() | Derived():
            values = np.empty(len(codes), dtype=object)
            values[:] = [
                np.nan if value is None else value for value in plain_values(attribute, codes)
            ]
            return values
        case _ if attribute.missing:
            return np.where(codes[:, 1] == 1.0, np.nan, codes[:, 0])
        case Integer():
            return codes[:, 0].astype(np.int64)
        case _:
            return codes[:, 0]


class TableMaker(Protocol):
    """A function that converts encoded people to the table that the user's model takes."""

    @property
    def names(self) -> tuple[str, ...]:
        """The names of the table's columns, in order."""
        ...

    def __call__(self, people: Matrix) -> "pd.DataFrame | NDArray[Any]":
        """Return the table of these people."""
        ...


@dataclass(frozen=True, slots=True)
class RawTable:
    """Makes tables with these columns, in this order; columns that the space lacks are all 0.

    `formats` contains the formats of the user's table; other columns get the type that pandas
    chooses for all values of the attribute. With `as_frame` the table is a pandas frame, else an
    array.
    """

    space: FeatureSpace
    names: tuple[str, ...]
    as_frame: bool = True
    formats: Formats = field(default_factory=dict)

    def __post_init__(self) -> None:
        for attribute in self.space.attributes:
            if attribute.name in self.formats:
                self.formats[attribute.name].check(attribute)

    @classmethod
    def like(
        cls,
        space: FeatureSpace,
        frame: "pd.DataFrame",
        *,
        as_frame: bool = True,
        names: Sequence[str] | None = None,
    ) -> Self:
        """Make tables in the format of a frame; `names` are the columns of a trained estimator."""
        known = {attribute.name for attribute in space.attributes}
        formats = formats_of(frame[name] for name in frame.columns if name in known)
        chosen = [name for name in frame.columns if name in known] if names is None else names
        return cls(space, tuple(chosen), as_frame, formats)

    def __call__(self, people: Matrix) -> "pd.DataFrame | NDArray[Any]":
        """Return the table of these people."""
        import pandas as pd  # noqa: PLC0415 - import feta stays light

        columns = {name: self._column(name, people) for name in self.names}
        frame = pd.DataFrame(columns, index=range(len(people)))
        return frame if self.as_frame else frame.to_numpy()

    def _column(self, name: str, people: Matrix) -> "pd.Series[Any]":
        import pandas as pd  # noqa: PLC0415 - import feta stays light

        if name not in {attribute.name for attribute in self.space.attributes}:
            return pd.Series(np.zeros(len(people)))
        attribute = self.space.attribute(name)
        codes = people[:, self.space.columns_of(attribute)]
        column_format = self.formats.get(name)
        if column_format is None or not _applies(column_format, attribute):
            return pd.Series(raw_values(attribute, codes), dtype=_default_type(attribute))
        return column_format.series(attribute, plain_values(attribute, codes))


def _applies(column_format: ColumnFormat, attribute: Attribute) -> bool:
    """Return whether values of an attribute can have a format; texts are no numbers."""
    if column_format.kind == "text":
        return isinstance(attribute, Categorical | Derived)
    return column_format.kind != "empty"


def _default_type(attribute: Attribute) -> Any:  # noqa: ANN401 - a type of pandas or numpy
    """Return the type that pandas chooses for all values of a category, or None for numbers."""
    import pandas as pd  # noqa: PLC0415 - import feta stays light

    if isinstance(attribute, Derived):
        return pd.Series([label for label, _, _ in attribute.bands]).dtype
    if not isinstance(attribute, Categorical):
        return None
    dtype = pd.Series(list(attribute.values)).dtype
    return dtype_with_missing(dtype) if attribute.missing and isinstance(dtype, np.dtype) else dtype


def with_markers(formats: Formats, markers: Formats) -> dict[str, ColumnFormat]:
    """Add the missing markers of an estimator's encoders for columns without missing cells."""
    combined = dict(markers) | dict(formats)
    for name, column_format in formats.items():
        known = markers.get(name)
        if column_format.marker is None and known is not None and known.marker == "None":
            combined[name] = ColumnFormat(np.dtype(object), column_format.kind, known.marker)
    return combined
