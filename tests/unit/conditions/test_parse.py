"""The grammar of conditions, and messages that name the position and what is close."""

from fractions import Fraction

import pytest

from feta import Categorical, Derived, Integer, Levels, Real, SchemaError
from feta.conditions.condition import (
    AllOf,
    Among,
    AnyOf,
    Compared,
    Implies,
    IsMissing,
    Linear,
    Not,
    columns_of,
)
from feta.conditions.parse import parse_condition, parse_linear

COLUMNS = (
    Integer("age", 17, 90, sensitive=True, missing=True),
    Real("rate", 0.0, 9.0),
    Levels("hours-per-week", (0.0, 0.1, 0.3)),
    Categorical("marital", ("never married", 'it\'s "new"', "1")),
    Categorical("code", (1, 2, 30)),
    Categorical("foreign", (True, False)),
    Categorical("town", ("Ulm",), other=True, missing=True),
    Derived("band", "age", (("young", 17, 30), ("old", 31, 90))),
    Integer("not", 0, 1),
)


def parse(text: str) -> object:
    return parse_condition(text, COLUMNS)


def linear(constant: float, **terms: float) -> Linear:
    return Linear.of({name: Fraction(one) for name, one in terms.items()}, Fraction(constant))


def test_operators_bind_as_documented() -> None:
    age = Compared(linear(-18, age=1), ">=")
    low = Compared(linear(-0.5, rate=1), "<")
    single = Among("marital", ("never married",))
    assert parse("age >= 18") == age
    assert parse("not age >= 18 and rate < 0.5 or marital == 'never married'") == AnyOf(
        (AllOf((Not(age), low)), single)
    )
    assert parse("age >= 18 => rate < .5 => marital in ('never married')") == Implies(
        age, Implies(low, single)
    )
    assert parse("(age >= 18 => rate < 5e-1) => marital in ['never married',]") == Implies(
        Implies(age, low), single
    )
    assert parse("not (age >= 18 and rate < 0.5)") == Not(AllOf((age, low)))


def test_sums_are_exact_and_columns_move_to_the_left() -> None:
    assert parse("2 * age - rate / 3 + 1 <= age - -rate") == Compared(
        Linear.of({"age": Fraction(1), "rate": Fraction(-4, 3)}, Fraction(1)), "<="
    )
    assert parse("(age + rate) * 0.1 == 1_000") == Compared(
        Linear.of({"age": Fraction(0.1), "rate": Fraction(0.1)}, Fraction(-1000)), "=="
    )
    assert parse("18 <= age < 65") == AllOf(
        (Compared(linear(-18, age=1), ">="), Compared(linear(-65, age=1), "<"))
    )
    assert parse("age in (1, 2)") == AnyOf(
        (Compared(linear(-1, age=1), "=="), Compared(linear(-2, age=1), "=="))
    )
    assert parse_linear("2*age - `hours-per-week`", COLUMNS) == linear(
        0, age=2, **{"hours-per-week": -1}
    )


def test_values_have_the_type_of_their_column() -> None:
    assert parse("code == 1") == Among("code", (1,))
    assert parse("1 != code") == Not(Among("code", (1,)))
    assert parse("marital == '1'") == Among("marital", ("1",))
    assert parse("""marital == 'it''s "new"'""") == Among("marital", ('it\'s "new"',))
    assert parse('''marital == "it's ""new"""''') == Among("marital", ('it\'s "new"',))
    assert type(parse("foreign == true").values[0]) is bool  # type: ignore[attr-defined]
    assert parse("town not in ('Ulm', '(other)')") == Not(Among("town", ("Ulm", "(other)")))
    assert parse("band == 'young'") == Among("band", ("young",))
    assert parse("`not` == 1") == Compared(linear(-1, **{"not": 1}), "==")
    assert parse("age is missing or town is not missing") == AnyOf(
        (IsMissing("age"), Not(IsMissing("town")))
    )


def test_a_condition_knows_its_columns() -> None:
    condition = parse_condition("age < 3 => not (town is missing or code == 1)", COLUMNS)
    assert columns_of(condition) == {"age", "town", "code"}


