"""The chart of accuracy against CE rate, one labeled point per approach."""

from dataclasses import dataclass

from markupsafe import Markup

from feta.train.selection import undominated
from feta_paper.charts import (
    LETTER,
    LINE,
    WIDTH,
    chart,
    line,
    linear,
    marker,
    path,
    spread_out,
    text,
    x_axis,
    y_axis,
)
from feta_paper.measurements import Measurements
from feta_paper.quantities import FAIR_ARMS, other_dataset, paper_figure, summary_of

# Short names and shapes in the chart.
SHORT = {
    "nn_b": ("NN_b", "square"),
    "trained": ("CE-Fair", "circle"),
    "other_batch": ("other batch", "circle"),
    "default": ("default", "diamond"),
    "span": ("span", "diamond"),
    "lcifr": ("LCIFR", "triangle"),
    "lcifr_all": ("LCIFR, all", "triangle"),
    "lcifr_original": ("LCIFR, authors'", "triangle"),
    "majority": ("majority class", "cross"),
    "vote": ("NN_b + vote", "square"),
    "empirical_vote": ("NN_b + emp. vote", "square"),
    "trained_vote": ("CE-Fair + vote", "circle"),
    "trained_empirical_vote": ("CE-Fair + emp. vote", "circle"),
    "other_batch_vote": ("other batch + vote", "circle"),
    "default_vote": ("default + vote", "diamond"),
    "span_vote": ("span + vote", "diamond"),
    "chosen": ("chooser", "diamond"),
    "blind_fixed": ("blind, fixed ρ", "cross"),
    "blind_fresh": ("blind, fresh ρ", "cross"),
    "blind_full": ("blind, full", "cross"),
    "blind_logistic": ("blind logistic", "cross"),
}
LEFT, RIGHT, TOP, LOWEST = 148, WIDTH - 42, 26, 250

# Left, top, right, bottom.
Rectangle = tuple[float, float, float, float]
Position = tuple[float, float]


@dataclass(frozen=True, slots=True)
class Point:
    """An approach in the chart."""

    arm: str
    name: str
    shape: str
    rate: float
    accuracy: float


def points(measured: Measurements) -> list[Point]:
    """Return all approaches whose accuracy and CE rate are known."""
    known = []
    for arm, (name, shape) in SHORT.items():
        accuracy = summary_of(measured, f"{arm}.accuracy")
        rate = summary_of(measured, f"{arm}.ce_rate")
        if accuracy and (rate or arm in FAIR_ARMS):
            known.append(Point(arm, name, shape, rate.mean if rate else 0.0, accuracy.mean))
    return known


def best(known: list[Point]) -> list[Point]:
    """Return the points that no other point dominates, the fairest first."""
    indices = undominated([(point.accuracy, point.rate) for point in known])
    return sorted((known[index] for index in indices), key=lambda point: point.rate)


def trade_off(measured: Measurements) -> Markup | None:
    """Draw all approaches; None if all of them are fair by construction."""
    known = points(measured)
    if all(point.arm in FAIR_ARMS for point in known):
        return None
    paper = {} if other_dataset(measured) else _paper_points(measured, known)
    drawn = [*((point.rate, point.accuracy) for point in known), *paper.values()]
    fair = [point for point in known if point.arm in FAIR_ARMS]
    bottom = max(LOWEST, TOP + LINE * len(fair))
    x = linear([0, *(rate for rate, _ in drawn)], LEFT, RIGHT, zero=True)
    y = linear([accuracy for _, accuracy in drawn], bottom, TOP)

    def at(rate: float, accuracy: float) -> Position:
        return x(rate), y(accuracy)

    parts = [
        text(WIDTH - 4, 12, "accuracy, %", "end", "strong"),
        text(4, 12, "no counterexamples", kind="strong"),
    ]
    parts += _right_axis(y_axis(y, LEFT, RIGHT), [y(tick) for tick in y.ticks()], y.ticks())
    parts += x_axis(x, bottom, "CE rate, %")
    parts.append(
        path([at(point.rate, point.accuracy) for point in best(known)], "curve dashed thin")
    )
    for point in known:
        if point.arm in paper:
            theirs = at(*paper[point.arm])
            parts.append(line((*at(point.rate, point.accuracy), *theirs), "leader"))
            parts.append(marker(point.shape, *theirs, "hollow", size=4))
    heights = spread_out([y(point.accuracy) for point in fair], TOP, bottom)
    for point, height in zip(fair, heights, strict=True):
        parts.append(line((LEFT - 18, height, *at(0, point.accuracy)), "leader"))
        parts.append(text(LEFT - 20, height + 4, point.name, "end"))
    parts += [marker(point.shape, *at(point.rate, point.accuracy), "ours") for point in known]
    unfair = [point for point in known if point.arm not in FAIR_ARMS]
    named = [(*at(point.rate, point.accuracy), point.name) for point in unfair]
    parts += _labels(named, [at(*pair) for pair in paper.values()], TOP, bottom)
    return chart(bottom + 40, "Accuracy against CE rate, all approaches", parts)


