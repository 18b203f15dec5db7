from fractions import Fraction

import numpy as np
import pytest

from feta.dyadic import Dyadic
from feta.errors import CertificateError
from feta.rounding import DIFFERENCE, FLOAT64
from feta.rule import UNDECIDED, Band
from feta.rule.band import SMALLEST_EPSILON
from feta.scorer.exact_scores import ExactScores
from tests.rules import corners, enclosure, exact, points_of

ULP = 2.0**-52  # from 1 to the next number


def band_at(center: float, epsilon: float) -> Band:
    return Band.around(epsilon, Dyadic.of([[center]]))


@pytest.mark.parametrize("reference", [0.0, 3.0, -0.1, 1e300])
@pytest.mark.parametrize("half", [0.0, 0.1, 2.0])
def test_a_band_contains_scores_up_to_exactly_half_of_epsilon_away(
    reference: float, half: float
) -> None:
    band = band_at(reference, 2 * half)
    center, radius = Dyadic.of([[reference]]), Dyadic.of([[half]])
    step = Dyadic.of([[5e-324]])
    for edge, beyond in ((center + radius, step), (center - radius, -step)):
        assert band.decide_exactly(ExactScores(edge)).tolist() == [0]
        assert band.decide_exactly(ExactScores(edge + beyond)).tolist() == [1]
        assert band.decide_exactly(ExactScores(edge - beyond)).tolist() == [0 if half else 1]


@pytest.mark.parametrize("epsilon", [0.0, 0.5, 1.0, 2.0])
@pytest.mark.parametrize("center", [0.0, 0.25, -0.5])
def test_an_interval_is_decided_if_all_its_points_are_inside_or_all_outside(
    epsilon: float, center: float
) -> None:
    halves = np.arange(-8, 9)[:, None] / 4
    scores = exact(np.tile(halves, (4, 1)), np.repeat([0.0, 0.25, 0.5, 1.0], 17)[:, None])
    limit, middle = Fraction(epsilon) / 2, Fraction(center)
    expected = []
    for box in corners(scores):
        low, high = min(box)[0], max(box)[0]
        nearest = min(max(middle, low), high)  # of the interval, to the center
        outside = {abs(point - middle) > limit for point in (low, high, nearest)}
        expected.append(int(outside.pop()) if len(outside) == 1 else UNDECIDED)
    decisions = band_at(center, epsilon).decide_exactly(scores)
    assert decisions.tolist() == expected
    assert decisions.dtype == np.int8
    assert set(expected) == {UNDECIDED, 0, 1}


def test_a_distance_within_its_error_of_half_of_epsilon_is_undecided() -> None:
    values = [[3.0], [4.5], [1.5], [4.5], [4.0], [2.0], [np.nan], [9.0]]
    errors = [[0.9], [0.4], [0.4], [0.5], [0.0], [0.0], [0.0], [np.inf]]
    decisions = band_at(3.0, 2.0).decide(enclosure(values, errors))
    assert decisions.tolist() == [*(0, 1, 1), *[UNDECIDED] * 5]
    assert decisions.dtype == np.int8


@pytest.mark.parametrize(
    ("value", "inside"), [(4.5, False), (1.5, False), (3.5, True), (2.5, True)]
)
def test_the_rounding_of_the_distance_itself_counts(value: float, *, inside: bool) -> None:
    """The distance of 0.5 to an end covers twice the error and the rounding, and no more."""
    slack = DIFFERENCE * (2 * value + 6.0 + 2.0)  # twice the value and the center, and epsilon
    room = (1.0 - slack) / 2
    band = band_at(3.0, 2.0)
    assert band.decide(enclosure([[value]], [[room]])).tolist() == [UNDECIDED]
    assert band.decide(enclosure([[value]], [[room - ULP]])).tolist() == [0 if inside else 1]


def test_the_size_of_negative_numbers_counts() -> None:
    slack = DIFFERENCE * (9.0 + 6.0 + 2.0)
    band = band_at(-3.0, 2.0)
    assert band.decide(enclosure([[-4.5]], [[(1.0 - slack) / 2]])).tolist() == [UNDECIDED]
    assert band.decide(enclosure([[-4.5]], [[(1.0 - slack) / 2 - ULP]])).tolist() == [1]


def test_the_smallest_distances_are_undecided() -> None:
    band = band_at(0.0, 0.0)
    values = [[FLOAT64.tiny / 2], [FLOAT64.tiny]]
    assert band.decide(enclosure(values, 0.0)).tolist() == [UNDECIDED, 1]


def test_the_center_is_exactly_the_middle_of_the_scores() -> None:
    """The middle of 0.1 and 0.75 is not a float64."""
    band = Band.around(0.5, Dyadic.of([[0.75], [0.1], [0.3]]))
    assert band.center == (Fraction(0.1) + Fraction(0.75)) / 2
    middle = Band.around(0.5, Dyadic.of([[0.3], [0.75], [0.25]]))
    edges = exact([[0.25], [0.75], [0.25 - ULP], [0.75 + ULP]])
    for same in (middle, Band.at(0.5, middle.center)):
        assert same.center == Fraction(1, 2)
        assert same.epsilon == 0.5
        assert same.doubled_center.numerators.dtype == object  # int64 would overflow
        assert same.decide_exactly(edges).tolist() == [0, 0, 1, 1]


@pytest.mark.parametrize("center", [-7, 0, 12, Fraction(-5, 8), Fraction(2) ** -1100])
def test_a_band_is_read_back_from_its_center(center: Fraction) -> None:
    band = Band.at(1.0, Fraction(center))
    assert band.center == center
    assert Band.at(1.0, band.center).center == center


@pytest.mark.parametrize("center", [Fraction(1, 3), Fraction(5, 6), Fraction(1, 7)])
def test_a_center_must_be_an_integer_times_a_power_of_two(center: Fraction) -> None:
    message = rf"^invalid center of a band: got {center}; expected an integer times a power of two$"
    with pytest.raises(CertificateError, match=message):
        Band.at(1.0, center)


@pytest.mark.parametrize("epsilon", [5e-324, 2.0**-1040, 0.0, 2.0**-900])
def test_a_tolerance_that_cannot_be_halved_proves_nothing_by_bounds(epsilon: float) -> None:
    assert SMALLEST_EPSILON == 2.0**-900
    band = band_at(0.0, epsilon)
    assert band.half == 0.0
    assert band.decide_exactly(exact([[0.0]])).tolist() == [0]


def test_half_of_a_larger_tolerance_is_exact() -> None:
    epsilon = np.nextafter(2.0**-900, 1.0)
    assert band_at(0.0, epsilon).half == epsilon / 2
    assert band_at(0.0, 3.0).half == 1.5


@pytest.mark.parametrize("reference", [3.0, -0.1, 0.0, 2.0**60, -(2.0**1000), 5e-324])
def test_the_objective_is_the_distance_on_both_sides_of_the_center(reference: float) -> None:
    objective = band_at(reference, 1.0).objective()
    assert objective.directions.tolist() == [[1], [-1]]
    assert objective.offsets.fractions() == [-Fraction(reference), Fraction(reference)]
    assert (objective.level, objective.least) == (0.5, False)


def test_a_band_around_several_scores_contains_them() -> None:
    known = exact([[0.125], [0.5], [1.0]])
    band = Band.around(0.875, known.centers)
    assert points_of(known)[0][0] < band.center < points_of(known)[2][0]
    assert band.decide_exactly(known).tolist() == [0, 0, 0]
