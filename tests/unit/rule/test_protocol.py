import numpy as np
import pytest

from feta import Argmax, OneVsRest, Threshold, Tolerance
from feta.rule import Rule, rule_kind, rule_options
from feta.rule.protocol import check_fits, is_finite_number

ABC = ("a", "b", "c")


@pytest.mark.parametrize(
    ("rule", "options"),
    [
        (
            Threshold(0.5, "below", "favorable"),
            {"value": 0.5, "favors": "below", "equality": "favorable"},
        ),
        (Argmax(ABC), {"classes": ABC}),
        (OneVsRest(ABC, "b"), {"classes": ABC, "chosen": "b"}),
        (Tolerance(0.5), {"epsilon": 0.5}),
    ],
)
def test_options_are_the_fields_in_order(rule: Rule, options: dict[str, object]) -> None:
    assert list(rule_options(rule).items()) == list(options.items())


def test_a_rule_without_fields_has_no_options() -> None:
    class Fieldless:
        """A rule of another package."""

    rule: Rule = Fieldless()  # type: ignore[assignment]
    assert rule_options(rule) == {}
    assert rule_kind(rule) == "Fieldless"


def test_the_kind_is_the_name_of_the_class() -> None:
    kinds = [rule_kind(rule) for rule in (Threshold(0.0), Argmax(ABC), Tolerance(0.0))]
    assert kinds == ["Threshold", "Argmax", "Tolerance"]


@pytest.mark.parametrize(
    ("rule", "outputs", "problem"),
    [
        (Threshold(0.0), 1, ""),
        (Threshold(0.0), 2, ""),
        (Threshold(0.0), 3, "got 3; expected 1 or 2 for Threshold"),
        (Argmax(ABC), 3, ""),
        (Argmax(ABC), 1, "got 1; expected 3 for Argmax"),
        (OneVsRest(ABC, "a"), 2, "got 2; expected 3 for OneVsRest"),
        (Tolerance(0.0), 2, "got 2; expected 1 for Tolerance"),
    ],
)
def test_a_scorer_with_other_outputs_does_not_fit(rule: Rule, outputs: int, problem: str) -> None:
    assert check_fits(rule, outputs) == problem


@pytest.mark.parametrize(
    ("value", "finite"),
    [
        (0, True),
        (-1.5, True),
        (True, True),
        (np.float32(1.5), True),
        (np.int64(3), True),
        (np.inf, False),
        (-np.inf, False),
        (np.nan, False),
        (10**308, True),
        (10**309, False),
        ("1", False),
        (None, False),
        (1j, False),
        ([1.0], False),
    ],
    ids=repr,
)
def test_a_finite_number_fits_float64(value: object, *, finite: bool) -> None:
    assert is_finite_number(value) is finite
