"""Minima, sizes and error bounds of the first layer, compared with every corner of each cell."""

from collections.abc import Iterator
from dataclasses import dataclass, field
from fractions import Fraction

import numpy as np
import pytest
from numpy.typing import NDArray

import feta
from feta.arrays import Matrix, Vector
from feta.bounds import first_layer
from feta.bounds.first_layer import FirstLayer, Sloped, Tabled, Terms, tabulable
from feta.cells.cells import Cells
from feta.rounding import FLOAT64, FLOOR
from feta.scorer.network.layers import Columns, LookupTable
from feta.space.attribute import Categorical, Derived, Integer, Levels, Real
from feta.space.feature_space import FeatureSpace
from tests.unit.bounds.exact_layers import dot, eighths, fraction, fractions, is_barely_above

SPACE = FeatureSpace(
    (
        Real("income", -8, 8),
        Integer("age", 18, 20, sensitive=True),
        Levels("hours", (-1.0, 0.5, 3.0), sensitive=True),
        Categorical("sex", ("f", "m", "x"), sensitive=True),
        Real("weight", -2, 4, sensitive=True),
        Integer("years", 0, 2, sensitive=True),  # has a stored table
        Real("height", 0, 2),
    )
)
PERSON = np.array([3.5, 19.0, 0.5, 0.0, 1.0, 0.0, -1.0, 2.0, 0.25])
YEARS = 7
# All counterparts, a few of them, and one. Attributes: age, hours, sex, weight, years.
CELLS = Cells(
    SPACE.axes,
    np.array([[0, 0, 0, -2, 0], [1, 1, 1, 0.25, 1], [2, 1, 1, -1.5, 2.0]]),
    np.array([[2, 2, 2, 4, 2], [2, 2, 2, 0.5, 1], [2, 1, 1, -1.5, 2.0]]),
)


def drawn(numbers: NDArray[np.float64], rows: Matrix) -> Columns:
    """Return a first layer over SPACE: a bias, slopes, and a table for `years`."""
    slopes = np.array(numbers[:, 1:])
    slopes[:, YEARS] = 0.0
    return Columns(numbers[:, 0], slopes, (LookupTable(YEARS, np.arange(3.0), rows),))


def dyadic_layer() -> Columns:
    rng = np.random.default_rng(0)
    return drawn(eighths(rng, 6, 10), eighths(rng, 3, 6))


def rough_layer() -> Columns:
    rng = np.random.default_rng(1)
    return drawn(rng.normal(size=(6, 10)), rng.normal(size=(3, 6)))


def over_cells(columns: Columns) -> FirstLayer:
    return Terms.of(columns, SPACE.axes).at(PERSON, CELLS)


def corners(row: int) -> Matrix:
    people = CELLS.corners(row, PERSON, 10**6)
    assert people is not None
    return people


def terms_of(columns: Columns, person: Vector, neuron: int) -> Iterator[Fraction]:
    """Yield the bias and all terms of a neuron exactly."""
    yield fraction(columns.bias[neuron])
    for slope, number in zip(columns.slopes[neuron], person, strict=True):
        yield fraction(slope) * fraction(number)
    yield fraction(columns.tables[0].rows[int(person[YEARS]), neuron])


def neurons_of(columns: Columns, person: Vector) -> list[Fraction]:
    return [sum(terms_of(columns, person, n), Fraction(0)) for n in range(columns.outputs)]


def test_the_minimum_over_a_cell_is_that_of_its_corners() -> None:
    columns = dyadic_layer()
    rows = eighths(np.random.default_rng(2), len(CELLS), 4, columns.outputs)
    minima = over_cells(columns).minimum(rows)
    assert minima.shape == (len(CELLS), 4)
    for cell in range(len(CELLS)):
        values = [neurons_of(columns, person) for person in corners(cell)]
        for number, row in enumerate(rows[cell]):
            exact = min(dot(fractions(row), neurons) for neurons in values)
            assert minima[cell, number] == pytest.approx(float(exact), rel=1e-12, abs=1e-12)


