"""Absorb: preprocessing made part of the first layer, a slope or a table a column.

T(x) = T(base) + Σ_c [T(base with c := x_c) − T(base)] for additive preprocessing T; the walk proves
by structure that it is, and the user's own `transform` gives the numbers. They are rounded here, once;
from then on the stored numbers are the model. The source still computes step by step, so the sizes of
its terms are kept beside the biases, for the bound on its rounding error.
"""

import warnings
from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from feta.absorb.encoders import Unseen
from feta.absorb.evaluation import Evaluation
from feta.absorb.feature import Feature, bent, raw_feature
from feta.absorb.sampling import TRIED_PEOPLE, sampled
from feta.absorb.walk import Walk
from feta.arrays import Matrix, Vector
from feta.errors import NetworkError
from feta.io.raw_table import TableMaker
from feta.rounding import AGREEMENT, AGREEMENT_FLOAT32
from feta.scorer.network.network import Columns, LookupTable, Measured, Network
from feta.space.attribute import Categorical, Derived, Integer, Levels, Real
from feta.space.feature_space import FeatureSpace
from feta.space.limits import limits_of
from feta.space.sampling import draw_people

# People drawn to compare the absorbed first layer with the source's.
CHECKED_PEOPLE = 512

# Numbers that a column's table may hold: 2^24 take 128 MB.
MAX_NUMBERS = 2**24


def absorb(
    network: Network,
    preprocessing: Any,  # noqa: ANN401 - scikit-learn ships no types
    space: FeatureSpace,
    table: TableMaker,
) -> Network:
    """Make a network that reads the features of fitted preprocessing read a space's rows instead.

    `table` turns those rows into what the preprocessing takes.
    """
    evaluation = Evaluation(space, preprocessing, table)
    probes = evaluation.probes()
    evaluation.features(probes)  # refuses by name what the steps would refuse by number
    walk = Walk(space)
    raw = [raw_feature(space, name) for name in table.names]
    features = walk.take(preprocessing, raw, table(probes), "preprocessing")
    _check_seen(evaluation.unseen(walk.encoded), space)
    if len(features) != network.width:
        message = f"the estimator must read the {len(features)} features that the steps before it make, but reads {network.width}"
        raise NetworkError(message)
    for one in network.first.tables:
        features[one.column] = bent(space, features[one.column], "the embedding")
    allowed = AGREEMENT_FLOAT32 if walk.rounded else AGREEMENT
    if walk.sampled:
        features = sampled(features, evaluation, allowed)
    first = _Assembly(network.first, features, evaluation).columns()
    n_people = TRIED_PEOPLE if walk.sampled else CHECKED_PEOPLE
    _check(network.first, first, evaluation, n_people, allowed)
    if walk.rounded:  # then its rounding is that of float32, whatever comes after
        network = replace(network, source="float32")
    # A network that must stay within its own limits keeps all columns within theirs.
    spans = () if network.measured is not None else tuple(_spans(features, evaluation))
    largest = max([walk.largest, *(one.size for one in features)])
    return replace(
        network,
        first=first,
        provenance="sampled" if walk.sampled else network.provenance,
        measured=Measured(spans, largest),
    )


def _spans(features: list[Feature], evaluation: Evaluation) -> Iterator[tuple[int, float, float]]:
    """List the columns that are affine everywhere, and where their slopes were measured."""
    space = evaluation.space
    tied = frozenset[str]().union(*(one.tables | one.local for one in features))
    for name in evaluation.roots:
        attribute = space.attribute(name)
        if isinstance(attribute, Integer | Levels | Real) and name not in tied:
            low, high = limits_of(attribute)
            if low < high:  # one value has no slope
                yield space.columns_of(attribute).start, low, high


def _check_seen(unseen: list[Unseen], space: FeatureSpace) -> None:
    """Refuse sensitive values that an encoder never saw; warn about others."""
    for one in unseen:
        if space.is_sensitive(one.attribute):
            raise one.error()
    for notice in dict.fromkeys(one.notice() for one in unseen):
        warnings.warn(notice, UnseenValueWarning, stacklevel=4)


class UnseenValueWarning(UserWarning):
    """The schema allows values in a column that is not sensitive, and an encoder never saw them."""


