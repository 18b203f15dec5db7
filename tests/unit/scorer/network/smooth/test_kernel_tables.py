"""Smooth functions of the compiled kernel, with balls of 600 bits as the oracle (lemmas 22, 23)."""

from collections.abc import Iterator

import numpy as np
import pytest

native = pytest.importorskip("feta._native")
pytest.importorskip("flint", reason="python-flint is not installed")

from flint import arb, ctx

from feta.arrays import Vector
from feta.scorer.network.smooth.activation import FACTS, Smooth
from feta.scorer.network.smooth.kernel_table import KernelTable, kernel_table
from feta.scorer.network.smooth.native_smooth import native_smooth
from tests.smooth_cases import TRUTH

PARAMETERS = {True: (1.0, 0.5, 1.7, 1000.0, 2.0**-12), False: (1.0,)}
CASES = [
    (name, parameter)
    for name, facts in FACTS.items()
    for parameter in PARAMETERS[facts.positive_parameter]
]


@pytest.fixture(autouse=True)
def precision() -> Iterator[None]:
    before = ctx.prec
    ctx.prec = 600
    yield
    ctx.prec = before


def truth(name: str, parameter: float, points: Vector) -> list[object]:
    return [TRUTH[name](arb(float(point)), arb(parameter)) for point in points]


def points_of(seed: int) -> Vector:
    rng = np.random.default_rng(seed)
    ends = np.arange(-22, 22.1, 0.6875)
    special = [0.0, -0.0, 1e-300, -1e-30, 3.0, -3.0, 99.0, -99.0]
    return np.sort(
        np.concatenate([ends, special, rng.normal(size=60) * 2, rng.uniform(-40, 40, 40)])
    )


def kernel_bounds(
    function: object, slope: float, points: Vector, *, simd: bool
) -> tuple[object, object]:
    """Bound f(x) − slope · x over all nodes and score it at all points; return also the tree.

    The second neuron passes unchanged, so the extremes of a node may be inside it.
    """
    kernel = native.Kernel(np.zeros(2), np.zeros(2), 2)
    twice = np.stack([points, points], axis=1)
    kernel.add_axis(twice, np.abs(twice))
    first = np.array([1, 0], dtype=np.uint8)
    kernel.add_smooth_layer(function, first, np.array([[1.0, -slope]]), np.zeros(1), np.zeros(1))
    kernel.set_rule(0, 0.0, True, 0, 1, 2)
    kernel.finish(simd)
    tree, zero = kernel.tree(0), np.zeros((1, 2))
    nodes = np.arange(len(tree.begin), dtype=np.int32)[:, None]
    everything = np.arange(len(points), dtype=np.int32)[:, None]
    return kernel.node_bounds(zero, zero, nodes, everything), tree


def wrong_values(
    name: str, parameter: float, function: object, *, slope: float = 0.5, simd: bool
) -> int:
    """Count points and nodes whose bounds do not contain f(x) − slope · x."""
    points = points_of(3)
    values = zip(truth(name, parameter, points), points, strict=True)
    exact = [value - arb(slope) * arb(float(at)) for value, at in values]  # type: ignore[operator]
    bounds, tree = kernel_bounds(function, slope, points, simd=simd)
    wrong = 0
    for row, value in enumerate(exact):
        for scores, errors in (
            (bounds.scores32, bounds.errors32),  # type: ignore[attr-defined]
            (bounds.scores64, bounds.errors64),  # type: ignore[attr-defined]
        ):
            distance = abs(value - arb(float(scores[row, 0])))
            wrong += not distance <= arb(float(errors[0]))
    middles = np.array([float(value.mid()) for value in exact])
    for node in range(len(tree.begin)):  # type: ignore[attr-defined]
        inside = middles[tree.order[tree.begin[node] : tree.end[node]]]  # type: ignore[attr-defined]
        for low, high in (
            (bounds.low[node, 0], bounds.high[node, 0]),  # type: ignore[attr-defined]
            (bounds.backward_low[node], bounds.backward_high[node]),  # type: ignore[attr-defined]
        ):
            wrong += not (low <= inside.min() and inside.max() <= high)
    return wrong


@pytest.mark.parametrize("simd", [True, False])
@pytest.mark.parametrize(("name", "parameter"), CASES)
def test_values_and_bounds_contain_the_function(name: str, parameter: float, simd: bool) -> None:
    function, _ = native_smooth(Smooth(name, parameter))
    for slope in (0.0, 0.5):
        assert wrong_values(name, parameter, function, slope=slope, simd=simd) == 0


