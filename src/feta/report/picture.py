"""A grid of decisions as SVG: numbers across, groups down."""

import math
from collections.abc import Iterator
from itertools import groupby

from markupsafe import Markup

from feta.auditing.grid import Grid
from feta.io.sanitize import shortened, visible

# Colors of the style sheet; further classes share the last one.
N_COLORS = 6

ROW_HEIGHT = 18  # pixels

# Labels of the horizontal axis, and their characters: a phone has no room for more.
N_LABELS = 7
MAX_LABEL = 10

# Characters of any other text.
MAX_TEXT = 60

# Classes of the style sheet, for the two people of the pair.
MARKS = ("person", "counterpart")


def svg(picture: Grid) -> Markup:
    """Draw a grid, one band per group; every text in it is escaped.

    Horizontal positions are in percent, so bands stretch with the page and labels do not.
    """
    width = 100 / len(picture.values)
    description = f"Decision by {_text(picture.horizontal)} and group"
    parts = [Markup('<div class="lattice" role="img" aria-label="{}">').format(description)]
    for row, name in enumerate(picture.groups):
        parts.append(Markup("<span>{}</span>").format(_text(name or "this person")))
        parts.append(Markup('<svg height="{}">').format(ROW_HEIGHT))
        parts += [*_runs(picture, row, width), *_circles(picture, row, width), Markup("</svg>")]
    return Markup("").join([*parts, *_axis_labels(picture, width), Markup("</div>")])


def _runs(picture: Grid, row: int, width: float) -> Iterator[Markup]:
    """Draw neighbors with the same decision as one rectangle."""
    start = 0
    for decision, run in groupby(picture.cells[row].tolist()):
        length = len(list(run))
        ends = (start, start + length - 1)
        first, last = (_text(picture.values[column]) for column in ends)
        yield Markup(
            '<rect class="d{}" x="{:.2f}%" width="{:.2f}%" height="{}"><title>{}</title></rect>'
        ).format(
            min(decision, N_COLORS - 1),
            start * width,
            length * width,
            ROW_HEIGHT,
            f"{_text(picture.names[decision])}: {first} to {last}",
        )
        start += length


def _circles(picture: Grid, row: int, width: float) -> Iterator[Markup]:
    """Mark the people of the pair that are in a row."""
    marks = zip(picture.marks, MARKS, picture.mark_names, strict=True)
    for (group, column), css_class, name in marks:
        if group == row:
            yield Markup(
                '<circle class="{}" cx="{:.2f}%" cy="{}" r="6"><title>the {}</title></circle>'
            ).format(css_class, (column + 0.5) * width, ROW_HEIGHT / 2, name)


def _axis_labels(picture: Grid, width: float) -> Iterator[Markup]:
    """Label some values of the horizontal axis, and the axis itself."""
    step = math.ceil(len(picture.values) / N_LABELS)
    yield Markup("<span></span><svg height='18'>")
    for column in range(0, len(picture.values), step):
        yield Markup('<text x="{:.2f}%" y="14" text-anchor="middle">{}</text>').format(
            (column + 0.5) * width, shortened(_text(picture.values[column]), MAX_LABEL)
        )
    yield Markup('</svg><span></span><span class="axis">{}</span>').format(
        _text(picture.horizontal)
    )


def _text(content: str) -> str:
    return shortened(visible(content), MAX_TEXT)
