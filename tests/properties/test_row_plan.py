"""The row plan gives the rows and the errors of encoding attribute by attribute, bit for bit."""

import copy
import pickle
from collections.abc import Callable
from dataclasses import replace
from decimal import Decimal
from fractions import Fraction
from typing import Any, Literal

import numpy as np
import pandas as pd
import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st

from feta import Categorical, FeatureSpace, Integer, Levels, Real
from feta.arrays import Matrix
from feta.space.attribute import Attribute, Derived
from feta.space.encode_cells import encode_cells
from feta.space.limits import Limits
from feta.space.records import located, named_columns
from feta.space.row_plan import RowPlan

NAN = float("nan")
MESSY: list[Any] = [
    None, NAN, np.nan, True, False, np.True_, np.bool_(False), "12", "", "a", "nan", np.str_("b"),
    b"a", 0, 1, 2, 7, 12, -1, 10**6, 2**53 + 1, 2**70, -(2**64), 10**400, 0.0, -0.0, 0.1, 0.5, 1.0,
    2.5, 41.0, 1e308, float("inf"), -float("inf"), 5e-324, np.int8(2), np.int64(7),
    np.uint64(2**63), np.float16(0.5), np.float32(0.1), np.float64(-0.0), np.longdouble(1.5),
    Decimal("2.5"), Decimal("NaN"), Fraction(1, 2), complex(1, 0), [1], (1,), {"a": 1}, pd.NA,
    pd.NaT, pd.Timestamp("2020-01-01"), np.datetime64("2020"), np.timedelta64(1, "D"),
    np.array(1.0), np.array([1.0]),
]  # fmt: skip

ATTRIBUTES: list[Attribute] = [
    Categorical("c", ("a", "b", "nan")),
    Categorical("c", ("a", "b"), missing=True),
    Categorical("c", ("a", "12"), other=True),
    Categorical("c", ("a", "b"), missing=True, other=True),
    Categorical("c", (0, 1, "a")),
    Categorical("c", (True, 7, "true"), missing=True),
    Integer("c", 0, 12),
    Integer("c", -1, 2, missing=True),
    Integer("c", -5, 10**6),
    Integer("c", -5, 10**6, missing=True, strict=True),
    Levels("c", (0.0, 0.1, 0.5, 2.5)),
    Levels("c", (0.0, 1.0, 2.0), missing=True),
    Levels("c", (-1.0, 0.5), strict=True),
    Real("c", 0.0, 2.5),
    Real("c", -1.0, 2.0**53, missing=True),
    Real("c", 0.1, 1e308, strict=True),
]
USUAL = [None, "a", "b", 0, 1, 2, 0.5, 1.0, -0.0, 2.5, 7, True]


@st.composite
def spaces(draw: st.DrawFn) -> FeatureSpace:
    drawn = draw(st.lists(st.sampled_from(ATTRIBUTES), min_size=1, max_size=4))
    attributes = [replace(attribute, name=f"c{n}") for n, attribute in enumerate(drawn)]
    for n, attribute in enumerate(attributes):
        barred = isinstance(attribute, Real) or (
            isinstance(attribute, Categorical) and attribute.other
        )
        if not barred and draw(st.booleans()):
            attributes[n] = replace(attribute, sensitive=True)  # type: ignore[arg-type]
    bands: Any = {"low": (0, 1), "high": (2, 3)}
    source = Integer("s", 0, 3, sensitive=True)
    derived = Derived("d", "s", bands)
    real: list[Attribute] = [Real("r", 0, 5), Derived("e", "r", {"x": (0, 1.5), "y": (2, 5)})]  # type: ignore[arg-type]
    ends: list[list[Attribute]] = [[source], [source, derived], [derived, source], [source, *real]]
    more = draw(st.sampled_from(ends))
    return FeatureSpace((*attributes, *more))


