import re
from collections.abc import Callable

import numpy as np
import pytest

from feta import Argmax, OneVsRest, SchemaError
from feta.dyadic import Dyadic
from feta.errors import DomainError
from feta.rounding import SOURCE_FLOAT32
from feta.rule import UNDECIDED
from feta.rule.words import RuleWords
from feta.scorer.exact_scores import ExactScores
from feta.scorer.kernel import KernelRule
from feta.scorer.protocol import Side
from tests.rules import enclosure, exact

ABC = Argmax(("a", "b", "c"))
ULP = 2.0**-52  # from 1 to the next number


def many(n_classes: int) -> Argmax:
    return Argmax(tuple(f"c{index}" for index in range(n_classes)))


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: Argmax(()), "invalid classes: got (); expected two or more different classes"),
        (
            lambda: Argmax(("a",)),
            "invalid classes: got ('a',); expected two or more different classes",
        ),
        (
            lambda: Argmax(("a", "b", "a")),
            "invalid classes: got ('a', 'b', 'a'); expected two or more different classes",
        ),
        (lambda: many(128), "too many classes: got 128; expected at most 127"),
        (
            lambda: ABC.one_vs_rest("d"),
            "unknown class: got 'd'; expected one of 'a', 'b', 'c'",
        ),
    ],
)
def test_invalid_classes_are_rejected(make: Callable[[], object], message: str) -> None:
    with pytest.raises(SchemaError, match=f"^{re.escape(message)}$"):
        make()


def test_classes_may_be_a_list() -> None:
    rule = Argmax(["a", "b", "c"])  # type: ignore[arg-type]
    assert rule == ABC
    assert rule.classes == ("a", "b", "c")


def test_its_facts() -> None:
    assert (ABC.outputs, ABC.output_counts, ABC.n_classes) == (3, (3,), 3)
    assert (ABC.outcomes, ABC.classes) == (("a", "b", "c"), ("a", "b", "c"))
    assert (ABC.threshold, ABC.tolerance, ABC.favors) == (None, None, "above")
    assert (ABC.ties_to, ABC.two_sided, ABC.merges_classes) == ("first", False, False)
    assert ABC.kernel_rule == KernelRule("argmax", 3, 3, 0.0, ties_to_last=False)
    assert ABC.source_error(SOURCE_FLOAT32) == 2 * 8 * 2.0**-24 / 0.5
    assert Argmax(("a", "b")).n_classes == 2


@pytest.mark.parametrize("side", [None, "above", "below"])
def test_the_first_class_wins_ties_whatever_the_source_does(side: Side | None) -> None:
    assert ABC.resolved(side) is ABC


def test_it_has_a_view_of_each_class() -> None:
    assert ABC.one_vs_rest("b") == OneVsRest(("a", "b", "c"), "b")


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
def test_the_first_of_the_largest_scores_wins(scores: list[float], winner: int) -> None:
    assert ABC.decide_exactly(exact([scores])).tolist() == [winner]
    assert ABC.sides(exact([scores]), exact([[9.0, 0.0, 0.0]])).tolist() == [winner]


def test_exact_arithmetic_distinguishes_nearly_equal_classes() -> None:
    scores = Dyadic.of([[1.0, 1.0, 1.0]]) + Dyadic.of([[0.0, 2.0**-80, 0.0]])
    assert scores.floats().tolist() == [[1.0, 1.0, 1.0]]
    assert ABC.decide_exactly(ExactScores(scores)).tolist() == [1]


@pytest.mark.parametrize(
    ("centers", "radii", "winner"),
    [
        ([2.0, 1.0, 0.0], [0.5, 0.5, 0.0], 0),  # a ≥ 1.5 ≥ b, and a wins the tie
        ([1.0, 2.0, 0.0], [0.5, 0.5, 0.0], UNDECIDED),  # a may equal b, and then wins
        ([1.0, 2.0, 0.0], [0.5, 0.25, 0.0], 1),
        ([0.0, 2.0, 1.0], [0.0, 0.5, 0.5], 1),
        ([0.0, 1.0, 2.0], [0.0, 0.5, 0.5], UNDECIDED),
        ([0.0, 1.0, 2.0], [0.5, 0.25, 0.5], 2),
        ([1.0, 1.0, 1.0], [0.0, 0.0, 0.0], 0),
        ([0.0, 0.0, 0.0], [1.0, 1.0, 1.0], UNDECIDED),
    ],
)
def test_a_class_wins_an_interval_only_if_it_wins_all_ties_in_it(
    centers: list[float], radii: list[float], winner: int
) -> None:
    assert ABC.decide_exactly(exact([centers], [radii])).tolist() == [winner]


