import decimal
from collections.abc import Callable, Sequence

import numpy as np
import pytest

from feta import Categorical, Derived, DomainError, Integer, Levels, Real, SchemaError
from feta.space.attribute import Finite

SEX = Categorical("sex", ("female", "male"))
AGE = Integer("age", 18, 90)
HOURS = Levels("hours", (-1.5, 0.0, 40.0))
INCOME = Real("income", 0.0, 0.1)
BAND = Derived("band", "age", (("young", 18, 30), ("old", 31, 90)))


@pytest.mark.parametrize(
    ("declare", "message"),
    [
        (
            lambda: Categorical("", ("a",)),
            r"^invalid attribute name: got ''; expected a text, not empty",
        ),
        (lambda: Integer(None, 1, 2), "^invalid attribute name: got None; expected"),  # type: ignore[arg-type]
        (
            lambda: Categorical("c", ()),
            r"^invalid values for 'c': got \(\); expected a list of texts",
        ),
        (lambda: Categorical("c", ("a", 1.5)), r"^invalid values for 'c': got .*1\.5"),  # type: ignore[arg-type]
        (
            lambda: Categorical("c", ("a", "b", "a")),
            "^repeated value for 'c': got .*; expected each value once",
        ),
        (lambda: Categorical("c", (1, True)), r"repeated value for 'c': got \(1, True\)"),
        (
            lambda: Integer("i", 1.5, 9),  # type: ignore[arg-type]
            r"^invalid limit for 'i': got 1\.5; expected an integer within ±2\^52",
        ),
        (lambda: Integer("i", True, 9), "^invalid limit for 'i': got True; expected"),
        (lambda: Integer("i", 0, 2**52 + 1), "^invalid limit for 'i': got 45035996"),
        (
            lambda: Integer("i", 3, 2),
            "^invalid limits for 'i': got 3 to 2; expected the low limit at or below the high one",
        ),
        (
            lambda: Levels("l", ()),
            r"^invalid numbers for 'l': got \(\); expected a list of finite numbers",
        ),
        (lambda: Levels("l", (0.0, np.nan)), "^invalid numbers for 'l': got .*nan"),
        (
            lambda: Levels("l", (1.0, 0.0)),
            "^invalid order of numbers for 'l': got .*; expected ascending",
        ),
        (
            lambda: Levels("l", (-0.0, 0.0)),
            "^invalid order of numbers for 'l': got .*; expected ascending",
        ),
        (
            lambda: Levels.spaced("l", 0, 1, step=0.0),
            r"^invalid levels for 'l': got .* by 0\.0; expected .* a step above 0",
        ),
        (
            lambda: Levels.spaced("l", 0, 1, step=np.nan),
            "^invalid levels for 'l': got .* by nan; expected",
        ),
        (
            lambda: Levels.spaced("l", 0, np.inf, step=1.0),
            "^invalid levels for 'l': .*; expected finite limits",
        ),
        (
            lambda: Levels.spaced("l", 2, 1, step=1.0),
            "^invalid limits for 'l': got 2 to 1; expected",
        ),
        (
            lambda: Levels.spaced("l", 0, 10**6, step=1.0),
            "^too many levels for 'l': got 1000000 steps; expected fewer than 1000000",
        ),
        (lambda: Levels.spaced("l", "0", 1, step=1.0), "^invalid levels for 'l': got '0' to 1 by"),  # type: ignore[arg-type]
        (
            lambda: Real("r", 0, np.inf),
            "^invalid limits for 'r': got 0 and inf; expected finite limits",
        ),
        (
            lambda: Real("r", np.nan, 1),
            "^invalid limits for 'r': got nan and 1; expected finite limits",
        ),
        (
            lambda: Real("r", 1, 0),
            r"^invalid limits for 'r': got 1\.0 to 0\.0; expected the low limit at or below",
        ),
        (
            lambda: Derived("d", "age", (("a", 1),)),  # type: ignore[arg-type]
            r"^invalid bands for 'd': got .*; expected \(label, low, high\) each",
        ),
        (
            lambda: Derived("d", "age", ()),
            r"^invalid bands for 'd': got \(\); expected one or more bands with different labels",
        ),
        (
            lambda: Derived("d", "age", (("a", 0, 1), ("a", 2, 3))),
            "^invalid bands for 'd': got .*; expected one or more bands with different labels",
        ),
        (
            lambda: Derived("d", "age", (("a", 2, 1),)),
            "^invalid limits for 'd: a': got 2.0 to 1.0; expected the low",
        ),
        (
            lambda: Derived("d", "age", (("a", np.nan, 1),)),
            "^invalid limits for 'd: a': got nan to 1",
        ),
    ],
)
def test_an_invalid_attribute_is_rejected(declare: Callable[[], object], message: str) -> None:
    with pytest.raises(SchemaError, match=message):
        declare()


