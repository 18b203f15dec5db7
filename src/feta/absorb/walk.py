"""Walk: through fitted preprocessing, step by step, to see which features hang on which columns."""

import warnings
from dataclasses import dataclass, field, replace

import numpy as np

from feta.absorb.encoders import (
    EncoderInput,
    encoder_inputs,
    is_encoder,
    refuse_known,
    refuse_other,
)
from feta.absorb.feature import Feature
from feta.absorb.transformers import Data, Features, Leaf, Transformer, known, unknown
from feta.arrays import Matrix, Vector
from feta.errors import NetworkError
from feta.space.feature_space import FeatureSpace


@dataclass
class Walk:
    """One walk; `sampled` names the steps whose code is not known, `rounded` says float32 is met.

    `largest` bounds every number on the way.
    """

    space: FeatureSpace
    sampled: list[str] = field(default_factory=list)
    rounded: bool = False
    encoded: list[EncoderInput] = field(default_factory=list)  # what the encoders were given
    largest: float = 0.0

    def take(self, step: Transformer, features: Features, table: Data, name: str) -> Features:
        """Take a step, or the steps it is made of; `table` is some rows that go into it."""
        kind = type(step).__name__
        if step is None or isinstance(step, str):
            return [] if step == "drop" else features
        if kind == "FrozenEstimator":
            return self.take(step.estimator, features, table, name)
        if kind == "Pipeline":
            return self._in_turn(step, features, table)
        if kind == "ColumnTransformer":
            return self._side_by_side(step, features, table)
        if kind == "FeatureUnion":
            made = [self.take(part, features, table, one) for one, part in step.transformer_list]
            return [feature for part in made for feature in part]
        return self._leaf(step, features, table, f"the step {name!r} ({kind})")

    def _in_turn(self, pipeline: Transformer, features: Features, table: Data) -> Features:
        for name, step in pipeline.steps:
            features = self.take(step, features, table, name)
            if step is not None and not isinstance(step, str):
                table = transformed(step, table)
        return features

    def _side_by_side(self, columns: Transformer, features: Features, table: Data) -> Features:
        parts: dict[str, Features] = {}
        for name, step, _ in columns.transformers_:
            indices = list(columns._transformer_to_input_indices.get(name, []))  # noqa: SLF001 - there is no public name
            chosen = [features[index] for index in indices]
            part = table.iloc[:, indices] if hasattr(table, "iloc") else table[:, indices]
            parts[name] = self.take(step, chosen, part, name) if indices else []
        # Its outputs stand in this order, which need not be that of the steps.
        order = sorted(columns.output_indices_, key=lambda one: columns.output_indices_[one].start)
        return [feature for name in order for feature in parts.get(name, [])]

    def _leaf(self, step: Transformer, features: Features, table: Data, where: str) -> Features:
        if not hasattr(step, "transform"):
            raise NetworkError(f"{where} must have a transform, but has none; it cannot be read")
        handler = known(step) or unknown
        self._check_encoder(step, features, table, where)
        made = handler(Leaf(step, features, table, self.space, where))
        if any(one.opaque for one in made) and not any(one.opaque for one in features):
            self.sampled.append(where)
        given = transformed(step, table)
        self.rounded |= _is_float32(given) or _is_float32(table)
        values = numbers(given)
        if values.shape[1] != len(made):
            message = f"{where} must make {len(made)} features as its structure says, but makes {values.shape[1]}; please report this pipeline"
            raise NetworkError(message)
        sized = [_at_least(one, values[:, index]) for index, one in enumerate(made)]
        self.largest = max([self.largest, *(one.size for one in sized)])
        return sized

    def _check_encoder(
        self, step: Transformer, features: Features, table: Data, where: str
    ) -> None:
        """Note what an encoder is given; texts that no schema lists may only go to encoders."""
        if is_encoder(step):
            inputs = list(encoder_inputs(step, [one.columns for one in features], table))
            for given in inputs:
                refuse_known(given, self.space.attribute(given.column))
            self.encoded += inputs
        for name in frozenset[str]().union(*(one.columns for one in features)):
            refuse_other(step, where, self.space.attribute(name))


def _at_least(feature: Feature, values: Vector) -> Feature:
    """Let the size cover what is seen with one column changed at a time, for all at once."""
    seen = float(np.nanmax(np.abs(values), initial=0.0))
    return replace(feature, size=max(feature.size, seen * (1 + 2 * len(feature.columns))))


def _is_float32(table: Data) -> bool:
    kinds = table.dtypes if hasattr(table, "dtypes") else [getattr(table, "dtype", None)]
    return any(kind == np.float32 for kind in kinds)


def transformed(step: Transformer, table: Data) -> Data:
    """Run a step; what it warns about was known when it was fitted."""
    with warnings.catch_warnings(), np.errstate(all="ignore"):
        warnings.simplefilter("ignore")
        return step.transform(table)


def numbers(table: Data) -> Matrix:
    """Take what a step gives as numbers; what is none becomes NaN."""
    dense = table.toarray() if hasattr(table, "toarray") else np.asarray(table)
    try:
        return np.asarray(dense, dtype=np.float64)
    except (TypeError, ValueError):  # texts on their way to an encoder have no size
        return np.full(dense.shape, np.nan)
