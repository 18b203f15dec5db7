"""Tests of trees on features, turned into tests on raw values.

The user's own `transform` computes the features, and the comparison is that of the estimator, so
the raw test equals the estimator's bit for bit. A column with finitely many values is evaluated
completely. A number that enters monotonically is bisected, over all float64 numbers or integers,
for the last one that goes left.
"""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from feta.absorb.evaluation import Evaluation
from feta.absorb.feature import Feature
from feta.absorb.walk import run_step
from feta.arrays import Counts, Flags, Matrix, Vector
from feta.errors import NetworkError
from feta.scorer.forest.builder import CutTest, NodeTest, SetTest
from feta.scorer.forest.trees import Domain, Numbers, OneHot
from feta.space.attribute import (
    LARGEST_INTEGER,
    Attribute,
    Categorical,
    Derived,
    Integer,
    Levels,
    Real,
)
from feta.space.limits import Number, limits_of
from feta.space.numeric import number_codes

# Numbers among which a cut is searched: the largest that pass the pipeline. The first leaves room
# for scaling in float64, the second for float32. Beyond it, numbers go the same way.
BRACKETS = (2.0**500, 2.0**100)

# Stands for a cut above or below all numbers.
LARGEST = float(np.finfo(np.float64).max)

# A column with more values is not listed.
MAX_LISTED = 2**17


@dataclass(frozen=True, slots=True, eq=False)
class Splits:
    """Inner nodes of an estimator's trees, which compare a feature with a threshold.

    A feature goes left if it is at most the threshold. A missing feature is NaN. Where `category`
    is not −1, it is the row of `categories` that tells which codes go left.
    """

    feature: Counts
    threshold: Vector
    missing_left: Flags
    category: Counts
    categories: Flags  # (category splits, codes)
    single: bool  # whether the estimator casts features to float32

    def go_left(self, at: Counts, values: Vector) -> Flags:
        """Return where some splits send some values, one each."""
        with np.errstate(over="ignore"):
            numbers = values.astype(np.float32).astype(np.float64) if self.single else values
        left = numbers <= self.threshold[at]
        rows = self.category[at]
        coded = np.flatnonzero((rows >= 0) & (numbers >= 0))
        left[coded] = self.categories[rows[coded], numbers[coded].astype(np.int64)]
        absent = np.isnan(numbers) | ((rows >= 0) & (numbers < 0))
        return np.asarray(np.where(absent, self.missing_left[at], left))


# True and False: everybody goes left, or right.
RawTest = NodeTest | bool


def raw_tests(splits: Splits, features: Sequence[Feature], evaluation: Evaluation) -> list[RawTest]:
    """Return a test on raw values for each split."""
    return _Search(splits, features, evaluation).run()


