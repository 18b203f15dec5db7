"""Trained estimators: what is inside a wrapper, its columns, and its guarantee."""

from typing import Any

from sklearn.frozen import FrozenEstimator

from feta.errors import SchemaError, unknown_choice
from feta.readers.sklearn.pipeline import read_columns, split_pipeline
from feta.space.feature_space import FeatureSpace


def inner(estimator: Any) -> Any:  # noqa: ANN401 - scikit-learn ships no types
    """Return the estimator inside a `FrozenEstimator`, or the estimator itself."""
    return estimator.estimator if isinstance(estimator, FrozenEstimator) else estimator


def trained_columns(estimator: Any, space: FeatureSpace) -> list[str] | None:  # noqa: ANN401 - scikit-learn ships no types
    """Return the columns of a trained estimator, in its order; None if it has no names."""
    bare = inner(estimator)
    trained = getattr(bare, "feature_names_in_", None) if bare is not estimator else None
    if trained is None:
        return None
    names = [str(name) for name in trained]
    known = {attribute.name for attribute in space.attributes}
    needed = names if split_pipeline(bare)[0] is None else read_columns(bare)
    for name in needed or ():
        if name not in known:
            raise SchemaError(
                "the estimator reads a column that the space does not have: "
                f"{unknown_choice(name, sorted(known))}"
            )
    return names


def conditional_guarantee(reason: str, estimator: object) -> str:
    """Return the guarantee for an estimator that FETA cannot read, in words."""
    name = type(estimator).__name__
    return (
        f"fair if the predict of {name} is deterministic, because votes are counted with it; "
        f"verdicts are counted, not proved, because FETA cannot read the estimator: {reason}"
    )
