"""Smooth activations in the format of the compiled kernel, derived from the proved tables.

The kernel evaluates f(x) = P(inner · x) with one row of coefficients per cell: cubic polynomials
in float32, and those of `tables.npz` in float64. To bound f over an interval, it subtracts a line
whose slope is one of a few: f(x) − slope · x has its extremes at the ends of the interval or in one
of two windows, which are stored for each slope. docs/explanation/rounding.md has the proofs (lemmas
22 and 23).
"""

from dataclasses import dataclass
from functools import cache
from math import comb

import numpy as np

from feta.arrays import Counts, Matrix, Vector
from feta.rounding import FLOAT64, SOURCE_FLOAT32
from feta.scorer.network.smooth.activation import SELU_ALPHA, SELU_SCALE, Smooth
from feta.scorer.network.smooth.table import CELLS_PER_UNIT, DEGREE, Tail, table

# Cells of the float32 polynomials, and of the search for windows, per cell of the table.
PARTS_SINGLE, PARTS_WINDOWS = 2, 8

# Roundings of a value that is proportional to |x|: the kernel adds twelve units of steepest · |x|
# for them, of which the errors of cells may use six.
SHARED_UNITS = 6

# A table of float32 ends where the tails are this close, relative to the size of the function.
CLOSE = 2.0**-26

# Room for the rounding of bounds computed here, and of distances from centers.
STRETCH = 1 + 2.0**-20

# Slopes of lines between 0 and the slope of a tail; a power of two, so that both are among them.
SLOPES = 128

# Slopes that differ by less count as equal; the claim about windows has an error for it.
FLAT = 2.0**-34

# A shifted coefficient is a sum of at most 12 products, each rounded a few times.
SHIFT = 2.0**-48

UNIT32, UNIT64 = SOURCE_FLOAT32.unit, FLOAT64.unit


@dataclass(frozen=True, slots=True, eq=False)
class KernelTable:
    """One function; cells are in units of inner · x, everything else in units of x."""

    inner: float
    # The first and the last row are the lines beyond the range; `firsts` are the indices of the
    # first rows, in cells from 0.
    single: Matrix  # (cells + 2, 4): float32 coefficients, lowest degree first
    double: Matrix  # (cells + 2, DEGREE + 1)
    firsts: tuple[int, int]
    errors: tuple[float, float]  # of a value in float32 and in float64, beyond 12 units of L · |x|
    windows: Matrix  # (slopes, 4): x and f(x) − slope · x of a lowest and of a highest point
    reach: float  # half of the width of all windows
    first_slope: int  # slopes are whole multiples of `slope_step`
    slope_step: float
    window_error: float  # of the claim that all extremes are in windows


@dataclass(frozen=True, slots=True, eq=False)
class _Form:
    """f(x) = outer · base(inner · x) on cells of the base, and lines beyond them."""

    low: float
    high: float
    coefficients: Matrix  # (degrees, cells), of the base
    errors: Vector
    tails: tuple[Tail, Tail]  # of the base
    inner: float = 1.0
    outer: float = 1.0

    def parts(self, n_parts: int) -> "_Cells":
        """Divide the cells, and shift the polynomials to the new centers."""
        half = 0.5 / (CELLS_PER_UNIT * n_parts)
        shifts = (2 * np.arange(n_parts) + 1 - n_parts) * half
        old, n_cells = self.coefficients, self.coefficients.shape[1]
        new = np.zeros((DEGREE + 1, n_cells, n_parts))
        sizes = np.zeros_like(new)
        for to in range(DEGREE + 1):
            for power in range(to, DEGREE + 1):
                factor = comb(power, to) * shifts ** (power - to)
                new[to] += old[power][:, None] * factor
                sizes[to] += np.abs(old[power][:, None] * factor)
        flat, flat_sizes = new.reshape(DEGREE + 1, -1), sizes.reshape(DEGREE + 1, -1)
        radius = half * STRETCH
        powers = radius ** np.arange(DEGREE + 1)
        errors = np.repeat(self.errors, n_parts)
        if n_parts > 1:
            errors = np.asarray(errors + SHIFT * (powers @ flat_sizes), dtype=np.float64)
        centers = np.asarray(self.low + (2 * np.arange(flat.shape[1]) + 1) * half, dtype=np.float64)
        return _Cells(flat, errors, centers, half, radius)


@dataclass(frozen=True, slots=True, eq=False)
class _Cells:
    """Polynomials around centers, with the error of each."""

    coefficients: Matrix  # (degrees, cells)
    errors: Vector
    centers: Vector
    half: float
    radius: float  # a little more than half a cell

    def __len__(self) -> int:
        return len(self.centers)


