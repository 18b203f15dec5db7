"""Bars, bands, points and lines as SVG, readable without colors and on a narrow screen."""

import math
from collections.abc import Sequence
from dataclasses import dataclass

from markupsafe import Markup

from feta.io.sanitize import plain, shortened

# Width of a chart in its units. It is about the width of a phone, so text is never scaled down.
WIDTH = 400
LETTER = 7  # upper estimate of the width of a letter of the 12-unit text in bold
LINE = 15  # height of a line of text

MAX_TICKS = 5


@dataclass(frozen=True, slots=True)
class Scale:
    """A map from numbers to positions along an axis, linear or logarithmic."""

    low: float
    high: float
    start: float
    stop: float
    log: bool = False

    def __call__(self, value: float) -> float:
        """Return the position of a number."""
        low, high = self.low, self.high
        if self.log:
            low, high, value = math.log10(low), math.log10(high), math.log10(value)
        return self.start + (self.stop - self.start) * (value - low) / (high - low)

    def ticks(self) -> list[float]:
        """Return a few round numbers."""
        if self.log:
            first, last = round(math.log10(self.low)), round(math.log10(self.high))
            step = math.ceil((last - first) / MAX_TICKS) or 1
            return [10.0**power for power in range(first, last + 1, step)]
        width = _round_step((self.high - self.low) / MAX_TICKS)
        first, last = math.ceil(self.low / width - 1e-9), math.floor(self.high / width + 1e-9)
        return [width * multiple for multiple in range(first, last + 1)]


def _round_step(rough: float) -> float:
    power = 10.0 ** math.floor(math.log10(rough))
    return next(power * size for size in (1, 2, 5, 10) if power * size >= rough * (1 - 1e-9))


def linear(values: Sequence[float], start: float, stop: float, *, zero: bool = False) -> Scale:
    """Fit a linear scale around numbers; `zero` starts it at zero, as bars need it."""
    low, high = min(values), max(values)
    margin = (high - low) * 0.08 or max(abs(high) * 0.1, 1e-3)  # equal numbers need a range, too
    return Scale(0 if zero else low - margin, high + margin, start, stop)


def logarithmic(values: Sequence[float], start: float, stop: float) -> Scale:
    """Fit a logarithmic scale that starts and ends at powers of ten."""
    low, high = math.floor(math.log10(min(values))), math.ceil(math.log10(max(values)))
    return Scale(10.0**low, 10.0 ** max(high, low + 1), start, stop, log=True)


def number(value: float) -> str:
    """Format a tick."""
    exact = round(value, 10) + 0.0  # avoids a minus sign before zero
    if exact and (abs(exact) >= 1e5 or abs(exact) < 1e-3):  # noqa: PLR2004 - too long otherwise
        power = math.floor(math.log10(abs(exact)) + 1e-9)
        factor = exact / 10**power
        return ("" if math.isclose(factor, 1) else f"{factor:g}·") + "10" + _superscript(power)
    if abs(exact) < 1e4:  # noqa: PLR2004 - from here on, the format g would write a power
        return f"{exact:,g}"
    return f"{exact:,.0f}"


def _superscript(power: int) -> str:
    return str(power).translate(str.maketrans("-0123456789", "⁻⁰¹²³⁴⁵⁶⁷⁸⁹"))


def chart(height: float, label: str, parts: Sequence[Markup]) -> Markup:
    """Join the parts to an SVG image."""
    opening = Markup('<svg class="chart" viewBox="0 0 {} {:.0f}" role="img" aria-label="{}">')
    return opening.format(WIDTH, height, plain(label)) + Markup("").join(parts) + Markup("</svg>")


def text(x: float, y: float, content: str, anchor: str = "start", kind: str = "") -> Markup:
    """Draw a text, escaped."""
    return Markup('<text x="{:.1f}" y="{:.1f}" text-anchor="{}" class="{}">{}</text>').format(
        x, y, anchor, kind, shortened(plain(content), 60)
    )


def line(ends: tuple[float, float, float, float], kind: str) -> Markup:
    """Draw a straight line from (x, y) to (x, y)."""
    return Markup('<line x1="{:.1f}" y1="{:.1f}" x2="{:.1f}" y2="{:.1f}" class="{}"/>').format(
        *ends, kind
    )


def path(points: Sequence[tuple[float, float]], kind: str) -> Markup:
    """Draw a polyline."""
    coordinates = " ".join(f"{x:.1f},{y:.1f}" for x, y in points)
    return Markup('<polyline points="{}" class="{}"/>').format(coordinates, kind)


def band(x: Sequence[float], low: Sequence[float], high: Sequence[float]) -> Markup:
    """Fill the area between two polylines."""
    outline = [*zip(x, high, strict=True), *reversed(list(zip(x, low, strict=True)))]
    coordinates = " ".join(f"{a:.1f},{b:.1f}" for a, b in outline)
    return Markup('<polygon points="{}" class="band"/>').format(coordinates)


def bar(x: float, y: float, width: float, height: float, kind: str) -> Markup:
    """Draw a bar."""
    return Markup('<rect x="{:.1f}" y="{:.1f}" width="{:.1f}" height="{:.1f}" class="{}"/>').format(
        x, y, width, height, kind
    )


def marker(shape: str, x: float, y: float, kind: str, *, size: float = 5) -> Markup:
    """Draw a point with a shape, so that points differ without colors, too."""
    match shape:
        case "circle":
            circle = Markup('<circle cx="{:.1f}" cy="{:.1f}" r="{}" class="{}"/>')
            return circle.format(x, y, size, kind)
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
            coordinates = " ".join(f"{a:.1f},{b:.1f}" for a, b in corners)
            return Markup('<polygon points="{}" class="{}"/>').format(coordinates, kind)


def y_axis(scale: Scale, left: float, right: float) -> list[Markup]:
    """Draw horizontal lines at the ticks, each with its number at the left."""
    parts = []
    for tick in scale.ticks():
        height = scale(tick)
        parts.append(line((left, height, right, height), "grid"))
        parts.append(text(left - 5, height + 4, number(tick), "end"))
    return parts


def x_axis(scale: Scale, bottom: float, title: str, *, top: float | None = None) -> list[Markup]:
    """Draw an axis along the bottom with its ticks and title."""
    parts = [line((scale.start, bottom, scale.stop, bottom), "axis")]
    for tick in scale.ticks():
        along = scale(tick)
        if top is not None:
            parts.append(line((along, top, along, bottom), "grid"))
        parts.append(line((along, bottom, along, bottom + 4), "axis"))
        parts.append(text(along, bottom + 17, number(tick), "middle"))
    middle = (scale.start + scale.stop) / 2
    return [*parts, text(middle, bottom + 34, title, "middle")]


def spread_out(heights: Sequence[float], low: float, high: float, gap: float = LINE) -> list[float]:
    """Separate labels by at least `gap`, in their order, close to the heights of their points."""
    order = sorted(range(len(heights)), key=lambda index: heights[index])
    result = list(heights)
    lowest = low
    for index in order:
        result[index] = max(heights[index], lowest)
        lowest = result[index] + gap
    highest = high
    for index in reversed(order):
        result[index] = min(result[index], highest)
        highest = result[index] - gap
    return result
