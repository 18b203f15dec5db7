"""Picture: the decision over one person's sensitive lattice, as SVG; numbers along, groups down."""

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import groupby

import numpy as np
from markupsafe import Markup

from feta.arrays import Counts, Vector
from feta.dyadic import Dyadic
from feta.io.sanitize import shortened, visible
from feta.model import Model
from feta.rule import Tolerance
from feta.space.attribute import Categorical, Derived
from feta.space.lattice import Axis
from feta.verdict.counterexample import Counterexample
from feta.wider_limits import model_for

# What can still be told apart on a page: columns of an axis, and rows of groups.
MAX_ALONG = 120
MAX_DOWN = 24

# Colors of the style sheet; more classes than this share the last one.
N_COLORS = 6

BAND = 18  # pixels a group
N_LABELS, MAX_LABEL = (
    7,
    10,
)  # values named along, and their characters: a phone has room for no more


@dataclass(frozen=True, slots=True)
class Grid:
    """Decisions of some counterparts: a row a group, a column a value of the axis along."""

    along: str
    values: tuple[str, ...]
    down: tuple[str, ...]  # attributes of the rows
    groups: tuple[str, ...]
    cells: Counts  # by row and column: the decision's number
    names: tuple[str, ...]  # what the numbers mean
    marks: tuple[tuple[int, int], ...]  # (row, column) of the two of the pair
    fixed: tuple[str, ...]  # attributes held at the first one's values
    thinned: bool  # whether values along were left out
    marked: tuple[str, str] = ("person", "counterpart")  # what the two are called


def grid(
    model: Model, pair: Counterexample, marked: tuple[str, str] = ("person", "counterpart")
) -> Grid | None:
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
        marked,
    )


def _down(axes: Sequence[Axis], pair: Counterexample) -> list[Axis]:
    """Choose the axes that go down: those in which the pair differs first, while there is room."""
    chosen: list[Axis] = []
    ends = np.stack([pair.person, pair.counterpart])
    for axis in sorted(axes, key=lambda one: (np.ptp(one.indices(ends)) == 0, len(one))):
        if math.prod(len(one) for one in [*chosen, axis]) <= MAX_DOWN:
            chosen.append(axis)
    return [one for one in axes if one in chosen]


def _thinned(along: Axis, pair: Counterexample) -> Counts:
    """Choose the values along: all, or as many as fit, the pair's own among them."""
    if len(along) <= MAX_ALONG:
        return np.arange(len(along))
    even = np.linspace(0, len(along) - 1, MAX_ALONG - 2).astype(np.int64)
    return np.unique(
        np.concatenate([even, along.indices(np.stack([pair.person, pair.counterpart]))])
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
    """Decide exactly; regression: whether a score exceeds the pair's lower one by more than epsilon."""
    if not isinstance(model.rule, Tolerance):
        own = model_for(model, pair.person)
        return np.asarray(own.decide(people)).astype(np.int64)
    scores = model.exact.scores(np.concatenate([people, pair.person[None, :]]))[:, 0]
    above = (scores - scores[-1:]).compare(Dyadic.of(model.rule.epsilon)) > 0
    return above[:-1].astype(np.int64)


def _names(model: Model) -> tuple[str, ...]:
    if isinstance(model.rule, Tolerance):
        return ("within the tolerance of the lower score, or below", "higher than allowed")
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
            row = row * len(axis) + int(axis.indices(one[None, :])[0])
        column = int(np.searchsorted(columns, along.indices(one[None, :])[0]))
        marks.append((row, column))
    return tuple(marks)


def svg(picture: Grid) -> Markup:
    """Draw a grid, a band a group; every text in it is escaped.

    Places along are per cent, so that bands stretch with the page while labels keep their size.
    """
    wide = 100 / len(picture.values)
    parts = [Markup('<div class="lattice" role="img" aria-label="{}">').format(_described(picture))]
    for row, name in enumerate(picture.groups):
        parts.append(Markup("<span>{}</span>").format(_shown(name or "this person")))
        parts.append(Markup('<svg height="{}">').format(BAND))
        parts += [*_runs(picture, row, wide), *_dots(picture, row, wide), Markup("</svg>")]
    return Markup("").join([*parts, *_axis(picture, wide), Markup("</div>")])


def _described(picture: Grid) -> str:
    return f"Decision by {_shown(picture.along)} and group"


def _runs(picture: Grid, row: int, wide: float) -> Iterator[Markup]:
    """Draw neighbors with the same decision as one piece."""
    place = 0
    for number, run in groupby(picture.cells[row].tolist()):
        length = len(list(run))
        first, last = (_shown(picture.values[one]) for one in (place, place + length - 1))
        yield Markup(
            '<rect class="d{}" x="{:.2f}%" width="{:.2f}%" height="{}"><title>{}</title></rect>'
        ).format(
            min(number, N_COLORS - 1),
            place * wide,
            length * wide,
            BAND,
            f"{_shown(picture.names[number])}: {first} to {last}",
        )
        place += length


def _dots(picture: Grid, row: int, wide: float) -> Iterator[Markup]:
    names = dict(zip(("person", "counterpart"), picture.marked, strict=True))
    for (group, column), kind in zip(picture.marks, ("person", "counterpart"), strict=True):
        if group == row:
            yield Markup(
                '<circle class="{}" cx="{:.2f}%" cy="{}" r="6"><title>the {}</title></circle>'
            ).format(kind, (column + 0.5) * wide, BAND / 2, names[kind])


def _axis(picture: Grid, wide: float) -> Iterator[Markup]:
    """Label a few values along, and the axis itself."""
    step = math.ceil(len(picture.values) / N_LABELS)
    yield Markup("<span></span><svg height='18'>")
    for place in range(0, len(picture.values), step):
        yield Markup('<text x="{:.2f}%" y="14" text-anchor="middle">{}</text>').format(
            (place + 0.5) * wide, shortened(_shown(picture.values[place]), MAX_LABEL)
        )
    yield Markup('</svg><span></span><span class="along">{}</span>').format(_shown(picture.along))


def _shown(content: str) -> str:
    return shortened(visible(content), 60)
