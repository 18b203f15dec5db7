from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from feta import (
    Argmax,
    Categorical,
    Derived,
    FeatureSpace,
    Integer,
    Network,
    OneVsRest,
    Real,
    Schema,
    SchemaError,
    Threshold,
    Tolerance,
    read_schema,
    write_schema,
)
from feta.io.schema_file import Decision, SchemaFile
from feta.rule import Rule
from feta.scorer.network.activation import clip
from feta.scorer.network.layers import Columns, LookupTable

FILE = SchemaFile(
    FeatureSpace(
        (
            Integer("age", 18, 90, sensitive=True),
            Categorical("sex", ("f", "m")),
            Derived("band", "age", (("young", 18, 30), ("old", 31, 90))),
            Real("income", 0, 9),
        )
    ),
    {"age": 40.0, "income": 0.5},
    {"age": 10.0, "income": 2.0},
    {"age": "years"},
    Decision("yes", "no", score=1.0),
)
NETWORK = Network.from_layers([([[1.0, 2.0, 3.0, 4.0, 5.0, 6.0]], [0.25])])


def schema_with(decision: Decision) -> Schema:
    return Schema(replace(FILE, decision=decision))


@pytest.mark.parametrize(
    ("decision", "rule"),
    [
        (Decision(), Threshold(0.0)),
        (Decision(probability=0.5), Threshold(0.0)),
        (Decision(probability=0.1), Threshold.at_probability(0.1)),
        (Decision(score=-0.0), Threshold(0.0)),
        (Decision(score=0.3, favors="below"), Threshold(0.3, "below")),
        (Decision(equality="unfavorable"), Threshold(0.0, equality="unfavorable")),
        (Decision(classes=("a", "b", "c")), Argmax(("a", "b", "c"))),
        (Decision(classes=("a", "b"), one_vs_rest="b"), OneVsRest(("a", "b"), "b")),
        (Decision(tolerance=0.0), Tolerance(0.0)),
        (Decision(tolerance=500, unit="EUR"), Tolerance(500.0)),
    ],
)
def test_the_decision_becomes_a_rule(decision: Decision, rule: Rule) -> None:
    assert schema_with(decision).rule == rule


@pytest.mark.parametrize(
    ("decision", "message"),
    [
        (
            Decision(favors="abov"),
            r"\[decision\]: invalid favors: got 'abov'; .*did you mean 'above'\?",
        ),
        (Decision(equality="tie"), r"\[decision\]: invalid equality: got 'tie'; expected one of"),
        (Decision(probability=1.0), "invalid probability threshold: got 1"),
        (Decision(probability=-0.0), "invalid probability threshold: got -0"),
        (Decision(score=float("nan")), "invalid threshold: got nan; expected a finite number"),
        (Decision(classes=("a",)), r"invalid classes: got \('a',\)"),
        (
            Decision(classes=("a", "b"), one_vs_rest="A"),
            "unknown class: got 'A'; expected one of 'a', 'b'",
        ),
        (Decision(tolerance=-1.0), "invalid tolerance: got -1"),
    ],
)
def test_an_invalid_decision_is_rejected(decision: Decision, message: str) -> None:
    with pytest.raises(SchemaError, match=message):
        _ = schema_with(decision).rule


def test_only_numbers_are_scaled() -> None:
    schema = Schema(FILE)
    assert schema.centers == [40.0, 0.0, 0.0, 0.0, 0.0, 0.5]
    assert schema.scales == [10.0, 1.0, 1.0, 1.0, 1.0, 2.0]


def test_a_column_without_center_and_scale_is_not_scaled() -> None:
    schema = Schema(replace(FILE, centers={}, scales={}))
    assert schema.centers == [0.0] * 6
    assert schema.scales == [1.0] * 6


@pytest.mark.parametrize(
    ("last", "rejected"),
    [((1.0, 0.0), True), ((-1.0, 1.0), True), ((2.0, 0.0), False), ((0.0, 0.5), False)],
)
def test_outputs_that_are_probabilities_are_not_treated_as_logits(
    last: tuple[float, float], rejected: bool
) -> None:
    layers = [([[1.0] * 6], [0.0]), ([[last[0]]], [last[1]])]
    network = Network.from_layers(layers, activation=clip(0.0, 1.0))
    half = replace(FILE, decision=replace(FILE.decision, score=None, probability=0.5))
    if rejected:
        with pytest.raises(SchemaError, match="are between 0 and 1, like probabilities"):
            Schema(half).model(network)
    else:
        assert Schema(half).model(network).rule == Threshold(0.0, equality="favorable")
    with_score = replace(FILE, decision=replace(FILE.decision, score=0.5))
    assert Schema(with_score).model(network).rule == Threshold(0.5, equality="favorable")


