import re
from collections.abc import Callable

import numpy as np
import pytest

from feta import OneVsRest, SchemaError
from feta.errors import DomainError
from feta.rounding import SOURCE_FLOAT32
from feta.rule import UNDECIDED
from feta.rule.words import RuleWords
from feta.scorer.kernel import KernelRule
from feta.scorer.protocol import Side
from tests.rules import enclosure, exact

CLASSES = ("a", "b", "c")
B = OneVsRest(CLASSES, "b")
ULP = 2.0**-52  # from 1 to the next number


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (
            lambda: OneVsRest(("a",), "a"),
            "invalid classes: got ('a',); expected two or more different classes",
        ),
        (
            lambda: OneVsRest(("low", "high"), "hihg"),
            "unknown class: got 'hihg'; expected one of 'low', 'high'; did you mean 'high'?",
        ),
        (
            lambda: B.one_vs_rest("a"),
            "invalid rule for one class against the rest: got OneVsRest(classes=('a', 'b', 'c'), "
            "chosen='b'); expected an Argmax",
        ),
    ],
)
def test_an_invalid_choice_is_rejected(make: Callable[[], object], message: str) -> None:
    with pytest.raises(SchemaError, match=f"^{re.escape(message)}$"):
        make()


def test_classes_may_be_a_list() -> None:
    rule = OneVsRest(["a", "b", "c"], "c")  # type: ignore[arg-type]
    assert rule == OneVsRest(CLASSES, "c")
    assert rule.index == 2


def test_its_facts() -> None:
    assert (B.outputs, B.output_counts, B.n_classes, B.index) == (3, (3,), 2, 1)
    assert (B.outcomes, B.classes) == (("not b", "b"), CLASSES)
    assert (B.threshold, B.tolerance, B.favors) == (None, None, "above")
    assert (B.ties_to, B.two_sided, B.merges_classes) == ("last", True, True)
    assert B.kernel_rule == KernelRule("one_vs_rest", 3, 2, 0.0, chosen=1, ties_to_last=True)
    assert B.source_error(SOURCE_FLOAT32) == 2 * 8 * 2.0**-24 / 0.5


@pytest.mark.parametrize("side", [None, "above", "below"])
def test_the_first_class_wins_ties_whatever_the_source_does(side: Side | None) -> None:
    assert B.resolved(side) is B


@pytest.mark.parametrize(
    ("scores", "winner"),
    [
        ([1.0, 2.0, 3.0], 2),
        ([3.0, 3.0, 3.0], 0),
        ([1.0, 3.0, 3.0], 1),
        ([3.0, 1.0, 3.0], 0),
        ([1.0, 1.0, 1.0 + ULP], 2),
        ([-0.0, 0.0, -5e-324], 0),
    ],
)
def test_the_chosen_class_wins_or_loses_ties_by_its_place(scores: list[float], winner: int) -> None:
    for index, chosen in enumerate(CLASSES):
        rule = OneVsRest(CLASSES, chosen)
        assert rule.decide_exactly(exact([scores])).tolist() == [index == winner]
        assert rule.decide_exactly(exact([scores], np.zeros((1, 3)))).tolist() == [index == winner]


@pytest.mark.parametrize(
    ("centers", "radii", "decision"),
    [
        ([0.0, 2.0, 0.0], [1.0, 0.5, 1.0], 1),
        ([1.0, 2.0, 0.0], [0.5, 0.5, 0.0], UNDECIDED),  # a may equal b, and then wins
        ([0.0, 2.0, 1.0], [0.0, 0.5, 0.5], 1),  # c may equal b, and then loses
        ([2.0, 1.0, 0.0], [0.5, 0.5, 0.0], 0),  # b may equal a, and then loses
        ([0.0, 1.0, 2.0], [0.0, 0.5, 0.5], UNDECIDED),  # b may equal c, and then wins
        ([2.0, 0.0, 2.0], [1.0, 0.5, 1.0], 0),  # a or c, but provably not b
        ([1.0, 1.0, 0.0], [0.5, 0.0, 0.0], UNDECIDED),
    ],
)
def test_an_interval_is_decided_only_if_no_tie_in_it_changes_the_winner(
    centers: list[float], radii: list[float], decision: int
) -> None:
    assert B.decide_exactly(exact([centers], [radii])).tolist() == [decision]