def test_the_box_of_a_cell_contains_its_corners_and_no_more() -> None:
    columns = dyadic_layer()
    box = over_cells(columns).box()
    for cell in range(len(CELLS)):
        values = np.array([neurons_of(columns, person) for person in corners(cell)])
        for lower, upper, exact in zip(box.lower[cell], box.upper[cell], values.T, strict=True):
            assert min(exact) - Fraction(1, 10**11) < fraction(lower) < min(exact)
            assert max(exact) < fraction(upper) < max(exact) + Fraction(1, 10**11)


def test_the_size_is_the_largest_sum_of_absolute_terms() -> None:
    columns = rough_layer()
    first = over_cells(columns)
    for cell in range(len(CELLS)):
        for neuron in range(columns.outputs):
            sums = [sum(map(abs, terms_of(columns, person, neuron))) for person in corners(cell)]
            assert first.size[cell, neuron] == pytest.approx(float(max(sums)), rel=1e-12)


def test_the_error_covers_the_rounding_of_each_column_and_of_the_bias() -> None:
    columns = rough_layer()
    first = over_cells(columns)
    gamma = fraction(FLOAT64.gamma(columns.width + 1))
    for cell in range(len(CELLS)):
        for neuron in range(columns.outputs):
            sums = [sum(map(abs, terms_of(columns, person, neuron))) for person in corners(cell)]
            assert is_barely_above(first.error[cell, neuron], gamma * max(sums))


@dataclass(frozen=True)
class ZeroColumns:
    """A first layer whose terms are all 0, also their sizes."""

    bias: Vector = field(default_factory=lambda: np.zeros(2))
    slopes: Matrix = field(default_factory=lambda: np.zeros((2, 3)))
    tabled: tuple[int, ...] = ()
    width: int = 3

    def terms(self, codes: Matrix, columns: object) -> tuple[Matrix, Matrix]:
        assert np.shape(codes)[1] == len(np.atleast_1d(np.array(columns)))
        return np.zeros((len(codes), 2)), np.zeros((len(codes), 2))


def test_underflow_has_an_error_where_all_terms_are_zero() -> None:
    nothing = np.zeros((1, 0))
    terms = Terms(ZeroColumns(), (), (), shared=(0, 1, 2))
    first = terms.at(np.zeros(3), Cells((), nothing, nothing))
    for error in first.error.ravel():
        assert is_barely_above(error, 5 * 4 * fraction(FLOAT64.tiny))  # three columns and a bias


def test_the_box_has_twice_the_error() -> None:
    """Large terms cancel exactly, so the ends of the box are the error."""
    space = FeatureSpace((Real("a", 0, 2.0**40, sensitive=True), Real("b", 0, 2.0**40)))
    columns = Columns(np.array([-(2.0**41), 2.0**41]), np.array([[1.0, 1.0], [-1.0, -1.0]]))
    person = np.full(2, 2.0**40)
    cell = Cells(space.axes, np.array([[2.0**40]]), np.array([[2.0**40]]))
    first = Terms.of(columns, space.axes).at(person, cell)
    box = first.box()
    np.testing.assert_allclose(box.lower, -2 * first.error, rtol=1e-12)
    np.testing.assert_allclose(box.upper, 2 * first.error, rtol=1e-12)


@pytest.mark.parametrize("sign", [1.0, -1.0])
def test_the_argmax_is_a_counterpart_with_the_largest_value(sign: float) -> None:
    columns = dyadic_layer()
    row = sign * eighths(np.random.default_rng(4), len(CELLS), columns.outputs) / 16
    chosen = over_cells(columns).argmax(row)
    assert chosen.shape == CELLS.lower.shape
    assert ((CELLS.lower <= chosen) & (chosen <= CELLS.upper)).all()
    people = CELLS.people(chosen, PERSON)
    for cell, person in enumerate(people):
        weights = fractions(row[cell])
        largest = max(dot(weights, neurons_of(columns, other)) for other in corners(cell))
        assert dot(weights, neurons_of(columns, person)) == largest


