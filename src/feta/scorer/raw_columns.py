"""Scorers that read columns in raw units, so that a schema has nothing to scale."""

from collections.abc import Sequence

from feta.errors import SchemaError
from feta.space.feature_space import FeatureSpace


def check_unscaled(space: FeatureSpace, centers: Sequence[float], scales: Sequence[float]) -> None:
    """Reject center and scale of a column."""
    for attribute in space.attributes:
        column = space.columns_of(attribute).start
        if centers[column] != 0 or scales[column] != 1:
            raise SchemaError(
                f"column {attribute.name!r} is scaled: got center {centers[column]!r} and scale "
                f"{scales[column]!r}; expected neither, because the model reads raw columns; "
                "remove them"
            )