class _Search:
    """The state of one translation of splits."""

    def __init__(self, splits: Splits, features: Sequence[Feature], evaluation: Evaluation) -> None:
        self.splits = splits
        self.features = features
        self.evaluation = evaluation
        self.space = evaluation.space
        self.tests: list[RawTest] = [False] * len(splits.feature)

    def run(self) -> list[RawTest]:
        """Translate the splits of all columns."""
        constant: list[int] = []
        bisected: dict[str, list[int]] = {}
        listed: dict[str, list[int]] = {}
        bisects = {name: self._bisects(name) for name in self.evaluation.roots}
        for index, number in enumerate(self.splits.feature.tolist()):
            feature = self.features[number]
            if not feature.columns:
                constant.append(index)
                continue
            (name,) = feature.columns
            by_cut = name in feature.linear and not feature.local and bisects[name]
            (bisected if by_cut else listed).setdefault(name, []).append(index)
        self._resolve(np.array(constant, dtype=np.int64))
        for name, indices in listed.items():
            self._list(name, np.array(indices))
        if bisected:
            self._bisect({name: np.array(indices) for name, indices in bisected.items()})
        return self.tests

    def _resolve(self, at: Counts) -> None:
        """Resolve splits of features that depend on no column."""
        base = self.evaluation.features(self.evaluation.base[None, :])[0]
        left = self.splits.go_left(at, base[self.splits.feature[at]])
        for index, side in zip(at.tolist(), left.tolist(), strict=True):
            self.tests[index] = side

    def _list(self, name: str, at: Counts) -> None:
        """Evaluate all values of a column."""
        attribute = self.space.attribute(name)
        _check_listed(attribute)
        codes = self.evaluation.codes(name)
        values = self.evaluation.features(self.evaluation.vary(name, codes))
        domain = self._domain(attribute)
        for index in at.tolist():
            column = values[:, self.splits.feature[index]]
            members = self.splits.go_left(np.full(len(column), index), column)
            same = isinstance(domain, OneHot) and members.all() == members.any()
            self.tests[index] = bool(members[0]) if same else SetTest(domain, members)

    def _domain(self, attribute: Attribute) -> Domain:
        columns = self.space.columns_of(attribute)
        match attribute:
            case Categorical() | Derived():
                return OneHot(columns.start, attribute.width)
            case Integer(low=low, high=high):
                numbers = np.arange(low, high + 1, dtype=np.float64)
            case Levels():
                numbers = np.array(attribute.numbers)
            case _:
                raise AssertionError(attribute)  # real numbers were rejected before
        return Numbers(columns.start, numbers, columns.start + 1 if attribute.missing else -1)

    def _bisects(self, name: str) -> bool:
        """Return whether a column is bisected: a number that may leave its limits."""
        attribute = self.space.attribute(name)
        if not isinstance(attribute, Number):
            return False
        return not isinstance(attribute, Integer) or self._passes(name, float(LARGEST_INTEGER))

    def _passes(self, name: str, largest: float) -> bool:
        """Return whether the pipeline accepts numbers of this size in a column."""
        attribute = self.space.attribute(name)
        assert isinstance(attribute, Number)
        people = self.evaluation.vary(name, _present(attribute, np.array([-largest, largest])))
        try:
            run_step(self.evaluation.preprocessing, self.evaluation.table(people))
        except Exception:  # the user's code may raise anything
            return False
        return True

    def _bisect(self, by_column: dict[str, Counts]) -> None:
        """Find the cuts of all columns at once: each step evaluates one table of people."""
        searches = [self._column_search(name, at) for name, at in by_column.items()]
        while any((search.low < search.high).any() for search in searches):
            self._step(searches)
        for search in searches:
            self._add_cuts(search)

    def _column_search(self, name: str, at: Counts) -> "_ColumnSearch":
        attribute = self.space.attribute(name)
        assert isinstance(attribute, Number)
        pairs = np.stack([self.splits.feature[at].astype(np.float64), self.splits.threshold[at]])
        _, first, inverse = np.unique(pairs, axis=1, return_index=True, return_inverse=True)
        end: int
        if isinstance(attribute, Integer):
            end = LARGEST_INTEGER
        else:
            bracket = next((size for size in BRACKETS if self._passes(name, size)), BRACKETS[-1])
            _check_bracket(attribute, bracket)
            end = int(_keys(np.array([bracket]))[0])
        count = len(first)
        # The key of the last number that goes left is at least low and at most high.
        low, high = np.full(count, -end - 1), np.full(count, end)
        return _ColumnSearch(name, attribute, at, at[first], np.ravel(inverse), end, low, high)

    def _step(self, searches: Sequence["_ColumnSearch"]) -> None:
        """Halve the range of all cuts."""
        middles = [search.middle() for search in searches]
        left = self._sides(searches, middles)
        for search, middle, goes_left in zip(searches, middles, left, strict=True):
            active = search.low < search.high
            search.low[active & goes_left] = middle[active & goes_left]
            search.high[active & ~goes_left] = middle[active & ~goes_left] - 1

    def _sides(self, searches: Sequence["_ColumnSearch"], keys: Sequence[Counts]) -> list[Flags]:
        """Return where the splits of each column send the numbers with these keys.

        Each feature depends on one column, so one person serves a split of every column.
        """
        n_rows = max(len(search.first) for search in searches)
        people = np.repeat(self.evaluation.base[None, :], n_rows, axis=0)
        for search, chosen in zip(searches, keys, strict=True):
            codes = _present(search.attribute, search.numbers(chosen))
            self.evaluation.set_column(people[: len(chosen)], search.name, codes)
        values = self.evaluation.features(people)
        return [
            self.splits.go_left(
                search.first,
                values[np.arange(len(search.first)), self.splits.feature[search.first]],
            )
            for search in searches
        ]

    def _add_cuts(self, search: "_ColumnSearch") -> None:
        column = self.space.columns_of(search.attribute).start
        cuts = search.cuts()[search.inverse].tolist()
        flag, missing_left = -1, np.zeros(len(search.at), dtype=bool)
        if search.attribute.missing:
            flag = column + 1
            person = self.evaluation.vary(search.name, search.attribute.encode([None]))
            values = self.evaluation.features(person)[0]
            missing_left = self.splits.go_left(search.at, values[self.splits.feature[search.at]])
        for index, cut, side in zip(search.at.tolist(), cuts, missing_left.tolist(), strict=True):
            self.tests[index] = CutTest(column, cut, flag, side)


