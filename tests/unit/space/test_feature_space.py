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
        ((), r"at least one attribute must be sensitive, got none of \[\]"),
        ((Real("x", 0, 1),), r"at least one attribute must be sensitive, got none of \['x'\]"),
        ((AGE, Real("age", 0, 1)), "attribute names must differ, got 'age' twice"),
        ((AGE, Derived("d", "ag", BANDS)), r"one of 'age', 'd', got 'ag'; did you mean 'age'\?"),
        ((AGE, Derived("d", "d", BANDS)), "'d' must come from a column of numbers, got 'd'"),
        (
            (Categorical("c", ("a",), sensitive=True), Derived("d", "c", BANDS)),
            "'d' must come from a column of numbers, got 'c'",
        ),
        (
            (Real("x", 0, 1, sensitive=True), Derived("d", "x", BANDS)),
            "'d' needs a finite source: declare 'x' integer, or give a step",
        ),
        (
            (AGE, Derived("d", "age", (("a", 18, 30), ("b", 32, 90)))),
            "'d' must have exactly one band for age 31, got 0",
        ),
        (
            (AGE, Derived("d", "age", (("a", 18, 30), ("b", 30, 90)))),
            "'d' must have exactly one band for age 30, got 2",
        ),
    ],
)
def test_a_space_that_cannot_be_is_refused(attributes: Sequence[Attribute], message: str) -> None:
    with pytest.raises(SchemaError, match=message):
        FeatureSpace(tuple(attributes))


def test_a_gap_in_the_bands_is_found_far_into_a_long_domain() -> None:
    number = Integer("n", 0, 2**17, sensitive=True)
    with pytest.raises(SchemaError, match=r"exactly one band for n 131072, got 0"):
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
def test_records_come_as_a_dict_a_list_or_a_frame(
    records: pd.DataFrame | dict[str, object] | list[dict[str, object]],
) -> None:
    np.testing.assert_array_equal(SPACE.encode(records), PERSON[None, :])


def test_encode_and_decode_undo_each_other() -> None:
    assert SPACE.decode(PERSON) == RECORD
    decoded = BANDED.decode(BANDED.encode({"age": 31, "income": 1})[0])
    assert decoded == {"band": "old", "age": 31, "income": 1.0}
    np.testing.assert_array_equal(BANDED.encode(decoded), [[0.0, 1.0, 31.0, 1.0]])


def test_a_frame_without_rows_makes_no_people() -> None:
    assert SPACE.encode(pd.DataFrame([RECORD]).iloc[:0]).shape == (0, SPACE.width)


@pytest.mark.parametrize(
    ("records", "message"),
    [
        ("abc", "people must come as a pandas frame, a dict, or a list of dicts"),
        ([RECORD, 5], "people must come as a pandas frame, a dict, or a list of dicts"),
        ({"age": 30, "sx": "female", "income": 5}, "must have the column 'sex'"),
        ([{"age": 30, "sex": "female", "incme": 5}], r"'income'.*did you mean 'incme'\?"),
        (
            [RECORD, {"age": 30, "sex": "female"}],
            r"'income' must be a number from 0 to 100, got None \(row 1\)",
        ),
        (
            pd.DataFrame([[1, 2]], columns=["age", "age"]),
            "the table must not have the column 'age' twice",
        ),
        (pd.DataFrame([RECORD, RECORD | {"age": pd.NA}]), r"'age' must be .*got <NA> \(row 1\)"),
        ([RECORD, RECORD | {"sex": {}}], r"'sex' must be one of .*got {} \(row 1\)"),
    ],
)
def test_a_table_that_cannot_be_read_is_refused(
    records: list[dict[str, object]], message: str
) -> None:
    with pytest.raises(DomainError, match=message):
        SPACE.encode(records)


@pytest.mark.parametrize(
    ("records", "message"),
    [
        ({"age": 30, "income": 1, "band": "old"}, "'band' must be 'young'.*'age', got 'old'"),
        ({"age": 30, "income": 1, "band": None}, "'band' must be 'young'.*'age', got None"),
    ],
)
def test_a_derived_cell_must_follow_from_its_source(
    records: dict[str, object], message: str
) -> None:
    with pytest.raises(DomainError, match=message) as refused:
        BANDED.encode(records)
    assert (refused.value.column, refused.value.row) == ("band", 0)


