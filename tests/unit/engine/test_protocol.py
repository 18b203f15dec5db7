import time

import pytest

from feta import Budget, SchemaError


@pytest.mark.parametrize(
    ("seconds", "evaluations", "message"),
    [
        (-1.0, None, r"invalid budget of seconds: got -1\.0; expected a finite number"),
        (float("nan"), None, "invalid budget of seconds: got nan; expected a finite number"),
        (None, float("inf"), "invalid budget of evaluations: got inf; expected a finite number"),
        (
            None,
            -1,
            "invalid budget of evaluations: got -1; expected a finite number that is not negative",
        ),
    ],
)
def test_an_invalid_budget_is_rejected(
    seconds: float | None, evaluations: int | None, message: str
) -> None:
    with pytest.raises(SchemaError, match=message):
        Budget(seconds, evaluations)


def test_without_a_limit_the_deadline_is_infinite() -> None:
    assert Budget().deadline() == float("inf")
    assert Budget(seconds=0).deadline() <= time.monotonic()
    before = time.monotonic()
    deadline = Budget(seconds=1000).deadline()
    assert before + 1000 <= deadline <= time.monotonic() + 1000
