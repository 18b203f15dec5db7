from fractions import Fraction

import pytest
from hypothesis import given
from hypothesis import strategies as st

from feta.errors import DomainError
from feta.io.canonical_json import canonical, dyadic_text, exact_json, exact_text


def value_of(text: str) -> Fraction:
    if text == "0":
        return Fraction(0)
    mantissa, exponent = text.split("p")
    return int(mantissa, 16) * Fraction(2) ** int(exponent)


@given(st.floats(allow_nan=False, allow_infinity=False))
def test_a_float_is_stated_exactly(number: float) -> None:
    text = exact_text(number)
    assert value_of(text) == Fraction(number)
    assert text == "0" or int(text.split("p")[0], 16) % 2


@given(st.integers(-(10**30), 10**30), st.integers(-50, 50))
def test_equal_numbers_have_equal_texts(numerator: int, exponent: int) -> None:
    text = dyadic_text(numerator, exponent)
    assert value_of(text) == numerator * Fraction(2) ** exponent
    assert text == dyadic_text(numerator * 8, exponent - 3)


def test_keys_are_sorted_and_characters_are_ascii() -> None:
    assert canonical({"b": [1, None, True], "a": "é\n"}) == b'{"a":"\\u00e9\\n","b":[1,null,true]}'


def test_floats_become_texts_and_tuples_lists() -> None:
    assert exact_json({"a": (0.75, 3, "x", None)}) == {"a": ["3p-2", 3, "x", None]}


def test_other_values_are_refused() -> None:
    with pytest.raises(DomainError, match=r"no canonical JSON: got set; expected numbers"):
        exact_json({1})
