import numpy as np
import pytest

from feta import Categorical, Derived, FeatureSpace, Integer, Real
from feta.arrays import Vector
from feta.cells.cells import Cells

SPACE = FeatureSpace(
    (
        Derived("band", "age", (("young", 20, 21), ("old", 22, 24))),
        Integer("age", 20, 24, sensitive=True),
        Real("hours", -1.0, 3.0, sensitive=True),
        Categorical("sex", ("female", "male"), sensitive=True),
        Real("income", 0, 9),
    )
)
PERSON = SPACE.encode({"age": 22, "hours": 0.5, "sex": "male", "income": 7.0})[0]
WHOLE = Cells.whole(SPACE.axes)


def test_the_whole_cell_extends_from_end_to_end() -> None:
    assert WHOLE.lower.tolist() == [[0.0, -1.0, 0.0]]
    assert WHOLE.upper.tolist() == [[4.0, 3.0, 1.0]]
    assert [axis.columns for axis in WHOLE.axes] == [(2, 0, 1), (3,), (4, 5)]
    assert WHOLE.counts().tolist() == [np.inf]


def test_a_cut_between_two_values_loses_nobody_and_repeats_nobody() -> None:
    halves = WHOLE.cut(0, 0, 1.0)
    assert halves.upper[0, 0] == 1.0
    assert halves.lower[1, 0] == 2.0
    real = WHOLE.cut(0, 1, 0.25)
    assert real.upper[0, 1] == real.lower[1, 1] == 0.25


def test_a_point_cannot_be_cut() -> None:
    point = Cells(WHOLE.axes, np.array([[2.0, 1.0, 1.0]]), np.array([[2.0, 1.0, 1.0]]))
    assert np.isnan(point.middles(0)).all()
    assert point.counts().tolist() == [1.0]
    neighbor = np.nextafter(1.0, 2.0)
    two = Cells(WHOLE.axes, point.lower, np.array([[2.0, neighbor, 1.0]]))
    assert np.isnan(two.middles(0)).all()  # there is no float64 between two neighbors


def test_corners_are_people_with_matching_derived_columns() -> None:
    cell = Cells(WHOLE.axes, np.array([[1.0, 0.5, 0.0]]), np.array([[2.0, 3.0, 0.0]]))
    corners = cell.corners(0, PERSON, 16)
    assert corners is not None
    SPACE.check(corners)
    records = [SPACE.decode(person) for person in corners]
    assert {(record["age"], record["hours"], record["sex"]) for record in records} == {
        (age, hours, "female") for age in (21, 22) for hours in (0.5, 3.0)
    }
    assert all(record["income"] == 7.0 for record in records)
    assert cell.corners(0, PERSON, 3) is None
    assert WHOLE.corners(0, PERSON, 4) is None


@pytest.mark.parametrize("coordinates", [[0.0, -1.0, 0.0], [4.0, 2.75, 1.0]])
def test_people_at_coordinates_are_in_the_space(coordinates: Vector) -> None:
    SPACE.check(WHOLE.people(np.array([coordinates]), PERSON))
