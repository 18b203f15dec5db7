"""Structure of fitted scikit-learn pipelines: their steps and the raw columns that they read."""

from typing import Any

from feta.absorb.known_values import KnownValues, known_values, marker_formats
from feta.errors import NetworkError, missing
from feta.io.column_format import ColumnFormat, Formats
from feta.io.raw_table import RawTable, with_markers
from feta.readers.sklearn.own_threshold import around, has_own_threshold, inner_classifier
from feta.space.feature_space import FeatureSpace

Estimator = Any  # scikit-learn ships no types


def split_pipeline(estimator: Estimator) -> tuple[Estimator, Estimator]:
    """Return the preprocessing of a fitted estimator, or None, and its bare final estimator."""
    kind = type(estimator)
    # Only scikit-learn's exact types: other wrappers may change decisions.
    name = kind.__name__ if kind.__module__.startswith("sklearn.") else ""
    if name == "FrozenEstimator":
        return split_pipeline(estimator.estimator)
    if name.endswith("SearchCV") and hasattr(estimator, "best_estimator_"):
        return split_pipeline(estimator.best_estimator_)
    if has_own_threshold(estimator):  # it remains the last step
        inside, bare = split_pipeline(inner_classifier(estimator))
        return inside, around(estimator, bare)
    if name != "Pipeline":
        return None, estimator
    before, last = estimator[:-1], estimator.steps[-1][1]
    inner, bare = split_pipeline(last)
    if inner is not None:
        before = type(before)([*before.steps, *inner.steps])
    return before if before.steps else None, bare


def raw_table(
    estimator: Estimator, space: FeatureSpace, formats: Formats | None = None
) -> RawTable:
    """Return the function that writes rows of a space as the table that an estimator reads.

    `formats` are the column formats of the user's table. Without them, the values that the
    estimator's encoders know determine the formats.
    """
    steps, _ = split_pipeline(estimator)
    known = [attribute.name for attribute in space.attributes]
    names = getattr(steps, "feature_names_in_", None)
    if names is None:
        count = getattr(steps, "n_features_in_", len(known))
        if count != len(known):
            raise NetworkError(
                f"the pipeline was fitted on {count} columns without names: "
                f"got {len(known)} in the schema; expected these, in order"
            )
        types = with_markers(formats or {}, marker_formats(steps, known))
        return RawTable(space, tuple(known), as_frame=False, formats=types)
    for name in _used_columns(steps):
        if name not in known:
            reason = missing(name, known, owner="schema")
            raise NetworkError(f"the pipeline reads {name!r}: {reason}")
    fitted = [str(name) for name in names]
    _check_types(space, formats or {}, known_values(steps, fitted))
    types = with_markers(formats or {}, marker_formats(steps, fitted))
    return RawTable(space, tuple(fitted), formats=types)


def _check_types(space: FeatureSpace, formats: Formats, known: dict[str, KnownValues]) -> None:
    """Reject categories of other types than in the table, with advice that suits the encoder."""
    for attribute in space.attributes:
        if attribute.name in formats and attribute.name in known:
            formats[attribute.name].check(attribute, encoded=known[attribute.name].values)


def read_columns(estimator: Estimator) -> list[str] | None:
    """Return the raw columns that a pipeline reads; None if it was fitted without names."""
    steps, _ = split_pipeline(estimator)
    return _used_columns(steps) if hasattr(steps, "feature_names_in_") else None


def encoder_values(estimator: Estimator) -> dict[str, KnownValues]:
    """Return what a pipeline's encoders know about the raw columns; empty if it has no names."""
    steps, _ = split_pipeline(estimator)
    names = getattr(steps, "feature_names_in_", None)
    return {} if names is None else known_values(steps, [str(name) for name in names])


def encoder_markers(estimator: Estimator) -> dict[str, ColumnFormat]:
    """Return formats for the raw columns in which a pipeline's encoders know None."""
    steps, _ = split_pipeline(estimator)
    names = getattr(steps, "feature_names_in_", None)
    return {} if names is None else marker_formats(steps, [str(name) for name in names])


def _used_columns(steps: Estimator) -> list[str]:
    """Return the columns that preprocessing reads; a ColumnTransformer may drop some."""
    names = [str(name) for name in steps.feature_names_in_]
    first = steps.steps[0][1]
    if type(first).__name__ != "ColumnTransformer":
        return names
    indices = first._transformer_to_input_indices  # noqa: SLF001 - there is no public name
    used = {
        index
        for name, step, _ in first.transformers_
        for index in (
            indices.get(name, []) if not (isinstance(step, str) and step == "drop") else []
        )
    }
    return [name for index, name in enumerate(names) if index in used]
