"""The features of a LightGBM model as columns of a space."""

import warnings
from collections.abc import Mapping, Sequence

import numpy as np

from feta.absorb.absorb import UnseenValueWarning
from feta.errors import SchemaError, unknown_choice
from feta.readers.lightgbm.category_lists import match_lists
from feta.readers.lightgbm.model import MAX_CODE, LightgbmModel
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
from feta.space.attribute import Attribute, Categorical
from feta.space.feature_space import FeatureSpace

# LightGBM's names of features without names.
UNNAMED = "Column_"


def bind_features(
    model: LightgbmModel, space: FeatureSpace, categories: Mapping[str, Sequence[Value]]
) -> tuple[list[Attribute], list[Feature], list[Sequence[Value]]]:
    """Return the attribute of each feature, the numbers that the model reads, and its categories.

    A text or NaN that is not among the categories of a pandas column is missing for LightGBM.
    """
    unnamed = [f"{UNNAMED}{index}" for index in range(len(model.names))]
    known = {attribute.name for attribute in space.attributes}
    names = () if list(model.names) == unnamed and not known & set(unnamed) else model.names
    attributes = match_attributes(space, names, count=len(model.names), spelled=_spelled)
    lists = match_lists(model, attributes, categories)
    features: list[Feature] = []
    for index, attribute in enumerate(attributes):
        check_not_derived(attribute)
        if isinstance(attribute, Categorical):
            numbers = _category_numbers(model, index, attribute, lists[index], space)
            features.append(listed_feature(attribute, space, numbers))
        elif index in model.categorical or lists[index]:
            raise number_error(attribute)
        else:
            features.append(number_feature(attribute, space))
    return attributes, features, lists


def _spelled(name: str) -> str:
    """Return a column's name as LightGBM writes it."""
    return "_".join(name.split(" "))


def _category_numbers(
    model: LightgbmModel,
    index: int,
    attribute: Categorical,
    categories: Sequence[Value],
    space: FeatureSpace,
) -> list[float]:
    if not categories:
        if index in model.categorical:
            return code_numbers(attribute, largest=MAX_CODE)
        return plain_numbers(attribute)
    numbers = index_numbers(attribute, categories)
    unseen = [attribute.all_values[int(at)] for at in np.flatnonzero(np.isnan(numbers))]
    listed = [value for value in unseen if value in attribute.values]
    if len(listed) == len(attribute.values):
        raise SchemaError(
            f"column {attribute.name!r} has no category of the model: "
            f"{unknown_choice(listed[0], categories)}; write the values as the model stores them"
        )
    if listed and space.is_sensitive(attribute):
        raise SchemaError(
            f"sensitive column {attribute.name!r} has a value that the model never saw: "
            f"{unknown_choice(listed[0], categories)}; remove the value from the schema"
        )
    if listed:
        message = (
            f"column {attribute.name!r} has a value that the model never saw: got {listed[0]!r}; "
            "LightGBM treats it as missing"
        )
        warnings.warn(message, UnseenValueWarning, stacklevel=4)
    return numbers