def test_a_column_that_the_network_embeds_cannot_be_scaled() -> None:
    table = LookupTable(0, np.arange(100.0), np.ones((100, 1)))
    network = Network(Columns(np.zeros(1), np.zeros((1, 6)), (table,)), (), ())
    with pytest.raises(
        SchemaError, match=r"column 'age' is scaled: .*; expected neither center nor"
    ):
        Schema(FILE).model(network)


def test_a_model_takes_people_in_raw_units() -> None:
    model = Schema(FILE).model(NETWORK)
    person = FILE.space.encode({"age": 50, "sex": "m", "income": 4.5})
    assert model.score(person).tolist() == [1.0 + 3.0 + 5.0 + 6.0 * 2.0 + 0.25]
    assert model.rule == Threshold(1.0, equality="favorable")
    assert model.outcomes == ("no", "yes")


@pytest.mark.parametrize(("decision", "sigmoid"), [(Decision(), True), (Decision(score=0), False)])
def test_a_probability_means_that_the_source_compares_sigmoids(
    decision: Decision, *, sigmoid: bool
) -> None:
    assert schema_with(decision).model(NETWORK).network.sigmoid is sigmoid


THREE = Network.from_layers([(np.ones((3, 6)), [0.0, 1.0, 2.0])])
CLASSES = Decision(classes=("a", "b", "c"))


def test_classes_and_tolerances_make_models() -> None:
    several = schema_with(CLASSES).model(THREE)
    assert several.rule == Argmax(("a", "b", "c"))
    assert several.outcomes == ("a", "b", "c")
    assert not several.network.sigmoid
    one = schema_with(replace(CLASSES, one_vs_rest="b")).model(THREE)
    assert one.outcomes == ("not b", "b")
    regression = schema_with(Decision(tolerance=2.0)).model(NETWORK)
    assert (regression.rule, regression.outcomes) == (Tolerance(2.0), ())


@pytest.mark.parametrize(
    ("decision", "network", "message"),
    [
        (
            Decision(),
            THREE,
            r"the network has 3 outputs, but \[decision\] lists no classes; write classes =",
        ),
        (
            CLASSES,
            NETWORK,
            "lists 3 classes, but the network has 1 output; write favorable, unfavorable and a "
            "threshold",
        ),
        (
            Decision(classes=("a", "b")),
            THREE,
            "lists 2 classes, but the network has 3 outputs; list one class per output",
        ),
        (
            Decision(tolerance=1.0),
            THREE,
            "a tolerance applies to one score, but the network has 3 outputs; list their classes",
        ),
        (
            Decision(tolerance=1.0),
            replace(NETWORK, sigmoid=True),
            "but the network ends in a sigmoid; export it without the sigmoid",
        ),
    ],
)
def test_a_decision_that_does_not_fit_the_outputs_is_rejected(
    decision: Decision, network: Network, message: str
) -> None:
    with pytest.raises(SchemaError, match=message):
        schema_with(decision).model(network)


@pytest.mark.parametrize(
    ("decision", "network"), [(CLASSES, THREE), (Decision(tolerance=2.0, unit="EUR"), NETWORK)]
)
def test_schemas_of_every_rule_are_written_and_read(
    decision: Decision, network: Network, tmp_path: Path
) -> None:
    write_schema(schema_with(decision), tmp_path / "schema.toml")
    again = read_schema(tmp_path / "schema.toml")
    assert again.decision == decision
    assert again.model(network).fingerprint == schema_with(decision).model(network).fingerprint


def test_a_network_of_another_width_is_rejected() -> None:
    narrow = Network.from_layers([(np.ones((1, 4)), [0.0])])
    with pytest.raises(
        SchemaError, match="wrong number of inputs for the schema: got 4; expected 6"
    ):
        Schema(FILE).model(narrow)


def test_a_written_schema_is_read_back_unchanged(tmp_path: Path) -> None:
    path = tmp_path / "schema.toml"
    write_schema(Schema(FILE), path)
    again = read_schema(path)
    assert again.space == FILE.space
    assert again.decision == FILE.decision
    assert again.centers == Schema(FILE).centers
    assert again.model(NETWORK).fingerprint == Schema(FILE).model(NETWORK).fingerprint


def test_a_bad_decision_is_reported_when_the_file_is_read(tmp_path: Path) -> None:
    path = tmp_path / "schema.toml"
    write_schema(schema_with(Decision(favors="sideways")), path)
    with pytest.raises(
        SchemaError, match="invalid favors: got 'sideways'; expected one of 'above'"
    ):
        read_schema(path)
