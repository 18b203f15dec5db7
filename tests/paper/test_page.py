"""Tests of the page: complete, without scripts, and without claims that were not measured."""

import re
from dataclasses import replace
from pathlib import Path

import pytest

from feta_paper.agreement import agreement, placements
from feta_paper.claims import claims
from feta_paper.labels import ARMS, QUANTITIES
from feta_paper.measurements import Measurements
from feta_paper.page import html, write_page
from feta_paper.paper import BLIND, COUNTERPART, RATIOS, TABLE_NAMES, cells
from feta_paper.tables import Cell, Table, our_cell, our_tables, paper_tables
from tests.made_up_measurements import made_up, with_figures, without

ALL = ("german", "law", "adult", "ipums")


def empty(dataset: str) -> Measurements:
    return Measurements(dataset, "German credit", 5, False, 0, 1_000, 456, {})


def texts(table: Table) -> list[str]:
    return [cell.text for row in table.rows for cell in row]


def named_rows(table: Table) -> dict[tuple[str, str], tuple[Cell, Cell]]:
    """Return our cell and the paper's by approach and figure; only a first row has the approach."""
    rows, approach = {}, ""
    for first, figure, ours, paper in table.rows:
        approach = first.text or approach
        rows[approach, figure.text] = ours, paper
    return rows


@pytest.mark.parametrize("dataset", ALL)
def test_every_cell_of_the_paper_has_ours_next_to_it(dataset: str) -> None:
    measured = made_up(dataset)
    for name, table in zip(TABLE_NAMES, paper_tables(measured), strict=True):
        rows = named_rows(table)
        for key, cell in cells(name, COUNTERPART[dataset]).items():
            for our_key in BLIND if "blind." in key else (key,):
                arm, _, quantity = our_key.rpartition(".")
                ours, paper = rows[ARMS[arm], QUANTITIES[quantity]]
                assert paper.text.removesuffix(" s") == cell.text, (name, key)
                assert ours == our_cell(measured, our_key), (name, key)
                assert "not measured" not in ours.text, (name, key)
    ratio = f"{RATIOS[COUNTERPART[dataset]].mean:,.0f} ×"  # noqa: RUF001 - as printed
    assert ratio in texts(paper_tables(measured)[2])


@pytest.mark.parametrize("dataset", ALL)
def test_the_page_is_one_small_file_without_scripts_or_addresses(
    dataset: str, tmp_path: Path
) -> None:
    page = write_page(made_up(dataset), tmp_path)
    text = page.read_text(encoding="utf-8")
    assert page.name == "reproduction.html"
    assert [file.name for file in tmp_path.iterdir()] == [page.name]
    assert page.stat().st_size < 1_000_000
    assert "<script" not in text
    assert not re.search(r"https?:|\bsrc=|\bhref=|@import|url\((?!#)", text)


def test_an_empty_run_is_marked_not_measured_everywhere() -> None:
    measured = empty("german")
    ours = [row[2].text for table in paper_tables(measured) for row in table.rows]
    assert set(ours) == {"not measured", "0, by construction"}
    assert "Nothing was measured" in html(measured)
    assert placements(measured).within == placements(measured).outside == ()


def test_a_missing_figure_has_its_reason() -> None:
    measured = without(made_up("german"), "lcifr.accuracy", reason="the run was stopped")
    assert "not measured: the run was stopped" in texts(paper_tables(measured)[4])
    for name in ("lcifr", "counting.milp"):
        times = {key: values for key, values in measured.times.items() if "milp" not in key}
        without_time = replace(measured, times=times, missing={name: "too slow"})
        assert "not measured: too slow" in html(without_time)


def test_any_subset_of_figures_can_be_rendered() -> None:
    measured = made_up("law")
    for key in list(measured.figures)[::4]:
        assert "<h1>" in html(without(measured, key))
        alone = {key: measured.figures[key]}
        assert "<h1>" in html(replace(measured, figures=alone, times={}, curves={}))


def test_uci_adult_is_never_marked_against_ipums() -> None:
    measured = made_up("adult")
    tables = [*paper_tables(measured), *our_tables(measured)]
    assert not any(cell.mark for table in tables for row in table.rows for cell in row)
    for table in paper_tables(measured):
        assert table.columns[2:] == ("UCI Adult", "paper, IPUMS Adult (another data set)")
    page = html(measured)
    assert "✓" not in page
    assert "▲ above</span>" not in page
    assert "UCI Adult is not the paper&#39;s IPUMS Adult" in page.replace("<wbr>", "")
    assert placements(measured).total == 0


def test_the_same_figures_under_ipums_are_marked() -> None:
    measured = made_up("ipums")
    assert placements(measured).total == 12
    assert "another data set" not in html(measured)


def test_marks_are_words_and_the_headline_counts_them() -> None:
    figures = {
        "nn_b__accuracy": [76.7] * 5,
        "nn_b__flip_rate": [10.37] * 5,
        "nn_b__ce_rate": [25.4] * 5,
    }
    measured = with_figures(empty("german"), **figures)
    assert placements(measured).within == ("nn_b.accuracy",)
    assert placements(measured).outside == ("nn_b.flip_rate", "nn_b.ce_rate")
    marks = [row[2].mark for row in paper_tables(measured)[1].rows[:3]]
    assert marks == ["✓ within", "▲ above", "▼ below"]
    assert "Of 12 figures" in agreement(measured).headline
    assert ", 1 are within two" in agreement(measured).headline


def test_times_are_never_marked() -> None:
    table = paper_tables(made_up("german"))[2]
    assert not any(row[2].mark for row in table.rows if row[1].text != "accuracy, %")


@pytest.mark.parametrize(
    "payload", ["<script>alert(1)</script>", '"><img src=x onerror=y>', "a\u202eb\x1b[31m"]
)
def test_untrusted_texts_are_escaped(payload: str) -> None:
    measured = replace(
        made_up("german"),
        title=payload,
        notes=[payload],
        settings={payload: payload},
        versions={payload: payload},
        missing={payload: payload, "nn_b.accuracy": payload},
    )
    page = html(without(measured, "nn_b.accuracy", reason=payload))
    assert "<script" not in page
    assert "<img" not in page
    assert "\u202e" not in page
    assert "\x1b" not in page


def test_a_quick_run_has_a_banner() -> None:
    assert "Quick run" in html(replace(made_up("german"), quick=True))
    assert "Quick run" not in html(made_up("german"))


def test_folds_without_a_number_are_counted() -> None:
    measured = empty("german")
    measured = replace(measured, figures={"nn_b.accuracy": [70.0, float("nan"), 72.0, 74.0, 76.0]})
    assert "73.00 ± 2.24 (4 of 5 folds)" in texts(paper_tables(measured)[0])


def test_directions_are_compared_with_the_paper() -> None:
    trained = {"trained__ce_rate": [20.0, 21.0, 22.0], "nn_b__ce_rate": [10.0, 11.0, 12.0]}
    measured = replace(with_figures(empty("german"), **trained), folds=3)
    claims_by_words = {claim.words: claim for claim in claims(measured)}
    assert claims_by_words["Training against NN_b: CE rate"].outcome == "✗ other direction"
    assert claims_by_words["Training against NN_b: CE rate"].paper == pytest.approx(-12.1)
    assert claims_by_words["Training against NN_b: flip rate"].outcome == "not measured"
