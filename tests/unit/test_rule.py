from collections.abc import Callable
from fractions import Fraction
from typing import Literal

import numpy as np
import pytest

from feta import Argmax, CertificateError, OneVsRest, SchemaError, Threshold, Tolerance
from feta.dyadic import Dyadic
from feta.rounding import SOURCE_FLOAT32
from feta.rule import UNDECIDED, Band, Comparator, Rule, differs_in_runtime, separates
from feta.scorer.protocol import Enclosure, Side

Equality = Literal["favorable", "unfavorable"]


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: Threshold(np.nan), "invalid threshold: got nan; expected a finite number"),
        (lambda: Threshold(-np.inf), "invalid threshold: got -inf; expected a finite number"),
        (
            lambda: Threshold(0.0, "abov"),  # type: ignore[arg-type]
            r"invalid favors: got 'abov'; expected one of 'above', 'below'; did you mean 'above'\?",
        ),
        (
            lambda: Threshold(0.0, equality="favourable"),  # type: ignore[arg-type]
            r"invalid equality: got 'favourable'; expected one of .*; did you mean 'favorable'\?",
        ),
        (
            lambda: Threshold.at_probability(0.0),
            r"got 0\.0; expected a number between 0 and 1; specify a score",
        ),
        (lambda: Threshold.at_probability(1.0), r"got 1\.0; expected a number between 0 and 1"),
        (lambda: Threshold.at_probability(np.nan), "got nan; expected a number between 0 and 1"),
        (lambda: Threshold("0.5"), "invalid threshold: got '0.5'; expected a finite number"),  # type: ignore[arg-type]
        (lambda: Threshold(None), "invalid threshold: got None; expected a finite number"),  # type: ignore[arg-type]
        (lambda: Argmax(()), r"invalid classes: got \(\); expected two or more different classes"),
        (lambda: Argmax(("a",)), r"invalid classes: got \('a',\)"),
        (
            lambda: Argmax(("a", "b", "a")),
            "invalid classes: got .*; expected two or more different classes",
        ),
        (
            lambda: OneVsRest(("a",), "a"),
            "invalid classes: got .*; expected two or more different classes",
        ),
        (
            lambda: OneVsRest(("low", "high"), "hihg"),
            r"unknown class: got 'hihg'; expected one of 'low', 'high'; did you mean 'high'\?",
        ),
        (
            lambda: Tolerance(-1e-300),
            "invalid tolerance: got -1e-300; expected a finite number, 0 or more",
        ),
        (
            lambda: Tolerance(np.inf),
            "invalid tolerance: got inf; expected a finite number, 0 or more",
        ),
        (
            lambda: Tolerance(np.nan),
            "invalid tolerance: got nan; expected a finite number, 0 or more",
        ),
    ],
)
def test_an_invalid_rule_is_rejected(make: Callable[[], object], message: str) -> None:
    with pytest.raises(SchemaError, match=message):
        make()


def test_negative_zero_is_the_threshold_zero() -> None:
    assert repr(Threshold(-0.0)) == repr(Threshold(0))


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
    assert Threshold.at_probability(probability, "below").favors == "below"


@pytest.mark.parametrize(("favors", "favorable"), [("above", [0, 1]), ("below", [1, 0])])
def test_only_a_score_farther_than_its_error_is_decided(favors: Side, favorable: list[int]) -> None:
    values = np.array([[1.0], [3.0], [1.0], [3.0], [2.0], [np.nan], [9.0], [5.0]])
    errors = np.array([[0.9], [0.9], [1.0], [1.0], [0.0], [0.0], [np.inf], [np.nan]])
    decided = Threshold(2.0, favors).decide(Enclosure(values, errors)).tolist()
    assert decided == [*favorable, UNDECIDED, UNDECIDED, UNDECIDED, UNDECIDED, UNDECIDED, UNDECIDED]


