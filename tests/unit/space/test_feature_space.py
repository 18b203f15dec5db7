from collections.abc import Callable, Sequence

import numpy as np
import pandas as pd
import pytest

from feta import (
    Categorical,
    Derived,
    DomainError,
    FeatureSpace,
    Integer,
    Levels,
    Real,
    SchemaError,
)
from feta.space.attribute import Attribute
from tests.examples import PERSON, SPACE

AGE = Integer("age", 18, 90, sensitive=True)
BANDS = (("young", 18, 30), ("old", 31, 90))
BANDED = FeatureSpace((Derived("band", "age", BANDS), AGE, Real("income", 0, 9)))
RECORD = {"age": 30, "sex": "female", "income": 50}


@pytest.mark.parametrize(
    ("attributes", "message"),
    [
        ((), r"^no sensitive attribute: got \[\]; expected at least one"),
        ((Real("x", 0, 1),), r"^no sensitive attribute: got \['x'\]; expected at least one"),
        ((AGE, Real("age", 0, 1)), "^repeated attribute name: got 'age' twice; expected different"),
        (
            (AGE, Derived("d", "ag", BANDS)),
            r"^unknown attribute: got 'ag'; expected one of 'age', 'd'; did you mean 'age'\?",
        ),
        (
            (AGE, Derived("d", "d", BANDS)),
            "^invalid source of 'd': got 'd'; expected a column of numbers",
        ),
        (
            (Categorical("c", ("a",), sensitive=True), Derived("d", "c", BANDS)),
            "^invalid source of 'd': got 'c'; expected a column of numbers",
        ),
        (
            (Real("x", 0, 1, sensitive=True), Derived("d", "x", BANDS)),
            "^invalid source of 'd': got the sensitive real number 'x'; .*declare 'x' integer",
        ),
        (
            (AGE, Derived("d", "age", (("a", 18, 30), ("b", 32, 90)))),
            "^invalid bands for 'd': got 0 bands for age 31; expected exactly one",
        ),
        (
            (AGE, Derived("d", "age", (("a", 18, 30), ("b", 30, 90)))),
            "^invalid bands for 'd': got 2 bands for age 30; expected exactly one",
        ),
    ],
)
def test_an_invalid_space_is_rejected(attributes: Sequence[Attribute], message: str) -> None:
    with pytest.raises(SchemaError, match=message):
        FeatureSpace(tuple(attributes))


def test_a_gap_in_the_bands_is_found_far_into_a_long_domain() -> None:
    number = Integer("n", 0, 2**17, sensitive=True)
    with pytest.raises(SchemaError, match="got 0 bands for n 131072; expected exactly one"):
        FeatureSpace((number, Derived("d", "n", (("all", 0, 2**17 - 1),))))


@pytest.mark.parametrize(
    "records",
    [
        RECORD,
        [RECORD],
        pd.DataFrame([RECORD]),
        pd.DataFrame([RECORD]).convert_dtypes(),
        {"income": 50, "surplus": None, **RECORD},
    ],
)
def test_records_may_be_a_dict_a_list_or_a_frame(
    records: pd.DataFrame | dict[str, object] | list[dict[str, object]],
) -> None:
    np.testing.assert_array_equal(SPACE.encode(records), PERSON[None, :])


def test_decode_inverts_encode() -> None:
    assert SPACE.decode(PERSON) == RECORD
    decoded = BANDED.decode(BANDED.encode({"age": 31, "income": 1})[0])
    assert decoded == {"band": "old", "age": 31, "income": 1.0}
    np.testing.assert_array_equal(BANDED.encode(decoded), [[0.0, 1.0, 31.0, 1.0]])


@pytest.mark.parametrize("changed", [{"age": 1000}, {"sex": "x"}, {"income": None}])
def test_a_message_about_one_record_has_no_row(changed: dict[str, object]) -> None:
    with pytest.raises(DomainError, match="is invalid") as one:
        SPACE.encode(RECORD | changed)
    with pytest.raises(DomainError, match="is invalid") as listed:
        SPACE.encode([RECORD | changed])
    assert str(listed.value) == f"{one.value} (row 0)"
    assert (one.value.row, one.value.column) == (0, next(iter(changed)))


def test_a_frame_without_rows_gives_no_people() -> None:
    assert SPACE.encode(pd.DataFrame([RECORD]).iloc[:0]).shape == (0, SPACE.width)


