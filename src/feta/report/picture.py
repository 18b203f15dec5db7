"""Picture: the decision over one person's sensitive lattice, as SVG; numbers along, groups down."""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import groupby

import numpy as np
from markupsafe import Markup, escape

from feta.arrays import Counts, Vector
from feta.model import Model
from feta.network.points import Rows
from feta.plain import plain, shortened
from feta.rule import Tolerance
from feta.space.attribute import Categorical, Derived
from feta.space.lattice import Axis
from feta.verdict.counterexample import Counterexample

# What can still be told apart on a page: columns of an axis, and rows of groups.
MOST_ALONG = 120
MOST_DOWN = 24

# Colors of the style sheet; more classes than this share the last one.
N_COLORS = 6

CELL, LABEL, WIDTH, EDGE = 20, 215, 720, 12  # heights and widths in the picture's own units


@dataclass(frozen=True, slots=True)
class Grid:
    """Decisions of some counterparts: a row a group, a column a value of the axis along."""

    along: str
    values: tuple[str, ...]
    down: tuple[str, ...]  # attributes of the rows
    groups: tuple[str, ...]
    cells: Counts  # by row and column: the decision's number
    names: tuple[str, ...]  # what the numbers mean
    marks: tuple[tuple[int, int], ...]  # (row, column) of the person and of the counterpart
    fixed: tuple[str, ...]  # attributes held at the person's own values
    thinned: bool  # whether values along were left out


def grid(model: Model, pair: Counterexample) -> Grid | None:
    """Decide a person's counterparts for a picture; None where they cannot be counted."""
    space = model.space
    if not space.finite:
        return None
    axes = space.lattice.axes
    numeric = [one for one in axes if not isinstance(one.attribute, Categorical | Derived)]
    along = max(numeric or list(axes), key=len)
    down = _down([one for one in axes if one is not along], pair)
    columns = _thinned(along, pair)
    people, shape = _people(pair.person, along, columns, down)
    codes = along.codes(columns)
    return Grid(
        along.attribute.name,
        tuple(_value(along, code) for code in codes),
        tuple(one.attribute.name for one in down),
        tuple(_group_names(down)),
        _decisions(model, people, pair).reshape(shape),
        _names(model),
        _marks(pair, along, columns, down),
        tuple(one.attribute.name for one in axes if one is not along and one not in down),
        len(columns) < len(along),
    )


def _down(axes: Sequence[Axis], pair: Counterexample) -> list[Axis]:
    """Choose the axes that go down: those in which the pair differs first, while there is room."""
    chosen: list[Axis] = []
    ends = np.stack([pair.person, pair.counterpart])
    for axis in sorted(axes, key=lambda one: (np.ptp(one.places(ends)) == 0, len(one))):
        if math.prod(len(one) for one in [*chosen, axis]) <= MOST_DOWN:
            chosen.append(axis)
    return [one for one in axes if one in chosen]


def _thinned(along: Axis, pair: Counterexample) -> Counts:
    """Choose the values along: all, or as many as fit, the pair's own among them."""
    if len(along) <= MOST_ALONG:
        return np.arange(len(along))
    even = np.linspace(0, len(along) - 1, MOST_ALONG - 2).astype(np.int64)
    return np.unique(
        np.concatenate([even, along.places(np.stack([pair.person, pair.counterpart]))])
    )


