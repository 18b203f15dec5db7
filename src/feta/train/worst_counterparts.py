"""Farthest: each person's counterpart with the highest (or lowest) score, exactly.

The costly step of fair training: it runs for every person of every batch, with new weights each time.
"""

from dataclasses import dataclass
from functools import cached_property
from typing import Literal

import numpy as np

from feta.arrays import Counts, Flags, Matrix, Vector
from feta.errors import EngineError, SchemaError
from feta.rounding import FLOAT64
from feta.scorer.network import native_kernel
from feta.scorer.network.error_bounds import largest_error
from feta.scorer.network.evaluation import Tabulated
from feta.scorer.network.exact import ExactNetwork
from feta.scorer.network.native_kernel import Axis, RealAxis, kernel_of
from feta.scorer.network.network import Network
from feta.space.attribute import Attribute, Integer, Levels, Real
from feta.space.feature_space import FeatureSpace
from feta.space.lattice import Lattice
from feta.train.line_search import highest
from feta.train.ties import distinct

Numbers = Literal["real", "integer"]
Engine = Literal["auto", "exhaustive"]

# Counterparts scored at a time: blocks of 2^12 points of 16 neurons stay in the cache.
BLOCK = 2**12

# Enumeration of more counterparts than this a person would take seconds each.
MAX_COUNTERPARTS = 10**7

UP_AND_DOWN = np.array([[[1.0]], [[-1.0]]])

# The kernel's seconds, evaluations and threads.
NO_LIMIT = (-1.0, 0, 1)

# Contributions kept for all assignments, in numbers: 128 MB.
KEPT_TERMS = 2**24

# Values that a real-valued attribute is first looked at; between two of them it is traced.
GRID = 33


