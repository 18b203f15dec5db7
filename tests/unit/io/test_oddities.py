"""Warnings of `feta init` about columns that look wrong."""

import pytest

from feta import Categorical, Derived, Integer, Levels, Real
from feta.io.oddities import MAX_GROUPS, oddities
from feta.space.attribute import Attribute


@pytest.mark.parametrize(
    ("attribute", "numbers", "warning"),
    [
        (
            Categorical("race", (" White", "White", "Black"), sensitive=True),
            (),
            "'race': '␠White', 'White' differ only in blanks; each is a separate value with "
            "its own vote; if they mean the same, run this again with --strip",
        ),
        (
            Categorical("race", ("white", "White")),
            (),
            "'race': 'white', 'White' differ only in case; if they mean the same, correct "
            "the table",
        ),
        (
            Categorical("race", ("New  York", "New York", "b")),
            (),
            "'race': 'New␠␠York', 'New York' differ only in blanks; if they mean the same, "
            "correct the table",
        ),
        (
            Categorical("race", (" white", "White", "b")),
            (),
            "'race': '␠white', 'White' differ only in blanks or case; if they mean the same, "
            "correct the table",
        ),
        (
            Categorical("race", (" White", " Black")),
            (),
            "'race' has values with leading or trailing blanks: '␠White', '␠Black'; if the model "
            "was trained without these blanks, run this again with --strip",
        ),
        (
            Integer("age", -1, 90, sensitive=True),
            (-1.0, 30.0, 90.0),
            "'age' has the minimum -1, which looks impossible, and would become a "
            "counterpart; correct the rows, or raise min",
        ),
        (
            Real("work_hours", -2.5, 90),
            (),
            "'work_hours' has the minimum -2.5, which looks impossible; correct the rows, or "
            "raise min",
        ),
        (
            Integer("score", -1, 40),
            (-1.0, 0.0, 40.0),
            "'score': -1 is the only negative number; if it is a code for unknown, it is not "
            "an amount; correct the rows, or raise min",
        ),
        (
            Integer("rooms", 1, 99, sensitive=True),
            (1.0, 2.0, 99.0),
            "'rooms': 99 is more than twice every other number; if it is a code for unknown "
            "or for a limit, it is not an amount, and would become a counterpart; correct the "
            "rows, or lower max",
        ),
        (
            Integer("year", 3, 3),
            (3.0,),
            "'year' is constant: every row has 3; add the values that may occur, or omit the "
            "column (--leave-out)",
        ),
        (
            Categorical("sex", ("m",), sensitive=True),
            (),
            "'sex' is constant: every row has 'm', so nobody has a counterpart with "
            "another value; add the values that may occur",
        ),
    ],
)
def test_an_odd_column_gets_a_warning(
    attribute: Attribute, numbers: tuple[float, ...], warning: str
) -> None:
    assert oddities(attribute, numbers) == [warning]


@pytest.mark.parametrize(
    ("attribute", "numbers"),
    [
        (Categorical("race", ("White", "Black")), ()),
        (Categorical("flag", (False, True)), ()),
        (Categorical("race", ("White",), missing=True), ()),
        (Integer("age", 17, 99), (17.0, 90.0, 99.0)),
        (Integer("balance", -500, 400), (-500.0, -20.0, 400.0)),
        (Integer("balance", -1, 400), (-1.0, -3.0, 400.0)),
        (Integer("flag", 0, 99), (0.0, 99.0)),
        (Real("wage", -1.5, 400), (-1.5, 2.0)),  # "wage" ends with "age"
        (Levels("rate", (0.5, 1.0)), (0.5, 1.0)),
        (Derived("band", "age", (("a", 0, 9),)), ()),
    ],
)
def test_an_ordinary_column_gets_no_warning(
    attribute: Attribute, numbers: tuple[float, ...]
) -> None:
    assert oddities(attribute, numbers) == []


def test_further_groups_of_similar_values_are_counted() -> None:
    values = tuple(f"{blank}v{n}" for n in range(MAX_GROUPS + 2) for blank in ("", " "))
    warnings = oddities(Categorical("race", values))
    assert len(warnings) == MAX_GROUPS + 1
    assert warnings[-1] == "'race': 2 more groups of values differ only in blanks or case"
