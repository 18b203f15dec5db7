"""Contract of all rules; add a new rule to RULES in tests/rules.py."""

import itertools
from fractions import Fraction

import numpy as np
import pytest

import feta.rule
from feta.errors import SchemaError
from feta.rounding import SOURCE_FLOAT32
from feta.rule import UNDECIDED, Rule, rule_kind, rule_options
from feta.rule.protocol import check_fits
from feta.scorer.exact_scores import ExactScores
from feta.scorer.protocol import Enclosure
from tests.rules import (
    DECISION_RULES,
    REGRESSIONS,
    RULES,
    corners,
    decision,
    enclosure,
    exact,
    grid,
    interval_decision,
    interval_grid,
    objective_value,
    points_of,
)

every_rule = pytest.mark.parametrize("rule", RULES, ids=repr)
every_decision_rule = pytest.mark.parametrize("rule", DECISION_RULES, ids=repr)


def random_scores(rule: Rule, n_points: int, seed: int) -> np.ndarray:
    """Return scores in eighths, one row per point."""
    rng = np.random.default_rng(seed)
    return rng.integers(-12, 13, (n_points, rule.outputs)) / 8.0


def pairs_of(rule: Rule) -> list[ExactScores]:
    """Return all pairs of some points."""
    rows = random_scores(rule, 12, seed=3)
    return [exact(rows[[i, j]]) for i, j in itertools.permutations(range(len(rows)), 2)]


def test_the_suite_covers_every_public_rule() -> None:
    public = {
        name for name in feta.rule.__all__ if hasattr(getattr(feta.rule, name), "kernel_rule")
    }
    assert public - {"Rule"} == {rule_kind(rule) for rule in RULES}


@every_rule
def test_its_facts_are_consistent(rule: Rule) -> None:
    assert rule.outputs in rule.output_counts
    assert len(set(rule.outcomes)) == len(rule.outcomes) == rule.n_classes
    assert (rule.n_classes == 0) == (rule.tolerance is not None)
    assert rule.classes == () or len(rule.classes) == rule.outputs
    assert rule.ties_to in ("first", "last")
    assert rule.favors in ("above", "below")
    assert rule.favors == "above" or rule.threshold is not None
    assert rule.n_classes == 2 or not rule.two_sided
    assert rule.threshold is None or rule.outputs == 1
    assert not rule.merges_classes or len(rule.classes) >= rule.n_classes
    assert rule.source_error(SOURCE_FLOAT32) >= 0.0


@every_rule
def test_the_kernel_gets_the_same_facts(rule: Rule) -> None:
    kernel = rule.kernel_rule
    assert kernel.outputs == rule.outputs
    assert kernel.classes == (rule.n_classes or 2)  # inside or outside a band
    assert kernel.value == (rule.threshold or 0.0)
    assert kernel.above == (rule.favors == "above")
    assert kernel.ties_to_last == (rule.ties_to == "last" or rule.tolerance is not None)


@every_rule
def test_it_states_which_scorers_fit(rule: Rule) -> None:
    assert all(check_fits(rule, outputs) == "" for outputs in rule.output_counts)
    wrong = max(rule.output_counts) + 1
    expected = " or ".join(str(outputs) for outputs in rule.output_counts)
    message = f"got {wrong}; expected {expected} for {rule_kind(rule)}"
    assert check_fits(rule, wrong) == message


@every_rule
def test_it_is_a_value_that_its_options_define(rule: Rule) -> None:
    again = type(rule)(**rule_options(rule))
    assert again == rule
    assert hash(again) == hash(rule)
    assert repr(again) == repr(rule)
    assert rule.resolved(None) == rule.resolved("above") == rule.resolved("below") == rule


@every_decision_rule
def test_exact_scores_are_decided_by_definition(rule: Rule) -> None:
    scores = exact(grid(rule.outputs))
    expected = [decision(rule, point) for point in points_of(scores)]
    decisions = rule.decide_exactly(scores)
    assert decisions.tolist() == expected
    assert decisions.dtype == np.int8


@every_decision_rule
def test_an_interval_is_decided_if_all_its_points_get_the_same_decision(rule: Rule) -> None:
    scores = interval_grid(rule.outputs)
    expected = [interval_decision(rule, box) for box in corners(scores)]
    decisions = rule.decide_exactly(scores)
    assert decisions.tolist() == expected
    assert set(expected) == {UNDECIDED, *range(rule.n_classes)}
    assert decisions.dtype == np.int8


