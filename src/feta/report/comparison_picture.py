"""The picture of a comparison: one panel per measure, one interval per candidate."""

from collections.abc import Iterator

from markupsafe import Markup

from feta.comparing.model_comparison import ModelComparison
from feta.io.sanitize import shortened, visible
from feta.report.compared_figures import Measure, measures

ROW_HEIGHT = 22  # pixels
HEAD_HEIGHT = 24
NAME_WIDTH = 200
PANEL_WIDTH = 190
GAP = 16
MAX_TEXT = 32


def comparison_svg(comparison: ModelComparison) -> Markup:
    """Draw the figures; every text in it is escaped."""
    panels = measures(comparison)
    width = NAME_WIDTH + len(panels) * (PANEL_WIDTH + GAP)
    height = HEAD_HEIGHT + (len(comparison.rows) + 1) * ROW_HEIGHT
    parts = [
        Markup(
            '<svg role="img" aria-label="Figures of all candidates with intervals" width="{}" '
            'height="{}" viewBox="0 0 {} {}" font-size="11" fill="currentColor">'
        ).format(width, height, width, height)
    ]
    for index, row in enumerate(comparison.rows):
        parts.append(_text(0, _middle(index) + 4, row.name))
    for index, panel in enumerate(panels):
        left = NAME_WIDTH + index * (PANEL_WIDTH + GAP)
        parts += _panel(comparison, panel, left, height)
    return Markup("").join([*parts, Markup("</svg>")])


def _panel(
    comparison: ModelComparison, measure: Measure, left: float, height: float
) -> Iterator[Markup]:
    yield _text(left, 14, measure.heading)
    estimates = [measure.of(row) for row in comparison.rows]
    ends = [end for estimate in estimates if estimate is not None for end in estimate.interval]
    low, high = min(ends, default=0.0), max(ends, default=1.0)
    scale = PANEL_WIDTH / ((high - low) or 1.0)
    for number in (low, high):
        label = f"{100 * number:.1f}" if measure.percent else f"{number:.2f}"
        anchor = "start" if number == low else "end"
        yield _text(left + (number - low) * scale, height - 4, label, anchor)
    for index, estimate in enumerate(estimates):
        if estimate is None:
            continue
        start, end = (left + (number - low) * scale for number in estimate.interval)
        point, middle = left + (estimate.value - low) * scale, _middle(index)
        yield Markup(
            '<line x1="{:.1f}" x2="{:.1f}" y1="{}" y2="{}" stroke="currentColor" '
            'stroke-width="2"/><circle cx="{:.1f}" cy="{}" r="4"><title>{}</title></circle>'
        ).format(start, end, middle, middle, point, middle, measure.text(comparison.rows[index]))


def _middle(row: int) -> float:
    return HEAD_HEIGHT + (row + 0.5) * ROW_HEIGHT


def _text(x: float, y: float, content: str, anchor: str = "start") -> Markup:
    return Markup('<text x="{:.1f}" y="{:.1f}" text-anchor="{}">{}</text>').format(
        x, y, anchor, shortened(visible(content), MAX_TEXT)
    )
