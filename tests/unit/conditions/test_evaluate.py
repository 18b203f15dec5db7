"""Conditions evaluated exactly, compared with a naive evaluation of records in fractions."""

from collections.abc import Callable, Mapping
from fractions import Fraction
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from feta import Categorical, Derived, FeatureSpace, Integer, Levels, Real
from feta.conditions.condition import Linear, sooner
from feta.conditions.evaluate import Truth, cells_of, evaluate, signs
from feta.conditions.parse import parse_condition
from feta.conditions.rows import Narrowing

ULP = float(np.nextafter(0.3, 1))
SPACE = FeatureSpace(
    (
        Integer("age", -3, 5, sensitive=True, missing=True),
        Real("rate", -1e300, 1e300),
        Levels("hours", (-0.5, 0.1, 0.2, 0.3, ULP, 1e16), missing=True),
        Categorical("job", ("1", "b", "c"), missing=True),
        Categorical("code", (1, 2)),
        Categorical("foreign", (True, False)),
        Categorical("town", ("Ulm",), other=True),
        Derived("band", "rate", (("low", -1e300, 0), ("high", 5e-324, 1e300))),
    )
)
RATES = (0.0, 0.1, 0.1 + 0.2, 0.3, -0.1, 1e300, -1e300, 5e-324, 2.0**53, 3.0)
CATEGORIES = ("job", "code", "foreign", "town", "band")

Record = Mapping[str, Any]
Naive = Callable[[Record], bool | None]

NUMBERS = ("0", "1", "3", "0.1", "0.2", "0.3", ".5", "1e16", "9007199254740992", "1e300", "2.5e-1")
COMPARE: dict[str, Callable[[Fraction], bool]] = {
    "<": lambda x: x < 0,
    "<=": lambda x: x <= 0,
    "==": lambda x: x == 0,
    "!=": lambda x: x != 0,
    ">=": lambda x: x >= 0,
    ">": lambda x: x > 0,
}


def records() -> st.SearchStrategy[dict[str, Any]]:
    return st.fixed_dictionaries(
        {
            "age": st.sampled_from([None, *range(-3, 6)]),
            "rate": st.sampled_from(RATES),
            "hours": st.sampled_from([None, -0.5, 0.1, 0.2, 0.3, ULP, 1e16]),
            "job": st.sampled_from([None, "1", "b", "c"]),
            "code": st.sampled_from([1, 2]),
            "foreign": st.booleans(),
            "town": st.sampled_from(["Ulm", "Köln"]),
        }
    )


@st.composite
def comparisons(draw: st.DrawFn) -> tuple[str, Naive]:
    """Draw a comparison of sums, as text and as a function of a record."""
    sides, parts = [], []
    for sign in (1, -1):
        texts = []
        for _ in range(draw(st.integers(1, 3))):
            factor, name = (
                draw(st.sampled_from(NUMBERS)),
                draw(st.sampled_from(["", "age", "rate", "hours"])),
            )
            divisor = draw(st.sampled_from(["", "3", "0.1"])) if name else ""
            texts.append(f"{factor} * {name}" if name else factor)
            texts[-1] += f" / {divisor}" if divisor else ""
            exact = Fraction(float(factor)) / (Fraction(float(divisor)) if divisor else 1)
            parts.append((sign * exact, name))
        sides.append(" + ".join(texts))
    if all(sum(k for k, other in parts if other == name) == 0 for name in ("age", "rate", "hours")):
        sides[0] += " + age"
        parts.append((Fraction(1), "age"))
    operator = draw(st.sampled_from(list(COMPARE)))
    read = [
        name
        for name in ("age", "rate", "hours")
        if sum(k for k, other in parts if other == name) != 0
    ]

    def naive(record: Record) -> bool | None:
        if any(record[name] is None for name in read):
            return None
        values = [
            k * Fraction(float(record[name])) if name in read else (Fraction(0) if name else k)
            for k, name in parts
        ]
        total = sum(values, Fraction(0))
        return COMPARE[operator](total)

    return f"{sides[0]} {operator} {sides[1]}", naive


