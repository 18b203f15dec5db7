import re
from collections.abc import Callable
from fractions import Fraction

import numpy as np
import pytest

from feta import SchemaError, Tolerance
from feta.errors import DomainError, NetworkError
from feta.rounding import DIFFERENCE, FLOAT64, SOURCE_FLOAT32
from feta.rule import DEFINITION
from feta.rule.words import RuleWords
from feta.scorer.kernel import KernelRule
from feta.scorer.protocol import Side
from tests.rules import enclosure, exact

ULP = 2.0**-52  # from 1 to the next number
ONE = Tolerance(1.0)
NO_DECISIONS = (
    "invalid rule: got a Tolerance; expected a rule that makes decisions; a regression model has "
    "scores only, use model.score"
)


@pytest.mark.parametrize(
    ("epsilon", "shown"),
    [
        (-1e-300, "-1e-300"),
        (np.inf, "inf"),
        (np.nan, "nan"),
        ("1", "'1'"),
        (None, "None"),
        (10**400, f"1{'0' * 400}"),
    ],
    ids=["negative", "infinite", "nan", "text", "none", "huge"],
)
def test_an_invalid_tolerance_is_rejected(epsilon: object, shown: str) -> None:
    message = f"^invalid tolerance: got {shown}; expected a finite number, 0 or more$"
    with pytest.raises(SchemaError, match=message):
        Tolerance(epsilon)  # type: ignore[arg-type]


@pytest.mark.parametrize(
    "ask",
    [
        lambda: ONE.decide(enclosure([[0.0]], 0.0)),
        lambda: ONE.decide_exactly(exact([[0.0]])),
        lambda: ONE.answers(np.zeros(1, dtype=np.int8)),
        lambda: ONE.reaching(0),
    ],
    ids=["decide", "decide_exactly", "answers", "reaching"],
)
def test_a_regression_makes_no_decisions(ask: Callable[[], object]) -> None:
    with pytest.raises(SchemaError, match=f"^{re.escape(NO_DECISIONS)}$"):
        ask()


def test_a_regression_has_no_classes() -> None:
    message = (
        "invalid rule for one class against the rest: got Tolerance(epsilon=1.0); expected an "
        "Argmax"
    )
    with pytest.raises(SchemaError, match=f"^{re.escape(message)}$"):
        ONE.one_vs_rest("a")
    message = (
        "the rule does not fit a classifier: got Tolerance(epsilon=1.0); expected a rule on classes"
    )
    with pytest.raises(NetworkError, match=f"^{re.escape(message)}$"):
        ONE.answers_of_labels(np.array(["a"]), np.array(["a", "b"]))


def test_epsilon_is_a_float_without_a_negative_zero() -> None:
    assert repr(Tolerance(-0.0)) == repr(Tolerance(0)) == "Tolerance(epsilon=0.0)"
    assert repr(Tolerance(np.float32(2))) == "Tolerance(epsilon=2.0)"  # type: ignore[arg-type]


def test_its_facts() -> None:
    rule = Tolerance(0.5)
    assert (rule.outputs, rule.output_counts, rule.n_classes) == (1, (1,), 0)
    assert (rule.outcomes, rule.classes) == ((), ())
    assert (rule.threshold, rule.tolerance, rule.favors) == (None, 0.5, "above")
    assert (rule.ties_to, rule.two_sided, rule.merges_classes) == ("first", False, False)
    assert rule.kernel_rule == KernelRule("band", 1, 2, 0.0)
    assert rule.source_error(SOURCE_FLOAT32) == 0.0
    assert DEFINITION == "span"


@pytest.mark.parametrize("side", [None, "above", "below"])
def test_scores_have_no_tie_to_resolve(side: Side | None) -> None:
    assert ONE.resolved(side) is ONE


@pytest.mark.parametrize(("high", "differs"), [(1.5, False), (1.5 + ULP, True), (-0.5, False)])
def test_two_scores_that_differ_by_exactly_epsilon_agree(high: float, *, differs: bool) -> None:
    for pair in ([[0.5], [high]], [[high], [0.5]]):
        assert ONE.separates(exact(pair)) is differs


@pytest.mark.parametrize(
    ("radii", "differs"), [([0.0, 0.0], True), ([0.5, 0.25], True), ([0.5, 0.5], False)]
)
def test_intervals_differ_only_if_all_their_points_do(radii: list[float], *, differs: bool) -> None:
    column = np.array(radii)[:, None]
    for pair in ([[0.0], [2.0]], [[2.0], [0.0]]):
        assert ONE.separates(exact(pair, column)) is differs


def test_the_band_is_around_the_middle_of_the_known_scores() -> None:
    known = exact([[0.75], [0.25], [0.3]])
    band = Tolerance(0.5).comparator(known)
    assert (band.epsilon, band.center) == (0.5, Fraction(1, 2))
    objective = Tolerance(0.5).objective(known)
    assert objective.directions.tolist() == [[1], [-1]]
    assert objective.offsets.fractions() == [Fraction(-1, 2), Fraction(1, 2)]
    assert (objective.least, objective.level) == (False, 0.25)


