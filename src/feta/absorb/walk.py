"""Walk through fitted preprocessing: which feature depends on which columns."""

import warnings
from dataclasses import dataclass, field, replace

import numpy as np

from feta.absorb.encoders import (
    EncoderInput,
    check_known_values_listed,
    check_other_is_encoded,
    encoder_inputs,
    is_encoder,
)
from feta.absorb.feature import Feature, all_columns
from feta.absorb.transformers import (
    Data,
    Features,
    Leaf,
    Transformer,
    handle_unknown,
    handler_of,
    is_float32,
)
from feta.arrays import Matrix, Vector
from feta.errors import NetworkError
from feta.space.feature_space import FeatureSpace


@dataclass
class Walk:
    """The state of one walk through the steps."""

    space: FeatureSpace
    unknown_steps: list[str] = field(default_factory=list)  # names of steps with unknown code
    has_float32: bool = False  # whether a step reads or makes float32 numbers
    encoder_inputs: list[EncoderInput] = field(default_factory=list)
    largest: float = 0.0  # bounds the magnitude of all intermediate features

    def visit(self, step: Transformer, features: Features, table: Data, name: str) -> Features:
        """Return the features that a step or its parts make; `table` is some input rows."""
        kind = type(step).__name__
        if step is None or isinstance(step, str):
            return [] if step == "drop" else features
        if kind == "FrozenEstimator":
            return self.visit(step.estimator, features, table, name)
        if kind == "Pipeline":
            return self._visit_sequence(step, features, table)
        if kind == "ColumnTransformer":
            return self._visit_columns(step, features, table)
        if kind == "FeatureUnion":
            parts = [self.visit(part, features, table, key) for key, part in step.transformer_list]
            return [feature for part in parts for feature in part]
        return self._visit_leaf(step, features, table, f"the step {name!r} ({kind})")

    def _visit_sequence(self, pipeline: Transformer, features: Features, table: Data) -> Features:
        for name, step in pipeline.steps:
            features = self.visit(step, features, table, name)
            if step is not None and not isinstance(step, str):
                table = run_step(step, table)
        return features

    def _visit_columns(self, columns: Transformer, features: Features, table: Data) -> Features:
        parts: dict[str, Features] = {}
        for name, step, _ in columns.transformers_:
            indices = list(columns._transformer_to_input_indices.get(name, []))  # noqa: SLF001 - there is no public name
            selected = [features[index] for index in indices]
            part = table.iloc[:, indices] if hasattr(table, "iloc") else table[:, indices]
            parts[name] = self.visit(step, selected, part, name) if indices else []
        # The order of the outputs can differ from that of the steps.
        order = sorted(columns.output_indices_, key=lambda key: columns.output_indices_[key].start)
        return [feature for name in order for feature in parts.get(name, [])]

    def _visit_leaf(
        self, step: Transformer, features: Features, table: Data, where: str
    ) -> Features:
        if not hasattr(step, "transform"):
            raise NetworkError(f"{where} has no method transform; expected a transformer")
        handler = handler_of(step) or handle_unknown
        self._check_encoder(step, features, table, where)
        outputs = handler(Leaf(step, features, table, self.space, where))
        opaque_input = any(feature.opaque for feature in features)
        if any(feature.opaque for feature in outputs) and not opaque_input:
            self.unknown_steps.append(where)
        output_table = run_step(step, table)
        self.has_float32 |= is_float32(output_table) or is_float32(table)
        values = as_numbers(output_table)
        if values.shape[1] != len(outputs):
            raise NetworkError(
                f"{where} makes an unexpected number of features: got {values.shape[1]}; "
                f"expected {len(outputs)} by its structure; please report this pipeline"
            )
        covered = [
            _cover_values(feature, values[:, index]) for index, feature in enumerate(outputs)
        ]
        self.largest = max([self.largest, *(feature.magnitude for feature in covered)])
        return covered

    def _check_encoder(
        self, step: Transformer, features: Features, table: Data, where: str
    ) -> None:
        """Record an encoder's inputs; check that only encoders read texts outside the schema."""
        if is_encoder(step):
            inputs = list(encoder_inputs(step, [feature.columns for feature in features], table))
            for encoder_input in inputs:
                check_known_values_listed(encoder_input, self.space.attribute(encoder_input.column))
            self.encoder_inputs += inputs
        for name in all_columns(features):
            check_other_is_encoded(step, where, self.space.attribute(name))


def _cover_values(feature: Feature, values: Vector) -> Feature:
    """Raise the magnitude to cover joint changes, given the values with one column changed."""
    observed = float(np.nanmax(np.abs(values), initial=0.0))
    bound = observed * (1 + 2 * len(feature.columns))
    return replace(feature, magnitude=max(feature.magnitude, bound))


def run_step(step: Transformer, table: Data) -> Data:
    """Return a step's output; its warnings were shown when it was fitted."""
    with warnings.catch_warnings(), np.errstate(all="ignore"):
        warnings.simplefilter("ignore")
        return step.transform(table)


def as_numbers(table: Data) -> Matrix:
    """Return a step's output as numbers; texts become NaN."""
    dense = table.toarray() if hasattr(table, "toarray") else np.asarray(table)
    try:
        return np.asarray(dense, dtype=np.float64)
    except (TypeError, ValueError):  # texts before an encoder have no magnitude
        return np.full(dense.shape, np.nan)
