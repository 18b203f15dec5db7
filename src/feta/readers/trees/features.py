"""Features of a model as attributes of a space, and the numbers that the model reads for them."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np

from feta.arrays import Vector
from feta.errors import NetworkError, SchemaError, missing
from feta.scorer.forest.trees import Domain, OneHot
from feta.space.attribute import Attribute, Categorical, Derived
from feta.space.feature_space import FeatureSpace

Value = str | int | bool | float


@dataclass(frozen=True, slots=True)
class NumberFeature:
    """A number that the model reads in raw units."""

    name: str
    column: int
    flag: int = -1  # the column that is 1 where the number is missing; −1 if it never is


@dataclass(frozen=True, slots=True, eq=False)
class ListedFeature:
    """An attribute with finitely many values, and the number that the model reads for each."""

    name: str
    domain: Domain
    numbers: Vector  # NaN where the model reads a missing value


Feature = NumberFeature | ListedFeature


def match_attributes(
    space: FeatureSpace, names: Sequence[str], *, count: int, spelled: Callable[[str], str] = str
) -> list[Attribute]:
    """Return the attribute of each feature: by name, or by position if the model has no names.

    `spelled` is how the library writes the name of a column.
    """
    columns = [attribute for attribute in space.attributes if not isinstance(attribute, Derived)]
    if not names:
        if len(columns) != count:
            raise SchemaError(
                f"wrong number of columns: got {len(columns)} in the schema; expected {count}, the "
                "features of the model, which have no names; list all columns in the model's order"
            )
        return list(columns)
    known: dict[str, Attribute] = {}
    for attribute in space.attributes:
        name = spelled(attribute.name)
        if name in known:
            raise SchemaError(
                f"ambiguous columns: got {known[name].name!r} and {attribute.name!r}, which the "
                f"library both calls {name!r}; rename one of them"
            )
        known[name] = attribute
    for name in names:
        if name not in known:
            raise SchemaError(missing(name, known, owner="schema"))
    return [known[name] for name in names]


def number_feature(attribute: Attribute, space: FeatureSpace) -> NumberFeature:
    """Return the feature of an attribute that is a number."""
    column = space.columns_of(attribute).start
    return NumberFeature(attribute.name, column, column + 1 if attribute.width > 1 else -1)


def check_not_derived(attribute: Attribute) -> None:
    """Reject attributes that are computed from others."""
    if isinstance(attribute, Derived):
        raise SchemaError(
            f"the model reads {attribute.name!r}, which the schema derives from "
            f"{attribute.source!r}: expected a raw column; declare it as a category"
        )


def listed_feature(
    attribute: Categorical, space: FeatureSpace, numbers: Sequence[float]
) -> ListedFeature:
    """Return the feature of a category; `numbers` belong to its values, without missing ones."""
    columns = space.columns_of(attribute)
    read = [*numbers, *((np.nan,) if attribute.missing else ())]
    return ListedFeature(attribute.name, OneHot(columns.start, attribute.width), np.array(read))


def plain_numbers(attribute: Categorical) -> list[float]:
    """Return the values of a category that the model reads as numbers; texts are rejected."""
    texts = [value for value in attribute.all_values if isinstance(value, str)]
    if texts:
        raise SchemaError(
            f"column {attribute.name!r} has different types in model and schema: got the text "
            f"{texts[0]!r} in the schema; expected numbers, which the model reads; declare the "
            "column as the numbers that the model was trained on"
        )
    return [float(value) for value in attribute.values]


def code_numbers(attribute: Categorical, *, largest: int) -> list[float]:
    """Return the values of a category that the model reads as codes: integers from 0."""
    for value in attribute.all_values:
        integer = isinstance(value, int) and not isinstance(value, bool)
        if value is not None and not (integer and 0 <= value <= largest):  # type: ignore[operator]  # an integer
            raise SchemaError(
                f"the codes of the categories of {attribute.name!r} are unknown: got the value "
                f"{value!r}, and the model does not store its categories; expected integers from 0 "
                f"to {largest}, or the order of the codes: pass "
                f"categories={{{attribute.name!r}: [...]}}"
            )
    return [float(value) for value in attribute.values]


def index_numbers(attribute: Categorical, categories: Sequence[Value]) -> list[float]:
    """Return the index of each value in the model's categories; NaN for unknown values."""
    indices = {_key(value): float(index) for index, value in enumerate(categories)}
    if len(indices) != len(categories):
        raise NetworkError(
            f"repeated category of {attribute.name!r}: got {list(categories)!r}; "
            "expected each category once"
        )
    values = [value for value in attribute.all_values if value is not None]
    return [indices.get(_key(value), np.nan) for value in values]


def _key(value: Value) -> tuple[str, Value]:
    """Return a key that distinguishes texts, booleans and numbers."""
    if isinstance(value, str | bool):
        return type(value).__name__, value
    return "number", value


def number_error(attribute: Attribute) -> SchemaError:
    """Return the error for a number of which the model reads categories."""
    return SchemaError(
        f"column {attribute.name!r} has different types in model and schema: got "
        f"{attribute.domain()} in the schema; expected a category, which the model reads; declare "
        "the column as a category with its values"
    )
