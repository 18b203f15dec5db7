"""Charts: bars, bands, scatter and lines as SVG that is read in grey and on a narrow screen."""

import math
from collections.abc import Sequence
from dataclasses import dataclass

from markupsafe import Markup

from feta.io.sanitize import plain, shortened

# A chart is this wide in its own units, about a telephone's width, so that letters are never scaled down.
WIDTH = 400
LETTER = 7  # width of a letter of the charts' 12-unit text in bold, rather too much than too little
LINE = 15  # height of a line of it

MAX_TICKS = 5


@dataclass(frozen=True, slots=True)
class Scale:
    """Numbers to places along an axis, evenly or by powers of ten."""

    low: float
    high: float
    start: float
    stop: float
    log: bool = False

    def __call__(self, value: float) -> float:
        """Give a number's place."""
        low, high, at = self.low, self.high, value
        if self.log:
            low, high, at = math.log10(low), math.log10(high), math.log10(value)
        return self.start + (self.stop - self.start) * (at - low) / (high - low)

    def ticks(self) -> list[float]:
        """Choose a few round numbers."""
        if self.log:
            first, last = round(math.log10(self.low)), round(math.log10(self.high))
            step = math.ceil((last - first) / MAX_TICKS) or 1
            return [10.0**power for power in range(first, last + 1, step)]
        wide = _round_step((self.high - self.low) / MAX_TICKS)
        first, last = math.ceil(self.low / wide - 1e-9), math.floor(self.high / wide + 1e-9)
        return [wide * place for place in range(first, last + 1)]


def _round_step(rough: float) -> float:
    power = 10.0 ** math.floor(math.log10(rough))
    return next(power * size for size in (1, 2, 5, 10) if power * size >= rough * (1 - 1e-9))


def even(values: Sequence[float], start: float, stop: float, *, zero: bool = False) -> Scale:
    """Fit an even scale around numbers; from zero where the length of a bar is read."""
    low, high = min(values), max(values)
    room = (high - low) * 0.08 or max(abs(high) * 0.1, 1e-3)  # a flat line still needs a height
    return Scale(0 if zero else low - room, high + room, start, stop)


def powers(values: Sequence[float], start: float, stop: float) -> Scale:
    """Fit a scale of whole powers of ten."""
    low, high = math.floor(math.log10(min(values))), math.ceil(math.log10(max(values)))
    return Scale(10.0**low, 10.0 ** max(high, low + 1), start, stop, log=True)


def number(value: float) -> str:
    """Write a tick."""
    exact = round(value, 10) + 0.0  # no minus before a zero
    if exact and (abs(exact) >= 1e5 or abs(exact) < 1e-3):  # noqa: PLR2004 - longer than its place
        power = math.floor(math.log10(abs(exact)) + 1e-9)
        lead = exact / 10**power
        return ("" if math.isclose(lead, 1) else f"{lead:g}·") + "10" + _raised(power)
    return f"{exact:,g}" if abs(exact) < 1e4 else f"{exact:,.0f}"  # noqa: PLR2004 - g turns to powers


def _raised(power: int) -> str:
    return str(power).translate(str.maketrans("-0123456789", "⁻⁰¹²³⁴⁵⁶⁷⁸⁹"))


def picture(height: float, label: str, parts: Sequence[Markup]) -> Markup:
    """Put the parts together."""
    opening = Markup('<svg class="chart" viewBox="0 0 {} {:.0f}" role="img" aria-label="{}">')
    return opening.format(WIDTH, height, plain(label)) + Markup("").join(parts) + Markup("</svg>")


def text(x: float, y: float, content: str, anchor: str = "start", kind: str = "") -> Markup:
    """Write a text; it is escaped."""
    return Markup('<text x="{:.1f}" y="{:.1f}" text-anchor="{}" class="{}">{}</text>').format(
        x, y, anchor, kind, shortened(plain(content), 60)
    )


