"""Table options: how pandas reads the user's CSV file, and how it reads cells that FETA has split.

The defaults are pandas' own. A schema's `[table]` holds what differs, so that FETA sees the values
that the user's own program sees.
"""

import csv
import io
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Iterator

    import pandas as pd

# Rows that pandas takes from a file at a time.
PANDAS_ROWS = 2**16

NaValues = tuple[str, ...] | Mapping[str, tuple[str, ...]]


@dataclass(frozen=True, slots=True)
class TableOptions:
    """Options of `pandas.read_csv`; `strip` then removes blanks around texts."""

    sep: str | None = None  # None: the delimiter that splits the header into most names
    decimal: str = "."
    dtype: Mapping[str, str] = field(default_factory=dict)
    na_values: NaValues = ()
    keep_default_na: bool = True
    true_values: tuple[str, ...] = ()
    false_values: tuple[str, ...] = ()
    strip: bool = False

    def keywords(self) -> dict[str, Any]:
        """Return what pandas is called with, apart from delimiter and types."""
        words: dict[str, Any] = {"decimal": self.decimal, "keep_default_na": self.keep_default_na}
        if self.na_values:
            words["na_values"] = (
                {name: list(values) for name, values in self.na_values.items()}
                if isinstance(self.na_values, Mapping)
                else list(self.na_values)
            )
        if self.true_values:
            words["true_values"] = list(self.true_values)
        if self.false_values:
            words["false_values"] = list(self.false_values)
        return words

    def frames(
        self,
        path: Path,
        delimiter: str,
        names: Sequence[str],
        *,
        dtypes: Mapping[str, object] | None = None,
        rows: int = PANDAS_ROWS,
    ) -> "Iterator[pd.DataFrame]":
        """Let pandas read some columns of a file, some rows at a time."""
        import pandas as pd  # noqa: PLC0415 - import feta stays light

        types = {name: self.dtype[name] for name in names if name in self.dtype} | dict(
            dtypes or {}
        )
        with pd.read_csv(
            path,
            sep=delimiter,
            usecols=list(names),
            dtype=types or None,  # type: ignore[arg-type]  # names of types
            chunksize=rows,
            low_memory=False,
            encoding="utf-8",
            **self.keywords(),
        ) as reader:
            for frame in reader:
                yield self.stripped(frame[list(names)])

    def frame(
        self, columns: Mapping[str, Sequence[object]], dtypes: Mapping[str, object]
    ) -> "pd.DataFrame":
        """Let pandas read cells that were split already, with these types."""
        import pandas as pd  # noqa: PLC0415 - import feta stays light

        text = io.StringIO(newline="")
        writer = csv.writer(text)
        names = list(columns)
        writer.writerow([f"c{index}" for index in range(len(names))])
        writer.writerows(zip(*columns.values(), strict=True))
        text.seek(0)
        indices = {name: f"c{index}" for index, name in enumerate(names)}
        words = self.keywords()
        if isinstance(words.get("na_values"), dict):
            listed = words["na_values"]
            words["na_values"] = {indices[one]: listed[one] for one in listed if one in indices}
        types: dict[str, Any] = {indices[name]: dtypes[name] for name in names if name in dtypes}
        frame: pd.DataFrame = pd.read_csv(
            text,
            dtype=types or None,
            skip_blank_lines=False,
            low_memory=False,
            **words,
        )
        return self.stripped(frame.set_axis(names, axis=1))

    def stripped(self, frame: "pd.DataFrame") -> "pd.DataFrame":
        """Remove blanks around texts, if that is asked for."""
        if not self.strip:
            return frame
        return frame.assign(**{name: _stripped(frame[name]) for name in frame.columns})


def _stripped(column: "pd.Series[Any]") -> "pd.Series[Any]":
    if column.dtype.kind != "O" and str(column.dtype) not in ("str", "string"):
        return column
    return column.map(lambda cell: cell.strip() if isinstance(cell, str) else cell)