def _people(
    person: Vector, along: Axis, columns: Counts, down: Sequence[Axis]
) -> tuple[np.ndarray[tuple[int, int], np.dtype[np.float64]], tuple[int, int]]:
    places = [np.arange(len(one)) for one in down]
    combined = np.meshgrid(*places, columns, indexing="ij")
    rows = np.repeat(person[None, :], combined[0].size, axis=0)
    for axis, place in zip([*down, along], combined, strict=True):
        rows[:, list(axis.columns)] = axis.codes(place.ravel())
    return rows, (combined[0].size // len(columns), len(columns))


def _decisions(
    model: Model, people: np.ndarray[tuple[int, int], np.dtype[np.float64]], pair: Counterexample
) -> Counts:
    """Decide exactly; regression: lower than the person's score by more than the tolerance, alike, higher."""
    if not isinstance(model.rule, Tolerance):
        return np.asarray(model.decide(people)).astype(np.int64)
    scores = Rows(model.exact, people).exact_scores(np.arange(len(people))).floats()[:, 0]
    far = np.abs(scores - pair.scores[0]) > model.rule.epsilon
    return np.where(far, np.where(scores < pair.scores[0], 0, 2), 1).astype(np.int64)


def _names(model: Model) -> tuple[str, ...]:
    if isinstance(model.rule, Tolerance):
        return ("lower than allowed", "alike", "higher than allowed")
    return model.outcomes


def _value(axis: Axis, code: Vector) -> str:
    value = axis.attribute.decode(code[: axis.attribute.width])
    return "missing" if value is None else f"{value:g}" if isinstance(value, float) else str(value)


def _group_names(down: Sequence[Axis]) -> list[str]:
    names = [""]
    for axis in down:
        values = [_value(axis, code) for code in axis.codes(np.arange(len(axis)))]
        names = [f"{name}, {value}" if name else value for name in names for value in values]
    return names


def _marks(
    pair: Counterexample, along: Axis, columns: Counts, down: Sequence[Axis]
) -> tuple[tuple[int, int], ...]:
    """Find both people's places; a counterpart off the picture is not marked."""
    marks = []
    for one in (pair.person, pair.counterpart):
        row = 0
        for axis in down:
            row = row * len(axis) + int(axis.places(one[None, :])[0])
        column = int(np.searchsorted(columns, along.places(one[None, :])[0]))
        marks.append((row, column))
    return tuple(marks)


def svg(picture: Grid) -> Markup:
    """Draw a grid; every text in it is escaped."""
    n_rows, n_columns = picture.cells.shape
    wide = (WIDTH - LABEL - EDGE) / n_columns
    parts = [
        Markup('<svg class="lattice" viewBox="0 0 {} {}" role="img" aria-label="{}">').format(
            WIDTH, n_rows * CELL + 46, f"Decision by {plain(picture.along)} and group"
        )
    ]
    for row in range(n_rows):
        parts.append(_text(LABEL - 8, row * CELL + 14, picture.groups[row] or "this person", "end"))
        place = 0
        for number, run in groupby(picture.cells[row].tolist()):
            length = len(list(run))
            title = f"{_shown(picture.names[number])}: {_shown(picture.values[place])} to {_shown(picture.values[place + length - 1])}"
            parts.append(
                Markup('<rect class="d{}" x="{:.1f}" y="{}" width="{:.1f}" height="{}"><title>{}</title></rect>').format(
                    min(number, N_COLORS - 1), LABEL + place * wide, row * CELL, length * wide, CELL - 2, title
                )
            )  # fmt: skip
            place += length
    parts += _axis(picture, wide, n_rows * CELL)
    for (row, column), kind in zip(picture.marks, ("person", "counterpart"), strict=True):
        parts.append(
            Markup('<circle class="{}" cx="{:.1f}" cy="{}" r="6"><title>{}</title></circle>').format(
                kind, LABEL + (column + 0.5) * wide, row * CELL + CELL / 2 - 1, f"the {kind}"
            )
        )  # fmt: skip
    return Markup("").join([*parts, Markup("</svg>")])


def _axis(picture: Grid, wide: float, top: int) -> list[Markup]:
    """Label a few values along, and the axis itself."""
    count = len(picture.values)
    step = max(1, math.ceil(count / 9))
    parts = [
        _text(LABEL + (place + 0.5) * wide, top + 16, picture.values[place], "middle")
        for place in range(0, count, step)
    ]
    return [*parts, _text((LABEL + WIDTH) / 2, top + 36, picture.along, "middle")]


def _text(x: float, y: float, content: str, anchor: str) -> Markup:
    return Markup('<text x="{:.1f}" y="{}" text-anchor="{}">{}</text>').format(
        x, y, anchor, escape(_shown(content))
    )


def _shown(content: str) -> str:
    return shortened(plain(content), 32)
