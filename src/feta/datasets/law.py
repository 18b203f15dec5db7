"""Law School: who was admitted to 24 American law schools, 2005 to 2008 (Project SEAPHE).

The paper speaks of the bar exam; its rows, inputs and races are those of this admissions file.
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

PART = "lawschool_part.csv"  # the first 65,535 rows of the whole file
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
    "Arizona|Arizona State|Baltimore|Buffalo|Cincinnati|Cleveland State|George Mason|Hawaii|Houston|Idaho|"
    "Louisiana State|Michigan|Minnesota|Missouri at Columbia|Missouri at Kansas City|Nevada Las Vegas|"
    "North Carolina|Northern Illinois|Ohio State|Virginia|Washington|West Virginia|William and Mary|Wyoming"
)
HIGHEST_LSAT = 180  # the test's own; the file goes on to 184
NUMBERS = ("lsat", "gpa", "resident", "gender", "admit")

# Both scores as any number, since only a part of the rows could be looked at. Gender is the file's own
# code: the file does not say which is which.
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
    """Load the admissions without rows that miss something, nor Asian ones; admission is favorable.

    Where only the first part of the file is at hand, the title says so.
    """
    ((file, content),) = find(SOURCE).items()
    table = _read(content, file)
    table.columns = table.columns.str.strip().str.lower()
    names = [one.name for one in SPACE.attributes]
    require_columns(table, [*names, "admit"], file)
    table.index += 1
    # Race unknown is a space in the one file, an empty text in the other.
    texts = table[[*names, "admit"]].apply(lambda column: column.astype("string").str.strip())
    rows = texts[~(texts.isna() | (texts == "")).any(axis=1) & (texts["race"] != "Asian")].copy()
    as_numbers(rows, NUMBERS, file)
    check_domains(rows, SPACE, file)
    if not rows["admit"].isin([0, 1]).all():
        raise DatasetError(f"{file}: 'admit' must be 0 or 1 in every row")
    rows = rows.reset_index(drop=True)
    return Dataset(
        name="law",
        title=SOURCE.title + (", first 65,535 rows" if file == PART else ""),
        source=f"Project SEAPHE, {SOURCE.address}; {SOURCE.terms}",
        frame=_plain(rows[names]),
        labels=(rows["admit"] == 1).to_numpy(bool),
        space=SPACE,
        favorable="ADMITTED",
        unfavorable="REFUSED",
        notes=_notes(rows),
    )


def _notes(rows: pd.DataFrame) -> tuple[str, ...]:
    beyond = int((rows["lsat"] > HIGHEST_LSAT).sum())
    if not beyond:
        return ()
    what = "1 row has an LSAT" if beyond == 1 else f"{beyond} rows have an LSAT"
    return (f"{what} above {HIGHEST_LSAT}, which the test cannot give; kept as in the file",)


def _plain(frame: pd.DataFrame) -> pd.DataFrame:
    kinds = {"lsat": "float64", "gpa": "float64", "resident": "int64", "gender": "int64"}
    return frame.astype({name: kinds.get(name, "str") for name in frame.columns})


def _read(content: bytes, file: str) -> pd.DataFrame:
    try:
        if file.endswith(".dta"):
            return pd.read_stata(io.BytesIO(content))
        return pd.read_csv(
            io.BytesIO(content), dtype=str, keep_default_na=False, encoding="utf-8-sig"
        )
    except Exception as error:  # bytes that are not Stata's fail in pandas wherever they happen to
        raise DatasetError(f"{file}: it cannot be read: {error}") from error