def worst_counterparts(
    space: FeatureSpace,
    network: Network,
    people: Matrix,
    upward: Flags,
    *,
    numbers: Numbers = "integer",
    engine: Engine = "auto",
    beyond: float | None = None,
    nearly: bool = False,
) -> tuple[Matrix, Vector]:
    """Find each person's counterpart with the highest score (upward) or the lowest.

    Gives the counterparts' rows and float64 scores. With "integer" numbers the choice is exact, and
    the first on the lattice among equals. With "real" numbers one whole-number attribute, the widest,
    takes any value of its range (a `Real` always does): the score is then within rounding of the
    highest there is, at a float64 point. With `beyond`, people none of whose counterparts reach that
    score may be given any counterpart, or themselves: that is proved several times faster. With
    `nearly`, one whose score is short of the highest by float32's rounding will do, if it is beyond
    that score for sure: networks trained to be fair have many counterparts of equal score. The
    native_kernel kernel does it where it was built and float32 can hold the network; "exhaustive"
    enumerates in NumPy.
    """
    if network.outputs != 1:
        raise SchemaError(f"the farthest counterpart is one of one score, got {network.outputs}")
    search = _WorstSearch(_grid(space), network, _line(space, network, numbers))
    if engine == "auto" and search.compilable:
        rows = np.array(people, dtype=np.float64)
        return search.worst_by_kernel(rows, upward, beyond, nearly=nearly)
    if search.lattice.size > MAX_COUNTERPARTS:
        message = f"training searches at most {MAX_COUNTERPARTS:,} counterparts a person, got {search.lattice.size:,}; narrow the sensitive domains, or give fewer sensitive attributes"
        raise EngineError(message)
    rows, scores = np.array(people, dtype=np.float64), np.zeros(len(people))
    step = max(1, BLOCK // search.lattice.size)
    for start in range(0, len(people), step):
        part = slice(start, start + step)
        rows[part], scores[part] = search.worst_counterparts(rows[part], upward[part])
    return rows, scores


def _grid(space: FeatureSpace) -> FeatureSpace:
    """Look at a real-valued sensitive attribute at a few values first."""
    if space.finite:
        return space
    return FeatureSpace(tuple(_listed(one) for one in space.attributes))


def _listed(attribute: Attribute) -> Attribute:
    if not isinstance(attribute, Real) or not attribute.sensitive:
        return attribute
    numbers = np.unique(np.linspace(attribute.low, attribute.high, GRID))
    return Levels(attribute.name, tuple(numbers.tolist()), sensitive=True)


def _line(space: FeatureSpace, network: Network, numbers: Numbers) -> int | None:
    """Choose the axis that is searched over the reals, if any."""
    reals = [a for a in space.sensitive if isinstance(a, Real)]
    if len(reals) > 1:
        names = ", ".join(repr(one.name) for one in reals)
        message = f"one sensitive attribute may be real-valued in training, got {names}; declare the others integer, or give them a step"
        raise SchemaError(message)
    axes = _grid(space).lattice.axes
    if reals:
        return [axis.attribute.name for axis in axes].index(reals[0].name)
    tabled = {table.column for table in network.first.tables}
    # Between whole numbers neither a table nor a band says anything, and a missing one is no number.
    wide = [
        (-len(axis), index)
        for index, axis in enumerate(axes)
        if isinstance(axis.attribute, Integer)
        and len(axis.columns) == 1  # neither bands nor a flag for what is missing
        and axis.columns[0] not in tabled
    ]
    return min(wide)[1] if wide and numbers == "real" else None


@dataclass(frozen=True, eq=False)
class _WorstSearch:
    """A network over the lattice: what each assignment contributes to the first layer."""

    space: FeatureSpace
    network: Network
    line: int | None

    @property
    def lattice(self) -> Lattice:
        """All assignments."""
        return self.space.lattice

    @cached_property
    def tabulated(self) -> Tabulated:
        """The first layer over the lattice; exact where it is asked for that."""
        return Tabulated(ExactNetwork(self.network), self.lattice)

    @cached_property
    def kept(self) -> Matrix | None:
        """What every assignment contributes, (assignments, neurons), unless that is too much."""
        if self.lattice.size * self.network.first.outputs > KEPT_TERMS:
            return None
        return self.tabulated.terms(np.arange(self.lattice.size))[0]

    def terms(self, numbers: Counts) -> Matrix:
        """Give what assignments with these numbers contribute."""
        return self.tabulated.terms(numbers)[0] if self.kept is None else self.kept[numbers]

    @cached_property
    def error(self) -> float:
        """How far off any float64 score can be."""
        return largest_error(self.network, self.space.magnitudes, FLOAT64)

    @property
    def compilable(self) -> bool:
        """Whether the kernel can search it."""
        if native_kernel.native is None:
            native_kernel.warn_without_kernel()
            return False
        return (
            max(map(len, self.lattice.axes)) <= native_kernel.LONGEST_AXIS
            and self.lattice.size < native_kernel.MAX_COUNTERPARTS
            and (self.line is None or native_kernel.fits_line(*self._ends(self.line)))
            and native_kernel.fits(self.network, self.space.magnitudes)
        )

    def worst_by_kernel(
        self, people: Matrix, upward: Flags, beyond: float | None, *, nearly: bool
    ) -> tuple[Matrix, Vector]:
        """Search for everybody in the kernel; exact arithmetic settles what it leaves open."""
        kernel = kernel_of(
            self.network, [self._axis(index) for index in range(len(self.lattice.axes))]
        )
        kernel.finish(True)
        values, sizes = self._shared(people)
        signs = np.where(upward, 1.0, -1.0)
        floors = np.full(len(people), -np.inf) if beyond is None else signs * beyond
        columns = np.array(self.lattice.columns)
        if self.line is None:
            kind = np.where(upward, 0, 1).astype(np.int32)
            offsets = np.zeros((len(people), 1))
            told = kernel.worst(
                values, sizes, UP_AND_DOWN, offsets, kind, floors, nearly, False, *NO_LIMIT
            )
            found, chosen = told["found"].astype(bool), told["number"].astype(np.int64)
            for row, numbers in told["open"].items():
                found[row] = True
                chosen[row] = self._settled(
                    people[row], numbers.astype(np.int64), bool(upward[row])
                )
            rows = np.flatnonzero(found)
            people[rows[:, None], columns] = self._codes(self.lattice.coordinates(chosen[rows]))
        else:
            told = kernel.worst_real(values, sizes, signs, floors, *NO_LIMIT)
            rows = np.flatnonzero(told["found"])
            lengths = [len(axis) for axis in self.lattice.axes]
            # Numbers leave the line out: there its first value stands, until the place found does.
            lengths[self.line] = 1
            coordinates = np.unravel_index(told["number"][rows].astype(np.int64), lengths)
            people[rows[:, None], columns] = self._codes(coordinates)
            people[rows, self.lattice.axes[self.line].columns[0]] = told["at"][rows]
        return people, self.network(people)[:, 0]

    def _shared(self, people: Matrix) -> tuple[Matrix, Matrix]:
        """Add up what the other columns contribute, and the terms' sizes."""
        columns = np.flatnonzero(~self.space.sensitive_columns)
        return self.network.first.terms(people[:, columns], columns.tolist())

    def _axis(self, index: int) -> Axis:
        axis = self.lattice.axes[index]
        if index == self.line:
            slopes = self.network.first.slopes[:, axis.columns[0]]
            return RealAxis(*self._ends(index), slopes)
        return self.network.first.terms(axis.every_code, axis.columns)

    def _ends(self, index: int) -> tuple[float, float]:
        codes = self.lattice.axes[index].every_code
        return float(codes[0, 0]), float(codes[-1, 0])

    def worst_counterparts(self, people: Matrix, upward: Flags) -> tuple[Matrix, Vector]:
        """Search for some people at once."""
        constants = self._shared(people)[0] + self.network.first.bias
        signed = np.where(upward[:, None], 1.0, -1.0) * self._scores(constants)
        best = signed.max(axis=1)
        near = signed >= best[:, None] - 2 * self.error
        chosen = np.argmax(near, axis=1)
        if self.line is None:
            for row in np.flatnonzero(near.sum(axis=1) > 1):
                numbers = np.flatnonzero(near[row])
                chosen[row] = self._settled(people[row], numbers, bool(upward[row]))
        rows = np.array(people)
        rows[:, list(self.lattice.columns)] = self._codes(self.lattice.coordinates(chosen))
        if self.line is not None:
            self._follow(rows, constants, signed, upward)
        return rows, self.network(rows)[:, 0]

    def _scores(self, constants: Matrix) -> Matrix:
        """Score every counterpart, (people, assignments)."""
        size = self.lattice.size
        scores = np.empty((len(constants), size))
        for start in range(0, size, BLOCK):
            terms = self.terms(np.arange(start, min(start + BLOCK, size)))
            values = constants[:, None, :] + terms
            shape = values.shape[:2]
            values = values.reshape(-1, values.shape[2])
            for activation, layer in self.network.steps:
                values = activation(values) @ layer.weight.T + layer.bias
            scores[:, start : start + BLOCK] = values.reshape(shape)
        return scores

    def _codes(self, coordinates: tuple[Counts, ...]) -> Matrix:
        return np.hstack(
            [a.every_code[d] for a, d in zip(self.lattice.axes, coordinates, strict=True)]
        )

    def _settled(self, person: Vector, numbers: Counts, upward: bool) -> int:
        """Find the first of the highest by exact arithmetic, among those that can differ at all."""
        points = self.tabulated.counterparts(person[None, :], numbers)
        different = distinct(points, numbers)
        if len(different) == 1:
            return int(numbers[different[0]])
        exact = points.exact_scores(different).numerators[:, 0].tolist()
        return int(numbers[different[exact.index(max(exact) if upward else min(exact))]])

    def _follow(self, rows: Matrix, constants: Matrix, signed: Matrix, upward: Flags) -> None:
        """Move people between two values of the line's attribute where the score is higher there.

        Between neighbors the score cannot exceed their mean by more than half their distance times
        its steepest slope; stretches that could exceed the best known value are traced.
        """
        assert self.line is not None
        axis = self.lattice.axes[self.line]
        column = axis.columns[0]
        values = axis.every_code[:, 0]
        after = int(np.prod([len(one) for one in self.lattice.axes[self.line + 1 :]]))
        cube = np.moveaxis(signed.reshape(len(rows), -1, len(axis), after), 2, 3)
        best = signed.max(axis=1)
        excess = self._steepest(column) * np.diff(values) / 2
        above = (cube[..., :-1] + cube[..., 1:]) / 2 + excess > best[:, None, None, None]
        owners, before, last, left, right = _stretches(above)
        numbers = (before * len(axis) + left) * after + last
        first = constants[owners] + self.terms(numbers)
        length = values[right] - values[left]
        steps = length[:, None] * self.network.first.slopes[:, column]
        at, scores = highest(self.network, first, steps, upward[owners])
        higher = np.where(upward[owners], scores, -scores)
        for owner in np.unique(owners[higher > best[owners]]):
            mine = np.flatnonzero(owners == owner)
            found = mine[np.argmax(higher[mine])]
            coordinates = self.lattice.coordinates(numbers[[found]])
            rows[owner, list(self.lattice.columns)] = self._codes(coordinates)[0]
            value = values[left[found]] + at[found] * length[found]
            rows[owner, column] = min(value, values[right[found]])

    def _steepest(self, column: int) -> float:
        """Bound the score's slope along a column by the absolute weights."""
        slope = np.abs(self.network.first.slopes[:, column])
        for activation, layer in self.network.steps:
            slope = np.abs(layer.weight) @ (activation.steepest * slope)
        return float(slope[0])


def _stretches(above: Flags) -> tuple[Counts, ...]:
    """Join neighbors along the last axis: where each stretch is, where it starts and ends."""
    edge = np.zeros((*above.shape[:-1], 1), dtype=bool)
    padded = np.concatenate([edge, above, edge], axis=-1)
    starts = np.nonzero(padded[..., 1:] & ~padded[..., :-1])
    ends = np.nonzero(~padded[..., 1:] & padded[..., :-1])
    return (*starts, ends[-1])
