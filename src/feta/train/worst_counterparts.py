"""Each person's counterpart with the highest (or lowest) score, exactly.

This is the costly step of fair training: it runs for every person of every batch, with new weights
each time.
"""

from dataclasses import dataclass
from functools import cached_property
from typing import Literal

import numpy as np

from feta.arrays import Counts, Flags, Matrix, Vector
from feta.errors import EngineError, SchemaError
from feta.relation.all_sensitive_values import AllSensitiveValues
from feta.rounding import FLOAT64
from feta.scorer.native import is_built, warn_without_kernel
from feta.scorer.network import native_kernel
from feta.scorer.network.error_bounds import largest_error
from feta.scorer.network.evaluation import Tabulated
from feta.scorer.network.exact import ExactNetwork
from feta.scorer.network.native_kernel import AxisTerms, RealTerms, kernel_of
from feta.scorer.network.network import Network
from feta.space.attribute import Attribute, Integer, Levels, Real
from feta.space.feature_space import FeatureSpace
from feta.space.lattice import Lattice
from feta.train.line_search import highest
from feta.train.ties import distinct

Numbers = Literal["real", "integer"]
Engine = Literal["auto", "exhaustive"]

# Counterparts scored at once: a block of 2^12 points of 16 neurons fits into the cache.
BLOCK = 2**12

# Enumerating more counterparts would take seconds per person.
MAX_COUNTERPARTS = 10**7

UP_AND_DOWN = np.array([[[1.0]], [[-1.0]]])

# Arguments of the kernel: seconds, evaluations and threads.
NO_LIMIT = (-1.0, 0, 1)

# Contributions of assignments that are cached, in numbers: 128 MB.
MAX_CACHED_TERMS = 2**24

