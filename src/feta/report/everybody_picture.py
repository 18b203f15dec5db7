"""The shares of everybody over time as SVG: what is proved, and the interval of the draws."""

from collections.abc import Sequence
from dataclasses import dataclass

from markupsafe import Markup

from feta.everybody.result import Moment

WIDTH, HEIGHT = 460, 170  # pixels; the page scales the picture
LEFT, BOTTOM = 52, 24  # room for the numbers of the axes
MAX_POINTS = 200

# The interval of the first draws is very wide; the scale shows this many widths of the last one
# on each side of it.
SHOWN_WIDTHS = 4.0


def proved_picture(history: Sequence[Moment]) -> Markup:
    """Draw the proved shares, stacked: fair at the top, unfair at the bottom."""
    moments = _thinned(history)
    if len(moments) < 2:  # noqa: PLR2004 - a line needs two points
        return Markup("")
    axes = _Axes(moments[0].seconds, moments[-1].seconds, 0.0, 1.0)
    unfair = [(one.seconds, float(one.unfair)) for one in moments]
    fair = [(one.seconds, float(1 - one.fair)) for one in moments]
    ends = [(moments[-1].seconds, 0.0), (moments[0].seconds, 0.0)]
    tops = [(moments[-1].seconds, 1.0), (moments[0].seconds, 1.0)]
    shapes = (
        _area(axes, [*fair, *tops], "fair"),
        _area(axes, [*unfair, *reversed(fair)], "undecided"),
        _area(axes, [*unfair, *ends], "unfair"),
    )
    return _svg("Proved shares of people over time", shapes, axes)


def sampled_picture(history: Sequence[Moment]) -> Markup:
    """Draw the interval that contains the share of unfair people."""
    moments = _thinned(history)
    if len(moments) < 2:  # noqa: PLR2004 - a line needs two points
        return Markup("")
    last = moments[-1]
    room = SHOWN_WIDTHS * max(last.high - last.low, 1e-9)
    bottom, top = max(last.low - room, 0.0), min(last.high + room, 1.0)
    axes = _Axes(moments[0].seconds, last.seconds, bottom, top)
    low = [(one.seconds, min(max(one.low, bottom), top)) for one in moments]
    high = [(one.seconds, min(max(one.high, bottom), top)) for one in moments]
    shapes = (_area(axes, [*low, *reversed(high)], "interval"),)
    return _svg("Interval of the share of unfair people over time", shapes, axes)


@dataclass(frozen=True, slots=True)
class _Axes:
    first: float  # seconds
    last: float
    bottom: float  # the lowest share
    top: float

    def x(self, seconds: float) -> float:
        span = max(self.last - self.first, 1e-9)
        return LEFT + (seconds - self.first) / span * (WIDTH - LEFT - 8)

    def y(self, share: float) -> float:
        part = (self.top - share) / (self.top - self.bottom)
        return 8 + part * (HEIGHT - BOTTOM - 8)


def _thinned(history: Sequence[Moment]) -> list[Moment]:
    """Return at most so many moments, the last one among them."""
    step = -(-len(history) // MAX_POINTS) or 1
    return list(history[::-1][::step])[::-1]


def _area(axes: _Axes, points: list[tuple[float, float]], kind: str) -> Markup:
    corners = " ".join(f"{axes.x(seconds):.1f},{axes.y(share):.2f}" for seconds, share in points)
    return Markup('<polygon class="share-{}" points="{}"/>').format(kind, corners)


def _svg(label: str, shapes: tuple[Markup, ...], axes: _Axes) -> Markup:
    parts = [
        Markup('<svg role="img" aria-label="{}" viewBox="0 0 {} {}">').format(label, WIDTH, HEIGHT),
        *shapes,
        *(
            _text(LEFT - 6, axes.y(share) + 4, f"{100 * share:.3g} %", "end")
            for share in (axes.bottom, axes.top)
        ),
        _text(axes.x(axes.first), HEIGHT - 6, f"{axes.first:.0f} s", "start"),
        _text(axes.x(axes.last), HEIGHT - 6, f"{axes.last:.0f} s", "end"),
        Markup("</svg>"),
    ]
    return Markup("").join(parts)


def _text(x: float, y: float, content: str, anchor: str) -> Markup:
    return Markup('<text x="{:.1f}" y="{:.1f}" text-anchor="{}">{}</text>').format(
        x, y, anchor, content
    )
