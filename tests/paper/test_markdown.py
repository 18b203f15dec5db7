"""Tests of the Markdown file."""

from itertools import groupby

import pytest

from feta_paper.markdown import markdown
from feta_paper.tables import paper_tables
from tests.made_up_measurements import made_up


@pytest.mark.parametrize("dataset", ["german", "law", "adult"])
def test_every_table_is_written_with_rows_of_equal_length(dataset: str) -> None:
    measured = made_up(dataset)
    written = markdown(measured)
    assert all(table.title in written for table in paper_tables(measured))
    tables = [
        [line.count("|") for line in lines]
        for is_table, lines in groupby(written.splitlines(), lambda line: line.startswith("|"))
        if is_table
    ]
    assert len(tables) >= 10
    assert "- These figures are made up." in written
    assert all(len(set(widths)) == 1 for widths in tables)


def test_a_row_has_our_figure_with_its_mark_and_the_paper_s() -> None:
    written = markdown(made_up("german"))
    row = next(line for line in written.splitlines() if line.startswith("| Majority class"))
    assert row.endswith("| 70.00 ± 1.78 |")
    assert any(mark in row for mark in ("✓ within", "▲ above", "▼ below"))
