"""The picture of a comparison: one panel per measure, one interval per candidate."""

from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property

from markupsafe import Markup

from feta.comparing.model_comparison import ModelComparison
from feta.io.sanitize import shortened, visible
from feta.metrics.estimate import Estimate
from feta.report.compared_figures import Measure

ROW_HEIGHT = 20  # pixels, as all lengths; a panel is scaled to the width of the page
FOOT_HEIGHT = 22
NAME_WIDTH = 190
PLOT_WIDTH = 230
MARGIN = 10
MAX_TEXT = 32


def is_drawn(comparison: ModelComparison, measure: Measure) -> bool:
    """Return whether any candidate has the figure."""
    return any(measure.of(row) is not None for row in comparison.rows)


def panel(comparison: ModelComparison, measure: Measure) -> Markup:
    """Draw one measure of all candidates; every text in it is escaped."""
    return Markup("").join(_Panel(comparison, measure).parts())


@dataclass(frozen=True)
class _Panel:
    """One measure: the estimate of each candidate on one scale."""

    comparison: ModelComparison
    measure: Measure

    @cached_property
    def estimates(self) -> list[Estimate | None]:
        """The figure of each candidate."""
        return [self.measure.of(row) for row in self.comparison.rows]

    @cached_property
    def ends(self) -> tuple[float, float]:
        """The lowest and the highest number of the scale."""
        intervals = [one.interval for one in self.estimates if one is not None]
        low = min((interval[0] for interval in intervals), default=0.0)
        return low, max(max((interval[1] for interval in intervals), default=1.0), low + 1e-9)

    @property
    def height(self) -> int:
        """The height of the rows."""
        return len(self.comparison.rows) * ROW_HEIGHT

    def parts(self) -> Iterator[Markup]:
        """Yield the elements of the panel."""
        yield Markup('<svg role="img" aria-label="{}" viewBox="0 0 {} {}">').format(
            f"{self.measure.heading} of all candidates with intervals",
            NAME_WIDTH + PLOT_WIDTH + 2 * MARGIN,
            self.height + FOOT_HEIGHT,
        )
        yield from self._scale()
        for index, row in enumerate(self.comparison.rows):
            yield _text(0, _middle(index) + 4, shortened(visible(row.name), MAX_TEXT))
            estimate = self.estimates[index]
            if estimate is not None:
                yield self._interval(estimate, index)
        yield Markup("</svg>")

    def _scale(self) -> Iterator[Markup]:
        """Yield zero, the figure of the first row, and the numbers at both ends."""
        low, high = self.ends
        if low < 0 < high:
            yield self._line(0.0, "zero")
        if self.estimates[0] is not None:
            yield self._line(self.estimates[0].value, "first")
        for number, anchor in ((low, "start"), (high, "end")):
            label = f"{100 * number:z.1f}" if self.measure.percent else f"{number:z.2f}"
            yield _text(self._x(number), self.height + 16, label, anchor)

    def _interval(self, estimate: Estimate, index: int) -> Markup:
        start, end = (self._x(number) for number in estimate.interval)
        middle = _middle(index)
        return Markup(
            '<line x1="{:.1f}" x2="{:.1f}" y1="{}" y2="{}"/>'
            '<circle cx="{:.1f}" cy="{}" r="4"><title>{}</title></circle>'
        ).format(
            start, end, middle, middle, self._x(estimate.value), middle,
            self.measure.text(self.comparison.rows[index]),
        )  # fmt: skip

    def _line(self, number: float, kind: str) -> Markup:
        x = self._x(number)
        return Markup('<line class="{}" x1="{:.1f}" x2="{:.1f}" y1="0" y2="{}"/>').format(
            kind, x, x, self.height
        )

    def _x(self, number: float) -> float:
        low, high = self.ends
        return NAME_WIDTH + MARGIN + (number - low) / (high - low) * PLOT_WIDTH


def _middle(row: int) -> float:
    return (row + 0.5) * ROW_HEIGHT


def _text(x: float, y: float, content: str, anchor: str = "start") -> Markup:
    return Markup('<text x="{:.1f}" y="{:.1f}" text-anchor="{}">{}</text>').format(
        x, y, anchor, content
    )