@pytest.mark.parametrize("planted", ["single", "double", "windows"])
def test_an_error_of_one_cell_is_found(planted: str) -> None:
    table = kernel_table("tanh", 1.0)
    arrays = {"single": table.single, "double": table.double, "windows": table.windows}
    arrays = {name: array.copy() for name, array in arrays.items()}
    if planted == "windows":
        arrays[planted][:, 3] -= 0.3  # all rows: which one a node needs is hard to say
    else:  # the cell that begins at 0
        arrays[planted][len(arrays[planted]) // 2, 0] -= 1e-3
    function, _ = native_smooth(Smooth("tanh"))
    assert wrong_values("tanh", 1.0, function, simd=True) == 0
    function.set_cells(table.inner, *table.firsts, arrays["single"], arrays["double"])
    function.set_windows(arrays["windows"], table.reach, 0.0, table.slope_step)
    assert wrong_values("tanh", 1.0, function, simd=True) > 0


@pytest.mark.parametrize(("name", "parameter"), CASES)
def test_extremes_are_at_the_ends_or_in_windows(name: str, parameter: float) -> None:
    table, rng = kernel_table(name, parameter), np.random.default_rng(8)
    points = np.sort(np.concatenate([points_of(8), rng.uniform(-4, 4, 60)]) / abs(table.inner))
    exact = truth(name, parameter, points)
    values = np.array([float(value.mid()) for value in exact])  # type: ignore[attr-defined]
    for row in range(0, len(table.windows), 3):
        slope = np.float32(row + table.first_slope) * np.float32(table.slope_step)
        residuals = values - float(slope) * points
        rounding = 2.0**-40 * np.abs(points).max() * (1 + abs(float(slope))) + 2.0**-40
        for _ in range(4):
            left, right = np.sort(rng.choice(len(points), 2, replace=False))
            low, high = hull(table, row, (points[left], points[right]), residuals[[left, right]])
            inside = residuals[left : right + 1]
            assert low - rounding <= inside.min()
            assert inside.max() <= high + rounding


def hull(
    table: KernelTable, row: int, ends: tuple[float, float], residuals: Vector
) -> tuple[float, float]:
    """Return what the kernel concludes from the ends of an interval and the windows of a slope."""
    at_low, lowest, at_high, highest = table.windows[row].tolist()
    before, after = ends[0] - table.reach, ends[1] + table.reach
    low = min(*residuals, lowest if before <= at_low <= after else np.inf)
    high = max(*residuals, highest if before <= at_high <= after else -np.inf)
    return low - table.window_error, high + table.window_error


def test_windows_are_narrow_and_close_to_the_extremes() -> None:
    for name, parameter in CASES:
        table = kernel_table(name, parameter)
        assert table.reach * abs(table.inner) < 0.02
    table = kernel_table("tanh", 1.0)
    row = table.windows[64]  # tanh(x) − x / 2 is highest where tanh(x)² = 1/2
    at = np.arctanh(np.sqrt(0.5))
    assert abs(row[2] - at) < table.reach
    assert 0 <= row[3] - (np.tanh(at) - at / 2) < 1e-6


def test_shapes_are_checked() -> None:
    function = native.Smooth()
    with pytest.raises(ValueError, match="invalid shape of coefficients"):
        function.set_cells(1.0, 0, 0, np.zeros((3, 3)), np.zeros((3, 12)))
    with pytest.raises(ValueError, match="invalid cells: expected a finite factor"):
        function.set_cells(1.0, 0, 0, np.zeros((0, 4)), np.zeros((3, 12)))
    with pytest.raises(ValueError, match="invalid windows: expected a row for each slope"):
        function.set_windows(np.zeros((0, 4)), 0.0, 0.0, 1.0)
    kernel = native.Kernel(np.zeros(2), np.zeros(2), 1)
    weights = np.ones((1, 2)), np.zeros(1), np.zeros(1)
    with pytest.raises(ValueError, match="invalid activation: expected a function"):
        kernel.add_smooth_layer(function, np.ones(1, dtype=np.uint8), *weights)
    tanh, _ = native_smooth(Smooth("tanh"))
    with pytest.raises(ValueError, match="expected one flag, or one for each neuron"):
        kernel.add_smooth_layer(tanh, np.ones(3, dtype=np.uint8), *weights)