@pytest.mark.parametrize(
    ("values", "errors", "decision"),
    [
        ([0.0, 1.0, 0.0], [0.4, 0.4, 0.4], 1),
        ([0.0, 1.0, 0.0], [0.5, 0.5, 0.4], UNDECIDED),  # a may equal b
        ([0.0, 1.0, 0.0], [0.4, 0.5, 0.5], UNDECIDED),
        ([1.0, 0.0, 1.0], [0.1, 0.1, 0.1], 0),  # a or c, but provably not b
        ([1.0, 0.0, 0.0], [0.1, 0.1, 0.1], 0),
        ([1.0, 0.0, 0.0], [0.5, 0.5, 0.5], UNDECIDED),
        ([1.0, 1.0, 0.0], [0.0, 0.0, 0.0], UNDECIDED),  # ties need exact scores
        ([1.0, 1.0 + ULP, 0.0], [0.0, 0.0, 0.0], UNDECIDED),  # the difference is rounded
        ([1.0, 1.0 + 16 * ULP, 0.0], [0.0, 0.0, 0.0], 1),
        ([1.0 + ULP, 1.0, 0.0], [0.0, 0.0, 0.0], UNDECIDED),
        ([1.0 + 16 * ULP, 1.0, 0.0], [0.0, 0.0, 0.0], 0),
        ([0.0, 1.0, 0.0], [1 - 2.0**-50, 0.0, 0.0], UNDECIDED),  # exactly the rounding is left
        ([0.0, 1.0, 0.0], [1 - 2.0**-49, 0.0, 0.0], 1),
        ([1.0, 0.0, 0.0], [1 - 2.0**-50, 0.0, 0.0], UNDECIDED),
        ([1.0, 0.0, 0.0], [1 - 2.0**-49, 0.0, 0.0], 0),
        ([0.0, np.nan, 0.0], [0.0, 0.0, 0.0], UNDECIDED),
        ([0.0, 1.0, 0.0], [0.0, np.nan, 0.0], UNDECIDED),
    ],
)
def test_it_is_decided_only_by_margins_beyond_the_errors(
    values: list[float], errors: list[float], decision: int
) -> None:
    assert B.decide(enclosure([values], [errors])).tolist() == [decision]


@pytest.mark.parametrize("errors", [[np.inf, 0.0, 0.0], [np.inf, np.inf, np.inf]])
@pytest.mark.parametrize("chosen", ["a", "c"])
def test_an_unknown_score_leaves_the_class_undecided_without_a_warning(
    chosen: str, errors: list[float]
) -> None:
    scores = enclosure([[1.0, 0.0, 2.0]], [errors])
    assert OneVsRest(CLASSES, chosen).decide(scores).tolist() == [UNDECIDED]


def test_the_objective_leads_away_from_the_decision_of_the_reference() -> None:
    others, own = [[1, -1, 0], [0, -1, 1]], [[-1, 1, 0], [0, 1, -1]]
    cases = (
        (B.objective(exact([[0.0, 1.0, 0.0]])), others, False),
        (B.objective(exact([[1.0, 0.0, 0.0]])), own, True),
        (B.objective(exact([[0.0, 0.0, 0.0]], np.ones((1, 3)))), own, True),  # undecided
        (B.reaching(0), others, False),
        (B.reaching(1), own, True),
    )
    for objective, directions, least in cases:
        assert objective.directions.tolist() == directions
        assert (objective.least, objective.level) == (least, 0.0)


@pytest.mark.parametrize(
    ("pair", "gap"),
    [
        ([[1.0, 0.0, 0.0], [1.0, 4.0, 2.0]], 2.0),
        ([[0.0, 1.0, 0.0], [5.0, 4.0, 6.0]], 2.0),
        ([[1.0, 0.0, 0.0], [1.0, 4.0, 4.0]], 0.0),
    ],
)
def test_the_gap_is_the_margin_on_the_other_side(pair: list[list[float]], gap: float) -> None:
    assert B.gap(exact(pair)) == gap


def test_the_margin_is_that_of_the_chosen_class_over_the_best_other() -> None:
    scores = np.array([[1.0, 0.0, 9.0], [1.0, 4.0, 2.0]])
    assert B.margins((0, 1), scores).tolist() == [-9.0, 2.0]


def test_outputs_and_labels_are_compared_with_the_chosen_class() -> None:
    outputs = np.array([[0.0, 2.0, 2.0], [0.5, 0.1, 0.4]])
    for probabilities in (False, True):
        answers = B.answers_of_outputs(outputs, probabilities=probabilities)
        assert answers.tolist() == [True, False]
    classes = np.array([10, 20, 30])
    assert B.answers_of_labels(np.array([[30], [20]]), classes).tolist() == [False, True]
    assert B.answers(np.array([0, 1], dtype=np.int8)).tolist() == [False, True]
    assert B.replays(np.array([True, False]), (1, 0)) is True


def test_a_label_is_a_class_or_a_decision() -> None:
    names = ("not b", "b")
    assert [B.read_label(label, names) for label in ("a", "b", "c", "not b")] == [
        *(False, True),
        *(False, False),
    ]
    assert B.read_label("yes", ("no", "yes")) is True
    assert B.read_label("b", ("no", "yes")) is True
    with pytest.raises(DomainError, match=r"^got 'd'; expected one of 'a', 'b', 'c'$"):
        B.read_label("d", names)


def test_its_words() -> None:
    assert B.words(unit="euros", log_odds=True) == RuleWords(
        margin="margin of b",
        violation="For the worst counterparts, the margin of the other class is",
    )
    assert B.explanation(("x", "y"), unit="euros", log_odds=True) == (
        "The decision is whether the class with the largest score is 'b'."
    )
    assert B.describe(True, ("x", "y")) == "y"
