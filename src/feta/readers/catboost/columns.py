"""The features of a CatBoost model as columns of a space."""

import warnings

from feta.absorb.absorb import UnseenValueWarning
from feta.errors import SchemaError
from feta.readers.catboost.category_hash import category_hash, row_hash
from feta.readers.catboost.model import CatboostModel, CategoryFeature
from feta.readers.trees.features import (
    Feature,
    check_not_derived,
    listed_feature,
    match_attributes,
    number_error,
    number_feature,
    plain_numbers,
)
from feta.space.attribute import Attribute, Categorical
from feta.space.feature_space import FeatureSpace


def bind_features(
    model: CatboostModel, space: FeatureSpace
) -> tuple[list[Attribute], list[Feature]]:
    """Return the attribute of each feature, and the numbers that the model reads."""
    unnamed = [str(index) for index in range(model.n_features)]
    known = {attribute.name for attribute in space.attributes}
    names = () if list(model.names) == unnamed and not known & set(unnamed) else model.names
    attributes = match_attributes(space, names, count=model.n_features)
    features: list[Feature] = []
    for index, attribute in enumerate(attributes):
        check_not_derived(attribute)
        category = model.categories.get(index)
        if isinstance(attribute, Categorical):
            if category is None:
                numbers = plain_numbers(attribute)
            else:
                numbers = _category_numbers(category, attribute, space)
            features.append(listed_feature(attribute, space, numbers))
        elif category is not None:
            raise number_error(attribute)
        else:
            features.append(number_feature(attribute, space))
    return attributes, features


def category_text(attribute: Categorical, value: object) -> str:
    """Return the text of a value that CatBoost hashes; refuse what CatBoost itself rejects."""
    if value is None:
        raise SchemaError(
            f"column {attribute.name!r} has a value that CatBoost rejects in a category: got "
            "a missing value; expected texts or integers; replace it by a text in table and schema"
        )
    return str(int(value)) if isinstance(value, bool) else str(value)


def _category_numbers(
    category: CategoryFeature, attribute: Categorical, space: FeatureSpace
) -> list[float]:
    """Return the hash of each value; the model stores no texts."""
    hashes = [category_hash(category_text(attribute, value)) for value in attribute.all_values]
    listed = set(category.values)
    if listed and not category.statistics and not listed & set(hashes):
        raise SchemaError(
            f"column {attribute.name!r} has no category that the model tests: got "
            f"{list(attribute.values)!r}; write the values as in the model's training data"
        )
    seen = [set(statistic.table) for statistic in category.statistics]
    unseen = [
        value
        for value, number in zip(attribute.all_values, hashes, strict=True)
        if any(row_hash(number) not in rows for rows in seen)
    ]
    if unseen and space.is_sensitive(attribute):
        raise SchemaError(
            f"sensitive column {attribute.name!r} has a value that the model never saw: got "
            f"{unseen[0]!r}; remove the value from the schema"
        )
    if unseen:
        message = (
            f"column {attribute.name!r} has a value that the model never saw: got {unseen[0]!r}; "
            "CatBoost treats it as a category without statistics"
        )
        warnings.warn(message, UnseenValueWarning, stacklevel=4)
    return [float(number) for number in hashes]
