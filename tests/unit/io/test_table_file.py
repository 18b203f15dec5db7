import sys
from datetime import date
from decimal import Decimal
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

from feta import Categorical, Derived, DomainError, FeatureSpace, Integer, MissingExtra, Real
from feta.io import csv_table, parquet_table
from feta.io.cell_text import parse_number
from feta.io.chunk import Chunk
from feta.io.table_file import TableFile
from tests.extras import needs

SPACE = FeatureSpace(
    (
        Integer("age", 18, 90, sensitive=True),
        Categorical("sex", ("female", "male")),
        Categorical("code", (0, 1, True)[:2]),
        Real("income", 0, 100),
        Derived("band", "age", (("young", 18, 30), ("old", 31, 90))),
    )
)
HEADER = "age,sex,code,income"
COLUMNS = {"age", "sex", "code", "income", "band"}


def table(path: Path, content: str | bytes, name: str = "people.csv") -> TableFile:
    raw = content.encode() if isinstance(content, str) else content
    (path / name).write_bytes(raw)
    return TableFile(path / name)


def encoded(file: TableFile, *, ignore: bool = False) -> list[list[float]]:
    chunks = file.chunks(COLUMNS)
    return [
        row for chunk in chunks for row in chunk.encode(SPACE, ignore_sensitive=ignore).tolist()
    ]


ROW = [41.0, 0.0, 1.0, 1.0, 0.0, 12.5, 0.0, 1.0]


@pytest.mark.parametrize(
    "content",
    [
        f"{HEADER}\n41,male,0,12.5\n",
        f"{HEADER}\r\n41,male,0,12.5",
        f"{HEADER}\r41,male,0,12.5\r",
        f"\ufeff{HEADER}\n\n\n41,male,0,12.5\n\n",
        '"age","sex","code","income"\n"41","male","0","12.5"\n',  # as R writes it
        'sex;age;"code";income\n"male";41.0;0; 12.5 \n',
        "income\tage\tsex\tcode\n1.25e1\t41\tmale\t0\n",
        f'id,{HEADER},note\n7,41,male,0,12.5,"a, b\nc ""d"""\n',
        f"{HEADER},,\n41,male,0,12.5,,\n",
        f"{HEADER},band\n41,male,0,12.5,old\n",
    ],
)
def test_csv_is_read_in_many_forms(content: str, tmp_path: Path) -> None:
    assert encoded(table(tmp_path, content)) == [ROW]


@needs("pyarrow")
def test_parquet_and_csv_give_the_same_people(tmp_path: Path) -> None:
    frame = pd.DataFrame(
        {"age": [41, 30], "sex": ["male", "female"], "code": [0, 1], "income": [12.5, 3]}
    )
    frame.to_parquet(tmp_path / "people.PARQUET")
    frame.to_csv(tmp_path / "people.csv", index=False)
    first, second = (TableFile(tmp_path / name) for name in ("people.PARQUET", "people.csv"))
    assert encoded(first) == encoded(second)
    assert first.names == second.names


def test_chunks_count_the_rows_of_a_file(tmp_path: Path) -> None:
    content = f"{HEADER}\n" + "41,male,0,12.5\n" * 10
    chunks = list(table(tmp_path, content).chunks({"age"}, rows=4))
    assert [(chunk.start, len(chunk)) for chunk in chunks] == [(0, 4), (4, 4), (8, 2)]
    assert [list(chunk.columns) for chunk in chunks] == [["age"]] * 3
    progress = [chunk.progress for chunk in chunks]
    assert progress == sorted(progress)
    assert progress[-1] == 1.0


