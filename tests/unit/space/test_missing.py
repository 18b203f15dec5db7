from pathlib import Path

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
    Model,
    Network,
    Real,
    SchemaError,
    load_model,
    save_model,
    tally,
)
from feta.io.schema import Schema
from feta.io.schema_file import parse_schema
from feta.io.schema_writer import format_schema
from feta.space.attribute import Attribute

SPACE = FeatureSpace(
    (
        Integer("age", 18, 20, sensitive=True, missing=True),
        Categorical("sex", ("f", "m"), missing=True),
        Levels("rooms", (1.0, 2.5), missing=True),
        Real("income", 5, 9, missing=True),
    )
)


def test_a_missing_number_is_encoded_as_the_lowest_number_and_a_flag() -> None:
    rows = SPACE.encode([{"age": 19, "sex": "m", "rooms": 2.5, "income": 6.5}, {}])
    assert rows.tolist() == [
        [19, 0, 0, 1, 0, 2.5, 0, 6.5, 0],
        [18, 1, 0, 0, 1, 1, 1, 5, 1],
    ]
    assert SPACE.decode(rows[0]) == {"age": 19, "sex": "m", "rooms": 2.5, "income": 6.5}
    assert SPACE.decode(rows[1]) == dict.fromkeys(("age", "sex", "rooms", "income"))


@pytest.mark.parametrize("marker", [None, pd.NA, float("nan"), np.float64("nan")])
def test_a_missing_cell_has_several_markers(marker: object) -> None:
    people = [{"age": marker, "sex": marker, "rooms": marker, "income": marker}]
    assert SPACE.decode(SPACE.encode(people)[0])["age"] is None


@pytest.mark.parametrize("text", ["", "  ", "NA"])
def test_a_text_is_not_missing(text: str) -> None:
    with pytest.raises(
        DomainError, match=f"'sex' is invalid: got '{text}'; expected one of 'f', 'm'"
    ):
        SPACE.encode([{"age": 19, "sex": text, "rooms": 1, "income": 6}])


def test_a_flag_next_to_another_number_is_invalid() -> None:
    row = SPACE.encode({"age": 19, "sex": "m", "rooms": 2.5, "income": 6.5})[0]
    row[1] = 1.0
    assert not SPACE.contains(row)
    with pytest.raises(
        DomainError, match=r"'age' is invalid: .*; expected an integer from 18 to 20 or missing"
    ):
        SPACE.check(row[None, :])


@pytest.mark.parametrize("attribute", SPACE.attributes[:3])
def test_missing_is_one_more_value(attribute: Attribute) -> None:
    assert isinstance(attribute, Integer | Categorical | Levels)
    indices = np.arange(attribute.n_values)
    codes = attribute.codes(indices)
    assert attribute.valid(codes).all()
    assert attribute.indices(codes).tolist() == indices.tolist()
    assert attribute.decode(codes[-1]) is None
    assert len({tuple(code) for code in codes.tolist()}) == len(indices)


def test_counterparts_may_have_missing_values() -> None:
    slopes = np.zeros((1, SPACE.width))
    slopes[0, 1] = 1.0  # favorable only where the age is missing
    model = Model(SPACE, Network.from_layers([(slopes, [-0.5])]))
    person = SPACE.encode({"age": 19, "sex": "m", "rooms": 2.5, "income": 6.5})
    counts = tally(model, person)
    assert (counts.favorable[0], counts.unfavorable[0]) == (1, 3)


def test_missing_values_are_written_to_files_and_read_back(tmp_path: Path) -> None:
    text = (
        '[columns]\nage = { type = "integer", min = 18, max = 20, sensitive = true, '
        "missing = true, center = 19.0, scale = 2.0 }\n"
    )
    file = parse_schema(text)
    assert parse_schema(format_schema(file)).space == file.space
    schema = Schema(file)
    assert schema.centers == [19.0, 0.0]
    assert schema.scales == [2.0, 1.0]
    model = schema.model(Network.from_layers([([[1.0, 3.0]], [0.0])]))
    assert model.network(np.array([[20.0, 0.0], [18.0, 1.0]])).tolist() == [[0.5], [2.5]]
    save_model(model, tmp_path / "model.feta")
    assert load_model(tmp_path / "model.feta").fingerprint == model.fingerprint


def test_a_space_without_missing_values_keeps_its_fingerprint() -> None:
    space = FeatureSpace((Integer("age", 18, 20, sensitive=True),))
    assert space.fingerprint.startswith("82b49a9c")


def test_a_space_is_inferred_from_empty_cells_only_on_request() -> None:
    rows: list[dict[str, object]] = [{"age": 19, "sex": "f"}, {"age": None, "sex": None}]
    with pytest.raises(DomainError, match="'age' is missing: got None"):
        FeatureSpace.from_frame(rows, sensitive=["age"])
    space = FeatureSpace.from_frame(rows, sensitive=["age"], missing=True)
    assert space.attributes == (
        Integer("age", 19, 19, sensitive=True, missing=True),
        Categorical("sex", ("f",), missing=True),
    )


def test_an_attribute_that_cannot_be_missing_is_rejected() -> None:
    with pytest.raises(
        SchemaError,
        match=r"^invalid column 'income': got a real number that is sensitive and may be missing",
    ):
        Real("income", 0, 9, sensitive=True, missing=True)
    bands = Derived("band", "age", (("all", 0, 99),))
    with pytest.raises(
        SchemaError, match=r"^invalid source of 'band': got 'age', which may be missing"
    ):
        FeatureSpace((Integer("age", 18, 20, sensitive=True, missing=True), bands))
    with pytest.raises(
        SchemaError, match="column 'age': invalid missing: got 1; expected true or false"
    ):
        parse_schema('[columns]\nage = { type = "integer", min = 1, max = 2, missing = 1 }')
