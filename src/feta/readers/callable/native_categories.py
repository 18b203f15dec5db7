"""Categories that a booster reads itself: the columns of a counted one need pandas' own type."""

from collections.abc import Sequence
from typing import Any

from feta.errors import SchemaError, unknown_choice
from feta.io.column_format import ColumnFormat, Formats
from feta.space.attribute import Attribute, Categorical
from feta.space.feature_space import FeatureSpace


def category_formats(
    source: Any,  # noqa: ANN401 - any model
    space: FeatureSpace,
    names: Sequence[str],
) -> Formats:
    """Return the formats of columns that the model reads as categories; none for most models."""
    import pandas as pd  # noqa: PLC0415 - import feta stays light

    attributes = [space.attribute(name) for name in names]
    formats: dict[str, ColumnFormat] = {}
    for attribute, values in _stored_categories(source, attributes):
        _check_known(attribute, values, space)
        formats[attribute.name] = ColumnFormat(pd.CategoricalDtype(list(values)), "mixed")
    return formats


def _stored_categories(
    source: Any,  # noqa: ANN401 - any model
    attributes: Sequence[Attribute],
) -> list[tuple[Categorical, Sequence[object]]]:
    """Return the columns with categories, and the model's list of each."""
    categorical = [attribute for attribute in attributes if isinstance(attribute, Categorical)]
    texts = [attribute for attribute in categorical if _has_texts(attribute)]
    booster = getattr(source, "booster_", source)
    lists = getattr(booster, "pandas_categorical", None) or ()  # of LightGBM, in order
    if lists and len(lists) == len(texts):
        return list(zip(texts, lists, strict=True))
    if hasattr(source, "get_booster") and _recodes(source.get_booster()):
        return [(attribute, attribute.values) for attribute in texts]
    return []


def _recodes(booster: Any) -> bool:  # noqa: ANN401 - of XGBoost
    """Return whether a booster of XGBoost stores its categories: it then needs no order of them."""
    stored = getattr(booster, "get_categories", None)
    return "c" in (booster.feature_types or ()) and stored is not None and not stored().empty()


def _has_texts(attribute: Categorical) -> bool:
    return any(isinstance(value, str) for value in attribute.values)


def _check_known(attribute: Categorical, values: Sequence[object], space: FeatureSpace) -> None:
    """Reject a sensitive value that the model treats as missing, because it never saw it."""
    unseen = [value for value in attribute.values if value not in values]
    if unseen and space.is_sensitive(attribute):
        raise SchemaError(
            f"sensitive column {attribute.name!r} has a value that the model never saw: "
            f"{unknown_choice(unseen[0], values)}; remove the value from the schema"
        )
