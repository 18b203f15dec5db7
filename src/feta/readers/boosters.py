"""Boosted trees of XGBoost and LightGBM in memory: alone, or at the end of a pipeline.

A booster that was trained on the raw columns reads them itself, with native categories. Otherwise
its tests on features become tests on raw values, as for scikit-learn's own trees.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np

from feta.absorb.walk import run_step
from feta.arrays import Matrix
from feta.errors import FetaError, NetworkError
from feta.io.raw_table import TableMaker
from feta.readers.lightgbm import read as lightgbm
from feta.readers.lightgbm.columns import UNNAMED
from feta.readers.lightgbm.objective import score_factor
from feta.readers.sklearn.pipeline import split_pipeline
from feta.readers.sklearn.tree_agreement import compared_people
from feta.readers.sklearn.tree_ensembles import SourceEnsemble
from feta.readers.sklearn.tree_inputs import TreeInputs, inputs_of
from feta.readers.sklearn.tree_nodes import N_CODES, SourceTree
from feta.readers.sklearn.trees import absorb_trees
from feta.readers.trees import builder
from feta.readers.trees.boosted import BoostedTrees
from feta.readers.trees.source_table import SourceTable, check_bits
from feta.readers.trees.splits import Bands
from feta.readers.xgboost import read as xgboost
from feta.readers.xgboost.comparison import source_table
from feta.scorer.forest.forest import Forest
from feta.space.feature_space import FeatureSpace

Object = Any  # of a library that may not be installed


class FeatureColumns:
    """The names and the number of features, as scikit-learn's estimators have them."""

    def __init__(self, names: Sequence[str], n_features: int) -> None:
        self.n_features_in_ = n_features
        if names:
            self.feature_names_in_ = list(names)


@dataclass(frozen=True, slots=True, eq=False)
class Booster:
    """A booster in memory: its trees, its features, and the library's own scores."""

    library: str
    boosted: BoostedTrees
    names: Sequence[str]  # of the features; empty if they have none
    n_features: int
    scores: Callable[[Any], Matrix]  # the library's own, of a table of features
    predictions: Callable[[Any], Matrix]  # the library's own, after the link
    direct: Callable[[FeatureSpace], Forest]  # reads the raw columns of a space
    table: Callable[[FeatureSpace], SourceTable]  # the raw columns that it reads
    zero_is_missing: bool = False  # in a sparse table

    @property
    def columns(self) -> FeatureColumns:
        """The features, as scikit-learn's estimators describe them."""
        return FeatureColumns(self.names, self.n_features)

    def reads_raw_columns(self, space: FeatureSpace) -> bool:
        """Return whether the features are raw columns of a space, by name or by number."""
        known = {attribute.name for attribute in space.attributes}
        if self.names:
            return set(self.names) <= known | {"_".join(name.split(" ")) for name in known}
        return self.n_features == len(known)


def is_booster(source: object) -> bool:
    """Return whether an object is a supported booster or wrapper, without a pipeline."""
    return _kind(source) in _READERS


def _kind(source: object) -> str:
    return f"{type(source).__module__}.{type(source).__qualname__}"


def read_booster(source: Object, space: FeatureSpace, *, table: TableMaker | None = None) -> Forest:
    """Read a booster or wrapper, alone or at the end of a pipeline.

    Raises
    ------
    NetworkError
        If the booster or a step cannot be read exactly, or if scores differ from the library's
        own on random people.
    """
    steps, last = split_pipeline(source)
    booster = open_booster(last)
    if steps is None and table is None and booster.reads_raw_columns(space):
        return booster.direct(space)
    try:
        inputs = inputs_of(steps, booster.columns, space, table=table)
        forest = absorb_trees(_ensemble(booster), inputs)
    except FetaError:
        raise
    except (TypeError, ValueError, ArithmeticError, LookupError, AttributeError) as error:
        raise NetworkError(
            f"the pipeline cannot be evaluated ({type(error).__name__}: {error})"
        ) from error
    _check_scores(forest, booster, inputs)
    return forest


def open_booster(source: Object, *, from_file: bool = False) -> Booster:
    """Return what is needed of a supported booster or wrapper.

    `from_file` states that a booster stands for a file, which a wrapper may have saved.
    """
    return _READERS[_kind(source)](source, from_file)