@cache
def kernel_table(name: str, parameter: float) -> KernelTable:
    """Return the table of a function for the kernel."""
    steepest = float(Smooth(name, parameter).steepest[0])
    if name == "softsign":
        return _softsign()
    form = _form(name, parameter)
    single, first32, error32 = _single(form, steepest)
    double, first64, error64 = _double(form, steepest)
    steepest_tail = max(abs(_slope(form, tail)) for tail in form.tails)
    # The slope of a tail is one of those, unless others are much larger.
    widest = steepest_tail if steepest < 8 * steepest_tail else steepest
    step = float(np.float32(widest)) / SLOPES
    windows, reach, first, window_error = _windows(form, step)
    return KernelTable(
        form.inner,
        single,
        double,
        (first32, first64),
        (error32, error64),
        windows,
        reach,
        first,
        step,
        window_error,
    )


def _form(name: str, parameter: float) -> _Form:
    if name == "hardswish":
        return _hardswish()
    base = {"elu": "expm1", "celu": "expm1", "selu": "expm1", "logsigmoid": "softplus"}
    stored = table(base.get(name, name))
    inner, outer, tails = 1.0, 1.0, stored.tails
    match name:
        case "elu":
            outer, tails = parameter, (tails[0], Tail(1 / parameter, 0.0, 0.0))
        case "celu":
            inner, outer = 1 / parameter, parameter
        case "selu":
            outer, tails = SELU_SCALE * SELU_ALPHA, (tails[0], Tail(1 / SELU_ALPHA, 0.0, 0.0))
        case "softplus":
            inner, outer = parameter, 1 / parameter
        case "logsigmoid":
            inner, outer = -1.0, -1.0
    return _Form(stored.low, stored.high, stored.coefficients, stored.errors, tails, inner, outer)


def _hardswish() -> _Form:
    low, high = -3.0, 3.0
    centers = low + (np.arange(6 * CELLS_PER_UNIT) + 0.5) / CELLS_PER_UNIT
    coefficients = np.zeros((DEGREE + 1, len(centers)))
    coefficients[0] = centers * (centers + 3) / 6
    coefficients[1] = (2 * centers + 3) / 6
    coefficients[2] = 1 / 6
    # A few roundings of numbers up to 3.
    errors = np.full(len(centers), 64 * UNIT64)
    return _Form(low, high, coefficients, errors, (Tail(0, 0, 0.0), Tail(1, 0, 0.0)))


def _slope(form: _Form, tail: Tail) -> float:
    """Return the slope of a tail in units of x."""
    slope = tail.slope * form.outer * form.inner
    return float(np.round(slope)) if abs(slope - np.round(slope)) < 8 * UNIT64 else slope


def _with_tails(form: _Form, rows: Matrix, ends: tuple[float, float], half: float) -> Matrix:
    """Add the tails as cells beyond the range, with a coefficient per degree."""
    below, above = np.zeros((1, rows.shape[1])), np.zeros((1, rows.shape[1]))
    centers = (ends[0] - half, ends[1] + half)
    for row, tail, center in zip((below, above), form.tails, centers, strict=True):
        row[0, 0] = form.outer * (tail.slope * center + tail.intercept)
        row[0, 1] = form.outer * tail.slope
    return np.ascontiguousarray(np.vstack([below, rows, above]))


def _allowance(form: _Form, cells: _Cells, steepest: float, unit: float) -> Vector:
    """Return the part of each cell's error that the kernel adds in proportion to |x|."""
    nearest = np.maximum(np.abs(cells.centers) - cells.radius, 0.0) / abs(form.inner)
    return SHARED_UNITS * unit * steepest * nearest


def _rounding(coefficients: Matrix, radius: float, unit: float) -> Vector:
    """Bound the rounding of Horner's rule, of coefficients and of the distance from the center."""
    degrees = np.arange(len(coefficients))
    return ((3 * degrees + 3) * radius**degrees) @ np.abs(coefficients) * unit * (1 + 2.0**-20)


