"""Bad rows, counted by column and reason."""

from pathlib import Path

import pytest

from feta import Categorical, DomainError, FeatureSpace, Integer, Levels, Real
from feta.io.bad_rows import (
    MAX_COLUMNS,
    MAX_LISTED,
    MAX_REASONS,
    BadRows,
    cell_reason,
    count_bad_rows,
    listed_kinds,
    note_all_problems,
)
from feta.io.chunk import Chunk
from feta.io.table_file import TableFile
from feta.space.attribute import Attribute

SPACE = FeatureSpace(
    (
        Integer("age", 18, 90, sensitive=True),
        Categorical("sex", ("f", "m"), sensitive=True),
        Real("income", 0, 1.5),
    )
)
HEADER = "age,sex,income\n"


def kinds_of(path: Path, content: str, *, ignore_sensitive: bool = False) -> list[str]:
    (path / "t.csv").write_text(HEADER + content)
    table = TableFile(path / "t.csv")
    return listed_kinds(
        count_bad_rows(
            table,
            set(table.names),
            SPACE,
            table.formats(table.names),
            ignore_sensitive=ignore_sensitive,
        ).kinds
    )


@pytest.mark.parametrize(
    ("attribute", "cell", "reason"),
    [
        (Integer("n", 18, 90), "", "empty cell"),
        (Integer("n", 18, 90), " ", "empty cell"),
        (Integer("n", 18, 90), None, "empty cell"),
        (Integer("n", 18, 90), float("nan"), "empty cell"),
        (Integer("n", 18, 90), "17", "below the minimum 18"),
        (Integer("n", 18, 90), 91, "above the maximum 90"),
        (Integer("n", 18, 90), "20.5", "not an integer"),
        (Integer("n", 18, 90), "old", "not a number: 'old'"),
        (Integer("n", 18, 90), True, "not a number: True"),
        (Integer("n", 18, 90), "inf", "not a finite number"),
        (Integer("n", 18, 90), "20", ""),
        (Real("n", 0, 1.5), 2.0, "above the maximum 1.5"),
        (Levels("n", (1.0, 2.0)), 1.5, "not one of the listed numbers"),
        (Categorical("n", ("a",)), "b", "not one of the listed values: 'b'"),
        (Categorical("n", ("a",)), "", "empty cell"),
    ],
)
def test_a_reason_is_short_and_stable(attribute: Attribute, cell: object, reason: str) -> None:
    assert cell_reason(attribute, cell) == reason


def test_every_problem_of_every_row_is_counted(tmp_path: Path) -> None:
    rows = "17,x,1\n30,f,1\n16,m,2\n40,m\n,f,1\n15,x,1\n"
    assert kinds_of(tmp_path, rows) == [
        "'age': below the minimum 18 (3 rows, the first is row 1)",
        "'sex': not one of the listed values: 'x' (2 rows, the first is row 1)",
        "'income': above the maximum 1.5 (row 3)",
        "the row: wrong number of cells (row 4)",
        "'age': empty cell (row 5)",
    ]


def test_ignored_sensitive_cells_are_not_checked(tmp_path: Path) -> None:
    rows = "17,x,1\n30,f,9\n"
    assert kinds_of(tmp_path, rows, ignore_sensitive=True) == [
        "'income': above the maximum 1.5 (row 2)"
    ]


def test_the_memory_for_many_problems_is_bounded() -> None:
    names = [f"c{n}" for n in range(MAX_COLUMNS + 5)]
    space = FeatureSpace(
        (*(Categorical(name, ("a",)) for name in names), Integer("age", 1, 2, sensitive=True))
    )
    bad = BadRows(space)
    for row in range(MAX_REASONS + 5):
        cells: dict[str, list[object]] = {
            name: [f"v{row}" if name == "c0" or row == 0 else "a"] for name in names
        }
        bad.add(Chunk(Path("t"), row, cells | {"age": ["1"]}, 1.0), DomainError("x"))
    assert bad.rows == MAX_REASONS + 5
    assert len(bad.reasons) == MAX_COLUMNS + 1
    assert len(bad.reasons["c0"]) == MAX_REASONS + 1
    assert str(bad.kinds[0]) in (
        "'c0': other problems (5 rows, the first is row 21)",
        "other columns: other problems (5 rows, the first is row 1)",
    )
    lines = listed_kinds(bad.kinds)
    assert len(lines) == MAX_LISTED + 1
    assert lines[-1] == f"and {len(bad.kinds) - MAX_LISTED:,} more kinds of problems"


def test_an_error_without_an_invalid_cell_is_counted_with_its_message() -> None:
    bad = BadRows(SPACE)
    cells: dict[str, list[object]] = {"age": ["20"], "sex": ["f"], "income": ["1"]}
    chunk = Chunk(Path("t"), 6, cells, 1.0)
    bad.add(chunk, DomainError("x", column="income", row=0, what="is too far outside its limits"))
    assert [str(kind) for kind in bad.kinds] == ["'income': is too far outside its limits (row 7)"]


def test_a_single_problem_gets_no_list(tmp_path: Path) -> None:
    (tmp_path / "t.csv").write_text(HEADER + "30,f,1\n17,f,1\n")
    table = TableFile(tmp_path / "t.csv")
    error = DomainError("first")
    note_all_problems(error, table, set(table.names), SPACE, table.formats(table.names))
    assert not hasattr(error, "__notes__")
    (tmp_path / "t.csv").write_text(HEADER + "30,x,1\n17,f,1\n")
    note_all_problems(error, table, set(table.names), SPACE, table.formats(table.names))
    assert error.__notes__ == [
        "2 rows of the table cannot be read, by column and reason:",
        "- 'sex': not one of the listed values: 'x' (row 1)",
        "- 'age': below the minimum 18 (row 2)",
        "correct the table or the schema, or skip such rows with --skip-bad-rows",
    ]
