import numpy as np
import pandas as pd
import pytest

from feta import Categorical, DomainError, FeatureSpace, Integer, Levels, Real, SchemaError
from feta.space.attribute import Attribute
from feta.space.infer_schema import MAX_LEVELS, MAX_VALUES, ColumnSummary


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
def test_the_attribute_follows_from_the_values(
    values: list[object], attribute: Attribute, *, sensitive: bool
) -> None:
    summary = ColumnSummary("x")
    summary.add(values[:1])
    summary.add(values[1:])
    assert summary.attribute(sensitive=sensitive) == attribute


@pytest.mark.parametrize(
    ("values", "message"),
    [
        ([], "'x' is empty: got no values; expected at least one"),
        (
            [1, None],
            r"'x' is missing: got None; .+; fill the empty cells, .+missing=True\) does \(row 1\)",
        ),
        ([[]], r"'x' is invalid: got \[\]; expected a text, a number or a boolean \(row 0\)"),
        (
            [1.0, np.nan],
            r"'x' is missing: got nan; .+; fill the empty cells, .+missing=True\) does \(row 1\)",
        ),
        ([-np.inf], r"'x' is invalid: got -inf; expected a finite number \(row 0\)"),
        ([1, "one"], "'x' is mixed: got the text 'one' among other values; expected only one type"),
        (["yes", True], "'x' is mixed: got the text 'yes'"),
    ],
)
def test_an_invalid_column_is_rejected(values: list[object], message: str) -> None:
    summary = ColumnSummary("x")
    with pytest.raises(DomainError, match=message):
        _ = summary.add(values), summary.attribute(sensitive=True)  # type: ignore[func-returns-value]


def test_the_first_text_among_numbers_is_reported_with_its_row() -> None:
    summary = ColumnSummary("x")
    summary.add([1, 2, "", "old"])
    with pytest.raises(DomainError, match="'x' is mixed: got the text ''") as error:
        summary.attribute(sensitive=False)
    assert (error.value.row, error.value.column) == (2, "x")


def test_too_many_texts_are_an_id() -> None:
    texts = [f"id {n}" for n in range(MAX_VALUES + 1)]
    summary = ColumnSummary("x")
    summary.add(texts[:-1])
    with pytest.raises(
        DomainError, match=r"'x' is not a category: got more than 1000 different texts; .* an id"
    ):
        summary.add(texts[-1:])


def test_too_many_sensitive_numbers_need_a_step() -> None:
    numbers = [n + 0.5 for n in range(MAX_LEVELS + 1)]
    summary = ColumnSummary("x")
    summary.add(numbers[:-1])
    assert isinstance(summary.attribute(sensitive=True), Levels)
    summary.add(numbers[-1:])
    with pytest.raises(
        DomainError,
        match=r"'x' is sensitive: got more than 4096 different values; .*Levels\.spaced",
    ):
        summary.attribute(sensitive=True)
    assert summary.attribute(sensitive=False) == Real("x", 0.5, MAX_LEVELS + 0.5)


def test_a_frame_gives_a_space_that_contains_its_people() -> None:
    frame = pd.DataFrame({"age": [19, 75], "town": ["Ulm", "Bonn"], "debt": [0.5, 1.0]})
    space = FeatureSpace.from_frame(frame, sensitive=["age"])
    assert [attribute.kind for attribute in space.attributes] == ["integer", "category", "number"]
    assert space.encode(frame).shape == (2, 4)
    with pytest.raises(
        DomainError, match=r"^unknown sensitive column: got 'agee'; expected .*'age'\?"
    ):
        FeatureSpace.from_frame(frame, sensitive=["agee"])
    with pytest.raises(SchemaError, match=r"^no sensitive attribute"):
        FeatureSpace.from_frame(frame, sensitive=[])