@pytest.mark.parametrize(
    ("text", "position", "problem"),
    [
        ("", 1, "got the end; expected a column"),
        ("aeg >= 18", 1, "unknown column: got 'aeg'.*did you mean 'age'"),
        ("age >= 18 and ratte < 2", 15, "did you mean 'rate'"),
        ("hours > 1", 1, "write `hours-per-week` with backticks"),
        ("age = 18", 5, "got '='; expected == for equality"),
        ("age >= 18 & rate < 2", 11, "expected 'and'"),
        ("age >= 18 rate < 2", 11, "got 'rate'; expected 'and', 'or' or the end"),
        ("marital == never", 12, "unknown column"),
        (
            "marital == 'never maried'",
            9,
            "unknown value of 'marital'.*did you mean 'never married'",
        ),
        ("town == Ulm", 9, "'Ulm' is a value of 'town': write it in quotes"),
        ("marital == 1", 9, "got 1 for 'marital'; expected '1': texts are in quotes"),
        ("code == '30'", 6, "got '30' for 'code'; expected 30: texts are in quotes"),
        ("code == true", 6, "unknown value of 'code'"),
        ("foreign == 1", 9, "unknown value of 'foreign'.*write true or false"),
        ("foreign", 1, "the column 'foreign' alone; write foreign == true"),
        ("marital < 'a'", 9, "got '<' for 'marital', which has categories"),
        ("'1' >= marital", 5, "got '>=' for 'marital'"),
        ("age == 'old'", 5, "got 'old' compared with a number"),
        ("1 < 2", 3, "a comparison of numbers alone"),
        ("age - age < 2", 11, "a comparison of numbers alone"),
        ("age", 1, "a number alone"),
        ("age * rate < 2", 5, "a product of two columns"),
        ("2 / age < 2", 3, "a division by a column"),
        ("age / 0 < 2", 5, "a division by 0"),
        ("(age < 2", 9, "got the end; expected ')'"),
        ("age < 2)", 8, "got ')'; expected 'and'"),
        ("age < 2 < ", 10, "got the end; expected a column"),
        ("age in 3", 8, "got '3'; expected a list"),
        ("age in ()", 9, "got ')'; expected a column"),
        ("age is 3", 8, "expected 'missing'"),
        ("2 * age is missing", 5, "expected the name of one column"),
        ("marital == 'open", 12, 'got "\'"; expected a closing quote'),
        ("age < 3x", 7, "invalid number: got '3x'"),
        ("age < 1.2.3", 7, "invalid number"),
        ("age < 1e999", 7, "within the range of float64"),
        ("age < 9007199254740993", 7, "which float64 cannot hold"),
        ("marital + 1 < 2", 1, "which has categories; expected a number"),
        ("marital == code", 9, "expected a value of 'marital'"),
        ("not age", 5, "a number alone"),
        ("(age < 2) + 1 < 3", 1, "got a condition; expected a number"),
        ("(" * 60 + "age < 2" + ")" * 60, 52, "more than 50 nested conditions"),
        ("not " * 60 + "age < 2", 205, "more than 50 nested conditions"),
        ("age < 2 => " * 60 + "age < 2", 562, "more than 50 nested conditions"),
        ("age @ 2", 5, "got '@'"),
    ],
)
def test_messages_name_position_and_problem(text: str, position: int, problem: str) -> None:
    with pytest.raises(SchemaError) as caught:
        parse(text)
    message = str(caught.value)
    assert f": at position {position}: " in message
    assert all(part in message for part in problem.split(".*"))


def test_a_long_text_is_refused() -> None:
    with pytest.raises(SchemaError, match="the condition is too long: got 20,001 characters"):
        parse("a" * 20_001)


def test_a_sum_needs_a_column_and_no_comparison() -> None:
    with pytest.raises(SchemaError, match="got only numbers"):
        parse_linear("1 + 2", COLUMNS)
    with pytest.raises(SchemaError, match="at position 5: got '<'"):
        parse_linear("age < 3", COLUMNS)
    with pytest.raises(SchemaError, match="which has categories"):
        parse_linear("marital", COLUMNS)
