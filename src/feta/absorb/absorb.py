"""Preprocessing turned into slopes and tables of the first layer.

Additive preprocessing T satisfies T(x) = T(base) + Σ_c [T(base with c := x_c) − T(base)]. The walk
proves from the structure of the steps that T is additive. The user's own `transform` computes the
numbers. They are rounded once, here; from then on the stored numbers are the model. The source
still computes step by step, so the magnitudes of its terms are stored next to the biases, for the
bound on its rounding error.
"""

import warnings
from collections.abc import Iterator, Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from feta.absorb.casts import single
from feta.absorb.encoders import Unseen
from feta.absorb.evaluation import Evaluation
from feta.absorb.feature import Feature, nonlinear, raw_feature
from feta.absorb.first_layer import FirstLayerBuilder
from feta.absorb.sampling import SAMPLED_PEOPLE, resolve_opaque
from feta.absorb.transformers import Data, is_float32
from feta.absorb.walk import Walk
from feta.arrays import Vector
from feta.errors import NetworkError
from feta.io.raw_table import TableMaker
from feta.rounding import AGREEMENT, AGREEMENT_FLOAT32
from feta.scorer.network.layers import Columns, Measured
from feta.scorer.network.network import Network
from feta.space.attribute import Integer, Levels, Real
from feta.space.feature_space import FeatureSpace
from feta.space.limits import limits_of
from feta.space.sampling import draw_people

# People drawn to compare the absorbed first layer with the source's.
CHECKED_PEOPLE = 512


class UnseenValueWarning(UserWarning):
    """A warning that the schema allows values, of a shared column, that an encoder never saw."""


def absorb(
    network: Network,
    preprocessing: Any,  # noqa: ANN401 - scikit-learn ships no types
    space: FeatureSpace,
    table: TableMaker,
) -> Network:
    """Return a network that reads rows of a space instead of the features of preprocessing.

    `table` turns those rows into the input of the fitted preprocessing.
    """
    evaluation = Evaluation(space, preprocessing, table)
    probes = evaluation.probes()
    evaluation.features(probes)  # names a rejected value and its column; a single step cannot
    rows = table(probes)
    walk = Walk(space, has_float32=is_float32(rows))
    features = walk.visit(
        preprocessing, _raw_features(space, table.names, rows), rows, "preprocessing"
    )
    check_seen(evaluation.unseen(walk.encoder_inputs), space)
    if len(features) != network.width:
        raise NetworkError(
            "the estimator and the preprocessing have different numbers of features: "
            f"got {network.width} inputs of the estimator; expected {len(features)}"
        )
    for lookup in network.first.tables:
        features[lookup.column] = nonlinear(space, features[lookup.column], "the embedding")
    tolerance = AGREEMENT_FLOAT32 if walk.has_float32 else AGREEMENT
    if walk.unknown_steps:
        features = resolve_opaque(features, evaluation, tolerance)
    first = FirstLayerBuilder(network.first, features, evaluation).build()
    n_people = SAMPLED_PEOPLE if walk.unknown_steps else CHECKED_PEOPLE
    allowed = np.full(first.outputs, tolerance)
    if walk.has_float32:  # a number is rounded before scaling shifts it toward 0
        magnitudes = np.array([feature.magnitude for feature in features])
        allowed = tolerance * (1 + np.abs(network.first.slopes) @ magnitudes)
    _check_agreement(network.first, first, evaluation, n_people, allowed)
    if walk.has_float32:  # one float32 step makes the source's rounding that of float32
        network = replace(network, source="float32")
    # A network that is valid only within its own limits restricts all columns to theirs.
    spans = () if network.measured is not None else tuple(_linear_spans(features, evaluation))
    largest = max([walk.largest, *(feature.magnitude for feature in features)])
    return replace(
        network,
        first=first,
        provenance="sampled" if walk.unknown_steps else network.provenance,
        measured=Measured(spans, largest),
    )


def _raw_features(space: FeatureSpace, names: Sequence[str], rows: Data) -> list[Feature]:
    """Return the features of a raw table; a frame may hold float32 numbers."""
    features = [raw_feature(space, name) for name in names]
    for index, name in enumerate(names):
        column = rows.iloc[:, [index]] if hasattr(rows, "iloc") else rows
        if is_float32(column):
            features[index] = single(space, features[index], f"the float32 column {name!r}")
    return features


def _linear_spans(
    features: list[Feature], evaluation: Evaluation
) -> Iterator[tuple[int, float, float]]:
    """Yield the columns that are affine everywhere, with the limits of their measured slopes."""
    space = evaluation.space
    excluded = frozenset[str]().union(*(feature.tabular | feature.local for feature in features))
    for name in evaluation.roots:
        attribute = space.attribute(name)
        if isinstance(attribute, Integer | Levels | Real) and name not in excluded:
            low, high = limits_of(attribute)
            if low < high:  # one value has no slope
                yield space.columns_of(attribute).start, low, high


def check_seen(unseen: list[Unseen], space: FeatureSpace) -> None:
    """Reject sensitive values that an encoder never saw; warn about others."""
    for values in unseen:
        if space.is_sensitive(values.attribute):
            raise values.error()
    for notice in dict.fromkeys(values.notice() for values in unseen):
        warnings.warn(notice, UnseenValueWarning, stacklevel=4)


def _check_agreement(
    old: Columns, new: Columns, evaluation: Evaluation, n_people: int, tolerance: Vector
) -> None:
    """Compare both first layers on random people, as a check of the structural proof."""
    people = draw_people(evaluation.space, np.random.default_rng(0), n_people)
    features = evaluation.features(people)
    expected, sizes = old.terms(features, range(old.width))
    actual = new.terms(people, range(new.width))[0] + new.bias
    differences = np.abs(actual - expected - old.bias) / (1 + sizes + np.abs(old.bias))
    if not (differences <= tolerance).all():
        row, neuron = np.unravel_index(int(np.nanargmax(differences)), differences.shape)
        person = evaluation.space.decode(people[row])
        raise NetworkError(
            "the absorbed pipeline differs from the pipeline itself: "
            f"got a relative difference of {differences[row, neuron]:.3g} at neuron {neuron} "
            f"for {person!r}; expected at most {tolerance[neuron]:.3g}; "
            "a column's contribution depends on other columns"
        )
