"""Strict reading by `feta_check`: JSON in one form only, and numbers without rounding."""

from fractions import Fraction

import pytest

from feta_check.reading import (
    MAX_EXACT,
    Refuted,
    Unreadable,
    exact,
    exact_text,
    nearest,
    number_of,
    parse,
    read_json,
)

# Texts that come before, and after, the canonical one.
OTHER_FORMS = [
    b'{ "a":1}',
    b'{"b":1,"a":2}',
    b'{"a":1} ',
    b'{"a":"\\u0041"}',
    b'{"a":1.0}',
    b'{"a":1e0}',
]


@pytest.mark.parametrize("line", OTHER_FORMS)
def test_only_the_canonical_form_is_parsed(line: bytes) -> None:
    with pytest.raises(Unreadable, match="the line: got JSON that is not canonical"):
        parse(line, "the line")


@pytest.mark.parametrize("line", [b'{"a":1,"a":1}', b"[]", b"1", b'{"a":NaN}', b"{", b'"\xff"'])
def test_only_objects_without_repeated_keys_are_read(line: bytes) -> None:
    with pytest.raises(Unreadable, match=r"^the line: got no "):
        read_json(line, "the line")


def test_an_object_in_canonical_form_is_parsed() -> None:
    assert parse(b'{"a":[1,null,true],"b":"\\u00e4"}', "a line") == {"a": [1, None, True], "b": "ä"}
    assert read_json(b'{ "a": 0.375, "b": 3 }', "a line") == {"a": "3p-3", "b": 3}


NUMBERS = {
    "0": Fraction(0),
    "1p0": Fraction(1),
    "-3p-2": Fraction(-3, 4),
    "5p3": Fraction(40),
    "1fp1": Fraction(62),
    "1p-1074": Fraction(1, 2**1074),
    "-f1p10": Fraction(-241 * 2**10),
}


@pytest.mark.parametrize("text", NUMBERS)
def test_exact_texts_are_numbers_and_back(text: str) -> None:
    assert exact(text) == number_of(text) == NUMBERS[text]
    assert exact_text(NUMBERS[text]) == text
    if NUMBERS[text].denominator == 1:
        assert type(exact(text)) is int


@pytest.mark.parametrize(
    "text",
    [
        "",
        "1",
        "2p0",
        "01p0",
        "1p00",
        "1p-0",
        "+1p0",
        "1p0 ",
        "1P0",
        "Fp0",
        "-0",
        "1p100000",
        1,
        None,
    ],
)
def test_other_texts_are_no_numbers(text: object) -> None:
    with pytest.raises(Refuted, match="expected an exact number"):
        exact(text)


def test_a_text_has_a_limit() -> None:
    longest = "1" * (MAX_EXACT - 2) + "p0"
    assert exact(longest) == int(longest[:-2], 16)
    with pytest.raises(Refuted, match="expected an exact number"):
        exact("1" + longest)


def test_a_number_is_an_integer_or_a_text() -> None:
    assert number_of(7) == 7
    with pytest.raises(Refuted, match="got 'True'"):
        number_of(True)


def test_the_nearest_float_is_even_on_a_tie() -> None:
    assert nearest(2**53 + 1) == 2**53
    assert nearest(2**53 + 3) == 2**53 + 4
    assert nearest(Fraction(1, 3)) == Fraction(1 / 3)
    with pytest.raises(Refuted, match="too large for a float64"):
        nearest(2**1024)
