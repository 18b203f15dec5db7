import re
from collections.abc import Callable
from fractions import Fraction
from typing import Literal

import numpy as np
import pytest

from feta import SchemaError, Threshold
from feta.dyadic import Dyadic
from feta.errors import DomainError
from feta.rounding import SOURCE_FLOAT32, SOURCE_FLOAT64
from feta.rule import UNDECIDED, probability_of
from feta.rule.words import RuleWords
from feta.scorer.exact_scores import ExactScores
from feta.scorer.kernel import KernelRule
from feta.scorer.protocol import Side
from tests.rules import enclosure, exact

Equality = Literal["favorable", "unfavorable"]
NAMES = ("no", "yes")


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: Threshold(np.nan), "invalid threshold: got nan; expected a finite number"),
        (lambda: Threshold(-np.inf), "invalid threshold: got -inf; expected a finite number"),
        (
            lambda: Threshold("0.5"),  # type: ignore[arg-type]
            "invalid threshold: got '0.5'; expected a finite number",
        ),
        (
            lambda: Threshold(None),  # type: ignore[arg-type]
            "invalid threshold: got None; expected a finite number",
        ),
        (
            lambda: Threshold(10**400),
            f"invalid threshold: got 1{'0' * 400}; expected a finite number",
        ),
        (
            lambda: Threshold(0.0, "abov"),  # type: ignore[arg-type]
            "invalid favors: got 'abov'; expected one of 'above', 'below'; did you mean 'above'?",
        ),
        (
            lambda: Threshold(0.0, equality="favourable"),  # type: ignore[arg-type]
            "invalid equality: got 'favourable'; expected one of 'favorable', 'unfavorable', None; "
            "did you mean 'favorable'?",
        ),
        (
            lambda: Threshold.at_probability(0.0),
            "invalid probability threshold: got 0.0; expected a number between 0 and 1; specify a "
            "score instead",
        ),
        (
            lambda: Threshold.at_probability(1.0),
            "invalid probability threshold: got 1.0; expected a number between 0 and 1; specify a "
            "score instead",
        ),
        (
            lambda: Threshold.at_probability(-0.5),
            "invalid probability threshold: got -0.5; expected a number between 0 and 1; specify a "
            "score instead",
        ),
        (
            lambda: Threshold.at_probability(np.nan),
            "invalid probability threshold: got nan; expected a number between 0 and 1; specify a "
            "score instead",
        ),
        (
            lambda: Threshold(0.0).one_vs_rest("a"),
            "invalid rule for one class against the rest: got Threshold(value=0.0, "
            "favors='above', equality=None); expected an Argmax",
        ),
    ],
)
def test_an_invalid_threshold_is_rejected(make: Callable[[], object], message: str) -> None:
    with pytest.raises(SchemaError, match=f"^{re.escape(message)}$"):
        make()


def test_the_value_is_a_float_without_a_negative_zero() -> None:
    assert repr(Threshold(-0.0)) == repr(Threshold(0)) == repr(Threshold(np.float32(-0.0)))  # type: ignore[arg-type]
    assert repr(Threshold(2)) == "Threshold(value=2.0, favors='above', equality=None)"


@pytest.mark.parametrize(
    ("probability", "score"),
    [
        (0.5, 0.0),
        (np.nextafter(0.5, 1), 2.0**-51),
        (0.1, -2.197224577336219),
        (5e-324, -744.4400719213812),
        (np.nextafter(1.0, 0), 36.7368005696771),
    ],
)
def test_a_probability_becomes_the_nearest_score(probability: float, score: float) -> None:
    assert Threshold.at_probability(probability) == Threshold(score)
    assert Threshold.at_probability(probability, "below") == Threshold(score, "below")


@pytest.mark.parametrize(
    ("score", "probability"),
    [
        (0.0, 0.5),
        (np.log(3.0), 0.75),
        (-np.log(3.0), 0.25),
        (1e300, 1.0),
        (-1e300, 9.85967654375977e-305),
    ],
)
def test_a_score_becomes_a_probability(score: float, probability: float) -> None:
    assert probability_of(score) == pytest.approx(probability, rel=1e-12)
    assert isinstance(probability_of(score), float)


