"""Curves against mpmath with 600 digits, at random scores, ties, tails and ends of intervals."""

from collections.abc import Callable
from fractions import Fraction
from itertools import pairwise
from typing import Any

import numpy as np
import pytest

from feta.dyadic import Dyadic
from feta.errors import NetworkError
from feta.rounding import FLOAT64, SOURCE_FLOAT32, SOURCE_FLOAT64
from feta.scorer.ensemble.curve import Curve
from feta.scorer.ensemble.curves import Chosen, ClassVote, Interpolation, Pair, SideVote
from feta.scorer.ensemble.probability import Sigmoid, Softmax
from feta.scorer.exact_scores import ExactScores
from feta.scorer.protocol import Enclosure

mpmath = pytest.importorskip("mpmath")

TAILS = (0.0, -0.0, 5e-324, 1e-300, 1e-9, 0.5, 36.0, 37.5, 699.9, 700.1, 746.0, 6999.0, 7001.0)
EDGES = np.array([*TAILS, 1e9, 1e200])
SCORES = np.concatenate([EDGES, -EDGES, np.random.default_rng(0).normal(size=60) * 20])
STEPS = Interpolation(
    np.array([-30.0, -1.0, np.nextafter(-1.0, 0), 0.0, 0.1, 36.0]),
    np.array([0.0, 0.125, 0.25, 0.25, 0.7, 1.0]),
)


def _sigmoid(slope: float, offset: float) -> Callable[[Any], Any]:
    def value(score: Any) -> Any:  # noqa: ANN401 - mpmath ships no types
        return 1 / (1 + mpmath.exp(-(mpmath.mpf(slope) * score + mpmath.mpf(offset))))

    return value


def _line(score: Any) -> Any:  # noqa: ANN401 - mpmath ships no types
    points = [(mpmath.mpf(x), mpmath.mpf(y)) for x, y in zip(STEPS.at, STEPS.values, strict=True)]
    if score <= points[0][0]:
        return points[0][1]
    for (left, start), (right, end) in pairwise(points):
        if score <= right:
            return start + (end - start) * (score - left) / (right - left)
    return points[-1][1]


CURVES = [
    pytest.param(Sigmoid(), _sigmoid(1.0, 0.0), id="sigmoid"),
    pytest.param(Sigmoid(-1.37, 0.21), _sigmoid(-1.37, 0.21), id="falling"),
    pytest.param(Sigmoid(1e-3, -1e3), _sigmoid(1e-3, -1e3), id="far"),
    pytest.param(STEPS, _line, id="interpolation"),
]


def exactly(scores: np.ndarray) -> ExactScores:
    return ExactScores(Dyadic.of(scores))


@pytest.fixture(autouse=True)
def _digits() -> object:
    with mpmath.workdps(600):
        yield


def is_inside(values: np.ndarray, errors: np.ndarray, truth: list[Any]) -> bool:
    return all(
        abs(mpmath.mpf(value) - true) <= error
        for value, error, true in zip(values.ravel(), errors.ravel(), truth, strict=True)
    )


@pytest.mark.parametrize(("curve", "truth"), CURVES)
@pytest.mark.parametrize("error", [0.0, 1e-12, 0.5])
@pytest.mark.parametrize("arithmetic", [FLOAT64, SOURCE_FLOAT64, SOURCE_FLOAT32])
def test_enclosures_contain_the_values_of_all_scores_within_the_error(
    curve: Curve, truth: Callable[[Any], Any], error: float, arithmetic: object
) -> None:
    scores = Enclosure(SCORES[:, None], np.full((len(SCORES), 1), error))
    result = curve.enclose(scores, arithmetic)  # type: ignore[arg-type]
    for shift in (-error, 0.0, error):
        values = [truth(mpmath.mpf(score) + mpmath.mpf(shift)) for score in SCORES]
        assert is_inside(result.values, result.errors, values)


@pytest.mark.parametrize(("curve", "truth"), CURVES)
def test_exact_intervals_are_narrow_and_contain_the_value(
    curve: Curve, truth: Callable[[Any], Any]
) -> None:
    result = curve.exactly(exactly(SCORES[:, None]))
    radii = result.radius.fractions()
    assert max(radii) < Fraction(1, 2**1090)
    for center, radius, score in zip(result.centers.fractions(), radii, SCORES, strict=True):
        true = truth(mpmath.mpf(score))
        low, high = center - radius, center + radius
        # 600 digits; ends are compared with a margin below the width of an interval.
        margin = mpmath.mpf(10) ** -500
        assert mpmath.mpf(low.numerator) / low.denominator - margin <= true
        assert true <= mpmath.mpf(high.numerator) / high.denominator + margin


def test_ties_and_plateaus_are_exact() -> None:
    assert Sigmoid(2.0, -1.0).exactly(exactly(np.array([[0.5]]))).fractions() == [Fraction(1, 2)]
    flat = STEPS.exactly(exactly(np.array([[-0.5], [-99.0], [40.0]])))
    assert flat.radii is None
    assert flat.fractions() == [Fraction(1, 4), Fraction(0), Fraction(1)]