@st.composite
def tables(draw: st.DrawFn, space: FeatureSpace, rows: int) -> list[dict[str, Any]]:
    """Draw records whose cells are mostly valid, so that most columns of some tables are valid."""
    messy = draw(st.integers(0, 2))
    records: list[dict[str, Any]] = [{} for _ in range(rows)]
    for attribute in space.attributes:
        cells = st.sampled_from(usual(attribute))
        for record in records:
            record[attribute.name] = draw(cells)
    if draw(st.booleans()):
        for record in records:
            for attribute in space.attributes:
                if isinstance(attribute, Derived):
                    del record[attribute.name]
    for _ in range(messy):
        record = draw(st.sampled_from(records))
        name = draw(st.sampled_from([attribute.name for attribute in space.attributes]))
        if draw(st.integers(0, 5)):
            record[name] = draw(st.sampled_from(MESSY))
        else:
            record.pop(name, None)
    return records


def usual(attribute: Attribute) -> list[Any]:
    """Return valid cells of an attribute in several types."""
    if isinstance(attribute, Derived):
        return [label for label, _, _ in attribute.bands]
    cells: list[Any]
    if isinstance(attribute, Categorical):
        cells = [value for value in attribute.all_values if value != "(other)"]
        return cells + ["z"] * attribute.other + [NAN] * attribute.missing
    if attribute.name in ("s", "r"):
        return [0, 1, 2, 3, 2.0, np.int64(3), np.float64(1.0)]
    if isinstance(attribute, Levels):
        cells = [*attribute.numbers, np.float64(attribute.numbers[-1])]
    elif isinstance(attribute, Integer):
        cells = [0, 1, 2, 2.0, -0.0, np.int64(1), np.float64(2.0)]
    else:
        cells = [0.5, 1, 2.0, np.float64(0.1), np.float64(1), np.int64(1)]
    return cells + [None, NAN] * attribute.missing


def result(encode: Callable[[], Any]) -> object:
    """Return the bits of the rows, or the error and its text."""
    try:
        rows = encode()
    except Exception as error:
        return type(error), str(error)
    return rows.shape, rows.tobytes(), rows.flags.writeable


def check(space: FeatureSpace, records: Any, options: dict[str, Any]) -> None:  # noqa: ANN401 - any table
    def reference() -> Matrix:
        with located(records):
            return encode_cells(space, named_columns(records), **options)

    with np.errstate(all="ignore"):
        assert result(lambda: space.encode(records, **options)) == result(reference)


OPTIONS: st.SearchStrategy[dict[str, Any]] = st.fixed_dictionaries(
    {
        "sensitive": st.sampled_from(["check", "ignore"]),
        "limits": st.sampled_from(["check", "open"]),
    }
)


@given(st.data())
@settings(max_examples=250, deadline=None)
@pytest.mark.filterwarnings("ignore")
def test_records_and_frames_are_encoded_as_cell_by_cell(data: st.DataObject) -> None:
    space = data.draw(spaces())
    records = data.draw(tables(space, data.draw(st.integers(1, 4))))
    options = data.draw(OPTIONS)
    check(space, records if any(records) else [{"s": 1}], options)
    check(space, records[0], options)
    frame = pd.DataFrame({name: list(cells) for name, cells in named_columns(records).items()})
    columns = named_columns(records)
    if columns:
        check(space, frame, options)
    assert result(lambda: space.encode_columns(columns, **options)) == result(
        lambda: encode_cells(space, columns, **options)
    )


@given(st.data())
@settings(max_examples=150, deadline=None)
def test_arrow_is_encoded_as_cell_by_cell(data: st.DataObject) -> None:
    pa = pytest.importorskip("pyarrow")

    space = data.draw(spaces())
    records = data.draw(tables(space, data.draw(st.integers(1, 4))))
    assume(any(records))
    options = data.draw(OPTIONS)
    arrays = {}
    for name, cells in named_columns(records).items():
        try:
            arrays[name] = pa.array(cells)
        except (pa.ArrowException, OverflowError, TypeError, ValueError):
            arrays[name] = pa.nulls(len(records))
        if data.draw(st.booleans()) and not pa.types.is_nested(arrays[name].type):
            arrays[name] = with_unused_value(pa, arrays[name])
    table = pa.table(arrays)
    plain = {name: array.to_pylist() for name, array in arrays.items()}
    expected = result(lambda: encode_cells(space, plain, **options))
    assert result(lambda: space.encode(table, **options)) == expected
    assert result(lambda: space.encode(table.to_batches()[0], **options)) == expected


