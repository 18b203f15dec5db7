import hashlib
from importlib.resources import files

import pytest

from feta import SchemaError, datasets
from feta.datasets import german


def test_german_credit_is_that_of_the_paper() -> None:
    dataset = datasets.load("german")
    assert len(dataset.frame) == len(dataset.labels) == 1000
    assert int(dataset.labels.sum()) == 700
    assert dataset.space.width == 61
    assert dataset.space.lattice.size == 456
    assert [attribute.name for attribute in dataset.space.sensitive] == [
        "personal_status",
        "age",
        "foreign_worker",
    ]


def test_every_row_is_a_person_of_the_space_and_decodes_to_itself() -> None:
    dataset = datasets.load("german")
    people = dataset.space.encode(dataset.frame)
    dataset.space.check(people)
    for row in (0, 1, 999):
        assert dataset.space.decode(people[row]) == dataset.frame.iloc[row].to_dict()


def test_the_domains_are_as_wide_as_the_file_and_no_wider() -> None:
    dataset = datasets.load("german")
    people = dataset.space.encode(dataset.frame)
    assert (people.max(axis=0) == dataset.space.magnitudes).all()


def test_the_bundled_file_is_that_of_uci() -> None:
    content = files("feta.datasets").joinpath("german.data").read_bytes()
    assert hashlib.sha256(content).hexdigest() == german.SHA256


def test_a_damaged_file_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(german, "SHA256", "0" * 64)
    with pytest.raises(SchemaError, match="file is damaged; install the package again"):
        german.load_german()


def test_an_unknown_dataset_is_refused() -> None:
    with pytest.raises(
        SchemaError, match=r"unknown dataset: got 'germn'; .*; did you mean 'german'\?"
    ):
        datasets.load("germn")
