"""The three datasets outside the package: made-up rows, and the real files if available."""

import os
from pathlib import Path

import numpy as np
import pytest

from feta import DatasetError, datasets
from feta.datasets.dataset import Dataset
from tests import made_up_rows


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("FETA_DATA_DIR", str(tmp_path))
    for name in ("adult", "ipums", "law"):
        (tmp_path / name).mkdir()
    (tmp_path / "adult/adult.data").write_bytes(made_up_rows.ADULT_DATA)
    (tmp_path / "adult/adult.test").write_bytes(made_up_rows.ADULT_TEST)
    (tmp_path / "ipums/adult_reconstruction.csv").write_bytes(made_up_rows.IPUMS)
    (tmp_path / "law/lawschool_part.csv").write_bytes(made_up_rows.LAW_PART)
    return tmp_path


def real(name: str, file: str) -> Dataset:
    folder_name = os.environ.get("FETA_DATA_DIR", "")
    if not folder_name or not (Path(folder_name) / file).is_file():
        pytest.skip(f"{file} is not in FETA_DATA_DIR ({folder_name or 'not set'})")
    return datasets.load(name)


def assert_all_inside(dataset: Dataset) -> None:
    people = dataset.space.encode(dataset.frame)
    dataset.space.check(people)
    for row in (0, len(people) - 1):
        assert dataset.space.decode(people[row]) == dataset.frame.iloc[row].to_dict()


@pytest.mark.usefixtures("folder")
def test_uci_adult_is_both_files_without_rows_with_missing_values() -> None:
    dataset = datasets.load("adult")
    assert dataset.title == "UCI Adult"
    assert dataset.frame["age"].tolist() == [41, 90, 17, 52]
    assert dataset.labels.tolist() == [False, True, False, True]
    assert "fnlwgt" not in dataset.frame
    assert_all_inside(dataset)


@pytest.mark.usefixtures("folder")
def test_ipums_adult_has_another_title_and_a_limit_of_30_000_dollars() -> None:
    dataset = datasets.load("ipums")
    assert dataset.title == "IPUMS Adult"
    assert dataset.frame["sex"].tolist() == ["Female", "Male"]
    assert dataset.labels.tolist() == [False, True]  # 30,000 is not over 30,000
    assert_all_inside(dataset)


@pytest.mark.usefixtures("folder")
@pytest.mark.parametrize("name", ["adult", "ipums"])
def test_both_adult_datasets_have_the_space_of_the_paper(name: str) -> None:
    space = datasets.load(name).space
    assert space.width == 103
    assert space.lattice.size == 212_380
    sensitive = {attribute.name for attribute in space.sensitive}
    assert sensitive == {"age", "marital_status", "race", "sex", "native_country"}


@pytest.mark.usefixtures("folder")
def test_law_school_has_the_space_of_the_paper_and_notes_invalid_scores() -> None:
    dataset = datasets.load("law")
    assert dataset.space.width == 37
    assert dataset.space.lattice.size == 6
    assert [attribute.name for attribute in dataset.space.sensitive] == ["race", "gender"]
    assert dataset.frame["lsat"].tolist() == [150, 184, 121]
    assert dataset.labels.tolist() == [True, False, True]
    assert dataset.notes == (
        "1 row has an LSAT above 180, which the test cannot give; kept as in the file",
    )
    assert_all_inside(dataset)


def test_a_part_of_law_school_is_labeled_and_the_complete_file_is_preferred(folder: Path) -> None:
    part = datasets.load("law")
    (folder / "law/lawschs1_1.dta").write_bytes(made_up_rows.law_stata())
    complete = datasets.load("law")
    assert part.title == "Law School admissions, first 65,535 rows"
    assert complete.title == "Law School admissions"
    assert part.frame.equals(complete.frame)
    assert np.array_equal(part.labels, complete.labels)


def test_the_archive_of_uci_is_read(folder: Path) -> None:
    separate = datasets.load("adult")
    for file in ("adult.data", "adult.test"):
        (folder / "adult" / file).unlink()
    (folder / "adult/adult.zip").write_bytes(made_up_rows.adult_zip())
    assert datasets.load("adult").frame.equals(separate.frame)


def replace_bytes(path: Path, old: bytes, new: bytes) -> None:
    content = path.read_bytes()
    assert old in content
    path.write_bytes(content.replace(old, new))