@st.composite
def members(draw: st.DrawFn) -> tuple[str, Naive]:
    """Draw a test of a category."""
    name = draw(st.sampled_from(CATEGORIES))
    known: dict[str, list[tuple[str, Any]]] = {
        "job": [("'1'", "1"), ('"b"', "b"), ("'c'", "c")],
        "code": [("1", 1), ("2", 2)],
        "foreign": [("true", True), ("false", False)],
        "town": [("'Ulm'", "Ulm"), ("'(other)'", "Köln")],
        "band": [("'low'", "low"), ("'high'", "high")],
    }
    chosen = draw(st.lists(st.sampled_from(known[name]), min_size=1, max_size=3))
    negated = draw(st.booleans())
    values = [value for _, value in chosen]

    def naive(record: Record) -> bool | None:
        value = ("low" if record["rate"] <= 0 else "high") if name == "band" else record[name]
        return None if value is None else (value in values) != negated

    if len(chosen) == 1 and draw(st.booleans()):
        return f"{name} {'!=' if negated else '=='} {chosen[0][0]}", naive
    listed = ", ".join(text for text, _ in chosen)
    return f"{name} {'not in' if negated else 'in'} ({listed})", naive


@st.composite
def missing(draw: st.DrawFn) -> tuple[str, Naive]:
    name, negated = draw(st.sampled_from(["age", "hours", "job", "code"])), draw(st.booleans())
    text = f"{name} is {'not ' if negated else ''}missing"
    return text, lambda record: (record[name] is None) != negated


def negation(value: bool | None) -> bool | None:
    return None if value is None else not value


def conjunction(first: bool | None, second: bool | None) -> bool | None:
    if first is False or second is False:
        return False
    return None if first is None or second is None else True


def combined(
    inner: st.SearchStrategy[tuple[str, Naive]],
) -> st.SearchStrategy[tuple[str, Naive]]:
    def both(one: tuple[str, Naive], two: tuple[str, Naive]) -> tuple[str, Naive]:
        return f"({one[0]}) and ({two[0]})", lambda r: conjunction(one[1](r), two[1](r))

    def either(one: tuple[str, Naive], two: tuple[str, Naive]) -> tuple[str, Naive]:
        return (
            f"({one[0]}) or ({two[0]})",
            lambda r: negation(conjunction(negation(one[1](r)), negation(two[1](r)))),
        )

    def implied(one: tuple[str, Naive], two: tuple[str, Naive]) -> tuple[str, Naive]:
        return (
            f"({one[0]}) => ({two[0]})",
            lambda r: negation(conjunction(one[1](r), negation(two[1](r)))),
        )

    def opposite(one: tuple[str, Naive]) -> tuple[str, Naive]:
        return f"not ({one[0]})", lambda r: negation(one[1](r))

    return st.one_of(
        st.builds(both, inner, inner),
        st.builds(either, inner, inner),
        st.builds(implied, inner, inner),
        st.builds(opposite, inner),
    )


CONDITIONS = st.recursive(st.one_of(comparisons(), members(), missing()), combined, max_leaves=5)


@settings(max_examples=300, deadline=None)
@given(CONDITIONS, st.lists(records(), min_size=1, max_size=8))
def test_conditions_equal_the_naive_evaluation(
    condition: tuple[str, Naive], people: list[dict[str, Any]]
) -> None:
    text, naive = condition
    truth = evaluate(parse_condition(text, SPACE.attributes), cells_of(SPACE, SPACE.encode(people)))
    expected = [naive(record) for record in people]
    assert truth.true.tolist() == [value is True for value in expected]
    assert truth.false.tolist() == [value is False for value in expected]


@pytest.mark.parametrize(
    ("text", "rate", "expected"),
    [
        ("rate <= 0.3", 0.3, True),
        ("rate <= 0.3", float(np.nextafter(0.3, 1)), False),
        ("rate < 0.3", 0.3, False),
        ("rate == 0.1", 0.1, True),
        ("rate == 0.1 + 0.2", 0.1 + 0.2, False),  # the sum of literals is exact, not rounded
        ("rate > 0.1 + 0.2", 0.1 + 0.2, True),
        ("rate < 0.1 + 0.2", 0.3, True),
        ("3 * rate == 1", 1 / 3, False),  # the float64 nearest to 1/3 is below it
        ("3 * rate < 1", 1 / 3, True),
        ("rate < 1 / 3", 1 / 3, True),
        ("10 * rate > 1", 0.1, True),  # the float64 nearest to 0.1 is above it
        ("rate >= -0", 0.0, True),
        ("rate > 1e300 * 1e300", 1e300, False),
        ("rate + hours > 1e16", 1.0, True),
        ("rate + hours > 1e16", 0.0, False),
        ("rate + hours >= 1e16 + 5e-324", 5e-324, True),
        ("rate - hours == -1e16", 0.0, True),
    ],
)
def test_comparisons_are_exact_at_the_last_bit(text: str, rate: float, expected: bool) -> None:
    record = {"age": 0, "rate": rate, "hours": 1e16, "job": "b", "code": 1, "foreign": True,
              "town": "Ulm"}  # fmt: skip
    condition = parse_condition(text, SPACE.attributes)
    truth = evaluate(condition, cells_of(SPACE, SPACE.encode([record])))
    assert (bool(truth.true[0]), bool(truth.false[0])) == (expected, not expected)


