"""Table options: the arguments with which pandas reads a CSV file, or cells that FETA has split.

The defaults are those of pandas. The `[table]` section of a schema lists the differences, so that
FETA reads the same values as the user's program.
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

# Rows that pandas reads at a time.
PANDAS_ROWS = 2**16

NaValues = tuple[str, ...] | Mapping[str, tuple[str, ...]]


@dataclass(frozen=True, slots=True)
class TableOptions:
    """Options of `pandas.read_csv`; `strip` then removes blanks around texts."""

    sep: str | None = None  # None: the delimiter that splits the header into the most names
    decimal: str = "."
    dtype: Mapping[str, str] = field(default_factory=dict)
    na_values: NaValues = ()
    keep_default_na: bool = True
    true_values: tuple[str, ...] = ()
    false_values: tuple[str, ...] = ()
    strip: bool = False

    def keywords(self) -> dict[str, Any]:
        """Return the arguments of `pandas.read_csv`, except delimiter and types."""
        arguments: dict[str, Any] = {
            "decimal": self.decimal,
            "keep_default_na": self.keep_default_na,
        }
        if self.na_values:
            arguments["na_values"] = (
                {name: list(values) for name, values in self.na_values.items()}
                if isinstance(self.na_values, Mapping)
                else list(self.na_values)
            )
        if self.true_values:
            arguments["true_values"] = list(self.true_values)
        if self.false_values:
            arguments["false_values"] = list(self.false_values)
        return arguments

    def frames(
        self,
        path: Path,
        delimiter: str,
        names: Sequence[str],
        *,
        dtypes: Mapping[str, object] | None = None,
        rows: int = PANDAS_ROWS,
    ) -> "Iterator[pd.DataFrame]":
        """Yield these columns of a file as pandas reads them, at most `rows` rows at a time."""
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
        """Let pandas convert cells that have been split already, with these types."""
        import pandas as pd  # noqa: PLC0415 - import feta stays light

        text = io.StringIO(newline="")
        writer = csv.writer(text)
        names = list(columns)
        # pandas would rename empty names.
        labels = {name: f"c{index}" for index, name in enumerate(names)}
        writer.writerow(labels.values())
        writer.writerows(zip(*columns.values(), strict=True))
        text.seek(0)
        arguments = self.keywords()
        if isinstance(arguments.get("na_values"), dict):
            markers = arguments["na_values"]
            arguments["na_values"] = {
                labels[name]: markers[name] for name in markers if name in labels
            }
        types: dict[str, Any] = {labels[name]: dtypes[name] for name in names if name in dtypes}
        frame: pd.DataFrame = pd.read_csv(
            text,
            dtype=types or None,
            skip_blank_lines=False,
            low_memory=False,
            **arguments,
        )
        return self.stripped(frame.set_axis(names, axis=1))

    def stripped(self, frame: "pd.DataFrame") -> "pd.DataFrame":
        """Remove blanks around texts if `strip` is set."""
        if not self.strip:
            return frame
        return frame.assign(**{name: _strip_texts(frame[name]) for name in frame.columns})


def _strip_texts(column: "pd.Series[Any]") -> "pd.Series[Any]":
    if column.dtype.kind != "O" and str(column.dtype) not in ("str", "string"):
        return column
    return column.map(lambda cell: cell.strip() if isinstance(cell, str) else cell)