def test_its_facts() -> None:
    rule = Threshold(0.25, "below")
    assert (rule.outputs, rule.output_counts, rule.n_classes) == (1, (1, 2), 2)
    assert (rule.outcomes, rule.classes) == (("unfavorable", "favorable"), ())
    assert (rule.threshold, rule.tolerance, rule.favors) == (0.25, None, "below")
    assert (rule.ties_to, rule.two_sided, rule.merges_classes) == ("last", True, False)


@pytest.mark.parametrize("favors", ["above", "below"])
def test_the_kernel_compares_with_the_value(favors: Side) -> None:
    kernel = KernelRule("threshold", 1, 2, 0.25, above=favors == "above", ties_to_last=True)
    assert Threshold(0.25, favors).kernel_rule == kernel


def test_a_sigmoid_is_less_exact_at_a_higher_threshold() -> None:
    assert Threshold(0.0).source_error(SOURCE_FLOAT32) == 2 * 8 * 2.0**-24 / 0.5
    assert Threshold(0.0).source_error(SOURCE_FLOAT64) == 2 * 8 * 2.0**-53 / 0.5
    high = Threshold(3.0).source_error(SOURCE_FLOAT32)
    assert high == pytest.approx(2 * 8 * 2.0**-24 * (1 + np.exp(3.0)))
    assert Threshold(60.0).source_error(SOURCE_FLOAT32) == np.inf


@pytest.mark.parametrize(("favors", "favorable"), [("above", [0, 1]), ("below", [1, 0])])
def test_only_a_score_farther_than_its_error_is_decided(favors: Side, favorable: list[int]) -> None:
    values = [[1.0], [3.0], [1.0], [3.0], [2.0], [np.nan], [9.0], [5.0]]
    errors = [[0.9], [0.9], [1.0], [1.0], [0.0], [0.0], [np.inf], [np.nan]]
    decided = Threshold(2.0, favors).decide(enclosure(values, errors))
    assert decided.tolist() == [*favorable, *[UNDECIDED] * 6]
    near = enclosure([[1.75], [2.25]], 2.0**-3)
    assert Threshold(2.0, favors).decide(near).tolist() == favorable
    assert decided.dtype == np.int8


@pytest.mark.parametrize("equality", ["favorable", "unfavorable"])
@pytest.mark.parametrize("favors", ["above", "below"])
@pytest.mark.parametrize("value", [0.0, 0.1, -3e-310])
def test_exact_scores_are_decided_to_the_last_ulp(
    value: float, favors: Side, equality: Equality
) -> None:
    scores = exact([[np.nextafter(value, -np.inf)], [value], [np.nextafter(value, np.inf)]])
    expected = [favors == "below", equality == "favorable", favors == "above"]
    rule = Threshold(value, favors, equality)
    assert rule.decide_exactly(scores).tolist() == expected
    assert rule.sides(scores, scores[:1]).tolist() == expected


def test_a_score_between_two_floats_is_not_a_tie() -> None:
    half_ulp_above = Dyadic.of([[1.0]]) + Dyadic.of([[2.0**-80]])
    rule = Threshold(1.0, "below", "favorable")
    assert half_ulp_above.fractions()[0] > Fraction(1)
    assert rule.decide_exactly(ExactScores(half_ulp_above)).tolist() == [0]


@pytest.mark.parametrize(
    ("low", "high", "favorable", "unfavorable"),
    [
        (-1.0, -0.5, 0, 0),
        (-1.0, 0.0, UNDECIDED, 0),  # only the end is a tie
        (-1.0, 1.0, UNDECIDED, UNDECIDED),
        (0.0, 0.0, 1, 0),
        (0.0, 1.0, 1, UNDECIDED),
        (0.5, 1.0, 1, 1),
    ],
)
def test_an_interval_up_to_the_threshold_depends_on_who_wins_ties(
    low: float, high: float, favorable: int, unfavorable: int
) -> None:
    interval = exact([[(low + high) / 2]], [[(high - low) / 2]])
    mirrored = exact([[-(low + high) / 2]], [[(high - low) / 2]])
    for equality, expected in (("favorable", favorable), ("unfavorable", unfavorable)):
        assert Threshold(0.0, "above", equality).decide_exactly(interval).tolist() == [expected]  # type: ignore[arg-type]
        assert Threshold(0.0, "below", equality).decide_exactly(mirrored).tolist() == [expected]  # type: ignore[arg-type]


