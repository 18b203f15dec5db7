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
        (lambda: Categorical("", ("a",)), "name must be a text that is not empty, got ''"),
        (lambda: Integer(None, 1, 2), "name must be a text that is not empty, got None"),  # type: ignore[arg-type]
        (lambda: Categorical("c", ()), r"'c' needs a list of texts.* got \(\)"),
        (lambda: Categorical("c", ("a", 1.5)), r"'c' needs a list of texts.*1\.5"),  # type: ignore[arg-type]
        (lambda: Categorical("c", ("a", "b", "a")), r"'c' must not list a value twice"),
        (lambda: Categorical("c", (1, True)), r"'c' must not list a value twice, got \(1, True\)"),
        (lambda: Integer("i", 1.5, 9), r"'i' needs whole-number limits within ±2\^52, got 1\.5"),  # type: ignore[arg-type]
        (lambda: Integer("i", True, 9), r"'i' needs whole-number limits.* got True"),
        (lambda: Integer("i", 0, 2**52 + 1), r"'i' needs whole-number limits.* got 45035996"),
        (
            lambda: Integer("i", 3, 2),
            "'i' must have its low limit at or below its high one, got 3 to 2",
        ),
        (lambda: Levels("l", ()), r"'l' needs a list of finite numbers, got \(\)"),
        (lambda: Levels("l", (0.0, np.nan)), "'l' needs a list of finite numbers"),
        (lambda: Levels("l", (1.0, 0.0)), "'l' must list its numbers in ascending order"),
        (lambda: Levels("l", (-0.0, 0.0)), "'l' must list its numbers in ascending order"),
        (lambda: Levels.spaced("l", 0, 1, step=0.0), r"'l' needs .* a step above 0, got.* 0\.0"),
        (lambda: Levels.spaced("l", 0, 1, step=np.nan), "'l' needs .* a step above 0, got.* nan"),
        (lambda: Levels.spaced("l", 0, np.inf, step=1.0), "'l' needs finite limits"),
        (lambda: Levels.spaced("l", 2, 1, step=1.0), "'l' must have its low limit at or below"),
        (
            lambda: Levels.spaced("l", 0, 10**6, step=1.0),
            "'l' must have fewer than 1000000 steps, got 1000000",
        ),
        (lambda: Levels.spaced("l", "0", 1, step=1.0), "'l' needs finite limits .* got '0' to 1"),  # type: ignore[arg-type]
        (lambda: Real("r", 0, np.inf), "'r' needs finite limits, got 0 and inf"),
        (lambda: Real("r", np.nan, 1), "'r' needs finite limits, got nan and 1"),
        (
            lambda: Real("r", 1, 0),
            r"'r' must have its low limit at or below its high one, got 1\.0 to 0\.0",
        ),
        (lambda: Derived("d", "age", (("a", 1),)), r"'d' needs bands of \(label, low, high\)"),  # type: ignore[arg-type]
        (lambda: Derived("d", "age", ()), r"'d' needs bands with different names, got \(\)"),
        (
            lambda: Derived("d", "age", (("a", 0, 1), ("a", 2, 3))),
            "'d' needs bands with different names",
        ),
        (lambda: Derived("d", "age", (("a", 2, 1),)), "'d: a' must have its low limit at or below"),
        (lambda: Derived("d", "age", (("a", np.nan, 1),)), "'d: a' .* got nan to 1"),
    ],
)
def test_an_attribute_that_cannot_be_is_refused(
    declare: Callable[[], object], message: str
) -> None:
    with pytest.raises(SchemaError, match=message):
        declare()


@pytest.mark.parametrize("attribute", [Integer("i", 5, 5), Real("r", 5, 5), Levels("l", (5,))])
def test_a_single_value_is_a_domain(attribute: Integer | Real | Levels) -> None:
    assert attribute.encode([5]).tolist() == [[5.0]]


