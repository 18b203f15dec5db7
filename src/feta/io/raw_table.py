"""Raw table: encoded rows turned back into a table as the user's own program has it."""

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Protocol, Self

import numpy as np
from numpy.typing import NDArray

from feta.arrays import Matrix
from feta.io.column_format import ColumnFormat, Formats, formats_of, plain_values
from feta.space.attribute import Attribute, Categorical, Derived, Integer
from feta.space.feature_space import FeatureSpace

if TYPE_CHECKING:
    import pandas as pd


def raw_values(attribute: Attribute, codes: Matrix) -> NDArray[Any]:
    """Turn an attribute's columns back into raw values; a missing one is NaN."""
    match attribute:
        case Categorical() | Derived():
            named = [np.nan if value is None else value for value in plain_values(attribute, codes)]
            values = np.empty(len(named), dtype=object)
            values[:] = named
            return values
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
        """The names of the table's columns, in order."""
        ...

    def __call__(self, people: Matrix) -> "pd.DataFrame | NDArray[Any]":
        """Turn rows into such a table."""
        ...


@dataclass(frozen=True, slots=True)
class RawTable:
    """Makes tables with these columns, in this order; those that the space lacks are all 0.

    `formats` defines how the user's table writes each column; otherwise pandas chooses the type
    from all values of the attribute. `as_frame` makes a pandas frame, else an array.
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
        """Make tables like a frame; `names` are the columns that an estimator was trained on."""
        known = {attribute.name for attribute in space.attributes}
        formats = formats_of(frame[name] for name in frame.columns if name in known)
        chosen = [name for name in frame.columns if name in known] if names is None else names
        return cls(space, tuple(chosen), as_frame, formats)

    def __call__(self, people: Matrix) -> "pd.DataFrame | NDArray[Any]":
        """Turn rows back into such a table."""
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
        chosen = self.formats.get(name)
        unfit = chosen is not None and chosen.kind == "text" and not _has_texts(attribute)
        if chosen is None or unfit or chosen.kind == "empty":
            return pd.Series(raw_values(attribute, codes), dtype=_default_type(attribute))
        return chosen.series(attribute, plain_values(attribute, codes))


def _has_texts(attribute: Attribute) -> bool:
    return isinstance(attribute, Categorical | Derived)


def _default_type(attribute: Attribute) -> Any:  # noqa: ANN401 - a type of pandas or numpy
    """Choose the type by all that a category can be, not by the few that happen to be there."""
    import pandas as pd  # noqa: PLC0415 - import feta stays light

    if isinstance(attribute, Derived):
        return pd.Series([label for label, _, _ in attribute.bands]).dtype
    if not isinstance(attribute, Categorical):
        return None
    dtype = pd.Series(list(attribute.values)).dtype
    if attribute.missing and dtype.kind in "iu":
        return np.dtype(np.float64)
    return np.dtype(object) if attribute.missing and dtype.kind == "b" else dtype


def with_markers(formats: Formats, markers: Formats) -> dict[str, ColumnFormat]:
    """Add what an estimator's encoders show: where the table has no missing cell, their marker."""
    made = dict(markers) | dict(formats)
    for name, one in formats.items():
        known = markers.get(name)
        if one.marker is None and known is not None and known.marker == "None":
            dtype = np.dtype(object)
            made[name] = ColumnFormat(dtype, one.kind, known.marker)
    return made
