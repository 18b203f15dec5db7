from pathlib import Path

import pytest

from feta import Categorical, Derived, FeatureSpace, Integer, Levels, Real, SchemaError
from feta.io.schema_file import (
    Decision,
    SchemaFile,
    format_schema,
    parse_schema,
    read_schema_file,
)

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


def test_a_schema_file_says_columns_and_decision() -> None:
    text = (
        "[decision]\nscore = 2\n[columns]\n"
        + AGE
        + 'hours = { type = "levels", values = [0, 37.5], unit = "h", center = 1, scale = 2 }\n'
        + 'height = { type = "number", min = 1, max = 2, step = 0.5 }\n'
        + 'income = { type = "number", min = 0, max = 9 }\n'
        + 'band = { from = "age", values = { young = [18, 30], old = [31, 90] } }\n'
    )
    read = parse_schema(text)
    assert read.space.attributes == (
        Integer("age", 18, 90, sensitive=True),
        Levels("hours", (0.0, 37.5)),
        Levels("height", (1.0, 1.5, 2.0)),
        Real("income", 0, 9),
        Derived("band", "age", (("young", 18, 30), ("old", 31, 90))),
    )
    assert read.units == {"hours": "h"}
    assert read.centers["hours"] == 1.0
    assert read.scales == {"age": 1.0, "hours": 2.0, "height": 1.0, "income": 1.0, "band": 1.0}
    assert read.decision == Decision(score=2.0)


def test_a_written_schema_reads_back_the_same() -> None:
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
def test_several_classes_and_tolerances_read_back_the_same(decision: Decision) -> None:
    space = FeatureSpace((Integer("age", 18, 90, sensitive=True),))
    text = format_schema(SchemaFile(space, {}, {}, {}, decision))
    assert parse_schema(text).decision == decision


@pytest.mark.parametrize(("probability", "written"), [(None, 0.5), (0.3, 0.3)])
def test_a_probability_is_written_out(probability: float | None, written: float) -> None:
    space = FeatureSpace((Integer("age", 18, 90, sensitive=True),))
    text = format_schema(SchemaFile(space, {}, {}, {}, Decision(probability=probability)))
    assert parse_schema(text).decision == Decision(probability=written)