@every_decision_rule
def test_intervals_of_radius_zero_are_exact_scores(rule: Rule) -> None:
    rows = grid(rule.outputs)
    intervals = exact(rows, np.zeros_like(rows))
    assert rule.decide_exactly(intervals).tolist() == rule.decide_exactly(exact(rows)).tolist()


@every_decision_rule
def test_float64_decides_what_its_error_bound_allows(rule: Rule) -> None:
    values = random_scores(rule, 400, seed=1)
    errors = np.random.default_rng(2).choice([0.0, 0.125, 0.25, 1.0], values.shape)
    decisions = rule.decide(Enclosure(values, errors))
    assert decisions.dtype == np.int8
    within = rule.decide_exactly(exact(values, errors))
    wider = rule.decide_exactly(exact(values, errors + 2.0**-40))
    decided = decisions != UNDECIDED
    assert (decisions[decided] == within[decided]).all()
    assert (decisions[wider != UNDECIDED] == wider[wider != UNDECIDED]).all()
    assert 0 < decided.sum() < len(decided)


@every_decision_rule
@pytest.mark.parametrize("error", [np.inf, np.nan])
def test_nothing_is_decided_without_an_error_bound(rule: Rule, error: float) -> None:
    values = grid(rule.outputs)
    assert set(rule.decide(enclosure(values, error)).tolist()) == {UNDECIDED}
    unknown = enclosure(np.full_like(values, np.nan), 0.0)
    assert set(rule.decide(unknown).tolist()) == {UNDECIDED}


@every_decision_rule
def test_a_comparator_compares_with_the_decision_of_the_reference(rule: Rule) -> None:
    scores = exact(grid(rule.outputs))
    decisions = rule.decide_exactly(scores)
    for row in range(0, len(scores), 7):
        comparator = rule.comparator(scores[row : row + 1])
        expected = (decisions != decisions[row]).astype(int).tolist()
        assert comparator.decide_exactly(scores).tolist() == expected
        rough = comparator.decide(enclosure(grid(rule.outputs), 2.0**-30))
        assert all(
            mine in (UNDECIDED, theirs) for mine, theirs in zip(rough, expected, strict=True)
        )
        assert (rough != UNDECIDED).any()


@every_decision_rule
def test_nothing_differs_provably_from_an_undecided_reference(rule: Rule) -> None:
    scores = exact(grid(rule.outputs))
    tie = np.full((1, rule.outputs), rule.threshold or 0.0)
    reference = exact(tie, np.ones_like(tie))
    assert rule.decide_exactly(reference).tolist() == [UNDECIDED]
    comparator = rule.comparator(reference)
    assert set(comparator.decide_exactly(scores).tolist()) == {UNDECIDED}
    assert set(comparator.decide(enclosure(grid(rule.outputs), 0.0)).tolist()) == {UNDECIDED}
    assert not rule.separates(reference.joined(scores[:1]))
    assert not rule.separates(scores[:1].joined(reference))
    first = scores[[rule.decide_exactly(scores).tolist().index(0)]]
    expected, objective = rule.objective(first), rule.objective(reference)
    assert objective.directions.tolist() == expected.directions.tolist()
    assert (objective.level, objective.least) == (expected.level, expected.least)


@every_rule
def test_the_objective_exceeds_its_level_where_the_comparator_sees_a_difference(rule: Rule) -> None:
    scores = exact(grid(rule.outputs))
    points = points_of(scores)
    for row in range(0, len(scores), 7):
        reference = scores[row : row + 1]
        objective = rule.objective(reference)
        differs = rule.comparator(reference).decide_exactly(scores).tolist()
        for point, different in zip(points, differs, strict=True):
            value = objective_value(objective, point)
            if value != Fraction(objective.level):  # ties are broken on the level
                assert different == (value > Fraction(objective.level))


@every_decision_rule
def test_an_objective_reaches_each_decision_above_its_level(rule: Rule) -> None:
    scores = exact(grid(rule.outputs))
    decisions = rule.decide_exactly(scores).tolist()
    for goal in range(rule.n_classes):
        objective = rule.reaching(goal)
        sides = set()
        for point, reached in zip(points_of(scores), decisions, strict=True):
            value = objective_value(objective, point) - Fraction(objective.level)
            sides.add((value > 0) - (value < 0))
            assert value == 0 or (reached == goal) == (value > 0)
        assert sides == {-1, 0, 1}


@every_rule
def test_pairs_that_differ_have_a_gap_and_are_replayed(rule: Rule) -> None:
    separated = 0
    for pair in pairs_of(rule):
        answers = rule.answers_of_outputs(pair.floats(), probabilities=False)
        replays = rule.replays(answers, rule.pair_decisions(pair))
        if not rule.separates(pair):
            assert rule.tolerance is None or not replays
            continue
        separated += 1
        assert replays
        assert not rule.replays(answers[[0, 0]], rule.pair_decisions(pair))
        assert rule.gap(pair) >= 0.0
        assert isinstance(rule.gap(pair), float)
    assert separated > 10


