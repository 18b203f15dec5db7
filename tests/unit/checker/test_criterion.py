from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction

import numpy as np
import pytest

from feta import Model, Network, Threshold, Tolerance
from feta.arrays import Matrix, Vector
from feta.checker.criterion import DIFFERENT, OUTSIDE, Criterion, SpanCriterion
from feta.checker.evaluators import Bounds, Evaluator, evaluator_of
from feta.checker.sensitive_axis import SensitiveAxis
from feta.dyadic import Dyadic
from feta.rule.band import Band
from feta.scorer.exact_scores import ExactScores
from tests.examples import PERSON, SPACE

AGE = Network.from_layers([([[1.0, 0, 0, 0]], [0.0])])
MODEL = Model(SPACE, AGE, Threshold(40.0))


def aged(*ages: float) -> Matrix:
    return np.array([[age, *PERSON[1:]] for age in ages])


def criterion(model: Model = MODEL) -> Criterion:
    evaluator = evaluator_of(model)
    comparator = model.rule.comparator(evaluator.scores(PERSON[None, :]))
    return Criterion(model, evaluator, comparator)


def test_the_first_counterpart_with_a_different_decision_is_described() -> None:
    assert criterion().objection(aged(18, 39, 25)) == ""
    assert criterion().objection(aged(18, 41, 40)) == (
        "a counterpart with a different decision, {'age': 41, 'sex': 'female', 'income': 50.0}"
    )
    assert criterion().violation == DIFFERENT


def test_a_score_outside_a_band_is_described() -> None:
    band = Band.at(10.0, Fraction(30))
    regression = Criterion(MODEL, evaluator_of(MODEL), band, OUTSIDE)
    assert regression.objection(aged(25, 35)) == ""
    assert regression.objection(aged(25, 24)) == (
        "a counterpart with a score outside the band around the center, "
        "{'age': 24, 'sex': 'female', 'income': 50.0}"
    )


@dataclass(frozen=True)
class Rough:
    """Scores that are known up to a radius: the age ± radius."""

    radius: float

    def scores(self, people: Matrix) -> ExactScores:
        radii = np.full((len(people), 1), self.radius)
        return ExactScores(Dyadic.of(people[:, :1]), Dyadic.of(radii))

    def bounds(self, axes: Sequence[SensitiveAxis], person: Vector) -> Bounds:
        raise AssertionError((axes, person))


@pytest.mark.parametrize(
    ("age", "expected"),
    [
        (39.0, ""),
        (41.0, "a counterpart with a different decision, {'age': 41,"),
        (40.0, "a counterpart whose score cannot be separated from a tie, {'age': 40,"),
    ],
)
def test_a_score_that_may_be_a_tie_is_an_objection(age: float, expected: str) -> None:
    rough = Rough(0.75)
    comparator = MODEL.rule.comparator(rough.scores(PERSON[None, :]))
    rule = Criterion(MODEL, rough, comparator)
    objection = rule.objection(aged(30, age))
    assert objection.startswith(expected)
    assert bool(objection) == bool(expected)


def test_a_reference_that_may_be_a_tie_is_an_objection() -> None:
    rough = Rough(11.0)
    comparator = MODEL.rule.comparator(rough.scores(PERSON[None, :]))
    rule = Criterion(MODEL, rough, comparator)
    assert rule.objection(aged(18)) == (
        "a counterpart whose score cannot be separated from a tie, "
        "{'age': 18, 'sex': 'female', 'income': 50.0}"
    )


def span(tolerance: float, radius: float | None = None) -> SpanCriterion:
    model = Model(SPACE, AGE, Tolerance(tolerance))
    evaluator: Evaluator = evaluator_of(model) if radius is None else Rough(radius)
    return SpanCriterion(model, evaluator, PERSON, tolerance)


def test_the_span_grows_from_block_to_block() -> None:
    """The person is 30."""
    known = span(20.0)
    assert known.objection(aged(40, 22, 35)) == ""
    assert known.ends[:, 0].tolist() == [22.0, 40.0]
    assert known.objection(aged(30, 41)) == ""
    assert known.objection(aged(42, 25)) == ""  # exactly 20
    assert known.ends[:, 0].tolist() == [22.0, 42.0]
    assert known.objection(aged(30, 21)) == (
        "two counterparts not provably within the tolerance, "
        "{'age': 21, 'sex': 'female', 'income': 50.0} and "
        "{'age': 42, 'sex': 'female', 'income': 50.0}"
    )


def test_the_person_counts_too() -> None:
    assert span(20.0).objection(aged(50, 40)) == ""
    assert span(20.0).objection(aged(51, 40)).startswith("two counterparts not provably within")
    assert span(20.0).objection(aged(9 + 9, 20)) == ""


@pytest.mark.parametrize("epsilon", [72.0, float(np.nextafter(72.0, 0))])
def test_the_span_is_compared_to_the_last_ulp(epsilon: float) -> None:
    assert (span(epsilon).objection(aged(18, 90)) == "") is (epsilon == 72.0)


@pytest.mark.parametrize(("tolerance", "agrees"), [(13.0, True), (12.5, False), (12.0, False)])
def test_radii_widen_the_span(tolerance: float, *, agrees: bool) -> None:
    """From 30 − 1/2 to 42 + 1/2."""
    assert (span(tolerance, 0.5).objection(aged(42, 40)) == "") is agrees
