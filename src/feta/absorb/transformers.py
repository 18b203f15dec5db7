"""Structural knowledge of scikit-learn's transformers.

Each handler states on which inputs every output depends, and whether linearly. The numbers come
from the transformer's own `transform`. Only the exact types of scikit-learn are known: a subclass
may compute anything, so it is sampled like other unknown code.
"""

import warnings
from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from feta.absorb.casts import Cast, cast_of, single
from feta.absorb.feature import (
    SCALE_ROUNDINGS,
    Feature,
    all_columns,
    joint,
    nonlinear,
    quoted,
    weighted_sum,
)
from feta.arrays import Matrix
from feta.errors import NetworkError
from feta.space.feature_space import FeatureSpace

Features = list[Feature]
Transformer = Any  # scikit-learn ships no types
Data = Any  # a frame, an array, or a sparse matrix


@dataclass(frozen=True, slots=True)
class Leaf:
    """One transformer with its input features, some input rows, and its name in messages."""

    step: Transformer
    features: Features
    table: Data
    space: FeatureSpace
    where: str

    def nonlinear(self, feature: Feature) -> Feature:
        """Return an arbitrary function of one feature."""
        return nonlinear(self.space, feature, self.where)


Handler = Callable[[Leaf], Features]


class DescribedStep(ABC):
    """A step of a reader's own, which states on which inputs every output depends."""

    @abstractmethod
    def transform(self, table: Data) -> Data:
        """Compute the outputs."""
        ...

    @abstractmethod
    def describe(self, leaf: Leaf) -> Features:
        """Return the outputs as features."""
        ...


def handler_of(transformer: Transformer) -> Handler | None:
    """Return the handler of a transformer; None if its code is unknown."""
    if isinstance(transformer, DescribedStep):
        return transformer.describe
    kind = type(transformer)
    return HANDLERS.get(kind.__name__) if kind.__module__.startswith("sklearn.") else None


def handle_unknown(leaf: Leaf) -> Features:
    """Handle unknown code: each output may depend on every input."""
    columns = all_columns(leaf.features)
    width = _as_matrix(leaf.step.transform(leaf.table)).shape[1]
    return [Feature(tabular=columns, opaque=True) for _ in range(width)]


def _scale(leaf: Leaf) -> Features:
    """Scale and shift each feature."""
    if getattr(leaf.step, "clip", False):
        return _map_each(leaf)
    scaled = [feature.rounded(SCALE_ROUNDINGS) for feature in leaf.features]
    if not is_float32(leaf.table):
        return scaled
    # Numbers were rounded before they are shifted, in units of their own size.
    pairs = zip(scaled, _scaled_magnitudes(leaf), strict=True)
    return [replace(feature, magnitude=max(feature.magnitude, size)) for feature, size in pairs]


def _scaled_magnitudes(leaf: Leaf) -> list[float]:
    """Bound both terms of each scaled feature, slope · x and shift."""
    ones = np.ones((1, len(leaf.features)))
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # names of columns are missing
        shifts = _as_matrix(leaf.step.transform(0 * ones))[0]
        slopes = _as_matrix(leaf.step.transform(ones))[0] - shifts
    magnitudes = np.array([feature.magnitude for feature in leaf.features])
    return list((np.abs(slopes) * magnitudes + np.abs(shifts)).tolist())


def _map_each(leaf: Leaf) -> Features:
    """Apply an arbitrary function to each feature."""
    return [leaf.nonlinear(feature) for feature in leaf.features]


def _one_hot(leaf: Leaf) -> Features:
    return _expand_each(leaf, list(leaf.step._n_features_outs))  # noqa: SLF001 - there is no public name


def _bins(leaf: Leaf) -> Features:
    ordinal = leaf.step.encode == "ordinal"
    return _expand_each(leaf, [1 if ordinal else int(count) for count in leaf.step.n_bins_])


def _splines(leaf: Leaf) -> Features:
    n_outputs = int(leaf.step.n_features_out_) // len(leaf.features)
    return _expand_each(leaf, [n_outputs] * len(leaf.features))


def _target(leaf: Leaf) -> Features:
    n_outputs = len(leaf.step.classes_) if leaf.step.target_type_ == "multiclass" else 1
    return _expand_each(leaf, [n_outputs] * len(leaf.features))


def _expand_each(leaf: Leaf, counts: Sequence[int]) -> Features:
    """Turn each feature into several arbitrary functions of it."""
    pairs = zip(leaf.features, counts, strict=True)
    return [leaf.nonlinear(feature) for feature, count in pairs for _ in range(count)]


def _powers(leaf: Leaf) -> Features:
    outputs: Features = []
    for row in np.asarray(leaf.step.powers_):
        used = [leaf.features[index] for index in np.flatnonzero(row)]
        unchanged = row.sum() == 1
        outputs.append(used[0] if unchanged else joint(leaf.space, used, leaf.where))
    return outputs


def _mix(leaf: Leaf) -> Features:
    """Form weighted sums; the weights are measured with the step's own `transform`."""
    n_features = len(leaf.features)
    shift = _as_matrix(leaf.step.transform(np.zeros((1, n_features))))
    weights = np.abs(_as_matrix(leaf.step.transform(np.eye(n_features))) - shift)
    means = np.abs(getattr(leaf.step, "mean_", 0.0))
    magnitudes = np.array([feature.magnitude for feature in leaf.features]) + means
    totals = (weights.T @ magnitudes + np.abs(shift[0])).tolist()
    roundings = n_features + SCALE_ROUNDINGS
    return [weighted_sum(leaf.features, magnitude=total, roundings=roundings) for total in totals]