@pytest.mark.parametrize(
    ("values", "errors", "winner"),
    [
        ([0.0, 1.0, 0.0], [0.4, 0.4, 0.4], 1),
        ([1.0, 0.0, 0.0], [0.4, 0.4, 0.4], 0),
        ([0.0, 1.0, 0.0], [0.5, 0.5, 0.4], UNDECIDED),  # a may equal b
        ([0.0, 1.0, 0.0], [0.0, 1.0, 0.0], UNDECIDED),
        ([0.0, 1.0, 0.0], [1.0, 0.0, 0.0], UNDECIDED),
        ([0.0, 1.0, 0.0], [0.99, 0.0, 0.99], 1),
        ([1.0, 0.0, 1.0], [0.1, 0.1, 0.1], UNDECIDED),
        ([1.0, 1.0, 0.0], [0.0, 0.0, 0.0], UNDECIDED),  # ties need exact scores
        ([1.0, 1.0 + ULP, 0.0], [0.0, 0.0, 0.0], UNDECIDED),  # the difference is rounded
        ([1.0, 1.0 + 16 * ULP, 0.0], [0.0, 0.0, 0.0], 1),
        ([2.0**20, 2.0**20 * (1 + ULP), 0.0], [0.0, 0.0, 0.0], UNDECIDED),
        ([0.0, 1.0, 0.0], [1 - 2.0**-50, 0.0, 0.0], UNDECIDED),  # exactly the rounding is left
        ([0.0, 1.0, 0.0], [1 - 2.0**-49, 0.0, 0.0], 1),
        ([0.0, np.nan, 0.0], [0.0, 0.0, 0.0], UNDECIDED),
        ([0.0, 1.0, 0.0], [0.0, np.nan, 0.0], UNDECIDED),
    ],
)
def test_a_class_is_decided_only_by_a_margin_beyond_the_errors(
    values: list[float], errors: list[float], winner: int
) -> None:
    assert ABC.decide(enclosure([values], [errors])).tolist() == [winner]


@pytest.mark.parametrize("errors", [[np.inf, 0.0, 0.0], [np.inf, np.inf, np.inf]])
def test_an_unknown_score_leaves_the_class_undecided_without_a_warning(
    errors: list[float],
) -> None:
    assert ABC.decide(enclosure([[1.0, 0.0, 2.0]], [errors])).tolist() == [UNDECIDED]


def test_the_maximum_number_of_classes_fits_int8() -> None:
    """Class 128 would wrap around to −128, and 255 to −1, which means undecided."""
    largest = many(127)
    scores = np.arange(127.0)[None, :]
    assert largest.decide_exactly(exact(scores)).tolist() == [126]
    assert largest.decide(enclosure(scores, 0.0)).tolist() == [126]


def test_the_objective_is_the_largest_margin_over_the_class_of_the_reference() -> None:
    objective = ABC.objective(exact([[0.0, 1.0, 0.0]]))
    assert objective.directions.tolist() == [[1, -1, 0], [0, -1, 1]]
    assert (objective.least, objective.level) == (False, 0.0)


def test_an_undecided_reference_has_the_objective_of_the_first_class() -> None:
    objective = ABC.objective(exact([[0.0, 1.0, 0.0]], [[1.0, 1.0, 1.0]]))
    assert objective.directions.tolist() == [[-1, 1, 0], [-1, 0, 1]]


def test_a_class_is_reached_by_its_smallest_margin() -> None:
    objective = ABC.reaching(1)
    assert objective.directions.tolist() == [[-1, 1, 0], [0, 1, -1]]
    assert (objective.least, objective.level) == (True, 0.0)


def test_decisions_are_indices_of_classes() -> None:
    assert ABC.answers(np.array([2, 0], dtype=np.int8)).tolist() == [2, 0]
    assert ABC.describe(2, ("x", "y", "z")) == "z"
    assert ABC.side_names(("x", "y", "z")) == ("x", "y", "z")


def test_the_gap_is_the_margin_of_the_other_class_at_the_counterpart() -> None:
    assert ABC.gap(exact([[1.0, 0.0, 0.0], [1.0, 4.0, 2.0]])) == 3.0
    assert ABC.gap(exact([[0.0, 0.0, 1.0], [1.0, 0.5, 0.25]])) == 0.75


def test_the_margins_of_a_pair_compare_its_two_classes() -> None:
    scores = np.array([[1.0, 0.0, 9.0], [1.0, 4.0, 2.0]])
    assert ABC.margins((0, 1), scores).tolist() == [-1.0, 3.0]
    assert ABC.margins((2, 1), scores).tolist() == [-9.0, 2.0]


def test_the_largest_output_decides_and_probabilities_have_the_same_order() -> None:
    outputs = np.array([[1.0, 2.0, 2.0], [0.5, 0.1, 0.4]])
    for probabilities in (False, True):
        answers = ABC.answers_of_outputs(outputs, probabilities=probabilities)
        assert answers.tolist() == [1, 0]


def test_labels_become_indices() -> None:
    classes = np.array([10, 20, 30])
    assert ABC.answers_of_labels(np.array([30, 10, 20]), classes).tolist() == [2, 0, 1]
    assert ABC.answers_of_labels(np.array([[30], [10]]), classes).tolist() == [2, 0]


def test_a_pair_is_replayed_if_both_classes_are_the_same() -> None:
    assert ABC.replays(np.array([2, 1]), (2, 1)) is True
    assert ABC.replays(np.array([1, 2]), (2, 1)) is False


def test_a_label_is_the_name_of_a_class() -> None:
    assert [ABC.read_label(label, ("x", "y", "z")) for label in "abc"] == [0, 1, 2]
    with pytest.raises(DomainError, match=r"^got 'x'; expected one of 'a', 'b', 'c'$"):
        ABC.read_label("x", ("x", "y", "z"))


def test_its_words() -> None:
    assert ABC.words(unit="euros", log_odds=True) == RuleWords(
        counterexample="a counterpart with a different class",
        same_outcome="the same class",
        margin="margin of the other class",
        violation="For the worst counterparts, the margin of the other class is",
    )


def test_the_explanation_lists_up_to_twelve_classes() -> None:
    assert ABC.explanation(("x", "y", "z"), unit="euros", log_odds=True) == (
        "The decision is the class with the largest score, of 3: a, b, c; on a tie, the first one."
    )
    text = many(13).explanation((), unit="", log_odds=False)
    assert "of 13: c0, " in text
    assert text.endswith(", c11; on a tie, the first one.")