def line(ends: tuple[float, float, float, float], kind: str) -> Markup:
    """Draw a straight line from (x, y) to (x, y)."""
    return Markup('<line x1="{:.1f}" y1="{:.1f}" x2="{:.1f}" y2="{:.1f}" class="{}"/>').format(
        *ends, kind
    )


def path(points: Sequence[tuple[float, float]], kind: str) -> Markup:
    """Draw a line through points."""
    places = " ".join(f"{x:.1f},{y:.1f}" for x, y in points)
    return Markup('<polyline points="{}" class="{}"/>').format(places, kind)


def band(x: Sequence[float], low: Sequence[float], high: Sequence[float]) -> Markup:
    """Fill what lies between two lines."""
    around = [*zip(x, high, strict=True), *reversed(list(zip(x, low, strict=True)))]
    places = " ".join(f"{a:.1f},{b:.1f}" for a, b in around)
    return Markup('<polygon points="{}" class="band"/>').format(places)


def bar(x: float, y: float, width: float, height: float, kind: str) -> Markup:
    """Draw a bar."""
    return Markup('<rect x="{:.1f}" y="{:.1f}" width="{:.1f}" height="{:.1f}" class="{}"/>').format(
        x, y, width, height, kind
    )


def marker(shape: str, x: float, y: float, kind: str, *, size: float = 5) -> Markup:
    """Draw a point whose shape tells it apart where colors do not."""
    match shape:
        case "circle":
            outline = Markup('<circle cx="{:.1f}" cy="{:.1f}" r="{}" class="{}"/>')
            return outline.format(x, y, size, kind)
        case "square":
            return bar(x - size, y - size, 2 * size, 2 * size, kind)
        case "cross":
            ends = (
                (x - size, y - size, x + size, y + size),
                (x - size, y + size, x + size, y - size),
            )
            return line(ends[0], f"{kind} stroke") + line(ends[1], f"{kind} stroke")
        case _:
            up, side = size * 1.25, size * 1.15
            corners = [(x, y - up), (x + side, y), (x, y + up), (x - side, y)]
            if shape == "triangle":
                corners = [(x, y - up), (x + side, y + size * 0.8), (x - side, y + size * 0.8)]
            places = " ".join(f"{a:.1f},{b:.1f}" for a, b in corners)
            return Markup('<polygon points="{}" class="{}"/>').format(places, kind)


def y_axis(scale: Scale, left: float, right: float) -> list[Markup]:
    """Draw lines across at a few heights, each with its number at the left."""
    parts = []
    for tick in scale.ticks():
        height = scale(tick)
        parts += [line((left, height, right, height), "grid"), text(left - 5, height + 4, number(tick), "end")]  # fmt: skip
    return parts


def x_axis(scale: Scale, bottom: float, title: str, *, top: float | None = None) -> list[Markup]:
    """Draw an axis along the bottom: a few numbers, and its name."""
    parts = [line((scale.start, bottom, scale.stop, bottom), "axis")]
    for tick in scale.ticks():
        along = scale(tick)
        if top is not None:
            parts.append(line((along, top, along, bottom), "grid"))
        parts += [line((along, bottom, along, bottom + 4), "axis"), text(along, bottom + 17, number(tick), "middle")]  # fmt: skip
    middle = (scale.start + scale.stop) / 2
    return [*parts, text(middle, bottom + 34, title, "middle")]


def spread_out(heights: Sequence[float], low: float, high: float, gap: float = LINE) -> list[float]:
    """Move labels apart so that none covers another, in their order, as near their points as fits."""
    order = sorted(range(len(heights)), key=lambda place: heights[place])
    placed: dict[int, float] = {}
    least = low
    for place in order:
        placed[place] = max(heights[place], least)
        least = placed[place] + gap
    most = high
    for place in reversed(order):
        placed[place] = min(placed[place], most)
        most = placed[place] - gap
    return [placed[place] for place in range(len(heights))]
