import numpy as np
import pytest

from feta import Argmax, OneVsRest, Threshold
from feta.rule import UNDECIDED, Rule
from tests.rules import ABC, enclosure, exact

THRESHOLD = Threshold(0.0, equality="favorable")


def test_undecided_is_no_index_of_a_class() -> None:
    assert UNDECIDED == -1


@pytest.mark.parametrize(
    ("rule", "rows", "decisions"),
    [
        (THRESHOLD, [[-4.0], [4.0], [0.0]], [0, 1, UNDECIDED]),
        (Argmax(ABC), [[4, 0, 0], [0, 0, 4], [4, 4, 0], [0, 4, 0]], [0, 2, UNDECIDED, 1]),
        (OneVsRest(ABC, "b"), [[0, 4, 0], [4, 0, 0], [0, 4, 4], [0, 0, 4]], [1, 0, UNDECIDED, 0]),
    ],
)
def test_each_row_is_decided_by_itself(
    rule: Rule, rows: list[list[float]], decisions: list[int]
) -> None:
    radii = np.ones_like(np.array(rows, dtype=np.float64))
    rough, exactly = rule.decide(enclosure(rows, 1.0)), rule.decide_exactly(exact(rows, radii))
    points = rule.decide_exactly(exact(rows))
    assert rough.tolist() == exactly.tolist() == decisions
    assert rough.dtype == exactly.dtype == points.dtype == np.int8


@pytest.mark.parametrize(
    ("rule", "pair", "differs"),
    [
        (THRESHOLD, [[-1.0], [1.0]], True),
        (THRESHOLD, [[1.0], [-1.0]], True),
        (THRESHOLD, [[0.0], [1.0]], False),
        (THRESHOLD, [[-2.0], [-1.0]], False),
        (Argmax(ABC), [[1, 0, 0], [0, 0, 1]], True),
        (Argmax(ABC), [[1, 0, 0], [1, 1, 1]], False),
        (OneVsRest(ABC, "b"), [[1, 0, 0], [0, 0, 1]], False),
        (OneVsRest(ABC, "b"), [[1, 0, 0], [0, 1, 0]], True),
    ],
)
def test_people_with_different_decisions_are_separated(
    rule: Rule, pair: list[list[float]], *, differs: bool
) -> None:
    assert rule.separates(exact(pair)) is differs
    first, second = rule.pair_decisions(exact(pair))
    assert (first != second) is differs
    assert rule.pair_decisions(exact(pair[::-1])) == (second, first)


@pytest.mark.parametrize("radii", [[[1.0], [0.0]], [[0.0], [1.0]], [[1.0], [1.0]]])
def test_an_undecided_person_is_separated_from_nobody(radii: list[list[float]]) -> None:
    assert not THRESHOLD.separates(exact([[-0.5], [0.5]], radii))
    assert THRESHOLD.separates(exact([[-0.5], [0.5]], [[0.25], [0.25]]))


def test_the_objective_of_each_decision_leads_to_the_other() -> None:
    favorable, unfavorable = exact([[1.0]]), exact([[-1.0]])
    for rule in (THRESHOLD, Threshold(0.0, "below", "favorable")):
        for reference in (favorable, unfavorable):
            goal = 1 - rule.pair_decisions(reference)[0]
            expected = rule.reaching(goal).directions.tolist()
            assert rule.objective(reference).directions.tolist() == expected
