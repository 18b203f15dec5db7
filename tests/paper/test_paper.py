"""Tests of the paper's cells: complete, and equal wherever a figure is printed twice."""

import hashlib

import pytest

from feta_paper.paper import RATIOS, TABLE_NAMES, Published, cells, comparable, published

DATASETS = ("german", "ipums", "law")


def test_every_table_has_its_cells() -> None:
    counts = {name: [len(cells(name, dataset)) for dataset in DATASETS] for name in TABLE_NAMES}
    assert counts == {
        "Table 1": [6, 6, 6],
        "Table 2": [6, 6, 6],
        "Table 3": [4, 4, 4],
        "Table 4": [2, 2, 2],
        "Table 5": [6, 6, 6],
        "Table 6": [6, 0, 6],
        "Table 7": [0, 4, 0],
    }


@pytest.mark.parametrize("dataset", DATASETS)
def test_a_figure_is_the_same_in_every_table(dataset: str) -> None:
    seen: dict[str, str] = {}
    for name in TABLE_NAMES:
        for key, cell in cells(name, dataset).items():
            assert seen.setdefault(key, cell.text) == cell.text


@pytest.mark.parametrize("dataset", DATASETS)
def test_twelve_figures_can_be_compared(dataset: str) -> None:
    assert len(comparable(dataset)) == 12
    assert not any("seconds" in key for key in comparable(dataset))


def test_printed_figures_are_parsed() -> None:
    assert (Published("0.008 ± 0.007").mean, Published("0.008 ± 0.007").std) == (0.008, 0.007)
    assert (Published("655,655").mean, Published("655,655").std) == (655_655, None)


def test_totals_and_averages_of_counting_are_of_one_test_fold() -> None:
    table = cells("Table 7", "ipums")
    for way in ("naive", "milp"):
        people = table[f"counting.{way}_total"].mean / table[f"counting.{way}_seconds"].mean
        assert people == pytest.approx(9170, abs=1)


def test_both_kinds_of_blind_network_have_the_same_cell() -> None:
    fixed, fresh = (published("law", f"blind_{name}.accuracy") for name in ("fixed", "fresh"))
    assert fixed == fresh == Published("74.19 ± 1.20")
    assert published("law", "blind_full.accuracy") is None


def test_the_cells_are_unchanged_since_they_were_compared_with_the_paper() -> None:
    # All 88 cells and the three ratios were compared with the text of the paper's tables. This
    # checksum detects any later change.
    written = repr(RATIOS) + "\n".join(
        f"{name} {dataset} {key} {cell.text}"
        for name in TABLE_NAMES
        for dataset in DATASETS
        for key, cell in sorted(cells(name, dataset).items())
    )
    digest = hashlib.sha256(written.encode()).hexdigest()
    assert digest == "157d9f1be7d28770b02281ee96ae51e0de6906d0b3012e1b8ae07c5a55acca47"