@pytest.mark.parametrize("attribute", [Integer("i", 5, 5), Real("r", 5, 5), Levels("l", (5,))])
def test_a_domain_may_have_a_single_value(attribute: Integer | Real | Levels) -> None:
    assert attribute.encode([5]).tolist() == [[5.0]]


@pytest.mark.parametrize(
    ("attribute", "cell", "message"),
    [
        (
            SEX,
            "mle",
            r"'sex' is invalid: got 'mle'; expected one of 'female', 'male'; did you mean 'male'\?",
        ),
        (SEX, ["male"], r"'sex' is invalid: got \['male'\]; expected one of"),
        (SEX, None, "'sex' is invalid: got None; expected one of"),
        (SEX, float("nan"), "'sex' is invalid: got nan; expected one of"),
        (
            SEX,
            np.str_("x"),
            "got 'x'; .*; if such people exist, add the value to the column's values",
        ),
        (
            Categorical("sex", ("f", "m"), missing=True),
            "divers",
            "got 'divers'; .*; leave the cell empty if the value is missing; if such people exist",
        ),
        (AGE, 17, r"'age' is invalid: got 17; expected an integer from 18 to 90 \(row 1\)"),
        (AGE, 91, "got 91"),
        (AGE, 40.5, r"got 40\.5"),
        (AGE, np.nextafter(18, 0), r"got 17\.99999"),
        (AGE, "40", "got '40'"),
        (AGE, b"40", "got b'40'"),
        (AGE, None, "got None"),
        (AGE, 40 + 0j, "got .40.0j"),
        (AGE, 2**53 + 1, "got 9007199254740993"),
        (AGE, 10**400, "got 1000"),
        (AGE, float("nan"), "got nan"),
        (HOURS, 39.999, r"'hours' is invalid: got 39\.999; expected one of -1\.5, 0, 40"),
        (HOURS, np.inf, "got inf"),
        (
            INCOME,
            np.nextafter(0.1, 1),
            r"'income' is invalid: got 0\.1000000\d*; expected a number from 0 to 0\.1",
        ),
        (INCOME, -5e-324, "got -5e-324"),
        (INCOME, float("nan"), "got nan"),
        (INCOME, -np.inf, "got -inf"),
    ],
)
def test_an_invalid_cell_is_rejected_with_its_column_and_row(
    attribute: Categorical | Integer | Levels | Real, cell: object, message: str
) -> None:
    good = attribute.values[0] if isinstance(attribute, Categorical) else 40
    good = 0 if attribute is INCOME else good
    with pytest.raises(DomainError, match=message) as error:
        attribute.encode([good, cell])
    assert (error.value.column, error.value.row) == (attribute.name, 1)


@pytest.mark.parametrize("attribute", [Integer("i", 0, 1), Levels("l", (0, 1)), Real("r", 0, 1)])
@pytest.mark.parametrize("cells", [[True, False], np.array([True, False])])
def test_a_boolean_is_not_a_number(
    attribute: Integer | Levels | Real, cells: Sequence[object]
) -> None:
    with pytest.raises(DomainError, match="got True"):
        attribute.encode(cells)


@pytest.mark.parametrize(
    "cells",
    [
        [18, 90],
        [18.0, 90.0],
        np.array([18, 90], dtype=np.uint8),
        np.array([18, 90], dtype=np.float32),
        np.array([18, 90], dtype=object),
        [decimal.Decimal(18), np.int64(90)],
    ],
)
def test_any_kind_of_number_is_read(cells: Sequence[object]) -> None:
    assert AGE.encode(cells).tolist() == [[18.0], [90.0]]


@pytest.mark.parametrize("attribute", [SEX, AGE, HOURS, INCOME])
def test_no_cells_give_no_rows(attribute: Categorical | Integer | Levels | Real) -> None:
    assert attribute.encode([]).shape == (0, attribute.width)


