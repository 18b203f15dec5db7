"""Trade-off: accuracy against CE rate, every approach a labeled point."""

from dataclasses import dataclass

from markupsafe import Markup

from feta.train.selection import undominated
from feta_paper.charts import (
    LETTER,
    LINE,
    WIDTH,
    even,
    line,
    marker,
    path,
    picture,
    spread_out,
    text,
    x_axis,
    y_axis,
)
from feta_paper.measurements import Measurements
from feta_paper.quantities import NEVER_APART, found, is_another, papers

# Short names, for a picture.
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


@dataclass(frozen=True, slots=True)
class Point:
    """An approach in the picture."""

    arm: str
    name: str
    shape: str
    rate: float
    accuracy: float


def points(measured: Measurements) -> list[Point]:
    """Give every approach whose accuracy and CE rate are known."""
    known = []
    for arm, (name, shape) in SHORT.items():
        accuracy, rate = found(measured, f"{arm}.accuracy"), found(measured, f"{arm}.ce_rate")
        if accuracy and (rate or arm in NEVER_APART):
            known.append(Point(arm, name, shape, rate.mean if rate else 0.0, accuracy.mean))
    return known


def best(known: list[Point]) -> list[Point]:
    """Keep the points that no other beats in one and equals in the other, the fairest first."""
    chosen = undominated([(one.accuracy, one.rate) for one in known])
    return sorted((known[place] for place in chosen), key=lambda one: one.rate)


def trade_off(measured: Measurements) -> Markup | None:
    """Draw all approaches; None unless one of them has a CE rate of its own."""
    known = points(measured)
    if all(one.arm in NEVER_APART for one in known):
        return None
    theirs = {} if is_another(measured) else {one.arm: _paper(measured, one) for one in known}
    shown = [(one.rate, one.accuracy) for one in known] + [pair for pair in theirs.values() if pair]
    alike = [one for one in known if one.arm in NEVER_APART]
    bottom = max(LOWEST, TOP + LINE * len(alike))
    x = even([0, *(rate for rate, _ in shown)], LEFT, RIGHT, zero=True)
    y = even([accuracy for _, accuracy in shown], bottom, TOP)
    parts = [text(WIDTH - 4, 12, "accuracy, %", "end", "strong"), text(4, 12, "nobody treated apart", kind="strong")]  # fmt: skip
    parts += _right_axis(y_axis(y, LEFT, RIGHT), [y(tick) for tick in y.ticks()], y.ticks())
    parts += x_axis(x, bottom, "CE rate, %")
    parts.append(path([(x(one.rate), y(one.accuracy)) for one in best(known)], "curve dashed thin"))
    for one in known:
        pair = theirs.get(one.arm)
        if pair:
            parts.append(line((x(one.rate), y(one.accuracy), x(pair[0]), y(pair[1])), "leader"))
            parts.append(marker(one.shape, x(pair[0]), y(pair[1]), "hollow", size=4))
    heights = spread_out([y(one.accuracy) for one in alike], TOP, bottom)
    for one, height in zip(alike, heights, strict=True):
        parts.append(line((LEFT - 18, height, x(0), y(one.accuracy)), "leader"))
        parts.append(text(LEFT - 20, height + 4, one.name, "end"))
    parts += [marker(one.shape, x(one.rate), y(one.accuracy), "ours") for one in known]
    apart = [one for one in known if one.arm not in NEVER_APART]
    hollow = [(x(pair[0]), y(pair[1])) for pair in theirs.values() if pair]
    named = [(x(one.rate), y(one.accuracy), one.name) for one in apart]
    parts += _labels(named, hollow, TOP, bottom)
    return picture(bottom + 40, "Accuracy against CE rate, all approaches", parts)


def _paper(measured: Measurements, point: Point) -> tuple[float, float] | None:
    """Find the paper's point for an approach; its LCIFR rate is over fewer counterparts, so not it."""
    accuracy, rate = papers(measured, f"{point.arm}.accuracy"), papers(measured, f"{point.arm}.ce_rate")  # fmt: skip
    if not accuracy or (point.arm not in NEVER_APART and not rate):
        return None
    return (rate.mean if rate else 0.0, accuracy.mean)


def _right_axis(left: list[Markup], heights: list[float], ticks: list[float]) -> list[Markup]:
    """Put the numbers at the right: the left side is taken by names."""
    lines = [part for part in left if part.startswith("<line")]
    return [*lines, *(text(RIGHT + 5, at + 4, f"{tick:g}") for at, tick in zip(heights, ticks, strict=True))]  # fmt: skip


def _labels(
    places: list[tuple[float, float, str]],
    others: list[tuple[float, float]],
    top: float,
    bottom: float,
) -> list[Markup]:
    """Name points beside them, right or left, above or below, near or farther: the first way that covers nothing."""
    points = [*((x, y) for x, y, _ in places), *others]
    taken = [(x - 6, y - 6, x + 6, y + 6) for x, y in points]
    parts = []
    for x, y, name in places:
        wide = len(name) * LETTER
        ways = [
            (x + side * away - (wide if side < 0 else 0), y + 4 + down * LINE, side)
            for away in (9, 60, 110)
            for down in (0, -1, 1, -2, 2, -3, 3, 4, 5, 6)
            for side in (1, -1)
        ]
        fits = [way for way in ways if way[0] >= LEFT + 8 and way[0] + wide <= RIGHT and top <= way[1] <= bottom]  # fmt: skip
        free = [way for way in fits if not any(_covers((way[0], way[1] - 10, way[0] + wide, way[1] + 3), one) for one in taken)]  # fmt: skip
        at = (free or fits or ways)[0]
        taken.append((at[0], at[1] - 10, at[0] + wide, at[1] + 3))
        end = (at[0], "start") if at[2] > 0 else (at[0] + wide, "end")
        if abs(at[1] - y - 4) > LINE or abs(end[0] - x) > LINE:
            parts.append(line((end[0], at[1] - 4, x, y), "leader"))
        parts.append(text(end[0], at[1], name, end[1], "halo strong"))
    return parts


def _covers(one: tuple[float, ...], other: tuple[float, ...]) -> bool:
    return one[0] < other[2] and other[0] < one[2] and one[1] < other[3] and other[1] < one[3]
