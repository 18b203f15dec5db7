"""Law School: admissions to 24 American law schools, 2005 to 2008 (Project SEAPHE).

The paper mentions the bar exam, but its rows, inputs and races are those of this file.
"""

import io

import pandas as pd

from feta.datasets.dataset import Dataset
from feta.datasets.find import find
from feta.datasets.source import DatasetSource
from feta.datasets.table import as_numbers, check_domains, require_columns
from feta.errors import DatasetError
from feta.space.attribute import Categorical, Integer, Real
from feta.space.feature_space import FeatureSpace

PART = "lawschool_part.csv"  # the first 65,535 rows of the file
SOURCE = DatasetSource(
    title="Law School admissions",
    folder="law",
    file="lawschs1_1.dta",
    address="https://raw.githubusercontent.com/eth-sri/tableak/main/datasets/Lawschool/lawschs1_1.dta",
    checksum="git-blob:c24c83680421e946920380087a8e28a5c7e9b072",
    terms="Project SEAPHE states none: keep the rows to yourself, and name the project",
    stand_in=PART,
)

COLLEGES = (
    "Arizona|Arizona State|Baltimore|Buffalo|Cincinnati|Cleveland State|George Mason|Hawaii|"
    "Houston|Idaho|Louisiana State|Michigan|Minnesota|Missouri at Columbia|"
    "Missouri at Kansas City|Nevada Las Vegas|North Carolina|Northern Illinois|Ohio State|"
    "Virginia|Washington|West Virginia|William and Mary|Wyoming"
)
HIGHEST_LSAT = 180  # of the test; the file contains scores up to 184
NUMBERS = ("lsat", "gpa", "resident", "gender", "admit")

# Both scores may be any number, because only a part of the rows could be examined. Gender is the
# code of the file, which does not state its meaning.
SPACE = FeatureSpace(
    (
        Real("lsat", 120, 184),
        Real("gpa", 0, 5),
        Integer("resident", 0, 1),
        Categorical("race", ("Black", "Hispanic", "White"), sensitive=True),
        Categorical("college", tuple(COLLEGES.split("|"))),
        Categorical("year", ("2005", "2006", "2007", "2008", "200x")),
        Categorical("gender", (0, 1), sensitive=True),
    )
)


def load_law() -> Dataset:
    """Load the admissions; admission is favorable.

    Rows with missing values and Asian applicants are left out. If only the first part of the
    file is available, the title says so.
    """
    ((file, content),) = find(SOURCE).items()
    table = _read(content, file)
    table.columns = table.columns.str.strip().str.lower()
    names = [attribute.name for attribute in SPACE.attributes]
    require_columns(table, [*names, "admit"], file)
    table.index += 1
    # An unknown race is a space in one file and an empty text in the other.
    texts = table[[*names, "admit"]].apply(lambda column: column.astype("string").str.strip())
    rows = texts[~(texts.isna() | (texts == "")).any(axis=1) & (texts["race"] != "Asian")].copy()
    as_numbers(rows, NUMBERS, file)
    check_domains(rows, SPACE, file)
    if not rows["admit"].isin([0, 1]).all():
        raise DatasetError(f"{file}: invalid value for 'admit'; expected 0 or 1 in every row")
    rows = rows.reset_index(drop=True)
    return Dataset(
        name="law",
        title=SOURCE.title + (", first 65,535 rows" if file == PART else ""),
        source=f"Project SEAPHE, {SOURCE.address}; {SOURCE.terms}",
        frame=_with_plain_types(rows[names]),
        labels=(rows["admit"] == 1).to_numpy(bool),
        space=SPACE,
        favorable="ADMITTED",
        unfavorable="REFUSED",
        notes=_notes(rows),
    )


def _notes(rows: pd.DataFrame) -> tuple[str, ...]:
    n_above = int((rows["lsat"] > HIGHEST_LSAT).sum())
    if not n_above:
        return ()
    what = "1 row has an LSAT" if n_above == 1 else f"{n_above} rows have an LSAT"
    return (f"{what} above {HIGHEST_LSAT}, which the test cannot give; kept as in the file",)


def _with_plain_types(frame: pd.DataFrame) -> pd.DataFrame:
    kinds = {"lsat": "float64", "gpa": "float64", "resident": "int64", "gender": "int64"}
    return frame.astype({name: kinds.get(name, "str") for name in frame.columns})


def _read(content: bytes, file: str) -> pd.DataFrame:
    try:
        if file.endswith(".dta"):
            return pd.read_stata(io.BytesIO(content))
        return pd.read_csv(
            io.BytesIO(content), dtype=str, keep_default_na=False, encoding="utf-8-sig"
        )
    except Exception as error:  # pandas raises many types for a file that is not Stata's
        raise DatasetError(f"{file}: the file cannot be read: {error}") from error