def test_arrays_of_different_shapes_are_broadcast() -> None:
    rng = np.random.default_rng(1)
    total = Linear.of({"a": Fraction(1), "b": Fraction(0.1)}, Fraction(-0.3))
    a, b = rng.integers(-2, 3, (4, 1)) / 10, rng.integers(-2, 3, (1, 5)) * 1.0
    expected = [
        [sign(Fraction(x) + Fraction(0.1) * Fraction(y) - Fraction(0.3)) for y in b[0]]
        for x in a[:, 0]
    ]
    assert signs(total, [a, b]).tolist() == expected


def sign(number: Fraction) -> int:
    return (number > 0) - (number < 0)


@pytest.mark.parametrize("unit", [1.0, 0.1, 1e-5, 1e-309, 1e290, 1e306])
def test_signs_of_sums_that_nearly_cancel_are_exact(unit: float) -> None:
    """Sums of tenths, less the float64 that is nearest to them: the exact sign varies."""
    rng = np.random.default_rng(2)
    total = Linear.of({"a": Fraction(1), "b": Fraction(0.7), "c": Fraction(-1)}, Fraction(-unit))
    a, b = rng.integers(-90, 90, (2, 400)) / 10 * unit
    c = a + 0.7 * b - unit
    c = np.where(rng.random(400) < 0.3, np.nextafter(c, np.inf), c)
    exact = [
        Fraction(x) + Fraction(0.7) * Fraction(y) - Fraction(z) - Fraction(unit)
        for x, y, z in zip(a.tolist(), b.tolist(), c.tolist(), strict=True)
    ]
    assert signs(total, [a, b, c]).tolist() == [sign(one) for one in exact]
    whole = Linear.of({"a": Fraction(3), "b": Fraction(1), "c": Fraction(-1)}, Fraction(0))
    c = 3 * a + b
    exact = [
        3 * Fraction(x) + Fraction(y) - Fraction(z)
        for x, y, z in zip(a.tolist(), b.tolist(), c.tolist(), strict=True)
    ]
    assert signs(whole, [a, b, c]).tolist() == [sign(one) for one in exact]


def test_coefficients_outside_float64_are_exact() -> None:
    for factor in (Fraction(10) ** 400, Fraction(10) ** -400, Fraction(3, 10**320)):
        total = Linear.of({"a": factor, "b": -factor}, Fraction(0))
        numbers = [np.array([1.0, 2.0, 0.0]), np.array([1.0, 1.0, 5e-324])]
        assert signs(total, numbers).tolist() == [0, 1, -1]


def test_large_coefficients_are_exact() -> None:
    total = Linear.of({"a": Fraction(2**60 + 1), "b": Fraction(-(2**60))}, Fraction(-1))
    numbers = [np.array([1.0, 2.0, 0.0]), np.array([1.0, 2.0, 0.0])]
    assert signs(total, numbers).tolist() == [0, 1, -1]


def test_truth_of_two_conditions() -> None:
    unknown = Truth(np.array([False]), np.array([False]))
    false = Truth(np.array([False]), np.array([True]))
    assert unknown.both(false).false.tolist() == [True]
    assert unknown.opposite.true.tolist() == unknown.opposite.false.tolist() == [False]


@settings(max_examples=60, deadline=None)
@given(
    st.lists(
        st.tuples(st.sampled_from(["'1'", "'b'", "'c'"]), comparisons(), st.booleans()),
        min_size=9,
        max_size=12,
    ),
    records(),
)
def test_narrowed_alternatives_have_the_same_truth(
    rows: list[tuple[str, tuple[str, Naive], bool]], record: dict[str, Any]
) -> None:
    texts = [f"(job in ({value}{', ' + repr('1') if two else ''}) and {part})"
             for value, (part, _), two in rows]  # fmt: skip
    condition = parse_condition(" or ".join(texts), SPACE.attributes)
    cells = cells_of(SPACE, SPACE.encode([record]))
    narrowing = Narrowing.of(sooner(condition, ["job"]), ["town", "job"])
    assert narrowing.column == "job"
    whole, narrowed = evaluate(condition, cells), evaluate(narrowing.among(cells), cells)
    assert (whole.true.tolist(), whole.false.tolist()) == (
        narrowed.true.tolist(),
        narrowed.false.tolist(),
    )
    several = cells_of(SPACE, SPACE.encode([record, record]))
    assert narrowing.among(several) is narrowing.condition
    assert Narrowing.of(condition, ["town"]).among(cells) is condition
