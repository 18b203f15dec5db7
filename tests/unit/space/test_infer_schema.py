import numpy as np
import pandas as pd
import pytest

from feta import Categorical, DomainError, FeatureSpace, Integer, Levels, Real, SchemaError
from feta.space import infer_schema as guess
from feta.space.attribute import Attribute


@pytest.mark.parametrize(
    ("values", "sensitive", "attribute"),
    [
        ([3, 1, 2], True, Integer("x", 1, 3, sensitive=True)),
        ([3.0, -1.0], False, Integer("x", -1, 3)),
        ([0.5, 3], False, Real("x", 0.5, 3)),
        ([3, 0.5, -0.0, 0.0], True, Levels("x", (0.0, 0.5, 3.0), sensitive=True)),
        (["b", "a", "b"], False, Categorical("x", ("a", "b"))),
        ([True, True], True, Categorical("x", (False, True), sensitive=True)),
        (np.array([2, 1], dtype=np.uint8), False, Integer("x", 1, 2)),
        (np.array([False]), False, Categorical("x", (False, True))),
    ],
)
def test_a_columns_values_tell_its_kind(
    values: list[object], attribute: Attribute, *, sensitive: bool
) -> None:
    summary = guess.ColumnSummary("x")
    summary.add(values[:1])
    summary.add(values[1:])
    assert summary.attribute(sensitive=sensitive) == attribute


@pytest.mark.parametrize(
    ("values", "message"),
    [
        ([], "'x' must have at least one row"),
        (
            [1, None],
            r"'x' must hold values, got None; fill the empty cells, .+missing=True\) does \(row 1\)",
        ),
        ([[]], r"'x' must hold texts, numbers or booleans, got \[\] \(row 0\)"),
        (
            [1.0, np.nan],
            r"'x' must hold values, got nan; fill the empty cells, .+missing=True\) does \(row 1\)",
        ),
        ([-np.inf], r"'x' must hold finite numbers, got -inf \(row 0\)"),
        ([1, "one"], "'x' must hold numbers or texts, not both; one of its texts is 'one'"),
        (["yes", True], "'x' must hold numbers or texts, not both"),
    ],
)
def test_a_column_that_cannot_be_guessed_is_refused(values: list[object], message: str) -> None:
    summary = guess.ColumnSummary("x")
    with pytest.raises(DomainError, match=message):
        _ = summary.add(values), summary.attribute(sensitive=True)  # type: ignore[func-returns-value]


def test_the_first_text_among_numbers_is_told_by_its_row() -> None:
    summary = guess.ColumnSummary("x")
    summary.add([1, 2, "", "old"])
    with pytest.raises(DomainError, match="not both; one of its texts is ''") as refused:
        summary.attribute(sensitive=False)
    assert (refused.value.row, refused.value.column) == (2, "x")


def test_too_many_texts_are_an_id() -> None:
    texts = [f"id {n}" for n in range(guess.MAX_VALUES + 1)]
    summary = guess.ColumnSummary("x")
    summary.add(texts[:-1])
    with pytest.raises(DomainError, match="'x' has more than 1000 different texts; is it an id"):
        summary.add(texts[-1:])


def test_too_many_sensitive_numbers_need_a_step() -> None:
    numbers = [n + 0.5 for n in range(guess.MAX_LEVELS + 1)]
    summary = guess.ColumnSummary("x")
    summary.add(numbers[:-1])
    assert isinstance(summary.attribute(sensitive=True), Levels)
    summary.add(numbers[-1:])
    with pytest.raises(
        DomainError, match=r"'x' is sensitive and has more than 4096.*Levels\.spaced"
    ):
        summary.attribute(sensitive=True)
    assert summary.attribute(sensitive=False) == Real("x", 0.5, guess.MAX_LEVELS + 0.5)


def test_a_frame_makes_a_space_that_holds_its_people() -> None:
    frame = pd.DataFrame({"age": [19, 75], "town": ["Ulm", "Bonn"], "debt": [0.5, 1.0]})
    space = FeatureSpace.from_frame(frame, sensitive=["age"])
    assert [one.kind for one in space.attributes] == ["integer", "category", "number"]
    assert space.encode(frame).shape == (2, 4)
    with pytest.raises(DomainError, match=r"a sensitive column must be .*'agee'.*'age'\?"):
        FeatureSpace.from_frame(frame, sensitive=["agee"])
    with pytest.raises(SchemaError, match="at least one attribute must be sensitive"):
        FeatureSpace.from_frame(frame, sensitive=[])
