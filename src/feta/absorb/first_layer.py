"""The first layer over raw columns, assembled from evaluations of the preprocessing."""

from dataclasses import dataclass

import numpy as np

from feta.absorb.evaluation import Evaluation
from feta.absorb.feature import Feature
from feta.arrays import Matrix, Vector
from feta.errors import NetworkError
from feta.scorer.network.layers import Columns, LookupTable
from feta.space.attribute import Categorical, Derived, Integer, Levels, Real

# Entries that a column's table may hold: 2^24 take 128 MB.
MAX_NUMBERS = 2**24


@dataclass
class FirstLayerBuilder:
    """A builder that adds one raw column at a time to a new first layer."""

    old: Columns
    features: list[Feature]
    evaluation: Evaluation

    def build(self) -> Columns:
        """Return the first layer."""
        width = self.evaluation.space.width
        self.base = self._evaluate(self.evaluation.base[None, :], "the middle of the space")
        self.bias = self.old.bias + self._constant()
        self.slopes = np.zeros((self.old.outputs, width))
        self.tables: list[LookupTable] = []
        for name in self.evaluation.roots:
            if any(name in feature.columns for feature in self.features):
                self._add_column(name)
        return Columns(self.bias, self.slopes, tuple(self.tables), self._cancelled_magnitude(width))

    def _constant(self) -> Vector:
        """Sum the terms of constant features and the base of features of several columns."""
        fixed = [index for index, feature in enumerate(self.features) if not feature.columns]
        terms = self.old.terms(self.base[:, fixed], fixed)[0][0]
        mixed = [index for index, feature in enumerate(self.features) if len(feature.columns) > 1]
        return np.asarray(terms + self.old.slopes[:, mixed] @ self.base[0, mixed])

    def _cancelled_magnitude(self, width: int) -> Vector:
        """Return the magnitudes that scale the source's rounding errors; see `Arithmetic.gamma`.

        The bound multiplies them by 2·(width + 9) units. The source rounds a feature r times in
        the preprocessing and m times in the sum; absorbing it rounds as often again.
        """
        magnitudes = np.array([feature.magnitude for feature in self.features])
        roundings = np.array([feature.roundings for feature in self.features])
        factors = (4 * roundings + 2 * len(self.features) + 64) / (width + 9)
        embedded = sum((np.abs(table.rows).max(axis=0) for table in self.old.tables), np.zeros(1))
        weights = np.abs(self.old.slopes)
        return np.asarray(
            weights @ (magnitudes * factors)
            + embedded
            + self.old.cancelled_magnitude
            + np.abs(self.old.bias)
        )

    def _add_column(self, name: str) -> None:
        """Add the contribution of one column."""
        space = self.evaluation.space
        attribute = space.attribute(name)
        columns = space.columns_of(attribute)
        by_table = any(name in feature.tabular for feature in self.features)
        if isinstance(attribute, Categorical | Derived):
            self.slopes[:, columns] = self._terms(name, self.evaluation.codes(name)).T
            return
        if by_table:
            assert not isinstance(attribute, Real)
            lowest = self._add_table(name, attribute, columns.start)
        else:
            lowest = self._add_slope(name, attribute, columns.start)
        if attribute.missing:
            missing = self._terms(name, attribute.encode([None]))[0]
            self.slopes[:, columns.start + 1] = missing - lowest

    def _add_table(self, name: str, attribute: Integer | Levels, column: int) -> Vector:
        """Add one table row per value; return the contribution of the lowest value."""
        n_numbers = attribute.n_values - attribute.missing
        if n_numbers * self.old.outputs > MAX_NUMBERS:
            limit = MAX_NUMBERS // self.old.outputs
            raise NetworkError(
                f"{name!r} has too many values for a lookup table: got {n_numbers:,}; "
                f"expected at most {limit:,}; narrow its min and max, or declare a larger step"
            )
        codes = self.evaluation.codes(name, np.arange(n_numbers))
        rows = self._terms(name, codes)
        self.tables.append(LookupTable(column, codes[:, 0], rows))
        return rows[0]

    def _add_slope(self, name: str, attribute: Integer | Levels | Real, column: int) -> Vector:
        """Add a slope; return the contribution of the lowest value."""
        high = attribute.numbers[-1] if isinstance(attribute, Levels) else float(attribute.high)
        low = attribute.lowest
        at_low, at_high = self._terms(name, attribute.encode([low, high]))
        slope = (at_high - at_low) / (high - low) if high > low else np.zeros_like(at_low)
        self.slopes[:, column] = slope
        self.bias = self.bias + (at_low - slope * low)
        return at_low

    def _terms(self, name: str, codes: Matrix) -> Matrix:
        """Compute the contribution of values of a column to each neuron."""
        alone = [index for index, feature in enumerate(self.features) if feature.columns == {name}]
        mixed = [
            index
            for index, feature in enumerate(self.features)
            if name in feature.columns and len(feature.columns) > 1
        ]
        values = self._evaluate(self.evaluation.vary(name, codes), name, alone + mixed)
        terms = self.old.terms(values[:, alone], alone)[0]
        changes = values[:, mixed] - self.base[:, mixed]
        return np.asarray(terms + changes @ self.old.slopes[:, mixed].T)

    def _evaluate(self, rows: Matrix, name: str, selected: list[int] | None = None) -> Matrix:
        """Compute all features; check that the selected ones are finite."""
        values = self.evaluation.features(rows)
        checked = values if selected is None else values[:, selected]
        bad = ~np.isfinite(checked).all(axis=1)
        if bad.any():
            raise self._not_finite(rows[int(np.argmax(bad))], name)
        return values

    def _not_finite(self, row: Vector, name: str) -> NetworkError:
        space = self.evaluation.space
        if name not in [attribute.name for attribute in space.attributes]:
            hint = self.evaluation.text_hint
            return NetworkError(f"the pipeline's output is not finite for this space{hint}")
        value = space.attribute(name).decode(row[space.columns_of(space.attribute(name))])
        if value is None:
            return NetworkError(
                f"{name!r} may be missing in the schema: got NaN from the pipeline; expected a "
                "finite number; put a SimpleImputer before the other steps, or remove "
                "missing = true"
            )
        return NetworkError(
            f"{name!r} may be {value!r} in the schema: got an output of the pipeline that is not "
            "finite; expected a finite number; narrow the column's domain"
        )