@pytest.mark.parametrize(
    "attribute", [Integer("i", -1, 1), Levels("l", (0.0, 1.0)), Real("r", -0.0, 1.0)]
)
def test_negative_zero_becomes_zero(attribute: Integer | Levels | Real) -> None:
    assert not np.signbit(attribute.encode([-0.0])).any()
    assert not np.signbit(Levels("l", (-0.0,)).numbers[0])
    assert not np.signbit(Real("r", -0.0, 1.0).low)


@pytest.mark.parametrize("attribute", [SEX, AGE, HOURS])
def test_indices_invert_codes(attribute: Finite) -> None:
    indices = np.arange(attribute.n_values)
    codes = attribute.codes(indices)
    assert attribute.indices(codes).tolist() == indices.tolist()
    assert attribute.valid(codes).all()
    decoded = [attribute.decode(code) for code in codes]
    assert len(set(decoded)) == attribute.n_values
    np.testing.assert_array_equal(attribute.encode(decoded), codes)


@pytest.mark.parametrize(
    "row", [[0.0, 0.0], [1.0, 1.0], [0.5, 0.5], [2.0, -1.0], [np.nan, 1.0], [1.0, 1e-300]]
)
def test_only_one_hot_columns_are_a_category(row: list[float]) -> None:
    assert SEX.valid(np.array([row, [0.0, 1.0]])).tolist() == [False, True]


def test_decoded_numbers_are_integers_or_floats() -> None:
    assert isinstance(AGE.decode(np.array([40.0])), int)
    assert isinstance(HOURS.decode(np.array([40.0])), float)
    assert isinstance(INCOME.decode(np.array([0.0])), float)


@pytest.mark.parametrize(
    ("low", "high", "step", "numbers"),
    [
        (0, 1, 0.25, (0.0, 0.25, 0.5, 0.75, 1.0)),
        (0, 1, 0.4, (0.0, 0.4, 0.8)),
        (0, 1, 2, (0.0,)),
        (-1, 1, 1, (-1.0, 0.0, 1.0)),
        (3, 3, 1, (3.0,)),
    ],
)
def test_a_step_gives_levels_up_to_the_high_limit(
    low: float, high: float, step: float, numbers: tuple[float, ...]
) -> None:
    assert Levels.spaced("l", low, high, step=step).numbers == numbers


def test_rounding_does_not_lose_the_last_level() -> None:
    levels = Levels.spaced("l", 0, 0.3, step=0.1, sensitive=True)
    assert levels.n_values == 4
    assert levels.sensitive


def test_levels_are_computed_in_decimal() -> None:
    """In float64, 0 + 3 · 0.1 is 0.30000000000000004, which no table contains."""
    levels = Levels.spaced("l", 0, 1, step=0.1)
    assert levels.numbers == (0.0, 0.1, 0.2, 0.3, 0.4, 0.5, 0.6, 0.7, 0.8, 0.9, 1.0)
    assert levels.encode([0.3]).tolist() == [[0.3]]
    with pytest.raises(DomainError, match=r"got 0\.30000000000000004; expected one of 0, 0\.1, "):
        levels.encode([3 * 0.1])


def test_the_longest_list_of_levels_is_accepted() -> None:
    assert Levels.spaced("l", 0, 10**6 - 1, step=1).n_values == 10**6


def test_bands_include_both_ends_and_leave_gaps_empty() -> None:
    band = Derived("d", "x", (("low", -np.inf, 1.0), ("high", 2.0, 3.0)))
    values = np.array([-1e308, 1.0, np.nextafter(1.0, 2), 2.0, 3.0, np.nan])
    assert band.derive(values).argmax(axis=1).tolist() == [0, 0, 0, 1, 1, 0]
    assert band.derive(values).sum(axis=1).tolist() == [1, 1, 0, 1, 1, 0]
    assert band.decode(np.array([0.0, 1.0])) == "high"
    assert band.width == 2


def test_bands_may_be_a_mapping() -> None:
    assert Derived("band", "age", {"young": (18, 30), "old": (31, 90)}) == BAND  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("attribute", "words"),
    [
        (SEX, "one of 'female', 'male'"),
        (Categorical("c", tuple(range(13))), "one of 0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, …"),
        (AGE, "an integer from 18 to 90"),
        (HOURS, "one of -1.5, 0, 40"),
        (Levels.spaced("l", 0, 12, step=1), "one of 0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, …"),
        (INCOME, "a number from 0 to 0.1"),
        (BAND, "the band that 'age' falls into"),
    ],
)
def test_a_domain_is_described_in_words(
    attribute: Categorical | Integer | Levels | Real | Derived, words: str
) -> None:
    assert attribute.domain() == words
