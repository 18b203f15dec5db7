"""Settings of votes: what is invalid, and what needs people."""

import copy
import pickle

import pytest

from feta import SchemaError
from feta.io.schema_file import parse_schema
from feta.io.schema_writer import format_schema
from feta.vote.settings import KEEP, MEAN_PROBABILITY, Recommended, VoteSettings

COLUMNS = '[columns]\nage = { type = "integer", min = 0, max = 9, sensitive = true }\n'


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"vote": "mean"}, "invalid vote: got 'mean'"),
        ({"weights": "emprical"}, "invalid weights: got 'emprical'"),
        ({"level": "kept"}, "invalid level: got 'kept'"),
        ({"level": float("inf")}, "invalid level: got inf"),
        ({"level": True}, "invalid level: got True"),
        ({"least": 0}, "invalid least: got 0; expected an integer, 1 or more"),
        ({"least": 2.5}, "invalid least: got 2.5"),
    ],
)
def test_invalid_settings_are_refused(options: dict[str, object], message: str) -> None:
    with pytest.raises(SchemaError, match=message):
        VoteSettings(**options)  # type: ignore[arg-type]


def test_a_default_stays_a_default_when_it_is_copied() -> None:
    for value in (MEAN_PROBABILITY, KEEP):
        for other in (copy.deepcopy(value), pickle.loads(pickle.dumps(value))):
            assert isinstance(other, Recommended)
            assert other == value
    assert not isinstance("mean_probability", Recommended)


def test_only_fitted_settings_need_people() -> None:
    assert VoteSettings().needs_people
    assert VoteSettings("majority").needs_people
    assert not VoteSettings("majority", "equal").needs_people
    assert not VoteSettings("mean_score", None, "threshold").needs_people
    assert VoteSettings("mean_score", None, "keep").needs_people


def test_a_schema_keeps_its_settings() -> None:
    text = f'[votes]\nvote = "mean_score"\nlevel = "threshold"\nleast = 9\n{COLUMNS}'
    file = parse_schema(text)
    assert file.votes is not None
    assert (file.votes.vote, file.votes.level, file.votes.least) == ("mean_score", "threshold", 9)
    again = parse_schema(format_schema(file))
    assert again.votes == file.votes
    assert parse_schema(COLUMNS).votes is None
    assert parse_schema(f"[votes]\n{COLUMNS}").votes == VoteSettings()


@pytest.mark.parametrize(
    ("section", "message"),
    [
        ("level = 0.5", r"\[votes\]: invalid level: got 0.5; expected a text: \[votes\] holds set"),
        ("thresholds = [0.5]", r"\[votes\]: unknown key: got 'thresholds'"),
        ('vote = "mean"', r"\[votes\]: invalid vote: got 'mean'"),
        ("least = 0", r"\[votes\]: invalid least"),
    ],
)
def test_fitted_numbers_do_not_belong_in_a_schema(section: str, message: str) -> None:
    with pytest.raises(SchemaError, match=message):
        parse_schema(f"[votes]\n{section}\n{COLUMNS}")