@every_decision_rule
def test_a_pair_differs_if_its_decisions_do(rule: Rule) -> None:
    for pair in pairs_of(rule):
        first, second = (decision(rule, point) for point in points_of(pair))
        assert rule.pair_decisions(pair) == (first, second)
        assert rule.separates(pair) is (first != second)


@every_decision_rule
def test_the_gap_is_the_distance_of_scores_or_the_margin_beyond_the_level(rule: Rule) -> None:
    for pair in pairs_of(rule):
        if not rule.separates(pair):
            continue
        person, counterpart = points_of(pair)
        if rule.threshold is not None:
            expected = abs(person[0] - counterpart[0])
        else:
            expected = objective_value(rule.objective(pair[:1]), counterpart)
        assert rule.gap(pair) == float(expected)


@pytest.mark.parametrize("rule", REGRESSIONS, ids=repr)
def test_scores_of_a_regression_differ_beyond_the_tolerance(rule: Rule) -> None:
    assert rule.tolerance is not None
    for pair in pairs_of(rule):
        person, counterpart = (point[0] for point in points_of(pair))
        assert rule.separates(pair) is (abs(person - counterpart) > Fraction(rule.tolerance))
        assert rule.gap(pair) == float(abs(person - counterpart))
        assert rule.pair_decisions(pair) == ()


@every_rule
def test_an_interval_pair_differs_if_all_its_points_do(rule: Rule) -> None:
    rows = interval_grid(rule.outputs)
    chosen = np.random.default_rng(4).permutation(len(rows))[:40]
    some = rows[chosen]
    boxes, seen = list(corners(some)), set()
    for i, j in itertools.combinations(range(len(some)), 2):
        pair = some[[i, j]]
        both = itertools.product(boxes[i], boxes[j])
        if rule.tolerance is None:
            first, second = (interval_decision(rule, boxes[k]) for k in (i, j))
            expected = first != second and UNDECIDED not in (first, second)
        else:
            distances = [second[0] - first[0] for first, second in both]
            limit = Fraction(rule.tolerance)
            expected = min(distances) > limit or max(distances) < -limit
        assert rule.separates(pair) is expected
        seen.add(expected)
    assert seen == {True, False}


@every_rule
def test_a_difference_in_the_runtime_holds_for_all_scores_within_the_errors(rule: Rule) -> None:
    values = random_scores(rule, 30, seed=5)
    errors = np.random.default_rng(6).choice([0.0, 0.125, 0.5], values.shape)
    found = 0
    for row in range(6):
        order = [row, *(other for other in range(30) if other != row)]
        scores = Enclosure(values[order], errors[order])
        reference = exact(values[[row]])
        flags = rule.differs_in_runtime(reference, scores)
        assert flags.dtype == np.bool_
        assert not flags[0]
        for index in range(1, 30):
            pair = exact(scores.values[[0, index]], scores.errors[[0, index]])
            wider = exact(scores.values[[0, index]], scores.errors[[0, index]] + 2.0**-40)
            assert rule.separates(pair) or not flags[index]
            assert flags[index] or not rule.separates(wider)
        found += int(flags.sum())
    assert found > 10


@every_decision_rule
def test_margins_have_the_sign_of_the_decision(rule: Rule) -> None:
    for pair in pairs_of(rule):
        decisions = rule.pair_decisions(pair)
        first, second = rule.margins(decisions, _as_stored(rule, pair)).tolist()
        if rule.threshold is not None:
            assert [[first], [second]] == pair.floats().tolist()
        elif rule.merges_classes:
            for margin, made in zip((first, second), decisions, strict=True):
                assert margin == 0 or (margin > 0) == (made == 1)
        else:
            assert first <= 0 <= second


def _as_stored(rule: Rule, pair: ExactScores) -> np.ndarray:
    """Return the scores of a pair as a counterexample stores them."""
    return pair.floats()[:, 0] if rule.outputs == 1 else pair.floats()


@pytest.mark.parametrize("rule", REGRESSIONS, ids=repr)
def test_the_margins_of_a_regression_are_its_scores(rule: Rule) -> None:
    assert rule.margins((), np.array([0.5, -1.0])).tolist() == [0.5, -1.0]


