"""Scores known exactly, and scores known to within a radius."""

from fractions import Fraction

import numpy as np
import pytest

from feta.arrays import Matrix
from feta.dyadic import Dyadic
from feta.scorer.exact_scores import UNKNOWN_SIGN, ExactScores

CENTERS = np.array([[1.0, -2.0, 0.1], [1e300, 5e-324, -3.0]])
RADII = np.array([[0.0, 0.25, 0.1], [1e284, 2.0**-1070, 4.0]])
EXACT = ExactScores(Dyadic.of(CENTERS))
ROUGH = ExactScores(Dyadic.of(CENTERS), Dyadic.of(RADII))


def fractions(values: Matrix) -> list[Fraction]:
    return [Fraction(float(value)) for value in values.ravel()]


def radii(scores: ExactScores) -> list[Fraction]:
    assert scores.radii is not None
    return scores.radii.fractions()


def test_numbers_of_points_and_values_are_those_of_the_centers() -> None:
    assert len(EXACT) == len(ROUGH) == 2
    assert ROUGH.fractions() == fractions(CENTERS)
    assert ROUGH.floats().tolist() == CENTERS.tolist()


def test_a_selection_of_points_keeps_their_radii() -> None:
    for chosen in (np.array([1]), slice(1, 2), [1]):
        assert EXACT[chosen].radii is None
        assert EXACT[chosen].fractions() == fractions(CENTERS[1])
        assert ROUGH[chosen].fractions() == fractions(CENTERS[1])
        assert radii(ROUGH[chosen]) == fractions(RADII[1])


@pytest.mark.parametrize("index", range(3))
def test_one_output_is_one_column(index: int) -> None:
    assert EXACT.output(index).centers.numerators.shape == (2, 1)
    assert EXACT.output(index).radii is None
    assert ROUGH.output(index).fractions() == fractions(CENTERS[:, index])
    assert radii(ROUGH.output(index)) == fractions(RADII[:, index])


@pytest.mark.parametrize("offsets", [None, [[0.5, -1e-300]]])
def test_a_combination_has_the_absolute_combination_of_the_radii(
    offsets: list[list[float]] | None,
) -> None:
    directions = np.array([[1.0, -1.0, 0.0], [0.0, -3.0, 0.1]])
    added = None if offsets is None else Dyadic.of(offsets)
    expected, sizes = [], []
    for center, radius in zip(CENTERS, RADII, strict=True):
        for number, row in enumerate(directions):
            exact = zip(fractions(row), fractions(center), strict=True)
            expected.append(sum(w * x for w, x in exact))
            if offsets is not None:
                expected[-1] += Fraction(offsets[0][number])
            sizes.append(
                sum(abs(w) * r for w, r in zip(fractions(row), fractions(radius), strict=True))
            )
    assert EXACT.combined(directions, added).fractions() == expected
    assert EXACT.combined(directions, added).radii is None
    assert ROUGH.combined(directions, added).fractions() == expected
    assert radii(ROUGH.combined(directions, added)) == sizes


def test_the_radii_of_a_difference_add_up() -> None:
    other = ExactScores(Dyadic.of(CENTERS * 2), Dyadic.of(RADII * 4))
    centers = [-value for value in fractions(CENTERS)]
    for left, right, factor in ((EXACT, other, 4), (ROUGH, other, 5)):
        difference = left.minus(right)
        assert difference.fractions() == centers
        assert radii(difference) == [factor * radius for radius in fractions(RADII)]
    assert radii(other.minus(EXACT)) == [4 * radius for radius in fractions(RADII)]
    exact = EXACT.minus(ExactScores(other.centers))
    assert exact.fractions() == centers
    assert exact.radii is None


def test_exact_scores_have_the_radius_zero() -> None:
    assert EXACT.radius.fractions() == [0] * 6
    assert EXACT.radius.numerators.shape == CENTERS.shape
    assert ROUGH.radius is ROUGH.radii


def test_the_sign_is_unknown_only_where_the_radius_reaches_the_level() -> None:
    """The level is 1; intervals may end on it, contain it, or be that point."""
    above, below = np.nextafter(1.0, 2), np.nextafter(1.0, 0)
    level = Dyadic.of([[1.0]])
    cases = [
        # center, radius, sign
        (1.0, 0.0, 0),
        (1.0, 5e-324, UNKNOWN_SIGN),
        (above, 0.0, 1),
        (above, (above - 1) / 2, 1),
        (above, above - 1, UNKNOWN_SIGN),
        (3.0, 4.0, UNKNOWN_SIGN),
        (3.0, below, 1),
        (below, 0.0, -1),
        (below, (1 - below) / 2, -1),
        (below, 1 - below, UNKNOWN_SIGN),
        (-3.0, 4.0, UNKNOWN_SIGN),
        (-3.0, 3.5, -1),
        (-3.0, 5.0, UNKNOWN_SIGN),
    ]
    numbers = np.array(cases)
    scores = ExactScores(Dyadic.of(numbers[:, :1]), Dyadic.of(numbers[:, 1:2]))
    signs = scores.signs(level)
    assert signs.dtype == np.int8
    assert signs.ravel().tolist() == numbers[:, 2].tolist()
    exact = ExactScores(scores.centers).signs(level).ravel()
    assert exact.tolist() == np.sign(numbers[:, 0] - 1).tolist()


def test_an_unknown_sign_is_no_sign() -> None:
    assert UNKNOWN_SIGN == 2
    assert UNKNOWN_SIGN not in {-1, 0, 1}


def test_joined_points_keep_their_order_and_radii() -> None:
    more = ExactScores(Dyadic.of(CENTERS[:1] * 2.0**-60))
    centers = fractions(CENTERS)
    extra = fractions(CENTERS[:1] * 2.0**-60)
    assert EXACT.joined(more).fractions() == centers + extra
    assert EXACT.joined(more).radii is None
    assert len(EXACT.joined(more)) == 3
    assert more.joined(ROUGH).fractions() == extra + centers
    assert radii(more.joined(ROUGH)) == [0] * 3 + fractions(RADII)
    assert radii(ROUGH.joined(more)) == fractions(RADII) + [0] * 3
    assert radii(ROUGH.joined(ROUGH)) == 2 * fractions(RADII)
