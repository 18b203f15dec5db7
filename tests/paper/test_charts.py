"""Tests of charts: scales, ticks, and labels that do not overlap."""

from itertools import pairwise
from xml.etree import ElementTree

import pytest

from feta_paper.charts import Scale, linear, logarithmic, number, spread_out, text
from feta_paper.figures import figures_of
from feta_paper.labels import ARMS
from feta_paper.quantities import FAIR_ARMS
from feta_paper.trade_off import SHORT, Point, best
from tests.made_up_measurements import made_up


def test_a_scale_maps_its_range_to_its_ends() -> None:
    scale = Scale(1, 1000, 10, 40, log=True)
    assert [scale(value) for value in (1, 10, 100, 1000)] == pytest.approx([10, 20, 30, 40])
    assert scale.ticks() == [1, 10, 100, 1000]
    assert Scale(0, 50, 0, 1).ticks() == [0, 10, 20, 30, 40, 50]


def test_flat_and_single_values_still_have_a_scale() -> None:
    for scale in (linear([5.0, 5.0], 0, 100), linear([0.0], 0, 100), logarithmic([10.0], 0, 100)):
        assert scale.high > scale.low
        assert scale.ticks()


@pytest.mark.parametrize(
    ("value", "expected"),
    [
        (0, "0"),
        (0.1 + 0.2, "0.3"),
        (10_000, "10,000"),
        (1e6, "10⁶"),
        (2e-5, "2·10⁻⁵"),
        (-0.0, "0"),
    ],
)
def test_ticks_are_short(value: float, expected: str) -> None:
    assert number(value) == expected


def test_labels_keep_their_order_and_a_minimum_distance() -> None:
    heights = spread_out([50, 50, 51, 10, 99], 0, 100, gap=15)
    assert all(b - a >= 15 - 1e-9 for a, b in pairwise(sorted(heights)))
    assert heights[3] < heights[0] < heights[1] < heights[2] < heights[4] <= 100


def test_a_text_in_a_chart_is_escaped() -> None:
    assert "<script" not in text(0, 0, "<script>")


def test_only_undominated_points_are_joined() -> None:
    named = {"a": (0, 75), "b": (10, 80), "c": (10, 70), "d": (0, 74)}
    points = [
        Point(name, name, "circle", rate, accuracy) for name, (rate, accuracy) in named.items()
    ]
    assert [point.name for point in best(points)] == ["a", "b"]


@pytest.mark.parametrize("dataset", ["german", "law", "adult"])
def test_all_five_figures_are_drawn_within_their_frames(dataset: str) -> None:
    figures = figures_of(made_up(dataset))
    assert len(figures) == 5
    for drawing in (drawing for figure in figures for drawing in figure.drawings):
        svg = ElementTree.fromstring(drawing)
        _, _, width, height = map(float, svg.attrib["viewBox"].split())
        positions = [position for element in svg.iter() for position in positions_of(element)]
        across, down = zip(*positions, strict=True)
        assert 0 <= min(across) <= max(across) <= width
        assert 0 <= min(down) <= max(down) <= height
    assert all(len(figure.caption) > 80 for figure in figures)


def positions_of(element: ElementTree.Element) -> list[tuple[float, float]]:
    """Return the points of an element; for a text, its anchor."""
    pairs = [pair.split(",") for pair in element.get("points", "").split()]
    for x, y in (("x", "y"), ("x1", "y1"), ("x2", "y2"), ("cx", "cy")):
        if x in element.attrib:
            pairs.append([element.attrib[x], element.attrib[y]])
    return [(float(x), float(y)) for x, y in pairs]


def test_every_fair_approach_is_in_the_chart() -> None:
    assert set(FAIR_ARMS) < set(SHORT) <= set(ARMS)
