import numpy as np
import pytest

from feta import Argmax, OneVsRest, Threshold
from feta.rule import UNDECIDED, Rule
from feta.rule.comparator import DecisionComparator
from tests.rules import enclosure, exact

ABC = ("a", "b", "c")


@pytest.mark.parametrize(
    ("rule", "reference", "others", "differs"),
    [
        (Threshold(0.0), [1.0], [[1.0], [0.0], [-1.0]], [0, 0, 1]),
        (Threshold(0.0), [-1.0], [[1.0], [0.0], [-1.0]], [1, 1, 0]),
        (Argmax(ABC), [0.0, 1.0, 0.0], [[0, 1, 1], [1, 1, 0], [0, 0, 1]], [0, 1, 1]),
        (OneVsRest(ABC, "b"), [1.0, 0.0, 0.0], [[0, 0, 1], [0, 1, 0], [0, 1, 1]], [0, 1, 1]),
    ],
)
def test_decisions_that_differ_from_the_reference_are_flagged(
    rule: Rule, reference: list[float], others: list[list[float]], differs: list[int]
) -> None:
    comparator = rule.comparator(exact([reference]))
    assert comparator.decide_exactly(exact(others)).tolist() == differs
    decisions = comparator.decide(enclosure(others, 0.0)).tolist()
    pairs = zip(decisions, differs, strict=True)
    assert all(made in (UNDECIDED, expected) for made, expected in pairs)


def test_an_undecided_point_is_neither_the_same_nor_different() -> None:
    for reference in (0, 1):
        comparator = DecisionComparator(Threshold(0.0), reference)
        scores = enclosure([[-2.0], [0.0], [2.0]], 1.0)
        expected = [reference, UNDECIDED, 1 - reference]
        assert comparator.decide(scores).tolist() == expected
        intervals = exact([[-2.0], [0.0], [2.0]], np.ones((3, 1)))
        assert comparator.decide_exactly(intervals).tolist() == expected
        assert comparator.decide_exactly(intervals).dtype == np.int8


def test_everything_is_undecided_if_the_reference_is() -> None:
    comparator = DecisionComparator(Threshold(0.0), UNDECIDED)
    scores = [[-2.0], [0.0], [2.0]]
    assert comparator.decide(enclosure(scores, 1.0)).tolist() == [UNDECIDED] * 3
    assert comparator.decide_exactly(exact(scores)).tolist() == [UNDECIDED] * 3


def test_an_undecided_reference_separates_nothing() -> None:
    rule = Threshold(0.0)
    open_pair = exact([[0.0], [5.0]], [[1.0], [0.0]])
    assert rule.pair_decisions(open_pair) == (UNDECIDED, 1)
    assert rule.separates(open_pair) is False
    assert rule.separates(open_pair[[1, 0]]) is False
    both = exact([[0.0], [0.5]], [[1.0], [1.0]])
    assert rule.separates(both) is False
    flags = rule.differs_in_runtime(open_pair[:1], enclosure([[0.0], [-5.0]], 0.0))
    assert flags.tolist() == [False, False]