@pytest.mark.parametrize(
    ("attribute", "cell", "message"),
    [
        (SEX, "mle", r"'sex' must be one of 'female', 'male', got 'mle'; did you mean 'male'\?"),
        (SEX, ["male"], r"'sex' must be one of .*, got \['male'\]"),
        (SEX, None, "'sex' must be one of .*, got None"),
        (SEX, float("nan"), "'sex' must be one of .*, got nan"),
        (SEX, np.str_("x"), "got 'x'; if such people exist, add it to the column's values"),
        (
            Categorical("sex", ("f", "m"), missing=True),
            "divers",
            "got 'divers'; or leave the cell empty, as it may be missing; if such people exist",
        ),
        (AGE, 17, r"'age' must be a whole number from 18 to 90, got 17 \(row 1\)"),
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
        (HOURS, 39.999, r"'hours' must be one of -1.5, 0, 40, got 39\.999"),
        (HOURS, np.inf, "got inf"),
        (INCOME, np.nextafter(0.1, 1), r"'income' must be a number from 0 to 0\.1, got 0\.1000000"),
        (INCOME, -5e-324, "got -5e-324"),
        (INCOME, float("nan"), "got nan"),
        (INCOME, -np.inf, "got -inf"),
    ],
)
def test_a_cell_outside_the_domain_is_refused_by_column_and_row(
    attribute: Categorical | Integer | Levels | Real, cell: object, message: str
) -> None:
    good = attribute.values[0] if isinstance(attribute, Categorical) else 40
    good = 0 if attribute is INCOME else good
    with pytest.raises(DomainError, match=message) as refused:
        attribute.encode([good, cell])
    assert (refused.value.column, refused.value.row) == (attribute.name, 1)


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
def test_no_cells_make_no_rows(attribute: Categorical | Integer | Levels | Real) -> None:
    assert attribute.encode([]).shape == (0, attribute.width)


@pytest.mark.parametrize(
    "attribute", [Integer("i", -1, 1), Levels("l", (0.0, 1.0)), Real("r", -0.0, 1.0)]
)
def test_negative_zero_becomes_zero(attribute: Integer | Levels | Real) -> None:
    assert not np.signbit(attribute.encode([-0.0])).any()
    assert not np.signbit(Levels("l", (-0.0,)).numbers[0])
    assert not np.signbit(Real("r", -0.0, 1.0).low)


@pytest.mark.parametrize("attribute", [SEX, AGE, HOURS])
def test_codes_and_places_undo_each_other(attribute: Finite) -> None:
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


def test_decoded_numbers_have_the_type_people_expect() -> None:
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
def test_a_step_makes_levels_up_to_the_high_limit(
    low: float, high: float, step: float, numbers: tuple[float, ...]
) -> None:
    assert Levels.spaced("l", low, high, step=step).numbers == numbers


def test_rounding_does_not_lose_the_last_level() -> None:
    levels = Levels.spaced("l", 0, 0.3, step=0.1, sensitive=True)
    assert levels.n_values == 4
    assert levels.sensitive


def test_levels_are_the_decimals_people_mean() -> None:
    """In float64 0 + 3 · 0.1 is 0.30000000000000004, which nobody would write."""
    levels = Levels.spaced("l", 0, 1, step=0.1)
    assert levels.numbers == (0.0, 0.1, 0.2, 0.3, 0.4, 0.5, 0.6, 0.7, 0.8, 0.9, 1.0)
    assert levels.encode([0.3]).tolist() == [[0.3]]
    with pytest.raises(DomainError, match=r"must be one of 0, 0\.1, .*got 0\.30000000000000004"):
        levels.encode([3 * 0.1])


def test_the_longest_list_of_levels_is_made() -> None:
    assert Levels.spaced("l", 0, 10**6 - 1, step=1).n_values == 10**6


def test_bands_include_both_ends_and_leave_gaps_empty() -> None:
    band = Derived("d", "x", (("low", -np.inf, 1.0), ("high", 2.0, 3.0)))
    values = np.array([-1e308, 1.0, np.nextafter(1.0, 2), 2.0, 3.0, np.nan])
    assert band.derive(values).argmax(axis=1).tolist() == [0, 0, 0, 1, 1, 0]
    assert band.derive(values).sum(axis=1).tolist() == [1, 1, 0, 1, 1, 0]
    assert band.decode(np.array([0.0, 1.0])) == "high"
    assert band.width == 2


def test_bands_may_come_as_a_mapping() -> None:
    assert Derived("band", "age", {"young": (18, 30), "old": (31, 90)}) == BAND  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("attribute", "words"),
    [
        (SEX, "one of 'female', 'male'"),
        (Categorical("c", tuple(range(13))), "one of 0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, …"),
        (AGE, "a whole number from 18 to 90"),
        (HOURS, "one of -1.5, 0, 40"),
        (Levels.spaced("l", 0, 12, step=1), "one of 0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, …"),
        (INCOME, "a number from 0 to 0.1"),
        (BAND, "the band that 'age' falls into"),
    ],
)
def test_a_domain_is_told_in_words(
    attribute: Categorical | Integer | Levels | Real | Derived, words: str
) -> None:
    assert attribute.domain() == words
