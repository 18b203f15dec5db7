"""Transformers: what each known scikit-learn transformer does to features, told by its structure.

The numbers themselves come from the transformer's own `transform`; here it is only said which input
each output hangs on, and whether as a line. Only the very types of scikit-learn count: a subclass may
do anything, and is sampled like other unknown code.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from feta.absorb.feature import (
    SCALE_ROUNDINGS,
    Feature,
    bent,
    mixture,
    product,
    quoted,
)
from feta.arrays import Matrix
from feta.errors import NetworkError
from feta.space.feature_space import FeatureSpace

Features = list[Feature]
Transformer = Any  # scikit-learn ships no types
Data = Any  # a frame, an array, or a sparse matrix


@dataclass(frozen=True, slots=True)
class Leaf:
    """One transformer, the features and some rows that go into it, and what a message calls it."""

    step: Transformer
    features: Features
    table: Data
    space: FeatureSpace
    where: str

    def bent(self, feature: Feature) -> Feature:
        """Take any function of a feature."""
        return bent(self.space, feature, self.where)


Handler = Callable[[Leaf], Features]


def known(transformer: Transformer) -> Handler | None:
    """Find what is known about a transformer."""
    kind = type(transformer)
    return HANDLERS.get(kind.__name__) if kind.__module__.startswith("sklearn.") else None


def unknown(leaf: Leaf) -> Features:
    """Take code that FETA does not know: each output may hang on every input."""
    columns = frozenset[str]().union(*(one.columns for one in leaf.features))
    width = _numbers(leaf.step.transform(leaf.table)).shape[1]
    return [Feature(tables=columns, opaque=True) for _ in range(width)]


def _scale(leaf: Leaf) -> Features:
    """Scale and shift each feature by itself."""
    if getattr(leaf.step, "clip", False):
        return _bend(leaf)
    return [one.sized(one.size, SCALE_ROUNDINGS) for one in leaf.features]


def _bend(leaf: Leaf) -> Features:
    """Turn each feature into another by itself, in any way."""
    return [leaf.bent(one) for one in leaf.features]


def _one_hot(leaf: Leaf) -> Features:
    return _several(leaf, list(leaf.step._n_features_outs))  # noqa: SLF001 - there is no public name


def _bins(leaf: Leaf) -> Features:
    ordinal = leaf.step.encode == "ordinal"
    return _several(leaf, [1 if ordinal else int(count) for count in leaf.step.n_bins_])


def _splines(leaf: Leaf) -> Features:
    each = int(leaf.step.n_features_out_) // len(leaf.features)
    return _several(leaf, [each] * len(leaf.features))


def _target(leaf: Leaf) -> Features:
    each = len(leaf.step.classes_) if leaf.step.target_type_ == "multiclass" else 1
    return _several(leaf, [each] * len(leaf.features))


def _several(leaf: Leaf, counts: Sequence[int]) -> Features:
    """Turn each feature into several by itself, in any way."""
    pairs = zip(leaf.features, counts, strict=True)
    return [leaf.bent(one) for one, count in pairs for _ in range(count)]


def _powers(leaf: Leaf) -> Features:
    made: Features = []
    for row in np.asarray(leaf.step.powers_):
        used = [leaf.features[index] for index in np.flatnonzero(row)]
        alone = row.sum() == 1
        made.append(used[0] if alone else product(leaf.space, used, leaf.where))
    return made


def _mix(leaf: Leaf) -> Features:
    """Take weighted sums; the weights are read off the step's own `transform`."""
    n_features = len(leaf.features)
    shift = _numbers(leaf.step.transform(np.zeros((1, n_features))))
    weights = np.abs(_numbers(leaf.step.transform(np.eye(n_features))) - shift)
    sizes = np.array([one.size for one in leaf.features]) + np.abs(getattr(leaf.step, "mean_", 0.0))
    totals = (weights.T @ sizes + np.abs(shift[0])).tolist()
    roundings = n_features + SCALE_ROUNDINGS
    return [mixture(leaf.features, size=size, roundings=roundings) for size in totals]


def _select(leaf: Leaf) -> Features:
    return [leaf.features[index] for index in leaf.step.get_support(indices=True)]


def _impute(leaf: Leaf) -> Features:
    step = leaf.step
    empty = [_is_nan(one) for one in step.statistics_]
    kept = [index for index, gone in enumerate(empty) if not gone or step.keep_empty_features]
    made = [_imputed(leaf, index) for index in kept]
    if step.indicator_ is None:
        return made
    return made + _indicate(replace(leaf, step=step.indicator_))