@pytest.mark.parametrize("equality", ["favorable", "unfavorable"])
@pytest.mark.parametrize("favors", ["above", "below"])
@pytest.mark.parametrize("value", [0.0, 0.1, -3e-310])
def test_exact_scores_are_decided_to_the_last_ulp(
    value: float, favors: Side, equality: Equality
) -> None:
    scores = [[np.nextafter(value, -np.inf)], [value], [np.nextafter(value, np.inf)]]
    decided = Threshold(value, favors, equality).decide_exactly(Dyadic.of(scores))
    assert decided.tolist() == [favors == "below", equality == "favorable", favors == "above"]


def test_a_score_between_two_floats_is_not_a_tie() -> None:
    half_ulp_above = Dyadic.of([[1.0]]) + Dyadic.of([[2.0**-80]])
    rule = Threshold(1.0, "below", "favorable")
    assert half_ulp_above.fractions()[0] > Fraction(1)
    assert rule.decide_exactly(half_ulp_above).tolist() == [0]


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
    assert rule.resolved(side).equality == equality


@pytest.mark.parametrize(
    ("score", "favors", "direction"),
    [(1.0, "above", -1.0), (-1.0, "above", 1.0), (-1.0, "below", 1.0), (1.0, "below", -1.0)],
)
def test_the_direction_points_toward_the_other_decision(
    score: float, favors: Side, direction: float
) -> None:
    objective = Threshold(0.0, favors).objective(Dyadic.of([[score]]))
    assert objective.directions.tolist() == [[direction]]


def test_a_threshold_reads_one_score_and_makes_two_decisions() -> None:
    rule = Threshold(0.0)
    assert (rule.outputs, rule.n_classes) == (1, 2)
    assert rule.outcomes == ("unfavorable", "favorable")
    assert 0 < rule.source_error(SOURCE_FLOAT32) < 1e-5


ABC = Argmax(("a", "b", "c"))
ULP = 2.0**-52  # from 1 to the next number


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
    exact = Dyadic.of([scores])
    assert ABC.decide_exactly(exact).tolist() == [winner]
    for index, chosen in enumerate(ABC.classes):
        one = OneVsRest(ABC.classes, chosen)
        assert one.decide_exactly(exact).tolist() == [index == winner]


def test_exact_arithmetic_distinguishes_nearly_equal_classes() -> None:
    scores = Dyadic.of([[1.0, 1.0, 1.0]]) + Dyadic.of([[0.0, 2.0**-80, 0.0]])
    assert scores.floats().tolist() == [[1.0, 1.0, 1.0]]
    assert ABC.decide_exactly(scores).tolist() == [1]


@pytest.mark.parametrize(
    ("values", "errors", "winner", "chosen"),
    [
        ([0.0, 1.0, 0.0], [0.4, 0.4, 0.4], 1, 1),
        ([0.0, 1.0, 0.0], [0.5, 0.5, 0.4], UNDECIDED, UNDECIDED),  # a may equal b
        ([1.0, 0.0, 1.0], [0.1, 0.1, 0.1], UNDECIDED, 0),  # a or c, but provably not b
        ([1.0, 1.0, 0.0], [0.0, 0.0, 0.0], UNDECIDED, UNDECIDED),  # ties need exact scores
        ([0.0, np.nan, 0.0], [0.0, 0.0, 0.0], UNDECIDED, UNDECIDED),
        ([0.0, 1.0, 0.0], [0.0, np.nan, 0.0], UNDECIDED, UNDECIDED),
    ],
)
def test_a_class_is_decided_only_by_a_margin_beyond_the_errors(
    values: list[float], errors: list[float], winner: int, chosen: int
) -> None:
    scores = Enclosure(np.array([values]), np.array([errors]))
    assert ABC.decide(scores).tolist() == [winner]
    assert OneVsRest(ABC.classes, "b").decide(scores).tolist() == [chosen]


@pytest.mark.parametrize("errors", [[np.inf, 0.0, 0.0], [np.inf, np.inf, np.inf]])
@pytest.mark.parametrize("rule", [ABC, OneVsRest(ABC.classes, "a"), OneVsRest(ABC.classes, "c")])
def test_an_unknown_score_leaves_the_class_undecided_without_a_warning(
    rule: Argmax | OneVsRest, errors: list[float]
) -> None:
    scores = Enclosure(np.array([[1.0, 0.0, 2.0]]), np.array([errors]))
    assert rule.decide(scores).tolist() == [UNDECIDED]