def _tail_error(form: _Form, cells: _Cells, kept: tuple[int, int], unit: float) -> float:
    """Bound the error of the tails, also over the cells that they replace."""
    outer, found = abs(form.outer), 0.0
    powers = cells.radius ** np.arange(DEGREE + 1)
    sides = (slice(kept[0]), slice(kept[1], None))
    for tail, dropped, end in zip(form.tails, sides, (form.low, form.high), strict=True):
        rest = cells.coefficients[:, dropped].copy()
        rest[0] -= tail.slope * cells.centers[dropped] + tail.intercept
        rest[1] -= tail.slope
        distance = powers @ np.abs(rest) + cells.errors[dropped] + SHIFT * abs(tail.intercept)
        # Only one of slope and intercept is not 0, and products with a slope count as |x|.
        rounding = unit * abs(tail.intercept)
        if np.float32(tail.intercept * form.outer) == tail.intercept * form.outer:
            rounding = 0.0
        if abs(end) < 1:  # the distance from the center of the row is not in proportion to |x|
            rounding += 16 * unit * abs(tail.slope) * cells.half
        found = max(found, outer * (max(distance.max(initial=0.0), tail.error) + rounding))
    return found * (1 + 2.0**-20)


def _single(form: _Form, steepest: float) -> tuple[Matrix, int, float]:
    """Return cubic polynomials in float32, the index of the first, and the error of a value."""
    cells = form.parts(PARTS_SINGLE)
    radius = cells.radius
    shifted = cells.coefficients
    # t⁴ is close to r²·t² − r⁴/8, by r⁴/8 at most.
    cubic = shifted[:4].copy()
    cubic[0] -= shifted[4] * radius**4 / 8
    cubic[2] += shifted[4] * radius**2
    exact = cubic * form.outer
    rounded = exact.astype(np.float32).astype(np.float64)
    higher = radius ** np.arange(5, DEGREE + 1) @ np.abs(shifted[5:])
    error = (cells.errors + np.abs(shifted[4]) * radius**4 / 8 + higher) * abs(form.outer)
    error += radius ** np.arange(4) @ (np.abs(exact - rounded) + SHIFT * np.abs(exact))
    error += _rounding(rounded, radius, UNIT32)
    first, last = _needed(form, cells)
    kept = slice(first, last)
    beyond = error - _allowance(form, cells, steepest, UNIT32)
    largest = max(float(beyond[kept].max()), _tail_error(form, cells, (first, last), UNIT32))
    low, high = cells.centers[first] - cells.half, cells.centers[last - 1] + cells.half
    rows = _with_tails(form, rounded[:, kept].T, (float(low), float(high)), cells.half)
    rows = rows.astype(np.float32).astype(np.float64)
    per_unit = CELLS_PER_UNIT * PARTS_SINGLE
    return rows, round(low * per_unit) - 1, float(max(largest, 0.0)) + 2.0**-100


def _needed(form: _Form, cells: _Cells) -> tuple[int, int]:
    """Return the range of cells in which the tails are not close enough."""
    far = []
    powers = cells.radius ** np.arange(DEGREE + 1)
    for tail in form.tails:
        rest = cells.coefficients.copy()
        rest[0] -= tail.slope * cells.centers + tail.intercept
        rest[1] -= tail.slope
        far.append(np.flatnonzero(powers @ np.abs(rest) > CLOSE))
    first, last = int(far[0][0]), int(far[1][-1]) + 1
    return first - first % PARTS_SINGLE, last + last % PARTS_SINGLE


def _double(form: _Form, steepest: float) -> tuple[Matrix, int, float]:
    """Return the polynomials of the table, the index of the first, and the error of a value."""
    cells = form.parts(1)
    scaled = form.coefficients * form.outer
    error = cells.errors * abs(form.outer)
    if form.outer != 1.0:
        error = error + _rounding(scaled, cells.radius, UNIT64)
    beyond = error - _allowance(form, cells, steepest, UNIT64)
    whole = (0, len(cells))
    largest = max(float(beyond.max()), _tail_error(form, cells, whole, UNIT64))
    rows = _with_tails(form, scaled.T, (form.low, form.high), cells.half)
    error64 = float(max(largest, 0.0)) * (1 + 2.0**-20) + 2.0**-1000
    return rows, round(form.low * CELLS_PER_UNIT) - 1, error64


# ---- windows


def _windows(form: _Form, step: float) -> tuple[Matrix, float, int, float]:
    """Return the windows of each slope, their reach, the first slope, and the claim's error."""
    cells = form.parts(PARTS_WINDOWS)
    radius, degrees = cells.radius, np.arange(DEGREE + 1)
    coefficients, factor = cells.coefficients, form.outer * form.inner
    bent = (degrees[2:] * radius ** (degrees[2:] - 1)) @ np.abs(coefficients[2:])
    margin = bent * 2.0**-40 + 2.0**-50 * np.abs(coefficients[1])
    lowest, highest = coefficients[1] - bent - margin, coefficients[1] + bent + margin
    slopes = [tail.slope for tail in form.tails]
    ends = factor * np.array([lowest.min(), highest.max(), *slopes])
    first, last = int(np.floor(ends.min() / step)), int(np.ceil(ends.max() / step))
    multiples = np.arange(first, last + 1)
    search = _Search(form, cells, lowest, highest)
    # The slope is what the kernel computes: a product in float32.
    lines = (multiples.astype(np.float32) * np.float32(step)).astype(np.float64)
    rows = [_row(form, search.windows(line / factor)) for line in lines]
    reach = max(row.reach for row in rows)
    numbers = np.array([row.numbers for row in rows])
    return numbers, reach, first, search.claim_error * abs(form.outer) * (1 + 2.0**-20)