def test_the_spread_is_the_range_of_each_attributes_term() -> None:
    columns = dyadic_layer()
    spread = over_cells(columns).spread()
    assert spread.shape == (len(CELLS), len(SPACE.axes), columns.outputs)
    for cell in range(len(CELLS)):
        others = corners(cell)
        for index, axis in enumerate(SPACE.axes):
            moved = np.repeat(PERSON[None], len(others), axis=0)
            moved[:, list(axis.columns)] = others[:, list(axis.columns)]
            values = np.array([neurons_of(columns, other) for other in np.unique(moved, axis=0)])
            exact = [float(max(neuron) - min(neuron)) for neuron in values.T]
            np.testing.assert_allclose(spread[cell, index], exact, rtol=1e-12)


def test_products_that_underflow_count_in_the_size() -> None:
    axes = FeatureSpace((Real("a", -1, 1e300, sensitive=True),)).axes
    ends = np.array([[0.0, 0.0], [-1.0, 0.0], [0.0, 2.0**-200], [-1.0, 8.0], [1e300, 1e300]])
    slopes = np.array([0.0, 2.0**-200, -3.0, 1e-5])
    size = Sloped(slopes).size(Cells(axes, ends[:, :1], ends[:, 1:]), 0)
    for number, (low, high) in enumerate(ends):
        for neuron, slope in enumerate(slopes):
            largest = max(abs(fraction(low)), abs(fraction(high))) + fraction(FLOOR)
            exact = float(largest * (abs(fraction(slope)) + fraction(FLOOR)))
            assert size[number, neuron] == pytest.approx(exact, rel=1e-12, abs=0.0)


def test_the_size_of_a_table_is_that_of_the_values_in_the_cell() -> None:
    axes = FeatureSpace((Categorical("c", tuple("abcd"), sensitive=True),)).axes
    sizes = np.array([[9.0, 0.25], [0.5, 0.125], [0.25, 2.0**-30], [7.0, 8.0]])
    table = Tabled(np.zeros((4, 2)), sizes)
    cells = Cells(axes, np.array([[1.0], [2.0], [0.0]]), np.array([[2.0], [2.0], [3.0]]))
    assert table.size(cells, 0).tolist() == [[0.5, 0.125], [0.25, 2.0**-30], [9.0, 8.0]]


def test_equal_values_in_a_table_do_not_spread() -> None:
    axes = FeatureSpace((Categorical("c", tuple("abc"), sensitive=True),)).axes
    table = Tabled(np.array([[5.0], [-2.0], [-2.5]]), np.ones((3, 1)))
    cells = Cells(axes, np.array([[1.0], [1.0], [0.0]]), np.array([[1.0], [2.0], [2.0]]))
    assert table.spread(cells, 0).tolist() == [[0.0], [0.5], [7.5]]
    assert table.argmax(np.array([[1.0], [-1.0], [1.0]]), cells, 0).tolist() == [1.0, 2.0, 0.0]


class Recorded(np.ndarray[tuple[int, ...], np.dtype[np.float64]]):
    """Rows that record how they are sliced into blocks."""

    blocks: tuple[slice, ...] = ()

    def __getitem__(self, index: slice) -> NDArray[np.float64]:  # type: ignore[override]
        self.blocks = (*self.blocks, index)
        return np.asarray(self)[index]


def recorded(rows: NDArray[np.float64]) -> Recorded:
    return rows.view(Recorded)