@every_decision_rule
def test_outputs_are_decided_like_scores(rule: Rule) -> None:
    rows = grid(rule.outputs)
    expected = rule.answers(rule.decide_exactly(exact(rows)))
    answers = rule.answers_of_outputs(rows, probabilities=False)
    assert answers.tolist() == expected.tolist()
    assert (answers.dtype == np.bool_) == rule.two_sided


@every_decision_rule
def test_labels_of_a_classifier_are_decided_like_scores(rule: Rule) -> None:
    rows = grid(rule.outputs)
    classes = np.array([f"class {index}" for index in range(max(2, len(rule.classes)))])
    if rule.threshold is None:
        labels = classes[np.argmax(rows, axis=1)]
    else:
        rows = rows[rows[:, 0] != rule.threshold]
        labels = classes[(rows[:, 0] > rule.threshold).astype(int)]
    expected = rule.answers(rule.decide_exactly(exact(rows))).tolist()
    assert rule.answers_of_labels(labels, classes).tolist() == expected
    assert rule.answers_of_labels(labels[:, None], classes).tolist() == expected


@every_decision_rule
@pytest.mark.parametrize("prefix", ["", "the outcome "])
def test_the_name_of_an_outcome_is_read_back(rule: Rule, prefix: str) -> None:
    names = tuple(prefix + name for name in rule.outcomes)
    answers = rule.answers(np.arange(rule.n_classes, dtype=np.int8))
    for outcome, name in zip(answers.tolist(), names, strict=True):
        assert rule.describe(outcome, names) == name
        if rule.two_sided or not prefix:  # labels of several classes are classes
            assert rule.read_label(name, names) == outcome


@pytest.mark.parametrize("rule", REGRESSIONS, ids=repr)
def test_a_score_is_read_back(rule: Rule) -> None:
    described = rule.describe(0.1, ())
    assert described == 0.1
    assert rule.read_label(described, ()) == rule.read_label(str(described), ()) == 0.1


@every_rule
def test_sides_have_names(rule: Rule) -> None:
    for pair in pairs_of(rule):
        if rule.separates(pair):
            ordered = pair if points_of(pair)[0] <= points_of(pair)[1] else pair[[1, 0]]
            sides = rule.sides(ordered, ordered).tolist()
            assert sides[0] != sides[1]
            assert max(sides) < len(rule.side_names(rule.outcomes))
            assert min(sides) >= 0


@every_rule
@pytest.mark.parametrize("log_odds", [False, True])
def test_its_words_are_sentences(rule: Rule, log_odds: bool) -> None:
    text = rule.explanation(rule.outcomes, unit="{euros}", log_odds=log_odds)
    assert text.endswith(".")
    assert text[0].isupper()
    words = rule.words(unit="{euros}", log_odds=log_odds)
    assert len(words.amount(1.5)) >= 3
    assert words.violation[0].isupper()
    assert len(words.pair_names) == len(words.flip) == 2


@every_rule
def test_only_several_classes_have_a_view_of_one(rule: Rule) -> None:
    if rule.classes and not rule.merges_classes:
        view = rule.one_vs_rest(rule.classes[-1])
        assert view.classes == rule.classes
        assert view.merges_classes
        assert view.outcomes[1] == rule.classes[-1]
    else:
        message = "^invalid rule for one class against the rest: got .*; expected an Argmax$"
        with pytest.raises(SchemaError, match=message):
            rule.one_vs_rest("a")


@every_rule
def test_the_gaps_of_many_pairs_are_those_of_each(rule: Rule) -> None:
    pairs = [pair for pair in pairs_of(rule) if rule.separates(pair)]
    assert len(pairs) > 3
    people, others = pairs[0][:1], pairs[0][1:]
    for pair in pairs[1:]:
        people, others = people.joined(pair[:1]), others.joined(pair[1:])
    assert rule.gaps(people, others).tolist() == [rule.gap(pair) for pair in pairs]
    assert rule.gaps(people[:0], others[:0]).tolist() == []


@every_decision_rule
def test_the_objective_of_a_person_opposes_the_decision(rule: Rule) -> None:
    for row in random_scores(rule, 12, seed=4):
        reference = exact(row[None, :])
        objective = rule.objective(reference)
        opposing = rule.opposing(int(rule.decide_exactly(reference)[0]))
        np.testing.assert_array_equal(objective.directions, opposing.directions)
        assert (objective.least, objective.level) == (opposing.least, opposing.level)
        assert objective.offsets.fractions() == opposing.offsets.fractions()


@pytest.mark.parametrize("rule", REGRESSIONS, ids=repr)
def test_a_regression_opposes_no_decision(rule: Rule) -> None:
    with pytest.raises(SchemaError, match="got a Tolerance; expected a rule that makes decisions"):
        rule.opposing(0)