@pytest.mark.parametrize(
    ("name", "file", "old", "new", "message"),
    [
        (
            "adult",
            "adult/adult.data",
            b"90,",
            b"91,",
            r"adult\.data: row 2: invalid value for 'age': got 91; expected .* to 90",
        ),
        (
            "adult",
            "adult/adult.test",
            b"Hong",
            b"Mars",
            r"adult\.test: row 1: invalid value for 'native_country': got 'Mars'; expected one of",
        ),
        (
            "adult",
            "adult/adult.data",
            b"41,",
            b"x,",
            r"row 1: invalid value for 'age': got 'x'; expected a number",
        ),
        (
            "adult",
            "adult/adult.data",
            b" >50K",
            b" rich",
            r"row 2: invalid value for 'income': got 'rich'; expected '<=50K' or '>50K'",
        ),
        (
            "adult",
            "adult/adult.data",
            b", 1000",
            b"",
            r"adult\.data: wrong number of columns: got .*; expected 15|comma",
        ),
        (
            "adult",
            "adult/adult.data",
            made_up_rows.ADULT_DATA,
            b"",
            r"adult\.data: expected a comma-separated table",
        ),
        (
            "ipums",
            "ipums/adult_reconstruction.csv",
            b"gender",
            b"G",
            r"must have the column 'sex'.*the right file\?",
        ),
        (
            "ipums",
            "ipums/adult_reconstruction.csv",
            b"30001",
            b"",
            r"row 2: invalid value for 'income': got ''; expected a number",
        ),
        (
            "law",
            "law/lawschool_part.csv",
            b"184",
            b"185",
            r"row 2: invalid value for 'lsat': got 185.*; expected a number from 120 to 184",
        ),
        (
            "law",
            "law/lawschool_part.csv",
            b"Ohio State",
            b"Oslo",
            r"row 8: invalid value for 'college': got 'Oslo'; expected one of",
        ),
        (
            "law",
            "law/lawschool_part.csv",
            b"200x,0,1",
            b"200x,0,2",
            r"invalid value for 'admit'; expected 0 or 1",
        ),
    ],
)
def test_another_file_is_refused_by_row_and_column(
    folder: Path, *, name: str, file: str, old: bytes, new: bytes, message: str
) -> None:
    replace_bytes(folder / file, old, new)
    with pytest.raises(DatasetError, match=message):
        datasets.load(name)


def test_a_broken_stata_file_and_a_broken_archive_are_refused(folder: Path) -> None:
    (folder / "law/lawschs1_1.dta").write_bytes(b"not Stata's")
    with pytest.raises(DatasetError, match=r"lawschs1_1\.dta: the file cannot be read"):
        datasets.load("law")
    (folder / "adult/adult.data").unlink()
    (folder / "adult/adult.zip").write_bytes(made_up_rows.adult_zip()[:-30])
    with pytest.raises(
        DatasetError, match=r"expected a zip archive with adult\.data and adult\.test"
    ):
        datasets.load("adult")


def test_a_missing_folder_is_refused(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("FETA_DATA_DIR", str(tmp_path / "nowhere"))
    with pytest.raises(
        DatasetError, match=r"invalid FETA_DATA_DIR: got .*nowhere'; expected a folder"
    ):
        datasets.load("law")


def test_the_real_uci_adult() -> None:
    dataset = real("adult", "adult/adult.data")
    assert len(dataset.frame) == 45_222
    assert int(dataset.labels.sum()) == 11_208
    people = dataset.space.encode(dataset.frame)
    never_highest = np.flatnonzero(people.max(axis=0) != dataset.space.magnitudes)
    assert len(never_highest) == 1  # the capital loss; every category and every other limit occurs
    assert_all_inside(dataset)


def test_the_real_part_of_law_school() -> None:
    dataset = real("law", "law/lawschool_part.csv")
    if dataset.title == "Law School admissions":
        pytest.skip("FETA_DATA_DIR has the whole of Law School, not the part")
    assert len(dataset.frame) == 49_449
    assert round(100 * dataset.labels.mean(), 2) == 25.27
    assert dataset.frame["college"].nunique() == 13
    assert dataset.frame["lsat"].max() == 184
    assert_all_inside(dataset)


def test_the_real_ipums_adult() -> None:
    dataset = real("ipums", "ipums/adult_reconstruction.csv")
    assert len(dataset.frame) == 45_850  # five times the 9,170 people of the paper's test folds
    assert_all_inside(dataset)
