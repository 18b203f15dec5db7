"""The features of an XGBoost model as columns of a space."""

from collections.abc import Mapping, Sequence

import numpy as np

from feta.errors import SchemaError, unknown_choice
from feta.readers.trees.features import (
    Feature,
    Value,
    check_not_derived,
    code_numbers,
    index_numbers,
    listed_feature,
    match_attributes,
    number_error,
    number_feature,
    plain_numbers,
)
from feta.readers.xgboost.model import MAX_CODE, XgboostModel
from feta.space.attribute import Attribute, Categorical
from feta.space.feature_space import FeatureSpace

# Since this version, a model that was trained on a table with categories stores them.
STORES_CATEGORIES = (3, 1)


def bind_features(
    model: XgboostModel, space: FeatureSpace, categories: Mapping[str, Sequence[Value]]
) -> tuple[list[Attribute], list[Feature]]:
    """Return the attribute of each feature, and the numbers that the model reads."""
    attributes = match_attributes(space, model.names, count=model.n_features)
    names = [attribute.name for attribute in attributes]
    unknown = set(categories) - set(names)
    if unknown:
        raise SchemaError(f"unknown column in categories: {unknown_choice(min(unknown), names)}")
    features: list[Feature] = []
    for index, attribute in enumerate(attributes):
        check_not_derived(attribute)
        if isinstance(attribute, Categorical):
            numbers = _category_numbers(model, index, attribute, categories)
            features.append(listed_feature(attribute, space, numbers))
        elif index in model.categorical:
            raise number_error(attribute)
        else:
            features.append(number_feature(attribute, space))
    return attributes, features


def stored_categories(
    model: XgboostModel,
    index: int,
    attribute: Attribute,
    categories: Mapping[str, Sequence[Value]],
) -> Sequence[Value]:
    """Return the categories of a feature in the order of their codes; empty if unknown."""
    if attribute.name in categories:
        return categories[attribute.name]
    if not model.categories or not isinstance(attribute, Categorical):
        return ()
    return model.categories[index].of(attribute)


def _category_numbers(
    model: XgboostModel,
    index: int,
    attribute: Categorical,
    categories: Mapping[str, Sequence[Value]],
) -> list[float]:
    stored = stored_categories(model, index, attribute, categories)
    if stored:
        numbers = index_numbers(attribute, stored)
        if np.isnan(numbers).any():
            value = attribute.all_values[int(np.flatnonzero(np.isnan(numbers))[0])]
            raise SchemaError(
                f"column {attribute.name!r} has a value that XGBoost rejects: "
                f"{unknown_choice(value, stored)}, the model's categories; "
                "remove the value from the schema"
            )
        return numbers
    if index not in model.categorical:
        return plain_numbers(attribute)
    if model.version < STORES_CATEGORIES:
        version = ".".join(map(str, model.version))
        raise SchemaError(
            f"the codes of the categories of {attribute.name!r} are unknown: got a model of "
            f"XGBoost {version}, which does not store categories; expected the order of the codes: "
            f"pass categories={{{attribute.name!r}: [...]}}"
        )
    return code_numbers(attribute, largest=MAX_CODE)