def test_an_unresolved_tie_is_favorable() -> None:
    tie = np.array([[2.0]])
    for rule in (Threshold(2.0), Threshold(2.0, "below")):
        assert rule.decide_exactly(exact(tie)).tolist() == [1]
        assert rule.answers_of_outputs(tie, probabilities=False).tolist() == [True]
        assert rule.explanation(NAMES, unit="", log_odds=False).startswith("A score at or ")


@pytest.mark.parametrize(
    ("rule", "side", "equality"),
    [
        (Threshold(0.0), None, "favorable"),
        (Threshold(0.0), "above", "favorable"),
        (Threshold(0.0), "below", "unfavorable"),
        (Threshold(0.0, "below"), "below", "favorable"),
        (Threshold(0.0, "below"), "above", "unfavorable"),
        (Threshold(0.0, equality="unfavorable"), "above", "unfavorable"),
        (Threshold(0.0, equality="favorable"), "below", "favorable"),
    ],
)
def test_a_tie_follows_the_source_by_default(
    rule: Threshold, side: Side | None, equality: Equality
) -> None:
    resolved = rule.resolved(side)
    assert resolved == Threshold(0.0, rule.favors, equality)


@pytest.mark.parametrize(
    ("score", "favors", "direction"),
    [(1.0, "above", -1.0), (-1.0, "above", 1.0), (-1.0, "below", 1.0), (1.0, "below", -1.0)],
)
def test_the_objective_points_toward_the_other_decision(
    score: float, favors: Side, direction: float
) -> None:
    objective = Threshold(0.5, favors).objective(exact([[score]]))
    assert objective.directions.tolist() == [[direction]]
    assert objective.level == 0.5 * direction
    assert objective.offsets.fractions() == [0]
    assert not objective.least


def test_an_undecided_reference_has_the_objective_of_the_favorable_decision() -> None:
    objective = Threshold(0.5).objective(exact([[0.5]], [[1.0]]))
    assert (objective.directions.tolist(), objective.level) == ([[1.0]], 0.5)


def test_decisions_become_booleans() -> None:
    answers = Threshold(0.0).answers(np.array([0, 1], dtype=np.int8))
    assert answers.tolist() == [False, True]
    assert answers.dtype == np.bool_


@pytest.mark.parametrize("pair", [[[1.0], [-2.5]], [[-2.5], [1.0]]])
def test_the_gap_is_the_distance_of_the_scores(pair: list[list[float]]) -> None:
    assert Threshold(0.0).gap(exact(pair)) == 3.5


def test_the_margins_of_a_pair_are_its_scores() -> None:
    assert Threshold(0.0).margins((1, 0), np.array([1.0, -2.5])).tolist() == [1.0, -2.5]


@pytest.mark.parametrize(
    ("errors", "differs"), [([0.5, 0.5], True), ([1.0, 0.5], False), ([0.5, 1.0], False)]
)
def test_a_difference_in_the_runtime_needs_both_decisions_beyond_their_errors(
    errors: list[float], *, differs: bool
) -> None:
    scores = enclosure([[-1.0], [1.0]], np.array(errors)[:, None])
    flags = Threshold(0.0).differs_in_runtime(exact([[-1.0]]), scores)
    assert flags.tolist() == [False, differs]


@pytest.mark.parametrize(
    ("rule", "expected"),
    [
        (Threshold(0.5, equality="favorable"), [False, True, True]),
        (Threshold(0.5, equality="unfavorable"), [False, False, True]),
        (Threshold(0.5, "below", "favorable"), [True, True, False]),
        (Threshold(0.5, "below", "unfavorable"), [True, False, False]),
    ],
)
def test_one_output_or_the_difference_of_two_decides(rule: Threshold, expected: list[bool]) -> None:
    one = np.array([[0.25], [0.5], [0.75]])
    two = np.hstack([np.full((3, 1), 8.0), one + 8.0])
    assert rule.answers_of_outputs(one, probabilities=False).tolist() == expected
    assert rule.answers_of_outputs(two, probabilities=False).tolist() == expected


