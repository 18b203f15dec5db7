from dataclasses import replace

import pytest

from feta.report.diff import Diff
from feta.report.gate import Gate, GateResult, conclusion

ZERO = (("people", 10, 10), ("unfair", 0, 0), ("undecided", 0, 0), ("not_audited", 0, 0))
SAME = Diff(ZERO, True, True, (), False, (), ())


def with_counts(**counts: tuple[int, int]) -> Diff:
    return replace(
        SAME, figures=tuple((name, *counts.get(name, (old, new))) for name, old, new in ZERO)
    )


@pytest.mark.parametrize(
    ("diff", "gate", "result"),
    [
        (SAME, Gate(), GateResult.NOT_WORSE),
        (with_counts(unfair=(3, 4)), Gate(), GateResult.WORSE),
        (with_counts(unfair=(3, 4)), Gate(allow_new=1), GateResult.NOT_WORSE),
        (with_counts(unfair=(3, 5)), Gate(allow_new=1), GateResult.WORSE),
        (with_counts(unfair=(3, 5), people=(10, 20)), Gate(rate_only=True), GateResult.NOT_WORSE),
        (with_counts(unfair=(3, 3), people=(10, 9)), Gate(rate_only=True), GateResult.WORSE),
        (with_counts(people=(10, 0)), Gate(rate_only=True), GateResult.LESS_SETTLED),
        (with_counts(unfair=(0, 5), people=(0, 10)), Gate(rate_only=True), GateResult.LESS_SETTLED),
        (
            with_counts(undecided=(1, 1), people=(10, 5)),
            Gate(rate_only=True),
            GateResult.LESS_SETTLED,
        ),
        (with_counts(undecided=(0, 1)), Gate(), GateResult.LESS_SETTLED),
        (replace(SAME, partial=True), Gate(rate_only=True), GateResult.LESS_SETTLED),
        (replace(SAME, moves=(("fair", "absent", 1),)), Gate(), GateResult.LESS_SETTLED),
        (replace(SAME, moves=(("fair", "absent", 1),)), Gate(rate_only=True), GateResult.NOT_WORSE),
        (replace(SAME, question_changes=("age",)), Gate(rate_only=True), GateResult.NOT_COMPARABLE),
        (replace(SAME, question_changes=("age",)), Gate(other_question=True), GateResult.NOT_WORSE),
    ],
)
def test_the_gate_returns_its_result_and_names_it(
    diff: Diff, gate: Gate, result: GateResult
) -> None:
    assert gate.outcome(diff) == result
    assert conclusion(diff, gate).lower().startswith(f"{result}:")
