"""Charts: scales, ticks and labels that do not cover each other."""

from itertools import pairwise
from xml.etree import ElementTree

import pytest

from feta_paper.charts import Scale, even, number, powers, spread_out, text
from feta_paper.figures import figures_of
from feta_paper.quantities import NEVER_APART
from feta_paper.tables import ARMS
from feta_paper.trade_off import SHORT, Point, best
from tests.made_up_measurements import made_up


def test_a_scale_puts_its_ends_at_its_ends() -> None:
    scale = Scale(1, 1000, 10, 40, log=True)
    assert [scale(one) for one in (1, 10, 100, 1000)] == pytest.approx([10, 20, 30, 40])
    assert scale.ticks() == [1, 10, 100, 1000]
    assert Scale(0, 50, 0, 1).ticks() == [0, 10, 20, 30, 40, 50]


def test_flat_and_single_values_still_have_a_scale() -> None:
    for scale in (even([5.0, 5.0], 0, 100), even([0.0], 0, 100), powers([10.0], 0, 100)):
        assert scale.high > scale.low
        assert scale.ticks()


@pytest.mark.parametrize(
    ("value", "words"), [(0, "0"), (0.1 + 0.2, "0.3"), (10_000, "10,000"), (1e6, "10⁶"), (2e-5, "2·10⁻⁵"), (-0.0, "0")],
)  # fmt: skip
def test_ticks_are_short(value: float, words: str) -> None:
    assert number(value) == words


def test_labels_keep_their_order_and_their_distance() -> None:
    placed = spread_out([50, 50, 51, 10, 99], 0, 100, gap=15)
    order = sorted(placed)
    assert all(b - a >= 15 - 1e-9 for a, b in pairwise(order))
    assert placed[3] < placed[0] < placed[1] < placed[2] < placed[4] <= 100


def test_a_text_in_a_picture_is_escaped() -> None:
    assert "<script" not in text(0, 0, "<script>")


def test_only_unbeaten_points_are_joined() -> None:
    named = {"a": (0, 75), "b": (10, 80), "c": (10, 70), "d": (0, 74)}
    points = [Point(name, name, "circle", rate, accuracy) for name, (rate, accuracy) in named.items()]  # fmt: skip
    assert [one.name for one in best(points)] == ["a", "b"]


@pytest.mark.parametrize("dataset", ["german", "law", "adult"])
def test_all_five_figures_are_drawn_within_their_frames(dataset: str) -> None:
    figures = figures_of(made_up(dataset))
    assert len(figures) == 5
    for drawing in (one for figure in figures for one in figure.drawings):
        svg = ElementTree.fromstring(drawing)
        _, _, width, height = map(float, svg.attrib["viewBox"].split())
        across, down = zip(*(place for one in svg.iter() for place in places(one)), strict=True)
        assert 0 <= min(across) <= max(across) <= width
        assert 0 <= min(down) <= max(down) <= height
    assert all(len(one.caption) > 80 for one in figures)


def places(element: ElementTree.Element) -> list[tuple[float, float]]:
    """Give the points an element is drawn at; texts by where they are fixed."""
    pairs = [one.split(",") for one in element.get("points", "").split()]
    for x, y in (("x", "y"), ("x1", "y1"), ("x2", "y2"), ("cx", "cy")):
        if x in element.attrib:
            pairs.append([element.attrib[x], element.attrib[y]])
    return [(float(x), float(y)) for x, y in pairs]


def test_every_approach_that_treats_nobody_apart_is_in_the_picture() -> None:
    assert set(NEVER_APART) < set(SHORT) <= set(ARMS)