@dataclass(frozen=True, slots=True, eq=False)
class _ColumnSearch:
    """The search for the cuts of one column; a key is the rank of a number."""

    name: str
    attribute: Number
    at: Counts  # the splits
    first: Counts  # the splits with different thresholds
    inverse: Counts  # the place in `first` of each split
    end: int  # the largest key
    low: Counts
    high: Counts

    def middle(self) -> Counts:
        """Return the keys halfway between low and high, rounded up."""
        return (self.low >> 1) + (self.high >> 1) + ((self.low | self.high) & 1)

    def numbers(self, keys: Counts) -> Vector:
        """Return the numbers with these keys."""
        inside = np.clip(keys, -self.end, self.end)
        if isinstance(self.attribute, Integer):
            return inside.astype(np.float64)
        return _from_keys(inside)

    def cuts(self) -> Vector:
        """Return the last number that goes left in each search."""
        cuts = self.numbers(self.low)
        cuts[self.low < -self.end] = -LARGEST
        cuts[self.low == self.end] = LARGEST
        return cuts


def _keys(numbers: Vector) -> Counts:
    """Return the ranks of float64 numbers: integers in the same order."""
    bits = numbers.view(np.int64)
    return np.where(bits < 0, np.iinfo(np.int64).min - bits, bits)


def _from_keys(keys: Counts) -> Vector:
    """Return the float64 numbers with these ranks."""
    bits = np.where(keys < 0, np.iinfo(np.int64).min - keys, keys)
    return np.asarray(bits.astype(np.int64).view(np.float64))


def _present(attribute: Number, numbers: Vector) -> Matrix:
    return number_codes(attribute, numbers, np.zeros(len(numbers), dtype=bool))


def _check_bracket(attribute: Number, bracket: float) -> None:
    low, high = limits_of(attribute)
    if max(-low, high) > bracket:
        raise NetworkError(
            f"the limits of {attribute.name!r} are too wide for trees: got {attribute.domain()}; "
            f"expected numbers within ±{bracket:.3g}; narrow the limits in the schema"
        )


def _check_listed(attribute: Attribute) -> None:
    if isinstance(attribute, Real):
        raise NetworkError(
            f"{attribute.name!r} is filled in by a step only within its limits: got a real number; "
            "expected finitely many values; declare a step for it, or use SimpleImputer with "
            "missing_values=np.nan"
        )
    if not isinstance(attribute, Derived) and attribute.n_values > MAX_LISTED:
        raise NetworkError(
            f"{attribute.name!r} has too many values to list: got {attribute.n_values:,}; "
            f"expected at most {MAX_LISTED:,}; narrow its limits, or only scale the column"
        )