def _paper_points(measured: Measurements, known: list[Point]) -> dict[str, Position]:
    """Return the paper's CE rate and accuracy by arm.

    The paper's rate of LCIFR is over fewer counterparts, has another key and so is left out.
    """
    result = {}
    for point in known:
        accuracy = paper_figure(measured, f"{point.arm}.accuracy")
        rate = paper_figure(measured, f"{point.arm}.ce_rate")
        if accuracy and (point.arm in FAIR_ARMS or rate):
            result[point.arm] = (rate.mean if rate else 0.0, accuracy.mean)
    return result


def _right_axis(left: list[Markup], heights: list[float], ticks: list[float]) -> list[Markup]:
    """Move the numbers of an axis to the right, because names fill the left side."""
    lines = [part for part in left if part.startswith("<line")]
    numbers = [
        text(RIGHT + 5, height + 4, f"{tick:g}")
        for height, tick in zip(heights, ticks, strict=True)
    ]
    return [*lines, *numbers]


def _labels(
    named: list[tuple[float, float, str]], others: list[Position], top: float, bottom: float
) -> list[Markup]:
    """Label each point at the first position where the label covers nothing."""
    markers = [*((x, y) for x, y, _ in named), *others]
    occupied: list[Rectangle] = [(x - 6, y - 6, x + 6, y + 6) for x, y in markers]
    parts = []
    for x, y, name in named:
        width = len(name) * LETTER
        left, base, side = _label_position((x, y), width, occupied, (top, bottom))
        occupied.append((left, base - 10, left + width, base + 3))
        end, anchor = (left, "start") if side > 0 else (left + width, "end")
        if abs(base - y - 4) > LINE or abs(end - x) > LINE:
            parts.append(line((end, base - 4, x, y), "leader"))
        parts.append(text(end, base, name, anchor, "halo strong"))
    return parts


def _label_position(
    point: Position, width: float, occupied: list[Rectangle], vertical: tuple[float, float]
) -> tuple[float, float, int]:
    """Return left end, base line and side of a label: close before far, level before shifted."""
    (x, y), (top, bottom) = point, vertical
    candidates = [
        (x + side * distance - (width if side < 0 else 0), y + 4 + down * LINE, side)
        for distance in (9, 60, 110)
        for down in (0, -1, 1, -2, 2, -3, 3, 4, 5, 6)
        for side in (1, -1)
    ]
    fitting = [
        (left, base, side)
        for left, base, side in candidates
        if left >= LEFT + 8 and left + width <= RIGHT and top <= base <= bottom
    ]
    free = [
        (left, base, side)
        for left, base, side in fitting
        if not any(_overlap((left, base - 10, left + width, base + 3), one) for one in occupied)
    ]
    return (free or fitting or candidates)[0]


def _overlap(one: Rectangle, other: Rectangle) -> bool:
    return one[0] < other[2] and other[0] < one[2] and one[1] < other[3] and other[1] < one[3]