def test_logarithms_of_probabilities_decide_by_their_difference() -> None:
    logs = np.log([[0.4, 0.6], [0.7, 0.3], [0.5, 0.5]])
    rule = Threshold(0.0, equality="favorable")
    assert rule.answers_of_outputs(logs, probabilities=False).tolist() == [True, False, True]


@pytest.mark.parametrize("favors", ["above", "below"])
def test_the_last_probability_is_compared_with_that_of_the_threshold(favors: Side) -> None:
    rule = Threshold(float(np.log(3.0)), favors, "unfavorable")  # the probability 0.75
    last = np.array([[0.74], [0.76]])
    expected = [favors == "below", favors == "above"]
    for outputs in (last, np.hstack([1 - last, last])):
        assert rule.answers_of_outputs(outputs, probabilities=True).tolist() == expected


def test_the_second_class_has_the_higher_scores() -> None:
    labels, classes = np.array([["bad"], ["good"], ["bad"]]), np.array(["bad", "good"])
    above, below = Threshold(0.0), Threshold(0.0, "below")
    assert above.answers_of_labels(labels, classes).tolist() == [False, True, False]
    assert below.answers_of_labels(labels, classes).tolist() == [True, False, True]


def test_a_pair_is_replayed_if_both_decisions_are_the_same() -> None:
    rule = Threshold(0.0)
    assert rule.replays(np.array([True, False]), (1, 0)) is True
    assert rule.replays(np.array([False, True]), (1, 0)) is False
    assert rule.replays(np.array([True, True]), (1, 0)) is False


def test_an_outcome_has_a_name() -> None:
    assert [Threshold(0.0).describe(outcome, NAMES) for outcome in (False, True)] == ["no", "yes"]
    assert Threshold(0.0).side_names(NAMES) == NAMES


def test_a_label_is_a_name_or_a_number() -> None:
    rule = Threshold(0.0)
    assert [rule.read_label(label, NAMES) for label in ("yes", "NO", 1, 0.0)] == [
        *(True, False),
        *(True, False),
    ]
    with pytest.raises(DomainError, match=r"^got 'maybe'; expected 'yes', 'no', 1 or 0$"):
        rule.read_label("maybe", NAMES)


def test_scores_may_be_log_odds() -> None:
    assert Threshold(0.0).words(unit="euros", log_odds=False) == RuleWords(likely=1)
    assert Threshold(0.0, "below").words(unit="euros", log_odds=False) == RuleWords(likely=0)
    assert Threshold(0.0).words(unit="euros", log_odds=True) == RuleWords(
        likely=1,
        margin="score (log-odds)",
        violation="The scores (log-odds) of the worst pairs differ by",
    )


@pytest.mark.parametrize(
    ("rule", "text"),
    [
        (
            Threshold(0.5, equality="favorable"),
            "A score at or above 0.5 gives the decision 'yes', a score below it gives 'no'.",
        ),
        (
            Threshold(0.5, equality="unfavorable"),
            "A score above 0.5 gives the decision 'yes', a score at or below it gives 'no'.",
        ),
        (
            Threshold(1 / 3, "below", "favorable"),
            "A score at or below 0.333333 gives the decision 'yes', a score above it gives 'no'.",
        ),
        (
            Threshold(0.5, "below", "unfavorable"),
            "A score below 0.5 gives the decision 'yes', a score at or above it gives 'no'.",
        ),
    ],
)
def test_the_explanation_names_the_sides_and_who_wins_ties(rule: Threshold, text: str) -> None:
    assert rule.explanation(NAMES, unit="euros", log_odds=False) == text


def test_the_explanation_of_log_odds_names_the_probability() -> None:
    rule = Threshold(float(np.log(3.0)), equality="favorable")
    assert rule.explanation(NAMES, unit="", log_odds=True) == (
        "A score at or above 1.09861 gives the decision 'yes', a score below it gives 'no'. Scores "
        "are log-odds, before the model's last sigmoid: 1.09861 is the probability 0.75."
    )