def test_the_decision_table_is_read_whole() -> None:
    read = parse_schema(TEXT)
    assert read.decision == Decision("paid", "refused", 0.25, None, "below", "unfavorable")
    assert read.space.attributes[2] == Categorical("dependants", (0, 1))


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("= 5", "the schema must be TOML: Invalid"),
        ("[columns]\na = 1\na = 2", "the schema must be TOML: Cannot overwrite"),
        ("", r"must have a \[columns\] table with at least one column"),
        ("columns = 5", r"must have a \[columns\] table"),
        ("[columns]", r"must have a \[columns\] table with at least one column"),
        ("colums = 5", r"the schema: a key must be .*got 'colums'; did you mean 'columns'\?"),
        ("[columns]\nage = 5", r"column 'age' must be a table such as .*, got 5"),
        ("[columns]\nage = {}", "column 'age': type must be one of 'category', .*got None"),
        ('[columns]\nage = { type = "intger" }', r"did you mean 'integer'\?"),
        (
            '[columns]\nage = { type = "integer", mim = 1 }',
            r"column 'age': a key must be one of .*got 'mim'; did you mean 'min'\?",
        ),
        ('[columns]\nage = { type = "integer", max = 1 }', "column 'age' must have a min"),
        ('[columns]\nage = { type = "number", min = 1 }', "column 'age' must have a max"),
        (
            '[columns]\nage = { type = "number", min = "1", max = 2 }',
            "column 'age': min must be a number, got '1'",
        ),
        (
            '[columns]\nage = { type = "number", min = true, max = 2 }',
            "column 'age': min must be a number, got True",
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
            "column 'age': values must be a list, got 'ab'",
        ),
        ('[columns]\nage = { type = "category" }', "values must be a list, got None"),
        (
            '[columns]\nage = { type = "levels", values = [1, "2"] }',
            "column 'age': values must be a number, got '2'",
        ),
        (
            '[columns]\nage = { type = "integer", min = 1, max = 2, sensitive = 1 }',
            "column 'age': sensitive must be true or false, got 1",
        ),
        (
            '[columns]\nage = { type = "integer", min = 1, max = 2, sensitive = true, scale = 0 }',
            r"column 'age': scale must be finite and not 0, got 0\.0",
        ),
        (
            '[columns]\nage = { type = "integer", min = 1, max = 2, sensitive = '
            "true, scale = nan }",
            "column 'age': scale must be finite and not 0, got nan",
        ),
        (
            '[columns]\nage = { type = "integer", min = 1, max = 2, sensitive = '
            "true, scale = -inf }",
            "column 'age': scale must be finite and not 0, got -inf",
        ),
        (
            '[columns]\nage = { type = "integer", min = 1, max = 2, sensitive = '
            'true, center = "x" }',
            "column 'age': center must be a number, got 'x'",
        ),
        (
            f"[columns]\n{AGE}b = {{ from = 'age' }}",
            "derived column 'b': values must name its bands",
        ),
        (
            f"[columns]\n{AGE}b = {{ from = 'age', values = {{ x = [1] }} }}",
            r"derived column 'b': band 'x' must be \[low, high\], got \[1\]",
        ),
        (
            f"[columns]\n{AGE}b = {{ from = 'age', sensitive = true, values = {{ }} }}",
            "derived column 'b': a key must be one of 'from', 'values', got 'sensitive'",
        ),
        (f"decision = 5\n[columns]\n{AGE}", r"\[decision\] must be a table, got 5"),
        (f"[decision]\nfavor = 1\n[columns]\n{AGE}", r"\[decision\]: a key must be .*'favors'\?"),
        (
            f"[decision]\nthreshold = 0.5\nscore = 0\n[columns]\n{AGE}",
            r"\[decision\] must have one of threshold \(a probability\), score, classes and "
            r"tolerance, got threshold and score",
        ),
        (
            f"[decision]\ntolerance = 5\nclasses = ['a', 'b']\n[columns]\n{AGE}",
            "must have one of threshold .*, got classes and tolerance",
        ),
        (
            f"[decision]\nfavorable = 'a'\nclasses = ['a', 'b', 'c']\n[columns]\n{AGE}",
            "'favorable' goes with threshold or score, got it with classes; one_vs_rest asks "
            "about one class",
        ),
        (
            f"[decision]\nequality = 'favorable'\ntolerance = 1\n[columns]\n{AGE}",
            "'equality' goes with threshold or score, got it with tolerance$",
        ),
        (
            f"[decision]\nunit = 'EUR'\n[columns]\n{AGE}",
            "'unit' goes with tolerance, got it with threshold$",
        ),
        (
            f"[decision]\none_vs_rest = 'a'\nscore = 0\n[columns]\n{AGE}",
            "'one_vs_rest' goes with classes, got it with score$",
        ),
        (
            f"[decision]\nclasses = 'abc'\n[columns]\n{AGE}",
            r"classes must be a list of names, one a network output, got 'abc'",
        ),
        (
            f"[decision]\nclasses = [1, 2]\n[columns]\n{AGE}",
            r"classes must be a list of names, one a network output, got \[1, 2\]",
        ),
        (f"[decision]\nclasses = []\n[columns]\n{AGE}", r"must be a list of names, .*got \[\]"),
        (f"[decision]\ntolerance = 'x'\n[columns]\n{AGE}", "tolerance must be a number, got 'x'"),
        (f"[decision]\nscore = true\n[columns]\n{AGE}", "score must be a number, got True"),
    ],
)
def test_a_wrong_schema_is_refused_by_place(text: str, message: str) -> None:
    with pytest.raises(SchemaError, match=message):
        parse_schema(text)


def test_messages_name_the_file(tmp_path: Path) -> None:
    path = tmp_path / "mine.toml"
    path.write_text("[columns]\nage = 5")
    with pytest.raises(SchemaError, match=r"mine\.toml: column 'age' must be a table"):
        read_schema_file(path)
    with pytest.raises(SchemaError, match=r"yours\.toml: there is no such file; feta init writes"):
        read_schema_file(tmp_path / "yours.toml")
    path.write_bytes(b"\xff\xfe")
    with pytest.raises(SchemaError, match=r"mine\.toml: the schema must be UTF-8 text"):
        read_schema_file(path)