def test_the_maximum_number_of_classes_fits_int8() -> None:
    """Class 128 would wrap around to −128, and 255 to −1, which means undecided."""
    largest = Argmax(tuple(f"c{n}" for n in range(127)))
    assert largest.decide_exactly(Dyadic.of(np.arange(127.0)[None, :])).tolist() == [126]
    with pytest.raises(SchemaError, match="classes"):
        Argmax(tuple(f"c{n}" for n in range(200)))


@pytest.mark.parametrize(
    ("rule", "outputs", "outcomes", "ties_to"),
    [
        (Threshold(0.0), 1, ("unfavorable", "favorable"), "last"),
        (ABC, 3, ("a", "b", "c"), "first"),
        (OneVsRest(ABC.classes, "b"), 3, ("not b", "b"), "last"),
    ],
)
def test_a_rule_states_its_scores_and_decisions(
    rule: Threshold | Argmax | OneVsRest, outputs: int, outcomes: tuple[str, ...], ties_to: str
) -> None:
    assert rule.outputs == outputs
    assert rule.outcomes == outcomes
    assert rule.n_classes == len(outcomes)
    assert rule.ties_to == ties_to
    assert 0 < rule.source_error(SOURCE_FLOAT32) < 1e-5


def test_a_tolerance_reads_one_score_and_makes_no_decisions() -> None:
    rule = Tolerance(0.5)
    assert (rule.outputs, rule.n_classes, rule.outcomes) == (1, 0, ())
    assert rule.source_error(SOURCE_FLOAT32) == 0.0
    assert repr(Tolerance(-0.0)) == repr(Tolerance(0))


@pytest.mark.parametrize("side", [None, "above", "below"])
@pytest.mark.parametrize("rule", [ABC, OneVsRest(ABC.classes, "b"), Tolerance(1.0)])
def test_only_a_threshold_depends_on_the_tie_side_of_the_source(
    rule: Rule, side: Side | None
) -> None:
    assert rule.resolved(side) is rule


def test_classes_may_be_a_list() -> None:
    assert Argmax(["a", "b", "c"]) == ABC  # type: ignore[arg-type]
    assert OneVsRest(["a", "b", "c"], "c").index == 2  # type: ignore[arg-type]


@pytest.mark.parametrize("reference", [0.0, 3.0, -0.1, 1e300])
@pytest.mark.parametrize("epsilon", [0.0, 0.1, 2.0])
def test_a_band_contains_scores_up_to_exactly_half_of_epsilon_away(
    reference: float, epsilon: float
) -> None:
    comparator = Tolerance(2 * epsilon).comparator(Dyadic.of([[reference]]))
    center, radius = Dyadic.of([[reference]]), Dyadic.of([[epsilon]])
    step = Dyadic.of([[5e-324]])
    for edge, beyond in ((center + radius, step), (center - radius, Dyadic.of([[-5e-324]]))):
        assert comparator.decide_exactly(edge).tolist() == [0]
        assert comparator.decide_exactly(edge + beyond).tolist() == [1]
        assert comparator.decide_exactly(edge - beyond).tolist() == [0 if epsilon else 1]


@pytest.mark.parametrize(
    ("score", "differs"), [(2.0, 0), (2.0 + 2 * ULP, 1), (0.0, 0), (-ULP, 1), (1.0, 0)]
)
def test_a_tolerance_is_exact_to_the_last_ulp_on_both_sides(score: float, differs: int) -> None:
    comparator = Tolerance(2.0).comparator(Dyadic.of([[1.0]]))
    assert comparator.decide_exactly(Dyadic.of([[score]])).tolist() == [differs]