def _imputed(leaf: Leaf, index: int) -> Feature:
    """Fill a feature: what stands for "missing" is a jump, so no number in between may stand for it."""
    feature, mark = leaf.features[index], leaf.step.missing_values
    if _is_nan(mark) or not feature.lines:
        return feature
    cells = np.asarray(_column(leaf.table, index), dtype=np.float64)
    inside = np.nanmin(cells) <= mark <= np.nanmax(cells)
    # Beyond the limits a number may well stand for "missing".
    return leaf.bent(feature) if inside else feature.within_limits()


def _indicate(leaf: Leaf) -> Features:
    """Say where features are missing: the line is flat, and jumps."""
    chosen = [leaf.features[index] for index in leaf.step.features_]
    return chosen if _is_nan(leaf.step.missing_values) else [leaf.bent(one) for one in chosen]


def _from_others(leaf: Leaf) -> Features:
    """Take an imputer that fills from other columns: fine only where nothing can be missing."""
    mark = leaf.step.missing_values
    if not _is_nan(mark):
        raise NetworkError(
            f"{leaf.where} fills what is {mark!r} from other columns, which makes an interaction of {_columns(leaf.features)}; use SimpleImputer"
        )
    cells = [_column(leaf.table, index).tolist() for index in range(len(leaf.features))]
    gaps = [
        one for one, column in zip(leaf.features, cells, strict=True) if any(map(_is_nan, column))
    ]
    if gaps:
        raise NetworkError(
            f"{leaf.where} fills {_columns(gaps)} from other columns, which makes an interaction of them; use SimpleImputer, or remove missing = true from the schema"
        )
    return [one.within_limits() for one in leaf.features]


def _normalize(leaf: Leaf) -> Features:
    raise NetworkError(
        f"{leaf.where} divides each row by its own length, which makes an interaction of {_columns(leaf.features)}; scale column by column instead (StandardScaler), and fit again"
    )


def _call(leaf: Leaf) -> Features:
    """Take a FunctionTransformer: nothing, a function of NumPy's on each number, or unknown code."""
    function = leaf.step.func
    if function is None:
        return leaf.features
    plain = isinstance(function, np.ufunc) and (function.nin, function.nout) == (1, 1)
    if plain and not leaf.step.kw_args:
        return _bend(leaf)
    return unknown(leaf)


def _columns(features: Features) -> str:
    return quoted(frozenset[str]().union(*(one.columns for one in features)))


def _numbers(table: Data) -> Matrix:
    dense = table.toarray() if hasattr(table, "toarray") else table
    return np.asarray(dense, dtype=np.float64)


def _column(table: Data, index: int) -> NDArray[Any]:
    dense = table.toarray() if hasattr(table, "toarray") else table
    return np.asarray(dense.iloc[:, index] if hasattr(dense, "iloc") else dense[:, index])


def _is_nan(value: object) -> bool:
    return value is None or (isinstance(value, float) and bool(np.isnan(value)))


HANDLERS: dict[str, Handler] = {
    "Binarizer": _bend,
    "FactorAnalysis": _mix,
    "FastICA": _mix,
    "FunctionTransformer": _call,
    "GaussianRandomProjection": _mix,
    "GenericUnivariateSelect": _select,
    "IncrementalPCA": _mix,
    "IterativeImputer": _from_others,
    "KBinsDiscretizer": _bins,
    "KNNImputer": _from_others,
    "LinearDiscriminantAnalysis": _mix,
    "MaxAbsScaler": _scale,
    "MinMaxScaler": _scale,
    "MissingIndicator": _indicate,
    "Normalizer": _normalize,
    "OneHotEncoder": _one_hot,
    "OrdinalEncoder": _bend,
    "PCA": _mix,
    "PolynomialFeatures": _powers,
    "PowerTransformer": _bend,
    "QuantileTransformer": _bend,
    "RFE": _select,
    "RFECV": _select,
    "RobustScaler": _scale,
    "SelectFdr": _select,
    "SelectFpr": _select,
    "SelectFromModel": _select,
    "SelectFwe": _select,
    "SelectKBest": _select,
    "SelectPercentile": _select,
    "SequentialFeatureSelector": _select,
    "SimpleImputer": _impute,
    "SparseRandomProjection": _mix,
    "SplineTransformer": _splines,
    "StandardScaler": _scale,
    "TargetEncoder": _target,
    "TruncatedSVD": _mix,
    "VarianceThreshold": _select,
}