def test_a_chunk_of_long_cells_ends_early(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(csv_table, "CHUNK_CHARACTERS", 100)
    chunks = list(table(tmp_path, "name\n" + f"{'x' * 40}\n" * 7).chunks({"name"}))
    assert [len(chunk) for chunk in chunks] == [3, 3, 1]


def test_without_columns_the_rows_are_counted(tmp_path: Path) -> None:
    assert [len(chunk) for chunk in table(tmp_path, "a,b\n1,2\n3,4\n").chunks(set())] == [2]


@needs("pyarrow")
def test_parquet_is_read_in_chunks(tmp_path: Path) -> None:
    pd.DataFrame({"age": range(10)}).to_parquet(tmp_path / "p.parquet")
    chunks = list(TableFile(tmp_path / "p.parquet").chunks({"age"}, rows=4))
    assert [(chunk.start, len(chunk)) for chunk in chunks] == [(0, 4), (4, 4), (8, 2)]


@pytest.mark.parametrize(
    ("row", "message"),
    [
        ("17,male,0,1", "row 2: 'age' is invalid: got '17'"),
        ("41.5,male,0,1", "row 2: 'age' is invalid: got '41.5'"),
        ("4_1,male,0,1", "row 2: 'age' is invalid: got '4_1'"),
        (",male,0,1", "row 2: 'age' is invalid: got an empty cell"),
        ("  ,male,0,1", "row 2: 'age' is invalid: got an empty cell"),
        ("41,mal,0,1", r"row 2: 'sex' is invalid: got 'mal'; .*; did you mean 'male'\?"),
        ("41,,0,1", "row 2: 'sex' is invalid: got an empty cell; expected one of 'female', 'male'"),
        ("41,male,2,1", "row 2: 'code' is invalid: got '2'; expected one of"),
        ("41,male,0,1e400", "row 2: 'income' is invalid: got '1e400'"),
        ("41,male,0,NaN", "row 2: 'income' is invalid: got 'NaN'"),
        ('41,male,0,"1,5"', "got '1,5'; .*; write numbers with a decimal point and without"),
        ('41,male,0,"1.234,5"', "got '1.234,5'; .*; write numbers with a decimal point"),
        ('41,male,0,"a,b"', "got 'a,b'; expected a number from 0 to 100$"),
        (f"41,{'m' * 300},0,1", r"row 2: 'sex' is invalid: got .*… \(302 characters\)"),
        (f"41,male,0,{'9' * 300}x", r"row 2: 'income' is invalid: got .*… \(303 characters\)"),
        (
            "41,male,0",
            "row 2: wrong number of cells: got 3; expected 4, like the header; look for a missing",
        ),
        ("41,male,0,1,2", "row 2: wrong number of cells: got 5; expected 4, like the header"),
    ],
)
def test_the_message_about_a_bad_row_names_file_row_and_column(
    row: str, message: str, tmp_path: Path
) -> None:
    file = table(tmp_path, f"{HEADER}\n41,male,0,12.5\n{row}\n")
    with pytest.raises(DomainError, match=message) as rejected:
        encoded(file)
    assert str(rejected.value).startswith(f"{file.path}, row 2: ")
    assert rejected.value.row == 1


def test_a_derived_column_that_contradicts_its_source_is_rejected(tmp_path: Path) -> None:
    file = table(tmp_path, f"{HEADER},band\n41,male,0,1,young\n")
    with pytest.raises(
        DomainError, match=r"row 1: 'band' is invalid: got 'young'; expected 'old', which follows"
    ):
        encoded(file)


def test_rows_after_a_ragged_one_are_read(tmp_path: Path) -> None:
    file = table(tmp_path, f"{HEADER}\n41,male,0\n41,male,0,12.5\n")
    (chunk,) = file.chunks(COLUMNS)
    assert list(chunk.problems) == [0]
    assert chunk.row(1).encode(SPACE).tolist() == [ROW]
    with pytest.raises(DomainError, match="row 1: wrong number of cells: got 3; expected 4"):
        chunk.row(0).encode(SPACE)
    with pytest.raises(DomainError, match="row 1: wrong number of cells: got 3; expected 4"):
        chunk.check()


@pytest.mark.parametrize(
    ("content", "message"),
    [
        ("", "people.csv: no header: got an empty file; expected a header line"),
        ("\n\r\n\n", "no header: got an empty file; expected a header line"),
        (f"{HEADER}\n", "people.csv: no rows: expected at least one row below the header"),
        ("age,sex,age\n1,2,3\n", "repeated column: got 'age' twice; .*; rename or delete one"),
        (b"\xff\xfea\0g\0e\0", "people.csv, the header: the table is not CSV in UTF-8"),
        (f"{HEADER}\n41,m\0ale,0,1\n", "row 1: the table is not CSV in UTF-8 without NUL"),
        (
            f"{HEADER}\n".encode() + b"41,male,0,1\n" * 3000 + b"\xe4\n",
            "row 3001: the table is not CSV in UTF-8",
        ),
        (
            f'{HEADER}\n41,"male,0,1\n',
            "row 1: the table is not valid CSV: unexpected end of data; look",
        ),
        (f'{HEADER}\n41,"ma"le,0,1\n', "row 1: the table is not valid CSV: .*look for a quote"),
        (
            f'{HEADER}\n41,"{"x" * (2**20 + 1)}",0,1\n',
            "row 1: a cell is too long; expected at most 1048576",
        ),
        (
            f"{HEADER}\n41,{'x' * 2**24},0,1\n",
            "row 1: the table is not valid CSV: a line is too long; expected fewer",
        ),
        ("age,sex\n41,male\n", r"people.csv: the table must have the column 'code'"),
    ],
)
def test_the_message_about_a_bad_file_names_it(
    content: str | bytes, message: str, tmp_path: Path
) -> None:
    with pytest.raises(DomainError, match=message):
        encoded(table(tmp_path, content))


@pytest.mark.parametrize(
    ("row", "advice"),
    [
        ("41,divers,0,1", "; add the value, or write other = true for the column if the model's"),
        ('41,male,0,"1,5"', '; write numbers .*, or declare the decimal comma: decimal = "," in'),
        ('41,male,0,"1.000,5"', "; write numbers .* without thousands separators$"),
    ],
)
def test_the_message_about_a_cell_names_the_remedy(row: str, advice: str, tmp_path: Path) -> None:
    with pytest.raises(DomainError, match=advice):
        encoded(table(tmp_path, f"{HEADER}\n{row}\n"))


def test_a_value_that_other_cannot_accept_gets_no_such_advice(tmp_path: Path) -> None:
    with pytest.raises(DomainError, match="'code' is invalid: got") as caught:
        encoded(table(tmp_path, f"{HEADER}\n41,male,2,1\n"))
    assert "other = true" not in str(caught.value)


def test_a_table_of_one_column_gets_a_hint_at_its_delimiter(tmp_path: Path) -> None:
    file = table(tmp_path, "age|sex\n1|2\n")
    message = r"with the delimiter ',' there is only one column: .*sep = \"\|\", in \[table\]"
    with pytest.raises(DomainError, match=message):
        file.require(["age"])


def test_the_message_about_a_missing_column_suggests_the_nearest(tmp_path: Path) -> None:
    file = table(tmp_path, "ages,sex\n1,2\n")
    file.require(["sex"])
    with pytest.raises(DomainError, match=r"the column 'age'; it has 'ages', 'sex'; did you mean"):
        file.require(["sex", "age"])


def test_only_regular_files_are_read(tmp_path: Path) -> None:
    with pytest.raises(DomainError, match="there is no such file"):
        TableFile(tmp_path / "nowhere.csv")
    for path in (tmp_path, Path("/dev/zero")):
        with pytest.raises(DomainError, match="got a folder or a device; expected a regular file"):
            TableFile(path)


def test_ignored_sensitive_columns_may_be_absent(tmp_path: Path) -> None:
    (row,) = encoded(table(tmp_path, "sex,code,income\nmale,0,12.5\n"), ignore=True)
    assert np.isnan(row[0])
    assert row[1:6] == ROW[1:6]


def parquet(path: Path, **columns: object) -> TableFile:
    cells = {"age": [41], "sex": ["male"], "code": [0], "income": [12.5]} | columns
    pd.DataFrame(cells).to_parquet(path / "p.parquet")
    return TableFile(path / "p.parquet")


@needs("pyarrow")
def test_parquet_cells_may_be_decimals(tmp_path: Path) -> None:
    assert encoded(parquet(tmp_path, age=[41.0], income=[Decimal("12.5")])) == [ROW]


@needs("pyarrow")
@pytest.mark.parametrize(
    ("column", "cell", "message"),
    [
        ("age", None, "p.parquet, row 1: 'age' is invalid: got an empty cell"),
        ("age", float("nan"), "row 1: 'age' is invalid: got "),
        ("age", "old", "row 1: 'age' is invalid: got 'old'"),
        (
            "sex",
            None,
            "row 1: 'sex' is invalid: got an empty cell; expected one of 'female', 'male'",
        ),
        ("sex", [1, 2], r"row 1: 'sex' is invalid: got \[1, 2\]; expected one of"),
        ("income", True, "row 1: 'income' is invalid: got True.*; expected a number"),
        (
            "income",
            date(2020, 1, 1),
            "row 1: 'income' is invalid: got datetime.*; expected a number",
        ),
    ],
)
def test_the_message_about_a_bad_parquet_cell_names_row_and_column(
    column: str, cell: object, message: str, tmp_path: Path
) -> None:
    with pytest.raises(DomainError, match=message):
        encoded(parquet(tmp_path, **{column: [cell]}))


@needs("pyarrow")
def test_damaged_parquet_is_rejected(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = parquet(tmp_path).path
    content = path.read_bytes()
    message = "p.parquet: the file is not a complete Parquet file"
    for damaged in (b"", content[:-10], content[:50] + content[60:], b"PAR1" * 10):
        path.write_bytes(damaged)
        with pytest.raises(DomainError, match=message):
            encoded(TableFile(path))
    path.write_bytes(content)
    monkeypatch.setattr(parquet_table, "LARGEST_GROUP", 10)
    with pytest.raises(DomainError, match="expected at most 0 MB; write smaller row groups"):
        encoded(TableFile(path))
    pd.DataFrame(index=[0, 1]).to_parquet(path, index=False)
    with pytest.raises(DomainError, match="no columns: expected a table with columns"):
        TableFile(path)
    monkeypatch.setitem(sys.modules, "pyarrow", None)
    with pytest.raises(MissingExtra, match=r"pip install 'feta-fair\[parquet\]'"):
        TableFile(path)


@pytest.mark.parametrize(
    ("cell", "value"), [("1", 1.0), (" -2e3 ", -2000.0), ("1_0", "1_0"), ("x", "x"), ("", "")]
)
def test_a_cell_is_a_number_or_a_text(cell: str, value: object) -> None:
    assert parse_number(cell) == value


def test_an_error_that_names_no_row_names_the_file() -> None:
    with pytest.raises(DomainError, match=r"here\.csv: the table must have the column 'sex'"):
        Chunk(Path("here.csv"), 0, {"age": [41]}, 1.0).encode(SPACE)


def test_blank_lines_are_those_that_pandas_skips(tmp_path: Path) -> None:
    (tmp_path / "p.csv").write_text("age\n1\n  \t\n\u00a0\n2\n", encoding="utf-8")
    rows = [
        cell
        for chunk in TableFile(tmp_path / "p.csv").chunks({"age"})
        for cell in chunk.columns["age"]
    ]
    assert rows == ["1", "\u00a0", "2"]
    assert len(pd.read_csv(tmp_path / "p.csv")) == len(rows)


def test_digits_of_other_scripts_are_text() -> None:
    assert parse_number("\uff11\uff12") == "\uff11\uff12"