def _select(leaf: Leaf) -> Features:
    return [leaf.features[index] for index in leaf.step.get_support(indices=True)]


def _impute(leaf: Leaf) -> Features:
    step = leaf.step
    empty = [_is_nan(statistic) for statistic in step.statistics_]
    indices = [index for index, gone in enumerate(empty) if not gone or step.keep_empty_features]
    outputs = [_impute_feature(leaf, index) for index in indices]
    if step.indicator_ is None:
        return outputs
    return outputs + _indicate(replace(leaf, step=step.indicator_))


def _impute_feature(leaf: Leaf, index: int) -> Feature:
    """Fill one feature; a marker for missing inside the range of a number breaks linearity."""
    feature, mark = leaf.features[index], leaf.step.missing_values
    if _is_nan(mark) or not feature.linear:
        return feature
    cells = np.asarray(_column(leaf.table, index), dtype=np.float64)
    inside = np.nanmin(cells) <= mark <= np.nanmax(cells)
    # Outside the limits, a number may be the marker for missing.
    return leaf.nonlinear(feature) if inside else feature.within_limits()


def _indicate(leaf: Leaf) -> Features:
    """Indicate missing features: constant, with a jump where missing."""
    selected = [leaf.features[index] for index in leaf.step.features_]
    if _is_nan(leaf.step.missing_values):
        return selected
    return [leaf.nonlinear(feature) for feature in selected]


def _impute_from_others(leaf: Leaf) -> Features:
    """Accept an imputer that fills from other columns only if nothing can be missing."""
    mark = leaf.step.missing_values
    if not _is_nan(mark):
        raise NetworkError(
            f"{leaf.where} fills cells that hold {mark!r} from other columns: got an interaction "
            f"of {_columns(leaf.features)}; expected an imputer of single columns; "
            "use SimpleImputer"
        )
    cells = [_column(leaf.table, index).tolist() for index in range(len(leaf.features))]
    incomplete = [
        feature
        for feature, column in zip(leaf.features, cells, strict=True)
        if any(map(_is_nan, column))
    ]
    if incomplete:
        raise NetworkError(
            f"{leaf.where} fills missing cells of {_columns(incomplete)} from other columns: "
            "got an interaction of columns; expected an imputer of single columns; "
            "use SimpleImputer, or remove missing = true from the schema"
        )
    return [feature.within_limits() for feature in leaf.features]


def _normalize(leaf: Leaf) -> Features:
    raise NetworkError(
        f"{leaf.where} divides each row by its norm: got an interaction of "
        f"{_columns(leaf.features)}; expected a scaler of single columns; "
        "use StandardScaler, and fit again"
    )


def _call(leaf: Leaf) -> Features:
    """Handle a FunctionTransformer: identity, cast, elementwise NumPy function, or other code."""
    function = leaf.step.func
    if function is None:
        return leaf.features
    cast = cast_of(function, leaf.step.kw_args)
    if cast is not None:
        return [_cast_feature(leaf, feature, cast) for feature in leaf.features]
    elementwise = isinstance(function, np.ufunc) and (function.nin, function.nout) == (1, 1)
    if elementwise and not leaf.step.kw_args:
        return _map_each(leaf)
    return handle_unknown(leaf)


def _cast_feature(leaf: Leaf, feature: Feature, cast: Cast) -> Feature:
    return single(leaf.space, feature, leaf.where) if cast is np.float32 else feature


def is_float32(table: Data) -> bool:
    """Return whether a column of a table is stored as float32 numbers."""
    kinds = table.dtypes if hasattr(table, "dtypes") else [getattr(table, "dtype", None)]
    return any(kind == np.float32 for kind in kinds)


def _columns(features: Features) -> str:
    return quoted(all_columns(features))


def _as_matrix(table: Data) -> Matrix:
    return np.asarray(_dense(table), dtype=np.float64)


def _column(table: Data, index: int) -> NDArray[Any]:
    dense = _dense(table)
    return np.asarray(dense.iloc[:, index] if hasattr(dense, "iloc") else dense[:, index])


def _dense(table: Data) -> Data:
    return table.toarray() if hasattr(table, "toarray") else table


def _is_nan(value: object) -> bool:
    return value is None or (isinstance(value, float) and bool(np.isnan(value)))


HANDLERS: dict[str, Handler] = {
    "Binarizer": _map_each,
    "FactorAnalysis": _mix,
    "FastICA": _mix,
    "FunctionTransformer": _call,
    "GaussianRandomProjection": _mix,
    "GenericUnivariateSelect": _select,
    "IncrementalPCA": _mix,
    "IterativeImputer": _impute_from_others,
    "KBinsDiscretizer": _bins,
    "KNNImputer": _impute_from_others,
    "LinearDiscriminantAnalysis": _mix,
    "MaxAbsScaler": _scale,
    "MinMaxScaler": _scale,
    "MissingIndicator": _indicate,
    "Normalizer": _normalize,
    "OneHotEncoder": _one_hot,
    "OrdinalEncoder": _map_each,
    "PCA": _mix,
    "PolynomialFeatures": _powers,
    "PowerTransformer": _map_each,
    "QuantileTransformer": _map_each,
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