@pytest.mark.parametrize(
    ("numbers", "step"), [(1, 1), (29, 1), (30, 1), (59, 1), (60, 2), (105, 3), (210, 7), (999, 7)]
)
def test_a_long_table_is_searched_in_blocks_of_cells(
    numbers: int, step: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Three rows times ten values are 30 numbers per cell."""
    monkeypatch.setattr(first_layer, "BLOCK_NUMBERS", numbers)
    rng = np.random.default_rng(0)
    axes = FeatureSpace((Categorical("c", tuple("abcdefghij"), sensitive=True),)).axes
    lower = rng.integers(0, 5, (7, 1)).astype(np.float64)
    cells = Cells(axes, lower, lower + rng.integers(0, 6, (7, 1)))
    table = Tabled(eighths(rng, 10, 2), np.ones((10, 2)))
    rows = recorded(eighths(rng, 7, 3, 2))
    minima = table.minimum(rows, cells, 0)
    starts = range(0, 7, step)
    assert [(b.start, min(b.stop, 7)) for b in rows.blocks] == [
        (start, min(start + step, 7)) for start in starts
    ]
    for cell in range(7):
        inside = table.rows[int(cells.lower[cell, 0]) : int(cells.upper[cell, 0]) + 1]
        expected = (np.asarray(rows)[cell] @ inside.T).min(axis=1)
        np.testing.assert_allclose(minima[cell], expected, rtol=1e-12)


def test_a_block_has_a_million_numbers() -> None:
    """Sixteen rows times 4096 values, for sixteen cells."""
    axes = FeatureSpace((Integer("a", 0, 4095, sensitive=True),)).axes
    table = Tabled(np.arange(4096.0)[:, None], np.ones((4096, 1)))
    cells = Cells(axes, np.zeros((40, 1)), np.full((40, 1), 4095.0))
    rows = recorded(np.ones((40, 16, 1)))
    assert not table.minimum(rows, cells, 0).any()
    assert [(b.start, b.stop) for b in rows.blocks] == [(0, 16), (16, 32), (32, 48)]


def test_only_terms_that_are_not_linear_need_a_table() -> None:
    space = FeatureSpace(
        (
            Integer("linear", 0, 4999, sensitive=True),
            Levels("levels", (0.0, 0.5), sensitive=True),
            Real("real", 0, 1, sensitive=True),
            Categorical("category", ("a", "b"), sensitive=True),
            Integer("flagged", 0, 3, sensitive=True, missing=True),
            Integer("banded", 0, 3, sensitive=True),
            Derived("band", "banded", (("low", 0, 1), ("high", 2, 3))),
            Integer("stored", 0, 1, sensitive=True),
            Real("shared", 0, 1),
        )
    )
    column = space.columns_of(space.attribute("stored")).start
    columns = Columns(
        np.zeros(1),
        np.where(np.arange(space.width) == column, 0.0, np.arange(space.width))[None],
        (LookupTable(column, np.array([0.0, 1.0]), np.array([[1.0], [5.0]])),),
    )
    terms = Terms.of(columns, space.axes)
    kinds = dict(zip([axis.attribute.name for axis in space.axes], terms.each, strict=True))
    assert {name: type(term) for name, term in kinds.items()} == {
        "linear": Sloped,
        "levels": Sloped,
        "real": Sloped,
        "category": Tabled,
        "flagged": Tabled,
        "banded": Tabled,
        "stored": Tabled,
    }
    shared = space.columns_of(space.attribute("shared")).start
    assert terms.shared == (shared,)
    assert tabulable(columns, space.axes)  # long, but linear
    flagged, stored, levels = kinds["flagged"], kinds["stored"], kinds["levels"]
    assert isinstance(flagged, Tabled)
    assert len(flagged.rows) == 5  # four numbers, and none
    assert isinstance(stored, Tabled)
    assert stored.rows.tolist() == [[1.0], [5.0]]
    assert isinstance(levels, Sloped)
    assert levels.slope.tolist() == [columns.slopes[0, 1]]


def test_a_stored_table_of_a_real_attribute_is_not_bounded() -> None:
    space = FeatureSpace((Real("a", 0, 1, sensitive=True),))
    table = LookupTable(0, np.array([0.0, 1.0]), np.ones((2, 1)))
    assert not tabulable(Columns(np.zeros(1), np.zeros((1, 1)), (table,)), space.axes)


def test_a_category_has_no_numbers() -> None:
    axes = FeatureSpace((Categorical("c", ("a", "b"), sensitive=True),)).axes
    with pytest.raises(AssertionError, match="a category has no numbers"):
        Sloped(np.ones(1)).numbers(Cells.whole(axes), 0)


def test_tables_over_the_maximum_length_are_not_bounded() -> None:
    values = tuple(f"v{n}" for n in range(4200))
    for n_values, accepted in ((4096, True), (4097, False), (4200, False)):
        space = feta.FeatureSpace((feta.Categorical("c", values[:n_values], sensitive=True),))
        network = feta.Network.from_layers([(np.ones((1, n_values)), [0.0])])
        assert tabulable(network.first, space.axes) is accepted