@dataclass
class _Assembly:
    """Puts the columns of a new first layer together, one raw column at a time."""

    old: Columns
    features: list[Feature]
    evaluation: Evaluation

    def columns(self) -> Columns:
        """Make the first layer."""
        width = self.evaluation.space.width
        self.base = self._features(self.evaluation.base[None, :], "the middle of the space")
        self.bias = self.old.bias + self._constant()
        self.slopes = np.zeros((self.old.outputs, width))
        self.tables: list[LookupTable] = []
        for name in self.evaluation.roots:
            if any(name in one.columns for one in self.features):
                self._add(name)
        return Columns(self.bias, self.slopes, tuple(self.tables), self._cancelled_magnitude(width))

    def _constant(self) -> Vector:
        """Add up what does not hang on any column, and the base of what hangs on several."""
        fixed = [index for index, one in enumerate(self.features) if not one.columns]
        terms = self.old.terms(self.base[:, fixed], fixed)[0][0]
        mixed = [index for index, one in enumerate(self.features) if len(one.columns) > 1]
        return np.asarray(terms + self.old.slopes[:, mixed] @ self.base[0, mixed])

    def _cancelled_magnitude(self, width: int) -> Vector:
        """Give the sizes that the source's rounding errors go by; see `Arithmetic.gamma`.

        The bound multiplies them by 2·(width + 9) units; the source rounds a feature r times on its
        way and m times in the sum, and absorbing it rounds as often again.
        """
        sizes = np.array([one.size for one in self.features])
        roundings = np.array([one.roundings for one in self.features])
        share = (4 * roundings + 2 * len(self.features) + 64) / (width + 9)
        embedded = sum((np.abs(one.rows).max(axis=0) for one in self.old.tables), np.zeros(1))
        weights = np.abs(self.old.slopes)
        return np.asarray(
            weights @ (sizes * share)
            + embedded
            + self.old.cancelled_magnitude
            + np.abs(self.old.bias)
        )

    def _add(self, name: str) -> None:
        """Add what one column contributes."""
        space = self.evaluation.space
        attribute = space.attribute(name)
        columns = space.columns_of(attribute)
        by_table = any(name in one.tables for one in self.features)
        if isinstance(attribute, Categorical | Derived):
            self.slopes[:, columns] = self._terms(name, self.evaluation.codes(name)).T
            return
        if by_table:
            assert not isinstance(attribute, Real)
            lowest = self._add_table(name, attribute, columns.start)
        else:
            lowest = self._add_line(name, attribute, columns.start)
        if attribute.missing:
            missing = self._terms(name, attribute.encode([None]))[0]
            self.slopes[:, columns.start + 1] = missing - lowest

    def _add_table(self, name: str, attribute: Integer | Levels, column: int) -> Vector:
        n_numbers = attribute.n_values - attribute.missing
        if n_numbers * self.old.outputs > MAX_NUMBERS:
            most = MAX_NUMBERS // self.old.outputs
            message = f"{name!r} enters by a table, so it must have at most {most:,} values, got {n_numbers:,}; narrow its min and max, or take a larger step"
            raise NetworkError(message)
        codes = self.evaluation.codes(name, np.arange(n_numbers))
        rows = self._terms(name, codes)
        self.tables.append(LookupTable(column, codes[:, 0], rows))
        return rows[0]

    def _add_line(self, name: str, attribute: Integer | Levels | Real, column: int) -> Vector:
        high = attribute.numbers[-1] if isinstance(attribute, Levels) else float(attribute.high)
        low = attribute.lowest
        at_low, at_high = self._terms(name, attribute.encode([low, high]))
        slope = (at_high - at_low) / (high - low) if high > low else np.zeros_like(at_low)
        self.slopes[:, column] = slope
        self.bias = self.bias + (at_low - slope * low)
        return at_low

    def _terms(self, name: str, codes: Matrix) -> Matrix:
        """Compute what values of a column contribute to each neuron."""
        alone = [index for index, one in enumerate(self.features) if one.columns == {name}]
        mixed = [
            index
            for index, one in enumerate(self.features)
            if name in one.columns and len(one.columns) > 1
        ]
        made = self._features(self.evaluation.varied(name, codes), name, alone + mixed)
        terms = self.old.terms(made[:, alone], alone)[0]
        away = made[:, mixed] - self.base[:, mixed]
        return np.asarray(terms + away @ self.old.slopes[:, mixed].T)

    def _features(self, rows: Matrix, name: str, chosen: list[int] | None = None) -> Matrix:
        """Evaluate features, which must be finite."""
        made = self.evaluation.features(rows)
        looked_at = made if chosen is None else made[:, chosen]
        bad = ~np.isfinite(looked_at).all(axis=1)
        if bad.any():
            raise self._not_finite(rows[int(np.argmax(bad))], name)
        return made

    def _not_finite(self, row: Vector, name: str) -> NetworkError:
        space = self.evaluation.space
        if name not in [one.name for one in space.attributes]:
            hint = self.evaluation.text_hint
            return NetworkError(
                f"the pipeline gives numbers that are not finite for this space{hint}"
            )
        value = space.attribute(name).decode(row[space.columns_of(space.attribute(name))])
        if value is None:
            return NetworkError(
                f"{name!r} may be missing in the schema, but the pipeline makes NaN of it; put a SimpleImputer before the other steps, or remove missing = true"
            )
        return NetworkError(
            f"{name!r} may be {value!r} in the schema, of which the pipeline makes a number that is not finite; narrow the column's domain"
        )


def _check(
    old: Columns, new: Columns, evaluation: Evaluation, n_people: int, allowed: float
) -> None:
    """Compare both first layers on random people; structure or not, they must agree."""
    people = draw_people(evaluation.space, np.random.default_rng(0), n_people)
    features = evaluation.features(people)
    theirs, sizes = old.terms(features, range(old.width))
    ours = new.terms(people, range(new.width))[0] + new.bias
    off = np.abs(ours - theirs - old.bias) / (1 + sizes + np.abs(old.bias))
    if not (off <= allowed).all():
        row, neuron = np.unravel_index(int(np.nanargmax(off)), off.shape)
        person = evaluation.space.decode(people[row])
        message = f"the absorbed pipeline must agree with the pipeline itself, but differs by {off[row, neuron]:.3g} (relative) at neuron {neuron} for {person!r}; a column's share hangs on other columns"
        raise NetworkError(message)