def test_a_distance_within_its_error_of_epsilon_is_undecided() -> None:
    comparator = Tolerance(2.0).comparator(Dyadic.of([[3.0]]))
    values = np.array([[3.0], [4.5], [1.5], [4.5], [4.0], [2.0], [np.nan], [9.0]])
    errors = np.array([[0.9], [0.4], [0.4], [0.5], [0.0], [0.0], [0.0], [np.inf]])
    assert comparator.decide(Enclosure(values, errors)).tolist() == [
        *(0, 1, 1),
        *(UNDECIDED, UNDECIDED, UNDECIDED, UNDECIDED, UNDECIDED),
    ]


def test_the_center_of_a_band_is_exactly_the_middle_of_the_scores() -> None:
    """The middle of 0.1 and 0.75 is not a float64."""
    band = Tolerance(0.5).comparator(Dyadic.of([[0.75], [0.1], [0.3]]))
    assert band.center == (Fraction(0.1) + Fraction(0.75)) / 2
    middle = Tolerance(0.5).comparator(Dyadic.of([[0.75], [0.25], [0.3]]))
    edges = Dyadic.of([[0.25], [0.75], [0.25 - ULP], [0.75 + ULP]])
    for band in (middle, Band.at(0.5, middle.center)):
        assert band.center == Fraction(1, 2)
        assert band.decide_exactly(edges).tolist() == [0, 0, 1, 1]


def test_the_center_of_a_band_is_an_integer_times_a_power_of_two() -> None:
    assert Band.at(1.0, Fraction(-7)).center == -7
    with pytest.raises(CertificateError, match=r"^invalid center of a band: got 1/3; expected"):
        Band.at(1.0, Fraction(1, 3))


@pytest.mark.parametrize("epsilon", [5e-324, 2.0**-1040, 0.0])
def test_a_tolerance_that_cannot_be_halved_proves_nothing_by_bounds(epsilon: float) -> None:
    band = Tolerance(epsilon).comparator(Dyadic.of([[0.0]]))
    assert band.half == 0.0
    assert band.decide(Enclosure(np.zeros((1, 1)), np.zeros((1, 1)))).tolist() == [UNDECIDED]
    assert band.decide_exactly(Dyadic.of([[0.0]])).tolist() == [0]


@pytest.mark.parametrize(("high", "differs"), [(1.5, False), (1.5 + ULP, True), (-0.5, False)])
def test_two_scores_that_differ_by_exactly_epsilon_agree(high: float, *, differs: bool) -> None:
    for pair in ([[0.5], [high]], [[high], [0.5]]):
        assert separates(Tolerance(1.0), Dyadic.of(pair)) is differs


def test_rules_with_decisions_compare_decisions() -> None:
    assert separates(Threshold(0.0), Dyadic.of([[-1.0], [1.0]]))
    assert not separates(Threshold(0.0), Dyadic.of([[0.0], [1.0]]))


@pytest.mark.parametrize(
    ("rule", "reference", "others", "differs"),
    [
        (Threshold(0.0), [1.0], [[1.0], [0.0], [-1.0]], [0, 0, 1]),
        (Threshold(0.0), [-1.0], [[1.0], [0.0], [-1.0]], [1, 1, 0]),
        (ABC, [0.0, 1.0, 0.0], [[0, 1, 1], [1, 1, 0], [0, 0, 1]], [0, 1, 1]),
        (
            OneVsRest(ABC.classes, "b"),
            [1.0, 0.0, 0.0],
            [[0, 0, 1], [0, 1, 0], [0, 1, 1]],
            [0, 1, 1],
        ),
    ],
)
def test_a_comparator_flags_decisions_that_differ_from_the_reference(
    rule: Rule, reference: list[float], others: list[list[float]], differs: list[int]
) -> None:
    comparator: Comparator = rule.comparator(Dyadic.of([reference]))
    assert comparator.decide_exactly(Dyadic.of(others)).tolist() == differs
    decisions = comparator.decide(
        Enclosure(np.array(others, dtype=np.float64), np.zeros((3, len(reference))))
    )
    assert all(
        decision in (UNDECIDED, expected)
        for decision, expected in zip(decisions.tolist(), differs, strict=True)
    )