# Values of a real-valued attribute that are scored first; between them its breaks are followed.
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

    Return the counterparts' rows and float64 scores. With "integer" numbers the choice is exact,
    and the first of equals on the lattice. With "real" numbers one integer attribute, the widest,
    takes any value of its range (a `Real` always does): the score is then the highest up to
    rounding, at a float64 point. A network with smooth activations has no breaks to follow along a
    range, so its integers stay integers; of scores within 2^-900 of each other, any may be chosen.

    With `beyond`, a person without a counterpart beyond that score may get any counterpart, or
    the person itself: this is several times faster. With `nearly`, a score may be below the
    highest by float32's rounding if it is provably beyond `beyond`: networks trained to be fair
    have many counterparts of equal score.

    "auto" uses the compiled kernel if it is installed and float32 can represent the network;
    "exhaustive" enumerates in NumPy.
    """
    if network.outputs != 1:
        raise SchemaError(f"invalid number of scores: got {network.outputs}; expected 1")
    if not network.piecewise_linear:
        numbers = "integer"
        reals = [repr(a.name) for a in space.sensitive if isinstance(a, Real)]
        if reals:
            raise SchemaError(
                f"a real-valued sensitive attribute needs a piecewise-linear network: got "
                f"{', '.join(reals)} and {network.description}; expected integers; add a step to "
                "the attribute, or train with activation='relu'"
            )
    relation = AllSensitiveValues(_grid(space))
    search = _WorstSearch(relation, network, _line(space, relation, network, numbers=numbers))
    if engine == "auto" and search.fits_kernel:
        rows = np.array(people, dtype=np.float64)
        return search.worst_by_kernel(rows, upward, beyond, nearly=nearly)
    if search.relation.size > MAX_COUNTERPARTS:
        raise EngineError(
            f"too many counterparts per person: got {search.relation.size:,}; expected at most "
            f"{MAX_COUNTERPARTS:,}; narrow their domains, or name fewer sensitive attributes"
        )
    rows, scores = np.array(people, dtype=np.float64), np.zeros(len(people))
    step = max(1, BLOCK // search.relation.size)
    for start in range(0, len(people), step):
        part = slice(start, start + step)
        rows[part], scores[part] = search.worst_counterparts(rows[part], upward[part])
    return rows, scores


def _grid(space: FeatureSpace) -> FeatureSpace:
    """Replace a real-valued sensitive attribute by a few of its values."""
    if space.finite:
        return space
    return FeatureSpace(tuple(_with_levels(attribute) for attribute in space.attributes))


def _with_levels(attribute: Attribute) -> Attribute:
    if not isinstance(attribute, Real) or not attribute.sensitive:
        return attribute
    numbers = np.unique(np.linspace(attribute.low, attribute.high, GRID))
    return Levels(attribute.name, tuple(numbers.tolist()), sensitive=True)


def _line(
    space: FeatureSpace, relation: AllSensitiveValues, network: Network, *, numbers: Numbers
) -> int | None:
    """Return the index of the axis that is searched over the reals, if any."""
    reals = [a for a in space.sensitive if isinstance(a, Real)]
    if len(reals) > 1:
        names = ", ".join(repr(attribute.name) for attribute in reals)
        raise SchemaError(
            f"too many real-valued sensitive attributes for training: got {names}; expected at "
            "most one; declare the others as integer, or add a step"
        )
    if reals:
        return [axis.attribute.name for axis in relation.axes].index(reals[0].name)
    tabled = {table.column for table in network.first.tables}
    # A table or a band has no values between integers, and a missing value is not a number.
    wide = [
        (-len(axis), index)
        for index, axis in enumerate(relation.axes)
        if isinstance(axis.attribute, Integer)
        and len(axis.columns) == 1  # no bands, no flag for missing values
        and axis.columns[0] not in tabled
    ]
    return min(wide)[1] if wide and numbers == "real" else None


@dataclass(frozen=True, eq=False)
class _WorstSearch:
    """Search of a network over the counterparts of people."""

    relation: AllSensitiveValues
    network: Network
    line: int | None

    @property
    def lattice(self) -> Lattice:
        """All assignments."""
        return self.tabulated.lattice

    @cached_property
    def tabulated(self) -> Tabulated:
        """The first layer over the counterparts, also for exact arithmetic."""
        return Tabulated(ExactNetwork(self.network), self.relation)

    @cached_property
    def cached_terms(self) -> Matrix | None:
        """What each assignment contributes, (assignments, neurons); None if that is too large."""
        if self.relation.size * self.network.first.outputs > MAX_CACHED_TERMS:
            return None
        return self.tabulated.terms(np.arange(self.relation.size))[0]

    def terms(self, assignment_ids: Counts) -> Matrix:
        """Return what these assignments contribute to the first layer."""
        if self.cached_terms is None:
            return self.tabulated.terms(assignment_ids)[0]
        return self.cached_terms[assignment_ids]

    @cached_property
    def error(self) -> float:
        """The largest error of any float64 score."""
        return largest_error(self.network, self.relation.space.magnitudes, FLOAT64)

    @property
    def fits_kernel(self) -> bool:
        """Whether the kernel can search this network and lattice."""
        if not is_built():
            warn_without_kernel()
            return False
        return (
            max(map(len, self.relation.axes)) <= native_kernel.LONGEST_AXIS
            and self.relation.size < native_kernel.MAX_COUNTERPARTS
            and (self.line is None or native_kernel.fits_line(*self._ends(self.line)))
            and native_kernel.fits(self.network, self.relation.space.magnitudes)
        )

    def worst_by_kernel(
        self, people: Matrix, upward: Flags, beyond: float | None, *, nearly: bool
    ) -> tuple[Matrix, Vector]:
        """Search with the kernel; exact arithmetic decides what it leaves undecided."""
        kernel = kernel_of(
            self.network, [self._axis(index) for index in range(len(self.relation.axes))]
        )
        kernel.finish(True)
        values, sizes = self._shared(people)
        signs = np.where(upward, 1.0, -1.0)
        floors = np.full(len(people), -np.inf) if beyond is None else signs * beyond
        columns = np.array(self.lattice.columns)
        if self.line is None:
            kind = np.where(upward, 0, 1).astype(np.int32)
            offsets = np.zeros((len(people), 1))
            result = kernel.worst(
                values, sizes, UP_AND_DOWN, offsets, kind, floors, nearly, False, *NO_LIMIT
            )
            found, chosen = result.has_match.astype(bool), result.assignment_ids.astype(np.int64)
            for row, numbers in result.undecided_ids.items():
                found[row] = True
                candidates = numbers.astype(np.int64)
                chosen[row] = self._exact_best(people[row], candidates, bool(upward[row]))
            rows = np.flatnonzero(found)
            people[rows[:, None], columns] = self._codes(self.lattice.coordinates(chosen[rows]))
        else:
            result = kernel.worst_real(values, sizes, signs, floors, *NO_LIMIT)
            rows = np.flatnonzero(result.has_match)
            lengths = [len(axis) for axis in self.relation.axes]
            # Numbers omit the real axis: its first value is set here, and replaced below.
            lengths[self.line] = 1
            coordinates = np.unravel_index(result.assignment_ids[rows].astype(np.int64), lengths)
            people[rows[:, None], columns] = self._codes(coordinates)
            people[rows, self.relation.axes[self.line].columns[0]] = result.real_values[rows]
        return people, self.network(people)[:, 0]

    def _shared(self, people: Matrix) -> tuple[Matrix, Matrix]:
        """Sum what the other columns contribute, and the magnitudes of these terms."""
        columns = self.tabulated.shared
        return self.network.first.terms(people[:, columns], columns.tolist())

    def _axis(self, index: int) -> AxisTerms:
        axis = self.relation.axes[index]
        if index == self.line:
            slopes = self.network.first.slopes[:, axis.columns[0]]
            return RealTerms(*self._ends(index), slopes)
        return self.network.first.terms(axis.every_code, axis.columns)

    def _ends(self, index: int) -> tuple[float, float]:
        codes = self.relation.axes[index].every_code
        return float(codes[0, 0]), float(codes[-1, 0])

    def worst_counterparts(self, people: Matrix, upward: Flags) -> tuple[Matrix, Vector]:
        """Search for some people by enumeration."""
        constants = self._shared(people)[0] + self.network.first.bias
        signed = np.where(upward[:, None], 1.0, -1.0) * self._scores(constants)
        best = signed.max(axis=1)
        near = signed >= best[:, None] - 2 * self.error
        chosen = np.argmax(near, axis=1)
        if self.line is None:
            for row in np.flatnonzero(near.sum(axis=1) > 1):
                candidates = np.flatnonzero(near[row])
                chosen[row] = self._exact_best(people[row], candidates, bool(upward[row]))
        rows = np.array(people)
        rows[:, list(self.lattice.columns)] = self._codes(self.lattice.coordinates(chosen))
        if self.line is not None:
            self._search_line(rows, constants, signed, upward)
        return rows, self.network(rows)[:, 0]

    def _scores(self, constants: Matrix) -> Matrix:
        """Score every counterpart, (people, assignments)."""
        size = self.relation.size
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
            [axis.every_code[at] for axis, at in zip(self.relation.axes, coordinates, strict=True)]
        )

    def _exact_best(self, person: Vector, assignment_ids: Counts, upward: bool) -> int:
        """Return the first of the highest by exact arithmetic; provable ties are scored once."""
        points = self.tabulated.counterparts(person[None, :], assignment_ids)
        different = np.arange(len(assignment_ids))
        if self.network.piecewise_linear:
            different = distinct(points, assignment_ids)
        if len(different) == 1:
            return int(assignment_ids[different[0]])
        exact = points.exact_scores(different).centers.numerators[:, 0].tolist()
        best = exact.index(max(exact) if upward else min(exact))
        return int(assignment_ids[different[best]])

    def _search_line(self, rows: Matrix, constants: Matrix, signed: Matrix, upward: Flags) -> None:
        """Move people to a point between two grid values if the score is higher there.

        Between neighbors the score cannot exceed their mean by more than half their distance times
        its steepest slope; intervals that could exceed the best known score are searched.
        """
        assert self.line is not None
        axis = self.relation.axes[self.line]
        column = axis.columns[0]
        values = axis.every_code[:, 0]
        after = int(np.prod([len(later) for later in self.relation.axes[self.line + 1 :]]))
        cube = np.moveaxis(signed.reshape(len(rows), -1, len(axis), after), 2, 3)
        best = signed.max(axis=1)
        excess = self._steepest(column) * np.diff(values) / 2
        above = (cube[..., :-1] + cube[..., 1:]) / 2 + excess > best[:, None, None, None]
        owners, before, last, left, right = _intervals(above)
        numbers = (before * len(axis) + left) * after + last
        first = constants[owners] + self.terms(numbers)
        length = values[right] - values[left]
        steps = length[:, None] * self.network.first.slopes[:, column]
        at, scores = highest(self.network, first, steps, upward[owners])
        higher = np.where(upward[owners], scores, -scores)
        for owner in np.unique(owners[higher > best[owners]]):
            intervals = np.flatnonzero(owners == owner)
            best_one = intervals[np.argmax(higher[intervals])]
            coordinates = self.lattice.coordinates(numbers[[best_one]])
            rows[owner, list(self.lattice.columns)] = self._codes(coordinates)[0]
            value = values[left[best_one]] + at[best_one] * length[best_one]
            rows[owner, column] = min(value, values[right[best_one]])

    def _steepest(self, column: int) -> float:
        """Bound the score's slope along a column by the absolute weights."""
        slope = np.abs(self.network.first.slopes[:, column])
        for activation, layer in self.network.steps:
            slope = np.abs(layer.weight) @ (activation.steepest * slope)
        return float(slope[0])


def _intervals(above: Flags) -> tuple[Counts, ...]:
    """Join neighbors along the last axis; return the indices, starts and ends of intervals."""
    edge = np.zeros((*above.shape[:-1], 1), dtype=bool)
    padded = np.concatenate([edge, above, edge], axis=-1)
    starts = np.nonzero(padded[..., 1:] & ~padded[..., :-1])
    ends = np.nonzero(~padded[..., 1:] & padded[..., :-1])
    return (*starts, ends[-1])
