import time

import pytest

from feta import Budget, SchemaError


@pytest.mark.parametrize(
    ("seconds", "evaluations", "message"),
    [
        (-1.0, None, r"a budget of seconds must be 0 or more, and finite, got -1\.0"),
        (float("nan"), None, "a budget of seconds must be 0 or more, and finite, got nan"),
        (None, float("inf"), "a budget of evaluations must be 0 or more, and finite, got inf"),
        (None, -1, "a budget of evaluations must be 0 or more, and finite, got -1"),
    ],
)
def test_a_budget_that_cannot_be_is_refused(
    seconds: float | None, evaluations: int | None, message: str
) -> None:
    with pytest.raises(SchemaError, match=message):
        Budget(seconds, evaluations)


def test_no_limit_is_a_deadline_that_never_comes() -> None:
    assert Budget().deadline() == float("inf")
    assert Budget(seconds=0).deadline() <= time.monotonic()
    before = time.monotonic()
    deadline = Budget(seconds=1000).deadline()
    assert before + 1000 <= deadline <= time.monotonic() + 1000