@pytest.mark.parametrize(
    ("rule", "pair", "gap"),
    [
        (Threshold(0.0), [[1.0], [-2.0]], 3.0),
        (Tolerance(1.0), [[1.0], [-2.0]], 3.0),
        (Tolerance(1.0), [[1.0], [5.5]], 4.5),
        (ABC, [[1.0, 0.0, 0.0], [1.0, 4.0, 2.0]], 3.0),
        (OneVsRest(ABC.classes, "b"), [[1.0, 0.0, 0.0], [1.0, 4.0, 2.0]], 2.0),
        (OneVsRest(ABC.classes, "b"), [[0.0, 1.0, 0.0], [5.0, 4.0, 6.0]], 2.0),
        (OneVsRest(ABC.classes, "b"), [[1.0, 0.0, 0.0], [1.0, 4.0, 4.0]], 0.0),
    ],
)
def test_the_gap_is_the_distance_of_the_scores_or_the_margin_of_classes(
    rule: Rule, pair: list[list[float]], gap: float
) -> None:
    assert rule.gap(Dyadic.of(pair)) == gap


@pytest.mark.parametrize(
    ("rule", "reference", "directions", "least"),
    [
        (ABC, [0.0, 1.0, 0.0], [[1, -1, 0], [0, -1, 1]], False),
        (OneVsRest(ABC.classes, "b"), [0.0, 1.0, 0.0], [[1, -1, 0], [0, -1, 1]], False),
        (OneVsRest(ABC.classes, "b"), [1.0, 0.0, 0.0], [[-1, 1, 0], [0, 1, -1]], True),
        (Tolerance(1.0), [3.0], [[1], [-1]], False),
    ],
)
def test_the_objective_increases_toward_the_other_decision(
    rule: Rule, reference: list[float], directions: list[list[float]], *, least: bool
) -> None:
    objective = rule.objective(Dyadic.of([reference]))
    assert objective.directions.tolist() == directions
    assert objective.least is least


@pytest.mark.parametrize("reference", [3.0, -0.1, 0.0, 2.0**60, -(2.0**1000), 5e-324])
def test_the_objective_of_a_tolerance_covers_both_sides_of_the_reference(reference: float) -> None:
    objective = Tolerance(1.0).objective(Dyadic.of([[reference]]))
    assert objective.offsets.fractions() == [-Fraction(reference), Fraction(reference)]


@pytest.mark.parametrize(
    ("errors", "differs"),
    [([0.0, 0.0], True), ([0.4, 0.5], True), ([0.5, 0.5], False), ([1.0, 0.0], False)],
)
def test_the_runtime_may_round_both_scores_of_a_distance(
    errors: list[float], *, differs: bool
) -> None:
    scores = Enclosure(np.array([[0.0], [2.0]]), np.array(errors)[:, None])
    flags = differs_in_runtime(Tolerance(1.0), Dyadic.of([[0.0]]), scores)
    assert flags.tolist() == [False, differs]


@pytest.mark.parametrize(
    ("errors", "differs"), [([0.5, 0.5], True), ([1.0, 0.5], False), ([0.5, 1.0], False)]
)
def test_a_difference_in_the_runtime_needs_both_decisions_beyond_their_errors(
    errors: list[float], *, differs: bool
) -> None:
    scores = Enclosure(np.array([[-1.0], [1.0]]), np.array(errors)[:, None])
    flags = differs_in_runtime(Threshold(0.0), Dyadic.of([[-1.0]]), scores)
    assert flags.tolist() == [False, differs]


@pytest.mark.parametrize("epsilon", ["1", None, 10**400], ids=["text", "none", "huge"])
def test_a_tolerance_that_is_not_a_number_is_rejected(epsilon: object) -> None:
    with pytest.raises(SchemaError, match="invalid tolerance: got"):
        Tolerance(epsilon)  # type: ignore[arg-type]


def test_a_threshold_beyond_float64_is_rejected() -> None:
    with pytest.raises(
        SchemaError, match=r"invalid threshold: got 1000.*; expected a finite number"
    ):
        Threshold(10**400)