@pytest.mark.parametrize(
    ("records", "message"),
    [
        (
            "abc",
            "^invalid people: got str in row 0; expected a pandas frame, an Arrow table, a dict",
        ),
        ([RECORD, 5], "^invalid people: got int in row 1; expected a pandas frame, an Arrow table"),
        ({"age": 30, "sx": "female", "income": 5}, "must have the column 'sex'"),
        ([{"age": 30, "sex": "female", "incme": 5}], r"'income'.*did you mean 'incme'\?"),
        (
            [RECORD, {"age": 30, "sex": "female"}],
            r"'income' is invalid: got None; expected a number from 0 to 100 \(row 1\)",
        ),
        (
            pd.DataFrame([[1, 2]], columns=["age", "age"]),
            "^repeated column: got 'age' twice; expected different names",
        ),
        (
            pd.DataFrame([RECORD, RECORD | {"age": pd.NA}]),
            r"'age' is invalid: got <NA>; .* \(row 1\)",
        ),
        ([RECORD, RECORD | {"sex": {}}], r"'sex' is invalid: got {}; expected one of .* \(row 1\)"),
    ],
)
def test_an_invalid_table_is_rejected(records: list[dict[str, object]], message: str) -> None:
    with pytest.raises(DomainError, match=message):
        SPACE.encode(records)


@pytest.mark.parametrize(
    ("records", "message"),
    [
        (
            {"age": 30, "income": 1, "band": "old"},
            "'band' is invalid: got 'old'; expected 'young', .*'age'",
        ),
        (
            {"age": 30, "income": 1, "band": None},
            "'band' is invalid: got None; expected 'young', .*'age'",
        ),
    ],
)
def test_a_derived_cell_must_follow_from_its_source(
    records: dict[str, object], message: str
) -> None:
    with pytest.raises(DomainError, match=message) as error:
        BANDED.encode(records)
    assert (error.value.column, error.value.row) == ("band", 0)


def test_a_real_source_between_two_bands_is_rejected() -> None:
    bands = (("low", 0, 4), ("high", 5, 9))
    space = FeatureSpace((AGE, Real("income", 0, 9), Derived("band", "income", bands)))
    with pytest.raises(
        DomainError, match=r"'band' is invalid: got 0 bands for income 4\.5; expected exactly one"
    ):
        space.encode({"age": 30, "income": 4.5})
    assert space.encode({"age": 30, "income": 5}).tolist() == [[30.0, 5.0, 0.0, 1.0]]
    assert not space.contains(np.array([30.0, 4.5, 0.0, 0.0]))


def test_ignored_sensitive_cells_are_not_read() -> None:
    frame = pd.DataFrame([{"age": "nonsense", "sex": [], "income": 50}])
    row = SPACE.encode(frame, sensitive="ignore")[0]
    assert np.isnan(row).tolist() == [True, True, True, False]
    hidden = BANDED.encode({"income": 1, "band": "nonsense"}, sensitive="ignore")[0]
    assert np.isnan(hidden).tolist() == [True, True, True, False]
    BANDED.check(hidden[None, :], sensitive="ignore")


@pytest.mark.parametrize(
    ("column", "value", "message"),
    [
        (0, np.nan, r"'age' is invalid: got nan; expected an integer from 18 to 90 \(row 1\)"),
        (0, 30.5, r"'age' is invalid: got 30\.5; expected an integer from 18 to 90"),
        (1, 0.0, r"'sex' is invalid: got \[0\.0, 0\.0\]; expected one of 'female', 'male'"),
        (
            3,
            np.nextafter(100, 101),
            "'income' is invalid: got 100.0000000.*; expected a number from 0 to 100",
        ),
        (3, np.inf, "got inf"),
    ],
)
def test_a_row_outside_the_space_is_rejected(column: int, value: float, message: str) -> None:
    broken = np.array(PERSON)
    broken[column] = value
    assert SPACE.contains(PERSON)
    assert not SPACE.contains(broken)
    with pytest.raises(DomainError, match=message) as error:
        SPACE.check(np.stack([PERSON, broken]))
    assert error.value.row == 1


@pytest.mark.parametrize(("column", "value"), [(0, np.nan), (0, 30.5), (1, 0.0), (3, np.inf)])
def test_an_invalid_row_cannot_be_decoded(column: int, value: float) -> None:
    broken = np.array(PERSON)
    broken[column] = value
    with pytest.raises(DomainError):
        SPACE.decode(broken)


def test_a_number_outside_the_limits_of_a_shared_column_can_be_decoded() -> None:
    outside = np.array(PERSON)
    outside[3] = 5000.0
    assert SPACE.decode(outside)["income"] == 5000.0