@dataclass(frozen=True, slots=True)
class _Window:
    """An interval of inner · x, and the range of base(y) − slope · y that counts."""

    low: float
    high: float
    lowest: float
    highest: float


@dataclass(frozen=True, slots=True, eq=False)
class _Search:
    """The cells of a function, and the ranges of its polynomials' slopes."""

    form: _Form
    cells: _Cells
    lowest: Vector
    highest: Vector

    @property
    def claim_error(self) -> float:
        """Bound what gaps between cells may hide: of values, and of slopes times one unit."""
        cells, half = self.cells, self.cells.half
        degrees = np.arange(DEGREE + 1)
        values = [(sign * half) ** degrees @ cells.coefficients for sign in (-1.0, 1.0)]
        derived = cells.coefficients[1:] * degrees[1:, None]
        slopes = [(sign * half) ** degrees[:-1] @ derived for sign in (-1.0, 1.0)]
        gaps = np.abs(values[1][:-1] - values[0][1:]) + np.abs(slopes[1][:-1] - slopes[0][1:])
        hidden = FLAT * (self.form.high - self.form.low)
        tails = sum(2 * tail.error for tail in self.form.tails)
        return float(gaps.sum() + 2 * cells.errors.sum()) + hidden + tails

    def windows(self, slope: float) -> list[_Window]:
        """Return where base(y) − slope · y may have an extreme, in ascending order."""
        form = self.form
        rises = np.concatenate(
            [
                [form.tails[0].slope >= slope],
                self.lowest >= slope - FLAT,
                [form.tails[1].slope >= slope],
            ]
        )
        falls = np.concatenate(
            [
                [form.tails[0].slope <= slope],
                self.highest <= slope + FLAT,
                [form.tails[1].slope <= slope],
            ]
        )
        runs, found = _runs(rises, falls), []
        for before, after, start, stop in runs:  # cells start to stop − 1; none: a kink
            found.append(self._window(slope, before, after, start - 1, stop - 1))
        return found

    def _window(self, slope: float, before: int, after: int, start: int, stop: int) -> _Window:
        cells, half = self.cells, self.cells.half
        low, high = self.form.low + 2 * half * start, self.form.low + 2 * half * stop
        if start == stop:  # a kink between two cells, or at the end of a tail
            cell, sign = (start, -1.0) if start < len(cells) else (start - 1, 1.0)
            at = slice(cell, cell + 1)
            value = float((sign * half) ** np.arange(DEGREE + 1) @ cells.coefficients[:, cell])
            value -= slope * low
            error = float(self._errors(slope, at)[0])
            lowest, highest, bent = value - error, value + error, -before
        else:
            at = slice(start, stop)
            lows, highs = self._range(slope, at)
            lowest, highest = float(lows.min()), float(highs.max())
            # `claim_error` covers one unit.
            bent = self._curvature(at) if high - low <= 1 else 0
        if bent < 0 < before and after < 0:
            lowest = np.inf  # a maximum
        if bent > 0 > before and after > 0:
            highest = -np.inf  # a minimum
        return _Window(low, high, lowest, highest)

    def _curvature(self, near: slice) -> int:
        """Return 1 if all polynomials are convex in their cells, −1 if concave, else 0."""
        degrees, coefficients = np.arange(DEGREE + 1), self.cells.coefficients[:, near]
        higher = degrees[3:] * (degrees[3:] - 1) * self.cells.radius ** (degrees[3:] - 2)
        rest = higher @ np.abs(coefficients[3:]) * (1 + 2.0**-40)
        bent = 2 * coefficients[2]
        if (bent - rest > 0).all():
            return 1
        return -1 if (bent + rest < 0).all() else 0

    def _range(self, slope: float, near: slice) -> tuple[Vector, Vector]:
        """Bound base(y) − slope · y over each cell, by a parabola and a remainder."""
        cells, radius = self.cells, self.cells.radius
        c = cells.coefficients[:, near]
        value, linear, square = c[0] - slope * cells.centers[near], c[1] - slope, c[2]
        ends = [value + sign * linear * radius + square * radius**2 for sign in (-1.0, 1.0)]
        with np.errstate(divide="ignore", invalid="ignore", over="ignore"):
            at = -linear / (2 * square)
        middle = np.where(np.abs(at) <= radius, value + linear * at / 2, value)
        rest = radius ** np.arange(3, DEGREE + 1) @ np.abs(c[3:]) + self._errors(slope, near)
        candidates = np.array([*ends, middle, value])
        return candidates.min(axis=0) - rest, candidates.max(axis=0) + rest

    def _errors(self, slope: float, near: slice) -> Vector:
        """Bound the error of values of polynomials minus a line, computed in float64."""
        cells = self.cells
        sizes = np.abs(cells.coefficients[0, near]) + np.abs(slope * cells.centers[near]) + 1.0
        return cells.errors[near] + 2.0**-48 * sizes


