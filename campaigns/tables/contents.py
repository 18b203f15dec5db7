"""Contents of the tested column, in a frame, in Parquet and as the cells of a CSV file."""

import math
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any, Literal

import pandas as pd

File = Literal["csv", "parquet", "frame"]
CsvReading = Literal["defaults", "options"]  # of pandas.read_csv, when the model was fitted

COLUMN = "housing"  # the tested column

TEXT: Mapping[str, object] = {"dtype": {COLUMN: "str"}}
STRING: Mapping[str, object] = {"dtype": {COLUMN: "string"}}
KEEP_NA: Mapping[str, object] = {"keep_default_na": False}

ONLY_FRAME = "neither CSV nor Parquet distinguishes None from NaN"
ONLY_CSV = "only a CSV file can spell such cells: the frame is that of another content"
NO_NONE = "a CSV file has no None: an empty cell is the content nan-text, nan-number or na-boolean"


def is_missing(value: object) -> bool:
    """Return whether a cell is None, NaN or pd.NA."""
    return value is None or value is pd.NA or (isinstance(value, float) and math.isnan(value))


@dataclass(frozen=True, slots=True)
class Content:
    """Distinct cells of a column; the last one is rare."""

    name: str
    values: tuple[object, ...]  # in frames and Parquet
    spellings: tuple[str, ...]  # in CSV
    dtype: str | None = None  # of the frame; None: as pandas infers
    options: Mapping[str, object] = field(default_factory=dict)  # for read_csv to keep the content
    left_out: Mapping[File, str] = field(default_factory=dict)  # reasons
    sep: str = ","  # of the CSV file
    decimal: str = "."

    def column(self, codes: Iterable[int]) -> "pd.Series[Any]":
        """Return the cells with these codes."""
        cells = [self.values[code] for code in codes]
        return pd.Series(cells, name=COLUMN, dtype=self.dtype)


def _texts(
    name: str, *values: str, dtype: str | None = None, options: Mapping[str, object] | None = None
) -> Content:
    """Return a content whose cells are spelled in CSV as they are."""
    return Content(name, values, values, dtype, options or {})


NAN = float("nan")
ONLY_CSV_HAS_IT: Mapping[File, str] = {"parquet": ONLY_CSV, "frame": ONLY_CSV}
EMPTY = ("owner", "rents", "")

CONTENTS = (
    Content("bool-title", (False, True), ("False", "True"), "bool", TEXT),
    _texts("bool-upper", "FALSE", "TRUE", options=TEXT),
    _texts("bool-lower", "false", "true", options=TEXT),
    _texts("bool-mixed", "False", "FALSE", "false", "True", "TRUE", "true", options=TEXT),
    Content(
        "bool-words",
        (False, True),
        ("no", "yes"),
        "bool",
        {"true_values": ["yes"], "false_values": ["no"]},
        ONLY_CSV_HAS_IT,
    ),
    Content("integers", (1, 2, 3), ("1", "2", "3")),
    Content("integers-gap", (1, 2, 5), ("1", "2", "5")),
    Content("floats", (0.5, 1.0, 1.5, 2.0), ("0.5", "1.0", "1.5", "2.0")),
    Content(
        "decimal-comma",
        (0.5, 1.0, 1.5, 2.0),
        ("0,5", "1,0", "1,5", "2,0"),
        None,
        {"sep": ";", "decimal": ","},
        ONLY_CSV_HAS_IT,
        sep=";",
        decimal=",",
    ),
    Content("whole-floats", (1.0, 2.0, 3.0), ("1.0", "2.0", "3.0")),
    _texts("text", "free", "owner", "rents"),
    _texts("string-dtype", "free", "owner", "rents", dtype="string", options=STRING),
    _texts("leading-zeros", "01", "02", "10", options=TEXT),
    _texts("digits-as-text", "1", "2", "3", options=TEXT),
    Content("none-text", ("owner", "rents", None), EMPTY, "object", left_out={"csv": NO_NONE}),
    Content("none-integer", (1, 2, None), ("1", "2", ""), "object", left_out={"csv": NO_NONE}),
    Content(
        "none-boolean",
        (False, True, None),
        ("False", "True", ""),
        "object",
        left_out={"csv": NO_NONE},
    ),
    Content(
        "none-and-nan",
        ("owner", None, NAN),
        ("owner", "", ""),
        "object",
        left_out={"csv": ONLY_FRAME, "parquet": ONLY_FRAME},
    ),
    Content("nan-text", ("owner", "rents", NAN), EMPTY, "object"),
    Content(
        "question-mark",
        ("owner", "rents", NAN),
        ("owner", "rents", "?"),
        "object",
        {"na_values": ["?"]},
        ONLY_CSV_HAS_IT,
    ),
    Content("nan-number", (1.0, 2.0, NAN), ("1", "2", "")),
    Content("na-string", ("owner", "rents", pd.NA), EMPTY, "string", STRING),
    Content("na-integer", (1, 2, pd.NA), ("1", "2", ""), "Int64", {"dtype": {COLUMN: "Int64"}}),
    Content(
        "na-boolean",
        (False, True, pd.NA),
        ("False", "True", ""),
        "boolean",
        {"dtype": {COLUMN: "boolean"}},
    ),
    _texts("empty-text", *EMPTY, options=KEEP_NA),
    _texts("NA-text", "owner", "rents", "NA", options=KEEP_NA),
    _texts("blanks", "Black", "White", " White"),
    _texts("case", "Black", "White", "white"),
    _texts(
        "category",
        "free",
        "owner",
        "rents",
        dtype="category",
        options={"dtype": {COLUMN: "category"}},
    ),
    Content(
        "category-integers",
        (1, 2, 3),
        ("1", "2", "3"),
        "category",
        {"dtype": {COLUMN: "category"}},
    ),
    _texts("dates", "2019-12-31", "2020-01-01", "2020-02-29"),
)