def _open_xgboost(source: Object, from_file: bool) -> Booster:
    model, wrapper = xgboost.read_object(source)
    stops = wrapper or (from_file and model.from_wrapper)  # at the best iteration
    boosted, rounds = xgboost.boosted_trees(model, wrapper=stops)

    def predict(table: Any, *, margins: bool) -> Matrix:  # noqa: ANN401 - a frame or a matrix
        used = {"output_margin": margins, "iteration_range": (0, rounds)}
        if wrapper:
            return np.asarray(source.predict(table, **used))
        import xgboost as library  # noqa: PLC0415 - only for objects of the library

        names = None if hasattr(table, "columns") else source.feature_names
        matrix = library.DMatrix(table, feature_names=names, enable_categorical=True)
        return np.asarray(source.predict(matrix, **used))

    return Booster(
        "XGBoost",
        boosted,
        model.names,
        model.n_features,
        partial(predict, margins=True),
        partial(predict, margins=False),
        partial(xgboost.read_xgboost, source),
        lambda space: source_table(model, space, {}),
        zero_is_missing=True,
    )


def _open_lightgbm(source: Object, from_file: bool) -> Booster:
    del from_file  # files have no other trees
    model, booster = lightgbm.read_object(source)
    boosted = lightgbm.boosted_trees(model)
    unnamed = [f"{UNNAMED}{index}" for index in range(len(model.names))]

    def scores(table: Any) -> Matrix:  # noqa: ANN401 - a frame or a matrix
        raw = np.asarray(booster.predict(table, raw_score=True))
        return raw * score_factor(model.objective) / boosted.denominator

    return Booster(
        "LightGBM",
        boosted,
        () if list(model.names) == unnamed else model.names,
        len(model.names),
        scores,
        lambda table: np.asarray(booster.predict(table)),
        partial(lightgbm.read_lightgbm, source),
        lambda space: lightgbm.source_table(model, space),
    )


_READERS: dict[str, Callable[[Object, bool], Booster]] = {
    **dict.fromkeys((xgboost.BOOSTER, *xgboost.WRAPPERS), _open_xgboost),
    **dict.fromkeys((lightgbm.BOOSTER, *lightgbm.WRAPPERS), _open_lightgbm),
}


def _ensemble(booster: Booster) -> SourceEnsemble:
    """Return the trees in the form of scikit-learn's; refuse tests that this form lacks."""
    boosted = booster.boosted
    sums = len(boosted.base)
    trees = tuple(
        _source_tree(tree, int(output), float(factor), sums)
        for tree, output, factor in zip(
            boosted.trees, boosted.outputs, boosted.factors, strict=True
        )
    )
    return SourceEnsemble(
        trees,
        boosted.base,
        boosted.summation,
        boosted.denominator,
        boosted.equality,
        boosted.link,
        single=False,  # the cuts contain the cast
    )


def _source_tree(tree: builder.SourceTree, output: int, factor: float, sums: int) -> SourceTree:
    n_nodes = len(tree.left)
    values = np.zeros((n_nodes, sums))
    threshold, missing_left = np.zeros(n_nodes), np.zeros(n_nodes, dtype=bool)
    left, right = np.full(n_nodes, -1), np.full(n_nodes, -1)
    for node in tree.order():
        if tree.left[node] < 0:
            values[node, output] = tree.values[node] * factor
            continue
        bands = tree.split(node)
        joined = bands.joined() if isinstance(bands, Bands) else None
        if joined is None or len(joined.edges) > 1:
            raise NetworkError(
                f"{tree.name}, node {node}: got a test of categories, or of zeros as missing "
                "values, on a feature of a pipeline; expected a test of a number"
            )
        straight = joined.left[0]
        first, second = (tree.left, tree.right) if straight else (tree.right, tree.left)
        left[node], right[node] = first[node], second[node]
        threshold[node] = joined.edges[0]
        missing_left[node] = joined.missing_left == straight
    return SourceTree(
        left,
        right,
        tree.feature,
        threshold,
        missing_left,
        values,
        np.full(n_nodes, -1),
        np.zeros((0, N_CODES), dtype=bool),
    )


def _check_scores(forest: Forest, booster: Booster, inputs: TreeInputs) -> None:
    """Raise unless the scores are those of the library, bit for bit, on random people."""
    people = compared_people(forest, inputs)
    table = inputs.table(people)
    features: Any = table if inputs.steps is None else run_step(inputs.steps, table)
    if booster.zero_is_missing and hasattr(features, "tocsr"):
        raise NetworkError(
            f"the pipeline passes a sparse table to {booster.library}, which reads the zeros of "
            "sparse tables as missing; pass sparse_threshold=0 to the ColumnTransformer, or "
            "sparse_output=False to the encoder, and fit again"
        )
    check_bits(forest, people, booster.scores(features), booster.library)
