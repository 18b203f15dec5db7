from pathlib import Path

import pytest

from feta import Categorical, Derived, FeatureSpace, Integer, Levels, Real, SchemaError
from feta.io.schema_file import Decision, SchemaFile, parse_schema, read_schema_file
from feta.io.schema_writer import format_schema

AGE = 'age = { type = "integer", min = 18, max = 90, sensitive = true }\n'
TEXT = f"""
[decision]
favorable = "paid"
unfavorable = "refused"
threshold = 0.25
favors = "below"
equality = "unfavorable"

[columns]
{AGE}
sex = {{ type = "category", values = ["f", "m"] }}
dependants = {{ type = "category", values = [0, 1] }}
"""


def test_columns_and_decision_are_read() -> None:
    text = (
        "[decision]\nscore = 2\n[columns]\n"
        + AGE
        + 'hours = { type = "levels", values = [0, 37.5], unit = "h", center = 1, scale = 2 }\n'
        + 'height = { type = "number", min = 1, max = 2, step = 0.5 }\n'
        + 'income = { type = "number", min = 0, max = 9 }\n'
        + 'band = { from = "age", values = { young = [18, 30], old = [31, 90] } }\n'
    )
    schema = parse_schema(text)
    assert schema.space.attributes == (
        Integer("age", 18, 90, sensitive=True),
        Levels("hours", (0.0, 37.5)),
        Levels("height", (1.0, 1.5, 2.0)),
        Real("income", 0, 9),
        Derived("band", "age", (("young", 18, 30), ("old", 31, 90))),
    )
    assert schema.units == {"hours": "h"}
    assert schema.centers["hours"] == 1.0
    assert schema.scales == {"age": 1.0, "hours": 2.0, "height": 1.0, "income": 1.0, "band": 1.0}
    assert schema.decision == Decision(score=2.0)


def test_a_written_schema_is_read_back_unchanged() -> None:
    name = 'a "quoted" \\ name\nwith\x7f = ü'
    schema = SchemaFile(
        FeatureSpace(
            (
                Integer("age", -3, 90, sensitive=True),
                Categorical(name, ("a\tb", "", "c"), sensitive=True),
                Categorical("flag", (False, True)),
                Categorical("n", (1, 2)),
                Levels("hours", (-1e-300, 0.1, 1e300)),
                Real("in.come", -0.1, 1e22),
                Derived("band", "age", (("", -3, 30), ("31+", 31, 90))),
            )
        ),
        {"age": 0.1, "in.come": 0.0},
        {"age": 1.0, "in.come": 3.0},
        {"hours": "h/week"},
        Decision("ja", "nein", score=-0.1, favors="below", equality="favorable"),
    )
    again = parse_schema(format_schema(schema))
    assert again.space == schema.space
    assert again.decision == schema.decision
    assert again.units == schema.units
    assert (again.centers["age"], again.scales["in.come"]) == (0.1, 3.0)
    assert format_schema(again) == format_schema(schema)


@pytest.mark.parametrize(
    "decision",
    [
        Decision(classes=("a", 'b "c"', "ü\n")),
        Decision(classes=("a", "b", "c"), one_vs_rest="b"),
        Decision(tolerance=0.1),
        Decision(tolerance=500.0, unit="EUR"),
    ],
)
def test_classes_and_tolerances_are_read_back_unchanged(decision: Decision) -> None:
    space = FeatureSpace((Integer("age", 18, 90, sensitive=True),))
    text = format_schema(SchemaFile(space, {}, {}, {}, decision))
    assert parse_schema(text).decision == decision


@pytest.mark.parametrize(("probability", "written"), [(None, 0.5), (0.3, 0.3)])
def test_a_probability_is_always_written(probability: float | None, written: float) -> None:
    space = FeatureSpace((Integer("age", 18, 90, sensitive=True),))
    text = format_schema(SchemaFile(space, {}, {}, {}, Decision(probability=probability)))
    assert parse_schema(text).decision == Decision(probability=written)


