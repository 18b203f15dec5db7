"""What init says about columns that look odd."""

import pytest

from feta import Categorical, Derived, Integer, Levels, Real
from feta.io.oddities import MAX_GROUPS, oddities
from feta.space.attribute import Attribute


@pytest.mark.parametrize(
    ("attribute", "numbers", "sentence"),
    [
        (
            Categorical("race", (" White", "White", "Black"), sensitive=True),
            (),
            "'race': '␠White', 'White' differ only in blanks; each is a value of its own and "
            "votes; if they mean the same, run this again with --strip",
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
            "'race' holds values with blanks around them: '␠White', '␠Black'; if the model "
            "was trained without them, run this again with --strip",
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
            "'score': -1 is the only negative number; if it is a code for unknown, it is no "
            "amount; correct the rows, or raise min",
        ),
        (
            Integer("rooms", 1, 99, sensitive=True),
            (1.0, 2.0, 99.0),
            "'rooms': 99 is more than twice every other number; if it is a code for unknown "
            "or for a limit, it is no amount, and would become a counterpart; correct the "
            "rows, or lower max",
        ),
        (
            Integer("year", 3, 3),
            (3.0,),
            "'year' is constant: every row holds 3; widen it to what may occur, or leave the "
            "column out (--leave-out)",
        ),
        (
            Categorical("sex", ("m",), sensitive=True),
            (),
            "'sex' is constant: every row holds 'm', so nobody has a counterpart with "
            "another one; add the values that may occur",
        ),
    ],
)
def test_what_looks_odd_is_said(
    attribute: Attribute, numbers: tuple[float, ...], sentence: str
) -> None:
    assert oddities(attribute, numbers) == [sentence]


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
        (Real("wage", -1.5, 400), (-1.5, 2.0)),  # an ending is no word
        (Levels("rate", (0.5, 1.0)), (0.5, 1.0)),
        (Derived("band", "age", (("a", 0, 9),)), ()),
    ],
)
def test_what_is_ordinary_is_not_mentioned(
    attribute: Attribute, numbers: tuple[float, ...]
) -> None:
    assert oddities(attribute, numbers) == []


def test_very_many_look_alikes_are_counted() -> None:
    values = tuple(f"{blank}v{n}" for n in range(MAX_GROUPS + 2) for blank in ("", " "))
    found = oddities(Categorical("race", values))
    assert len(found) == MAX_GROUPS + 1
    assert found[-1] == "'race': 2 more groups of values differ only in blanks or case"
