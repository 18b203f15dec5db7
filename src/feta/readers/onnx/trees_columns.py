"""The columns of a graph of trees as columns of a space."""

from collections.abc import Sequence

import numpy as np

from feta.errors import NetworkError, SchemaError
from feta.readers.onnx.trees_graph import TreeGraph
from feta.readers.trees.features import (
    Feature,
    ListedFeature,
    NumberFeature,
    check_not_derived,
    listed_feature,
    match_attributes,
    number_feature,
    plain_numbers,
)
from feta.scorer.forest.trees import OneHot
from feta.space.attribute import Attribute, Categorical, Derived, Integer
from feta.space.feature_space import FeatureSpace


def bind_columns(graph: TreeGraph, space: FeatureSpace) -> list[Feature]:
    """Return the feature of each column of the graph's inputs."""
    columns = [attribute for attribute in space.attributes if not isinstance(attribute, Derived)]
    encoded = len(columns) == len(space.attributes) and space.width == graph.n_columns
    if not graph.names and encoded and len(columns) != graph.n_columns:
        return [feature for attribute in columns for feature in _encoded(attribute, space, graph)]
    attributes = match_attributes(space, graph.names, count=graph.n_columns)
    return [
        _raw(attribute, space, index in graph.integers)
        for index, attribute in enumerate(attributes)
    ]


def check_integers(indices: set[int], features: Sequence[Feature], space: FeatureSpace) -> None:
    """Refuse features with fractions, which onnxruntime removes for large sets."""
    for index in indices:
        if not 0 <= index < len(features):
            continue  # the builder of trees names the place
        feature = features[index]
        if isinstance(feature, ListedFeature):
            known = feature.numbers[~np.isnan(feature.numbers)]
            integers = bool((known == np.round(known)).all())
        else:
            integers = isinstance(space.attribute(feature.name), Integer)
        if not integers:
            raise NetworkError(
                f"a large set contains numbers of {feature.name!r}: got a column with fractions, "
                "which onnxruntime removes; expected integers; declare the column as integers"
            )


def _raw(attribute: Attribute, space: FeatureSpace, integers: bool) -> Feature:
    """Return the feature of an attribute that a graph reads as one number."""
    check_not_derived(attribute)
    numbers = plain_numbers(attribute) if isinstance(attribute, Categorical) else []
    if integers:
        _check_integers(attribute)
    if isinstance(attribute, Categorical):
        return listed_feature(attribute, space, numbers)
    return number_feature(attribute, space)


def _check_integers(attribute: Attribute) -> None:
    missing = not isinstance(attribute, Derived) and attribute.missing
    if missing or not isinstance(attribute, Categorical | Integer):
        raise SchemaError(
            f"the graph reads {attribute.name!r} as an integer: got {attribute.domain()}; expected "
            "integers that are never missing; export the graph with inputs of floating point"
        )


def _encoded(attribute: Attribute, space: FeatureSpace, graph: TreeGraph) -> list[Feature]:
    """Return the features of the columns of an attribute in an encoded person."""
    if graph.integers or isinstance(attribute, Derived):
        raise SchemaError("a graph of encoded people needs inputs of floating point")
    columns = space.columns_of(attribute)
    if isinstance(attribute, Categorical):
        domain = OneHot(columns.start, attribute.width)
        return [
            ListedFeature(attribute.name, domain, numbers) for numbers in np.eye(attribute.width)
        ]
    if attribute.missing and space.is_sensitive(attribute):
        raise SchemaError(
            f"the graph reads encoded people: got the sensitive {attribute.name!r}, which may be "
            "missing; expected numbers that are never missing; export a graph of the raw columns"
        )
    # A missing number is its lowest value, and 1 in the next column; neither is NaN.
    return [NumberFeature(attribute.name, at) for at in range(columns.start, columns.stop)]