def with_unused_value(pa: Any, array: Any) -> Any:  # noqa: ANN401 - any table
    """Return the array with a dictionary that also contains a value of no row, an invalid one."""
    coded = array.dictionary_encode() if not pa.types.is_null(array.type) else None
    if coded is None or not pa.types.is_string(array.type):
        return array if coded is None else coded
    dictionary = pa.array([*coded.dictionary.to_pylist(), "never seen"])
    return pa.DictionaryArray.from_arrays(coded.indices.cast("int8"), dictionary)


SPACE = FeatureSpace(
    (
        Categorical("town", ("Ulm", "Bonn"), other=True),
        Integer("age", 18, 90, sensitive=True),
        Derived("group", "age", {"young": (18, 39), "old": (40, 90)}),  # type: ignore[arg-type]
        Levels("rate", (0.1, 0.2), missing=True),
        Integer("sum", 0, 10**6),
        Real("income", 0.0, 9e6),
    )
)
RECORD = {"town": "Ulm", "age": 41, "rate": None, "sum": 10, "income": -0.0}


@pytest.mark.parametrize("sensitive", ["check", "ignore"])
@pytest.mark.parametrize("limits", ["check", "open"])
def test_usual_people_are_encoded_by_the_plan(
    sensitive: Literal["check", "ignore"], limits: Limits
) -> None:
    plan = SPACE.row_plan(sensitive, limits)
    records = [RECORD, RECORD | {"town": "Kiel", "rate": 0.1, "age": 18.0}]
    assert plan.record is not None
    assert plan.record.row(records[1]) is not None
    for people in (records[0], records, tuple(records), pd.DataFrame(records)):
        assert plan.encode(people) is not None


def test_arrow_batches_are_encoded_by_the_plan() -> None:
    pa = pytest.importorskip("pyarrow")

    table = pa.table({name: [cell, cell] for name, cell in RECORD.items()})
    towns = pa.DictionaryArray.from_arrays(pa.array([0, 0], "int8"), pa.array(["Ulm"]))
    for batch in (table, table.to_batches()[0], table.set_column(0, "town", towns)):
        assert SPACE.row_plan("check", "check").encode(batch) is not None


@pytest.mark.parametrize(
    "record",
    [
        RECORD | {"age": True},
        RECORD | {"income": np.bool_(True)},
        RECORD | {"income": "12"},
        RECORD | {"income": complex(1, 0)},
        RECORD | {"sum": 1.5},
        RECORD | {"sum": 10**400},
        RECORD | {"rate": 0.3},
        RECORD | {"town": None},
        RECORD | {"town": ["Ulm"]},
        RECORD | {"group": "young"},
        {name: RECORD[name] for name in ("town", "age")},
    ],
)
def test_other_people_are_left_to_the_slow_path(record: dict[str, Any]) -> None:
    plan = SPACE.row_plan("check", "check")
    assert plan.encode(record) is None
    assert plan.encode([RECORD, record]) is None


def test_a_plan_survives_copies_of_the_space() -> None:
    rows = SPACE.encode(RECORD)
    for space in (copy.deepcopy(SPACE), pickle.loads(pickle.dumps(SPACE))):
        assert space.encode(RECORD).tobytes() == rows.tobytes()


def test_rows_are_not_shared() -> None:
    first, second = SPACE.encode(RECORD), SPACE.encode(RECORD)
    first[:] = 7.0
    assert SPACE.encode(RECORD).tobytes() == second.tobytes()
    assert isinstance(SPACE.row_plan("check", "check"), RowPlan)