def test_a_derived_column_that_contradicts_its_source_is_outside_the_space() -> None:
    row = np.array([[1.0, 0.0, 40.0, 1.0]])
    assert not BANDED.contains(row[0])
    with pytest.raises(
        DomainError, match=r"'band' is invalid: .*; expected the band that 'age' falls into"
    ):
        BANDED.check(row)


@pytest.mark.parametrize("shape", [(4,), (1, 3), (1, 1, 4)])
def test_people_of_the_wrong_shape_are_rejected(shape: tuple[int, ...]) -> None:
    with pytest.raises(
        DomainError,
        match=r"^invalid people: got an array of shape .*; expected a matrix with 4 columns",
    ):
        SPACE.check(np.zeros(shape))
    assert not SPACE.contains(np.zeros(shape))


def test_negative_zero_is_inside_a_domain_that_starts_at_zero() -> None:
    assert SPACE.contains(np.array([30.0, 1.0, -0.0, -0.0]))


@pytest.mark.parametrize(
    ("names", "sensitive"),
    [(["sex"], ["sex"]), (["income", "age"], ["age", "income"])],
)
def test_the_sensitive_attributes_can_be_changed(names: list[str], sensitive: list[str]) -> None:
    assert [a.name for a in SPACE.with_sensitive(names).sensitive] == sensitive


def test_a_derived_attribute_is_as_sensitive_as_its_source() -> None:
    assert BANDED.sensitive_columns.tolist() == [True, True, True, False]
    other = FeatureSpace((*BANDED.attributes, Categorical("c", ("a",)))).with_sensitive(["c"])
    assert other.sensitive_columns.tolist() == [False, False, False, False, True]


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: SPACE.with_sensitive([]), "^no sensitive attribute: "),
        (lambda: SPACE.with_sensitive(["agee"]), r"got 'agee'; .*; did you mean 'age'\?"),
        (
            lambda: SPACE.with_sensitive("age"),
            r"^invalid sensitive .*: got the text 'age'; expected a list of names; write \['age'\]",
        ),
        (
            lambda: BANDED.with_sensitive(["band"]),
            "got 'band', which is derived; expected its source; name 'age' instead",
        ),
        (
            lambda: SPACE.attribute("zzz"),
            "^unknown attribute: got 'zzz'; expected one of 'age', 'sex', 'income'",
        ),
        (
            lambda: SPACE.with_sensitive(["income"]).lattice,
            "'income' has uncountably many values: .*; declare it integer, or give a step",
        ),
    ],
)
def test_an_unknown_or_infinite_attribute_is_rejected(
    call: Callable[[], object], message: str
) -> None:
    with pytest.raises(SchemaError, match=message):
        call()


def test_a_space_with_a_real_sensitive_attribute_is_not_finite() -> None:
    assert SPACE.finite
    assert not SPACE.with_sensitive(["age", "income"]).finite


def test_columns_and_magnitudes_follow_the_attributes_order() -> None:
    space = FeatureSpace(
        (
            Levels("l", (-7.0, 2.0)),
            Categorical("c", ("a", "b"), sensitive=True),
            Integer("i", -3, 2),
            Real("r", -1, 5),
        )
    )
    assert [space.columns_of(a) for a in space.attributes] == [
        slice(0, 1),
        slice(1, 3),
        slice(3, 4),
        slice(4, 5),
    ]
    assert space.magnitudes.tolist() == [7.0, 1.0, 1.0, 3.0, 5.0]
    assert not space.magnitudes.flags.writeable


@pytest.mark.parametrize(
    "other",
    [
        (AGE, Categorical("sex", ("male", "female"), sensitive=True), Real("income", 0, 100)),
        (AGE, Categorical("sex", ("female", "male")), Real("income", 0, 100)),
        (AGE, Categorical("sex", ("female", "male"), sensitive=True), Real("income", 0, 101)),
        (AGE, Real("income", 0, 100), Categorical("sex", ("female", "male"), sensitive=True)),
        (AGE, Categorical("sex", ("female", "male"), sensitive=True), Integer("income", 0, 100)),
    ],
)
def test_different_spaces_have_different_fingerprints(other: tuple[Attribute, ...]) -> None:
    assert FeatureSpace(other).fingerprint != SPACE.fingerprint
    assert FeatureSpace(SPACE.attributes).fingerprint == SPACE.fingerprint


def test_a_record_without_cells_is_rejected_unless_sensitive_cells_are_ignored() -> None:
    space = FeatureSpace((AGE,))
    assert np.isnan(space.encode([{}], sensitive="ignore")).tolist() == [[True]]
    with pytest.raises(DomainError, match="the table must have the column 'age'"):
        space.encode([{}])