@pytest.mark.parametrize(
    ("errors", "differs"),
    [([0.0, 0.0], True), ([0.4, 0.5], True), ([0.5, 0.5], False), ([1.0, 0.0], False)],
)
def test_the_runtime_may_round_both_scores_of_a_distance(
    errors: list[float], *, differs: bool
) -> None:
    for values in ([[0.0], [2.0]], [[2.0], [0.0]], [[-1.0], [1.0]]):
        scores = enclosure(values, np.array(errors)[:, None])
        flags = ONE.differs_in_runtime(exact([[0.0]]), scores)
        assert flags.tolist() == [False, differs]


@pytest.mark.parametrize(
    ("values", "epsilon", "slack"),
    [
        ([1.0, 3.0], 1.0, 5.0),  # |values| + |first| + epsilon
        ([-3.0, -1.0], 1.0, 5.0),
        ([0.0, 8.0], 2.0, 10.0),
    ],
)
def test_the_rounding_of_the_distance_itself_counts(
    values: list[float], epsilon: float, slack: float
) -> None:
    """The errors leave exactly the rounding of the distance, and then a little more."""
    room = abs(values[1] - values[0]) - epsilon - DIFFERENCE * slack
    rule, column = Tolerance(epsilon), np.array(values)[:, None]
    for error, differs in ((room, False), (room - 2 * np.spacing(room), True)):
        scores = enclosure(column, [[0.0], [error]])
        assert rule.differs_in_runtime(exact(column[:1]), scores).tolist() == [False, differs]


def test_the_smallest_distances_prove_nothing() -> None:
    scores = enclosure([[0.0], [FLOAT64.tiny]], 0.0)
    rule = Tolerance(0.0)
    assert rule.differs_in_runtime(exact([[0.0]]), scores).tolist() == [False, False]


def test_unknown_scores_prove_nothing_and_do_not_warn() -> None:
    scores = enclosure([[0.0], [9.0], [np.inf], [np.nan]], [[0.0], [np.inf], [0.0], [0.0]])
    assert ONE.differs_in_runtime(exact([[0.0]]), scores).tolist() == [False] * 4
    infinite = enclosure([[np.inf], [np.inf]], 0.0)
    assert ONE.differs_in_runtime(exact([[0.0]]), infinite).tolist() == [False] * 2


@pytest.mark.parametrize(("other", "gap"), [(-2.0, 3.0), (5.5, 4.5)])
def test_the_gap_is_the_distance_of_the_scores(other: float, gap: float) -> None:
    assert ONE.gap(exact([[1.0], [other]])) == gap


def test_a_pair_has_scores_instead_of_decisions() -> None:
    assert ONE.pair_decisions(exact([[0.0], [5.0]])) == ()
    assert ONE.margins((), np.array([0.0, 5.0])).tolist() == [0.0, 5.0]
    assert ONE.describe(2, ()) == 2.0
    assert isinstance(ONE.describe(2, ()), float)


def test_sides_are_beyond_the_tolerance_of_the_lower_score_or_not() -> None:
    scores = exact([[0.0], [1.0], [1.0 + ULP], [-3.0]])
    assert ONE.sides(scores, exact([[0.0], [2.0]])).tolist() == [0, 0, 1, 0]
    assert ONE.sides(scores, exact([[0.0], [2.0]])).dtype == np.int8
    assert ONE.sides(scores, exact([[-0.5], [2.0]])).tolist() == [0, 1, 1, 0]
    assert ONE.side_names(()) == (
        "within the tolerance of the lower score, or below",
        "higher than allowed",
    )


def test_outputs_are_scores() -> None:
    outputs = np.array([[0.5], [1.5]])
    for probabilities in (False, True):
        answers = ONE.answers_of_outputs(outputs, probabilities=probabilities)
        assert answers.tolist() == [0.5, 1.5]


def test_a_pair_is_replayed_if_the_scores_differ_by_more_than_epsilon() -> None:
    assert ONE.replays(np.array([0.0, 1.0]), ()) is False
    assert ONE.replays(np.array([0.0, 1.5]), ()) is True
    assert ONE.replays(np.array([1.5, 0.0]), ()) is True
    assert ONE.replays(np.array([1.5, 1.0]), ()) is False


def test_a_label_is_a_finite_number() -> None:
    assert [ONE.read_label(label, ()) for label in ("1.5", 2)] == [1.5, 2.0]
    with pytest.raises(DomainError, match=r"^got 'high'; expected a finite number$"):
        ONE.read_label("high", ())


def test_its_words_state_the_limit_with_its_unit() -> None:
    expected = RuleWords(
        counterexample="two counterparts whose scores differ by more than 1,234.5 euros",
        same_outcome="the same score to within 1,234.5 euros",
        changes="only differences",
        pair_names=("lower score", "higher score"),
        flip=(
            "Fair scores (feta predict) would change",
            "of the scores by more than 1,234.5 euros.",
        ),
        digits=",.6g",
        unit="euros",
    )
    assert Tolerance(1234.5).words(unit="euros", log_odds=True) == expected


@pytest.mark.parametrize(("unit", "amount"), [("", "1,234.5"), ("{0} %s", "1,234.5 {0} %s")])
def test_the_explanation_states_the_limit_with_its_unit(unit: str, amount: str) -> None:
    assert Tolerance(1234.5).explanation((), unit=unit, log_odds=True) == (
        "The result is the score itself. The scores of all counterparts of a person, including "
        f"the person, may span {amount} at most: highest less lowest."
    )
