import re
from collections.abc import Callable

import numpy as np
import pytest

from feta.errors import DomainError
from feta.rule.labels import parse_class, parse_score, parse_side

NAMES = ("Denied", "granted")
CLASSES = ("low", "high", "1")


@pytest.mark.parametrize(
    ("label", "favorable"),
    [
        ("granted", True),
        ("GRANTED", True),
        ("Denied", False),
        ("denied", False),
        ("1", True),
        ("1.0", True),
        ("true", True),
        ("TRUE", True),
        (1, True),
        (1.0, True),
        (True, True),
        (np.bool_(True), True),
        (np.int64(1), True),
        ("0", False),
        ("0.0", False),
        ("False", False),
        (0, False),
        (0.0, False),
        (False, False),
    ],
)
def test_a_side_is_a_name_or_a_number(label: object, *, favorable: bool) -> None:
    assert parse_side(label, NAMES) is favorable


def test_names_precede_numbers() -> None:
    assert parse_side("1", ("1", "0")) is False
    assert parse_side("0", ("1", "0")) is True
    assert parse_side(True, ("true", "false")) is False


@pytest.mark.parametrize("label", ["yes", "YES"])
def test_names_that_differ_in_case_only_are_ambiguous(label: str) -> None:
    with pytest.raises(DomainError, match=f"^got '{label}'; expected 'yes', 'Yes', 1 or 0$"):
        parse_side(label, ("Yes", "yes"))
    assert parse_side("1", ("Yes", "yes")) is True


@pytest.mark.parametrize("label", ["2", "", " granted", None, float("nan"), 2, "yes"])
def test_another_side_is_rejected(label: object) -> None:
    message = f"got {label!r}; expected 'granted', 'Denied', 1 or 0"
    with pytest.raises(DomainError, match=f"^{re.escape(message)}$"):
        parse_side(label, NAMES)


@pytest.mark.parametrize(("label", "name"), [("low", "low"), ("high", "high"), (1, "1")])
def test_a_class_is_its_exact_name(label: object, name: str) -> None:
    assert parse_class(label, CLASSES) == name


@pytest.mark.parametrize(
    ("label", "message"),
    [
        ("hihg", "got 'hihg'; expected one of 'low', 'high', '1'; did you mean 'high'?"),
        ("LOW", "got 'LOW'; expected one of 'low', 'high', '1'"),
        (None, "got 'None'; expected one of 'low', 'high', '1'"),
    ],
)
def test_another_class_is_rejected(label: object, message: str) -> None:
    with pytest.raises(DomainError, match=f"^{re.escape(message)}$"):
        parse_class(label, CLASSES)


@pytest.mark.parametrize(
    ("label", "score"),
    [
        ("1.5", 1.5),
        (" -2e3 ", -2000.0),
        (7, 7.0),
        (True, 1.0),
        (np.float32(0.5), 0.5),
        (1.7976931348623157e308, 1.7976931348623157e308),
    ],
)
def test_a_score_is_a_finite_number(label: object, score: float) -> None:
    assert parse_score(label) == score
    assert isinstance(parse_score(label), float)


@pytest.mark.parametrize(
    "label",
    ["1_000", "٣", "high", "", "nan", "inf", "-inf", "1e999", None, float("nan"), 10**400, [1, 2]],
    ids=repr,
)
def test_another_score_is_rejected(label: object) -> None:
    with pytest.raises(DomainError, match=r"^got .*; expected a finite number$"):
        parse_score(label)


def test_a_message_shows_the_score_that_it_rejects() -> None:
    with pytest.raises(DomainError, match=r"^got '1_000'; expected a finite number$"):
        parse_score("1_000")
    with pytest.raises(DomainError, match=r"^got None; expected a finite number$"):
        parse_score(None)


@pytest.mark.parametrize(
    "parse",
    [
        lambda label: parse_side(label, NAMES),
        lambda label: parse_score(label),
    ],
    ids=["side", "score"],
)
def test_a_long_label_is_shortened(parse: Callable[[str], object]) -> None:
    with pytest.raises(DomainError, match=f"^got '{'x' * 78}'; expected"):
        parse("x" * 78)  # with its quotes, 80 characters
    with pytest.raises(DomainError, match=f"^got '{'x' * 39} … {'y' * 39}'; expected"):
        parse("x" * 50 + "y" * 50)


def test_a_long_class_is_shortened() -> None:
    with pytest.raises(DomainError, match=f"^got '{'x' * 80}'; expected"):
        parse_class("x" * 80, CLASSES)
    with pytest.raises(DomainError, match=f"^got '{'x' * 40} … {'y' * 40}'; expected"):
        parse_class("x" * 41 + "y" * 40, CLASSES)