def test_a_real_source_between_two_bands_is_refused() -> None:
    bands = (("low", 0, 4), ("high", 5, 9))
    space = FeatureSpace((AGE, Real("income", 0, 9), Derived("band", "income", bands)))
    with pytest.raises(DomainError, match=r"'band' must have exactly one band for income 4\.5"):
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
        (0, np.nan, r"'age' must be a whole number from 18 to 90, got nan \(row 1\)"),
        (0, 30.5, r"'age' must be a whole number from 18 to 90, got 30\.5"),
        (1, 0.0, r"'sex' must be one of 'female', 'male', got \[0\.0, 0\.0\]"),
        (3, np.nextafter(100, 101), "'income' must be a number from 0 to 100, got 100.0000000"),
        (3, np.inf, "got inf"),
    ],
)
def test_a_row_outside_the_space_is_refused(column: int, value: float, message: str) -> None:
    broken = np.array(PERSON)
    broken[column] = value
    assert SPACE.contains(PERSON)
    assert not SPACE.contains(broken)
    with pytest.raises(DomainError, match=message) as refused:
        SPACE.check(np.stack([PERSON, broken]))
    assert refused.value.row == 1


@pytest.mark.parametrize(("column", "value"), [(0, np.nan), (0, 30.5), (1, 0.0), (3, np.inf)])
def test_a_row_that_is_nobody_cannot_be_decoded(column: int, value: float) -> None:
    broken = np.array(PERSON)
    broken[column] = value
    with pytest.raises(DomainError):
        SPACE.decode(broken)


def test_a_number_outside_the_limits_of_a_shared_column_can_be_decoded() -> None:
    beyond = np.array(PERSON)
    beyond[3] = 5000.0
    assert SPACE.decode(beyond)["income"] == 5000.0


def test_a_derived_column_that_does_not_follow_is_outside_the_space() -> None:
    row = np.array([[1.0, 0.0, 40.0, 1.0]])
    assert not BANDED.contains(row[0])
    with pytest.raises(DomainError, match=r"'band' must be the band that 'age' falls into"):
        BANDED.check(row)


@pytest.mark.parametrize("shape", [(4,), (1, 3), (1, 1, 4)])
def test_people_of_the_wrong_shape_are_refused(shape: tuple[int, ...]) -> None:
    with pytest.raises(DomainError, match=r"people must be a matrix with 4 columns, got the shape"):
        SPACE.check(np.zeros(shape))
    assert not SPACE.contains(np.zeros(shape))


def test_negative_zero_is_inside_a_domain_that_starts_at_zero() -> None:
    assert SPACE.contains(np.array([30.0, 1.0, -0.0, -0.0]))


@pytest.mark.parametrize(
    ("names", "sensitive"),
    [(["sex"], ["sex"]), (["income", "age"], ["age", "income"])],
)
def test_the_sensitive_attributes_can_be_chosen_again(
    names: list[str], sensitive: list[str]
) -> None:
    assert [a.name for a in SPACE.with_sensitive(names).sensitive] == sensitive


def test_a_derived_attribute_is_as_sensitive_as_its_source() -> None:
    assert BANDED.sensitive_columns.tolist() == [True, True, True, False]
    other = FeatureSpace((*BANDED.attributes, Categorical("c", ("a",)))).with_sensitive(["c"])
    assert other.sensitive_columns.tolist() == [False, False, False, False, True]


@pytest.mark.parametrize(
    ("ask", "message"),
    [
        (lambda: SPACE.with_sensitive([]), "at least one attribute must be sensitive"),
        (lambda: SPACE.with_sensitive(["agee"]), r"got 'agee'; did you mean 'age'\?"),
        (
            lambda: SPACE.with_sensitive("age"),
            r"must come as a list of names, got 'age'; write \['age'\]",
        ),
        (
            lambda: BANDED.with_sensitive(["band"]),
            "'band' is derived and moves with its source; name that instead",
        ),
        (lambda: SPACE.attribute("zzz"), "an attribute must be one of 'age', 'sex', 'income'"),
        (
            lambda: SPACE.with_sensitive(["income"]).lattice,
            "'income' has uncountably many values: declare it integer, or give a step",
        ),
    ],
)
def test_an_unknown_or_endless_attribute_is_refused(
    ask: Callable[[], object], message: str
) -> None:
    with pytest.raises(SchemaError, match=message):
        ask()


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
def test_a_fingerprint_tells_any_two_spaces_apart(other: tuple[Attribute, ...]) -> None:
    assert FeatureSpace(other).fingerprint != SPACE.fingerprint
    assert FeatureSpace(SPACE.attributes).fingerprint == SPACE.fingerprint


def test_a_record_without_any_cell_is_refused_unless_sensitive_ones_are_ignored() -> None:
    space = FeatureSpace((AGE,))
    assert np.isnan(space.encode([{}], sensitive="ignore")).tolist() == [[True]]
    with pytest.raises(DomainError, match="the table must have the column 'age'"):
        space.encode([{}])