def test_a_falling_curve_of_an_interval_contains_both_ends() -> None:
    wide = ExactScores(Dyadic.of(np.array([[0.0]])), Dyadic.of(np.array([[1.0]])))
    result = Sigmoid(-1.0, 0.0).exactly(wide)
    low, high = _sigmoid(-1.0, 0.0)(mpmath.mpf(1)), _sigmoid(-1.0, 0.0)(mpmath.mpf(-1))
    center, radius = result.fractions()[0], result.radius.fractions()[0]
    assert float(center - radius) == pytest.approx(float(low))
    assert float(center + radius) == pytest.approx(float(high))


@pytest.mark.parametrize("factor", [1.0, 0.3, -2.0])
def test_softmax_contains_the_true_probabilities(factor: float) -> None:
    rng = np.random.default_rng(1)
    rows = np.concatenate([rng.normal(size=(40, 4)) * 30, np.zeros((1, 4)), np.eye(4) * 1e4])
    curve = Softmax(4, factor)
    truth = []
    for row in rows:
        powers = [mpmath.exp(mpmath.mpf(factor) * mpmath.mpf(score)) for score in row]
        truth += [power / sum(powers) for power in powers]
    result = curve.enclose(Enclosure(rows, np.zeros_like(rows)), SOURCE_FLOAT64)
    assert is_inside(result.values, result.errors, truth)
    exact = curve.exactly(exactly(rows))
    for center, radius, true in zip(
        exact.fractions(), exact.radius.fractions(), truth, strict=True
    ):
        assert abs(mpmath.mpf(center.numerator) / center.denominator - true) <= (
            mpmath.mpf(radius.numerator) / radius.denominator + mpmath.mpf(10) ** -400
        )
        assert radius < Fraction(1, 2**1000)


@pytest.mark.parametrize(("ties", "expected"), [("above", [1, 0, 1]), ("below", [0, 0, 1])])
def test_a_side_vote_gives_a_tie_to_the_side_of_the_source(ties: str, expected: list[int]) -> None:
    scores = np.array([[0.0], [-5e-324], [5e-324]])
    vote = SideVote(ties)  # type: ignore[arg-type]
    assert vote.exactly(exactly(scores)).fractions() == expected
    near = vote.enclose(Enclosure(scores, np.full((3, 1), 1e-300)), FLOAT64)
    assert near.errors.ravel().tolist() == [0.5] * 3


def test_a_tie_of_an_unknown_side_is_an_interval() -> None:
    result = SideVote(None).exactly(exactly(np.array([[0.0]])))
    assert (result.fractions(), result.radius.fractions()) == ([Fraction(1, 2)], [Fraction(1, 2)])


def test_a_class_vote_goes_to_the_first_of_the_largest() -> None:
    rows = np.array([[1.0, 1.0, 0.0], [0.0, 2.0, 2.0], [3.0, 1.0, 3.0], [0.0, 0.0, 5e-324]])
    vote = ClassVote(3)
    assert vote.exactly(exactly(rows)).floats().tolist() == [
        [1, 0, 0],
        [0, 1, 0],
        [1, 0, 0],
        [0, 0, 1],
    ]
    near = vote.enclose(Enclosure(rows, np.full_like(rows, 1e-9)), FLOAT64)
    assert near.values[0].tolist() == [0.5, 0.5, 0.0]
    assert near.errors[0].tolist() == [0.5, 0.5, 0.0]


def test_a_class_vote_of_overlapping_intervals_is_undecided() -> None:
    rows = ExactScores(
        Dyadic.of(np.array([[1.0, 0.5, 0.0]])), Dyadic.of(np.array([[0.25, 0.25, 0.0]]))
    )
    result = ClassVote(3).exactly(rows)
    assert result.radius.fractions() == [Fraction(1, 2), Fraction(1, 2), 0]


def test_a_pair_and_a_chosen_score_are_exact() -> None:
    scores = exactly(np.array([[0.1], [1.0]]))
    assert Pair().exactly(scores).fractions() == [1 - Fraction(0.1), Fraction(0.1), 0, 1]
    two = exactly(np.array([[0.25, 0.75]]))
    assert Chosen(1, 2).exactly(two).fractions() == [Fraction(3, 4)]


@pytest.mark.parametrize(
    ("at", "values"), [([0.0, 0.0], [0.0, 1.0]), ([0.0, 1.0], [1.0, 0.0]), ([], []), ([0], [0, 1])]
)
def test_points_of_an_interpolation_must_ascend(at: list[float], values: list[float]) -> None:
    with pytest.raises(
        NetworkError, match=r"^invalid points of an interpolation: got .* ascending"
    ):
        Interpolation(np.array(at), np.array(values))