def test_all_keys_of_a_decision_are_read() -> None:
    schema = parse_schema(TEXT)
    assert schema.decision == Decision("paid", "refused", 0.25, None, "below", "unfavorable")
    assert schema.space.attributes[2] == Categorical("dependants", (0, 1))


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("= 5", "the schema is not valid TOML: Invalid"),
        ("[columns]\na = 1\na = 2", "the schema is not valid TOML: Cannot overwrite"),
        ("", r"no columns: expected a \[columns\] table with at least one column"),
        ("columns = 5", r"no columns: expected a \[columns\] table"),
        ("[columns]", r"no columns: expected a \[columns\] table with at least one column"),
        ("colums = 5", r"the schema: unknown key: got 'colums'; .*; did you mean 'columns'\?"),
        ("[columns]\nage = 5", "column 'age' is not a table: got 5; expected a table such as"),
        (
            "[columns]\nage = {}",
            "column 'age': unknown type: got None; expected one of 'category', ",
        ),
        ('[columns]\nage = { type = "intger" }', r"did you mean 'integer'\?"),
        (
            '[columns]\nage = { type = "integer", mim = 1 }',
            r"column 'age': unknown key: got 'mim'; expected one of .*; did you mean 'min'\?",
        ),
        (
            '[columns]\nage = { type = "integer", max = 1 }',
            "column 'age': min is missing; expected a number",
        ),
        (
            '[columns]\nage = { type = "number", min = 1 }',
            "column 'age': max is missing; expected a number",
        ),
        (
            '[columns]\nage = { type = "number", min = "1", max = 2 }',
            "column 'age': invalid min: got '1'; expected a number",
        ),
        (
            '[columns]\nage = { type = "number", min = true, max = 2 }',
            "column 'age': invalid min: got True; expected a number",
        ),
        (
            '[columns]\nage = { type = "number", min = 0, max = inf }',
            "invalid limits for 'age': got 0 and inf",
        ),
        (
            '[columns]\nage = { type = "number", min = 0, max = 1, step = 0 }',
            "invalid levels for 'age': .*expected finite limits and a step above 0",
        ),
        (
            '[columns]\nage = { type = "category", values = "ab" }',
            "column 'age': invalid values: got 'ab'; expected a list",
        ),
        ('[columns]\nage = { type = "category" }', "invalid values: got None; expected a list"),
        (
            '[columns]\nage = { type = "levels", values = [1, "2"] }',
            "column 'age': invalid values: got '2'; expected a number",
        ),
        (
            '[columns]\nage = { type = "integer", min = 1, max = 2, sensitive = 1 }',
            "column 'age': invalid sensitive: got 1; expected true or false",
        ),
        (
            '[columns]\nage = { type = "integer", min = 1, max = 2, sensitive = true, scale = 0 }',
            r"column 'age': invalid scale: got 0\.0; expected a finite number other than 0",
        ),
        (
            '[columns]\nage = { type = "integer", min = 1, max = 2, sensitive = '
            "true, scale = nan }",
            "column 'age': invalid scale: got nan; expected a finite number",
        ),
        (
            '[columns]\nage = { type = "integer", min = 1, max = 2, sensitive = '
            "true, scale = -inf }",
            "column 'age': invalid scale: got -inf; expected a finite number",
        ),
        (
            '[columns]\nage = { type = "integer", min = 1, max = 2, sensitive = '
            'true, center = "x" }',
            "column 'age': invalid center: got 'x'; expected a number",
        ),
        (
            f"[columns]\n{AGE}b = {{ from = 'age' }}",
            "derived column 'b': invalid values: got None; expected named bands",
        ),
        (
            f"[columns]\n{AGE}b = {{ from = 'age', values = {{ x = [1] }} }}",
            r"derived column 'b': invalid band 'x': got \[1\]; expected \[low, high\]",
        ),
        (
            f"[columns]\n{AGE}b = {{ from = 'age', sensitive = true, values = {{ }} }}",
            "derived column 'b': unknown key: got 'sensitive'; expected one of 'from', 'values'",
        ),
        (f"decision = 5\n[columns]\n{AGE}", r"\[decision\] is not a table: got 5"),
        (
            f"[decision]\nfavor = 1\n[columns]\n{AGE}",
            r"\[decision\]: unknown key: got 'favor'; .*did you mean 'favors'\?",
        ),
        (
            f"[decision]\nthreshold = 0.5\nscore = 0\n[columns]\n{AGE}",
            r"\[decision\]: conflicting keys: got threshold and score; expected one of threshold "
            r"\(a probability\), score, classes and tolerance",
        ),
        (
            f"[decision]\ntolerance = 5\nclasses = ['a', 'b']\n[columns]\n{AGE}",
            "conflicting keys: got classes and tolerance; expected one of threshold ",
        ),
        (
            f"[decision]\nfavorable = 'a'\nclasses = ['a', 'b', 'c']\n[columns]\n{AGE}",
            "'favorable' does not apply: got it with classes; expected it with threshold or "
            "score; one_vs_rest selects one class",
        ),
        (
            f"[decision]\nequality = 'favorable'\ntolerance = 1\n[columns]\n{AGE}",
            "'equality' does not apply: got it with tolerance; expected it with threshold or "
            "score$",
        ),
        (
            f"[decision]\nunit = 'EUR'\n[columns]\n{AGE}",
            "'unit' does not apply: got it with threshold; expected it with tolerance$",
        ),
        (
            f"[decision]\none_vs_rest = 'a'\nscore = 0\n[columns]\n{AGE}",
            "'one_vs_rest' does not apply: got it with score; expected it with classes$",
        ),
        (
            f"[decision]\nclasses = 'abc'\n[columns]\n{AGE}",
            "invalid classes: got 'abc'; expected a list of names, one per network output",
        ),
        (
            f"[decision]\nclasses = [1, 2]\n[columns]\n{AGE}",
            r"invalid classes: got \[1, 2\]; expected a list of names, one per network output",
        ),
        (f"[decision]\nclasses = []\n[columns]\n{AGE}", r"got \[\]; expected a list of names"),
        (
            f"[decision]\ntolerance = 'x'\n[columns]\n{AGE}",
            "invalid tolerance: got 'x'; expected a number",
        ),
        (
            f"[decision]\nscore = true\n[columns]\n{AGE}",
            "invalid score: got True; expected a number",
        ),
    ],
)
def test_an_invalid_schema_is_rejected_with_its_place(text: str, message: str) -> None:
    with pytest.raises(SchemaError, match=message):
        parse_schema(text)


def test_messages_name_the_file(tmp_path: Path) -> None:
    path = tmp_path / "mine.toml"
    path.write_text("[columns]\nage = 5")
    with pytest.raises(SchemaError, match=r"mine\.toml: column 'age' is not a table"):
        read_schema_file(path)
    with pytest.raises(SchemaError, match=r"yours\.toml: there is no such file; feta init writes"):
        read_schema_file(tmp_path / "yours.toml")
    path.write_bytes(b"\xff\xfe")
    with pytest.raises(SchemaError, match=r"mine\.toml: the schema is not UTF-8 text"):
        read_schema_file(path)