def _runs(rises: Counts, falls: Counts) -> list[tuple[int, int, int, int]]:
    """Return the runs of cells that do neither, and the ends where one follows the other.

    Each has the direction before and after (1, −1; 0 if unknown), the first cell and the cell after
    the last one. Cells that do both are constant, and continue any direction.
    """
    kinds = np.where(rises & falls, 0, np.where(rises, 1, np.where(falls, -1, 2)))
    # Only cells whose kind differs from that of the one before can matter.
    changes = np.flatnonzero(np.diff(kinds)) + 1
    found: list[tuple[int, int, int, int]] = []
    direction, run = int(kinds[0]), None
    for at in changes.tolist():
        kind = int(kinds[at])
        if kind == 2:  # noqa: PLR2004 - neither
            run = at if run is None else run
            continue
        if run is not None:
            found.append((direction, kind, run, at))
            direction, run = kind, None
        elif kind == 0:
            continue
        else:
            if direction not in (0, kind):
                found.append((direction, kind, at, at))
            direction = kind
    return found


@dataclass(frozen=True, slots=True)
class _Row:
    """The numbers of one slope in units of x, rounded outward to float32."""

    numbers: tuple[float, float, float, float]
    reach: float


def _row(form: _Form, windows: list[_Window]) -> _Row:
    numbers: list[float] = []
    reach = 0.0
    for outward in (-1.0, 1.0):  # of the lowest points, and of the highest ones
        # A factor below 0 turns the highest points of the base into the lowest ones.
        highest = (outward > 0) == (form.outer > 0)
        values = [(window.highest if highest else window.lowest, window) for window in windows]
        kept = [(form.outer * value, window) for value, window in values if np.isfinite(value)]
        if not kept:
            numbers += [np.inf, np.inf if outward < 0 else -np.inf]
            continue
        # Several become one, with everything between them.
        low = min(window.low for _, window in kept) / form.inner
        high = max(window.high for _, window in kept) / form.inner
        value = max((value for value, _ in kept), key=lambda value: outward * value)
        center = float(np.float32((low + high) / 2))
        half = max(abs(high - center), abs(low - center))
        reach = max(reach, _above(half + 2.0**-20 * abs(center)) * (1 + 2.0**-10))
        numbers += [center, _below(value) if outward < 0 else _above(value)]
    return _Row((numbers[0], numbers[1], numbers[2], numbers[3]), reach)


def _below(value: float) -> float:
    """Round down to float32, by a little more than necessary."""
    if not np.isfinite(value):
        return value
    rounded = np.nextafter(np.float32(value), np.float32(-np.inf))
    return float(np.nextafter(rounded, np.float32(-np.inf)))


def _above(value: float) -> float:
    return -_below(-value)


def _softsign() -> KernelTable:
    """Return the table of x / (1 + |x|), which the kernel evaluates directly."""
    rows = []
    for slope in np.arange(SLOPES + 1) / SLOPES:
        if slope in (0.0, 1.0):  # it increases everywhere, or decreases after the subtraction
            rows.append((np.inf, np.inf, np.inf, -np.inf))
            continue
        at, value = 1 / np.sqrt(slope) - 1, (1 - np.sqrt(slope)) ** 2 + 2.0**-40
        rows.append((-at, _below(-value), at, _above(value)))
    no_cells = np.zeros((0, 4)), np.zeros((0, DEGREE + 1))
    errors, reach = (2.0**-100, 2.0**-1000), 2.0**-16
    return KernelTable(
        1.0, *no_cells, (0, 0), errors, np.array(rows), reach, 0, 1 / SLOPES, window_error=0.0
    )
