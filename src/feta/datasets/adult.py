"""Adult in two versions, which are two datasets: same columns, other people, another label.

The label of UCI Adult is an income over 50,000 dollars. IPUMS Adult was rebuilt from the census
with incomes in dollars; its label, as in the paper, is an income over 30,000 dollars. Their
figures must not be compared.
"""

import io

import pandas as pd

from feta.datasets.dataset import Dataset
from feta.datasets.find import find
from feta.datasets.source import DatasetSource
from feta.datasets.table import as_numbers, check_domains, require_columns
from feta.errors import DatasetError
from feta.space.attribute import Categorical, Integer
from feta.space.feature_space import FeatureSpace

UCI = DatasetSource(
    title="UCI Adult",
    folder="adult",
    file="adult.zip",
    address="https://archive.ics.uci.edu/static/public/2/adult.zip",
    checksum="sha256:7537312dd56c2b98035880805ce99e68183a30ee468aa5329d6df0fbb3cc21bb",
    terms="CC BY 4.0: use it as you like, and name the source "
    "(Becker and Kohavi, UCI, doi 10.24432/C5XW20)",
    members=("adult.data", "adult.test"),
)
IPUMS = DatasetSource(
    title="IPUMS Adult",
    folder="ipums",
    file="adult_reconstruction.csv",
    address="https://raw.githubusercontent.com/socialfoundations/folktables/main/"
    "adult_reconstruction.csv",
    checksum="sha256:4895fd481e7ae6e2ca423e6213454b39f0f7ec0efcd741ad2f6c667554f0eb51",
    terms="IPUMS: for replicating published work only; do not pass the rows on",
)

SENSITIVE = ("age", "marital_status", "race", "sex", "native_country")

# In the order of UCI's file. Categories that occur only in rows with missing values (Never-worked)
# are left out, which results in the 103 inputs and 212,380 counterparts of the paper.
COLUMNS: dict[str, tuple[int, int] | str] = {
    "age": (17, 90),
    "workclass": "Federal-gov Local-gov Private Self-emp-inc Self-emp-not-inc State-gov "
    "Without-pay",
    "education": "10th 11th 12th 1st-4th 5th-6th 7th-8th 9th Assoc-acdm Assoc-voc Bachelors "
    "Doctorate HS-grad Masters Preschool Prof-school Some-college",
    "education_num": (1, 16),
    "marital_status": "Divorced Married-AF-spouse Married-civ-spouse Married-spouse-absent "
    "Never-married Separated Widowed",
    "occupation": "Adm-clerical Armed-Forces Craft-repair Exec-managerial Farming-fishing "
    "Handlers-cleaners Machine-op-inspct Other-service Priv-house-serv Prof-specialty "
    "Protective-serv Sales Tech-support Transport-moving",
    "relationship": "Husband Not-in-family Other-relative Own-child Unmarried Wife",
    "race": "Amer-Indian-Eskimo Asian-Pac-Islander Black Other White",
    "sex": "Female Male",
    "capital_gain": (0, 99_999),
    "capital_loss": (0, 99_999),  # UCI's largest is 4,356; the limit of the gain fits both versions
    "hours_per_week": (1, 99),
    "native_country": "Cambodia Canada China Columbia Cuba Dominican-Republic Ecuador El-Salvador "
    "England France Germany Greece Guatemala Haiti Holand-Netherlands Honduras Hong Hungary India "
    "Iran Ireland Italy Jamaica Japan Laos Mexico Nicaragua Outlying-US(Guam-USVI-etc) Peru "
    "Philippines Poland Portugal Puerto-Rico Scotland South Taiwan Thailand Trinadad&Tobago "
    "United-States Vietnam Yugoslavia",
}
NUMBERS = tuple(name for name, domain in COLUMNS.items() if isinstance(domain, tuple))


def adult_space() -> FeatureSpace:
    """Return the feature space of both versions."""
    return FeatureSpace(
        tuple(
            Categorical(name, tuple(domain.split()), name in SENSITIVE)
            if isinstance(domain, str)
            else Integer(name, *domain, sensitive=name in SENSITIVE)
            for name, domain in COLUMNS.items()
        )
    )


def load_uci_adult() -> Dataset:
    """Load both files of UCI Adult, without rows with missing values; over 50K is favorable."""
    contents = find(UCI)
    frame = pd.concat(
        [_read_uci(contents[member], member) for member in UCI.members], ignore_index=True
    )
    labels = frame.pop("income").str.rstrip(".") == ">50K"
    return Dataset(
        name="adult",
        title=UCI.title,
        source=f"Adult, UCI, {UCI.address}; {UCI.terms}",
        frame=frame,
        labels=labels.to_numpy(bool),
        space=adult_space(),
        favorable="OVER 50K",
        unfavorable="UP TO 50K",
    )


def load_ipums_adult() -> Dataset:
    """Load IPUMS Adult, without rows with missing values; over 30,000 dollars is favorable."""
    table = _read(find(IPUMS)[IPUMS.file], IPUMS.file, header=0)
    table.columns = table.columns.str.replace("-", "_")
    frame = _clean(table.rename(columns={"gender": "sex"}), IPUMS.file, ["income"])
    frame = frame.reset_index(drop=True)
    labels = frame.pop("income") > 30_000  # noqa: PLR2004 - the paper's task
    return Dataset(
        name="ipums",
        title=IPUMS.title,
        source=f"Adult reconstruction, {IPUMS.address}; {IPUMS.terms}",
        frame=frame,
        labels=labels.to_numpy(bool),
        space=adult_space(),
        favorable="OVER 30K",
        unfavorable="UP TO 30K",
    )


def _read_uci(content: bytes, file: str) -> pd.DataFrame:
    # The first line of adult.test is a comment, and its labels end with a period.
    skipped = 1 if content.startswith(b"|") else 0
    table = _read(content, file, header=None, skiprows=skipped)
    names = ["age", "workclass", "fnlwgt", *list(COLUMNS)[2:], "income"]
    if table.shape[1] != len(names):
        raise DatasetError(
            f"{file}: wrong number of columns: got {table.shape[1]}; expected {len(names)}; "
            "check that it is UCI's file"
        )
    table.columns = pd.Index(names)
    frame = _clean(table, file, [])
    known = table["income"].str.rstrip(".").isin(["<=50K", ">50K"])
    if not known.all():
        value = table["income"][~known].iloc[0]
        raise DatasetError(
            f"{file}: row {known.idxmin()}: invalid value for 'income': got {value!r}; "
            "expected '<=50K' or '>50K'"
        )
    return frame.assign(income=table["income"])


def _clean(table: pd.DataFrame, file: str, more_numbers: list[str]) -> pd.DataFrame:
    """Return the rows without missing values, with numbers converted and domains checked."""
    names = [*COLUMNS, *more_numbers]
    require_columns(table, names, file)
    table.index += 1
    frame = table.loc[~(table == "?").any(axis=1), names].copy()
    as_numbers(frame, [*NUMBERS, *more_numbers], file)
    check_domains(frame, adult_space(), file)
    return frame


def _read(content: bytes, file: str, *, header: int | None, skiprows: int = 0) -> pd.DataFrame:
    try:
        return pd.read_csv(
            io.BytesIO(content),
            header=header,
            skiprows=skiprows,
            dtype=str,
            keep_default_na=False,
            skipinitialspace=True,
        )
    except (ValueError, pd.errors.ParserError) as error:
        raise DatasetError(f"{file}: expected a comma-separated table: {error}") from error
