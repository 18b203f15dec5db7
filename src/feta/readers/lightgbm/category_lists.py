"""Which columns the lists of categories of a LightGBM model belong to.

A model that was trained on a pandas table lists the categories of its columns of type "category",
in the order of the columns, without their names. Other columns may be read as categories as well
(`categorical_feature`), ordered categories are read as numbers, and a constant column as nothing.
So the lists are assigned only if one way fits the codes that the model saw and the schema's values.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from feta.errors import NetworkError, SchemaError, unknown_choice
from feta.readers.lightgbm.model import LightgbmModel
from feta.readers.trees.features import Value
from feta.space.attribute import Attribute, Categorical, Derived, Levels

# Two ways of assigning lists are enough to refuse a model.
MAX_WAYS = 2


def match_lists(
    model: LightgbmModel,
    attributes: Sequence[Attribute],
    categories: Mapping[str, Sequence[Value]],
) -> list[Sequence[Value]]:
    """Return the categories of each feature in the order of their codes; empty if it has none."""
    names = [attribute.name for attribute in attributes]
    unknown = set(categories) - set(names)
    if unknown:
        raise SchemaError(f"unknown column in categories: {unknown_choice(min(unknown), names)}")
    if categories or not model.categories:
        return _passed(model, names, categories)
    ways = _ways(model, attributes) or _mistaken(model, attributes)
    if len(ways) != 1:
        raise NetworkError(
            f"the columns with categories are unknown: got {len(model.categories)} lists of "
            f"categories in the model, which fit the columns of the schema in "
            f"{'several ways' if ways else 'no way'}; expected one way; call read_lightgbm with "
            "categories={'column': [...], ...}, the categories of each column of type category"
        )
    lists: list[Sequence[Value]] = [() for _ in names]
    for index, place in ways[0]:
        lists[index] = model.categories[place]
    return lists


def _passed(
    model: LightgbmModel, names: Sequence[str], categories: Mapping[str, Sequence[Value]]
) -> list[Sequence[Value]]:
    """Return the categories that the user passed; a model's own must be the same."""
    lists = [categories.get(name, ()) for name in names]
    given = [tuple(values) for values in lists if values]
    if model.categories and given != list(model.categories):
        raise SchemaError(
            f"the categories are not those of the model: got {given}; expected "
            f"{list(model.categories)}, in the order of the columns; pass all of them"
        )
    for name, info, values in zip(names, model.infos, lists, strict=True):
        if values and not _codes_fit(info, len(values)):
            raise SchemaError(
                f"too few categories of {name!r}: got {len(values)}; expected one for each code "
                f"that the model saw: {info[:60]}"
            )
    return lists


@dataclass(frozen=True, slots=True)
class _Way:
    """Lists of some columns: pairs of the column and the list."""

    pairs: tuple[tuple[int, int], ...] = ()
    changed: tuple[tuple[int, int], ...] = ()  # without lists whose codes are the values themselves


def _ways(
    model: LightgbmModel, attributes: Sequence[Attribute]
) -> list[tuple[tuple[int, int], ...]]:
    """Return up to two ways of assigning all lists in order that lead to different codes."""
    by_count: list[list[_Way]] = [[_Way()], *([] for _ in model.categories)]
    for index, attribute in enumerate(attributes):
        after: list[list[_Way]] = [[] if _has_texts(attribute) else list(ways) for ways in by_count]
        for place, values in enumerate(model.categories):
            if not (_codes_fit(model.infos[index], len(values)) and _shares(attribute, values)):
                continue
            pair = (index, place)
            same = _is_numbered(attribute, values)
            for way in by_count[place]:
                changed = way.changed if same else (*way.changed, pair)
                _add(after[place + 1], _Way((*way.pairs, pair), changed))
        by_count = after
    return [way.pairs for way in by_count[-1]]


def _mistaken(
    model: LightgbmModel, attributes: Sequence[Attribute]
) -> list[tuple[tuple[int, int], ...]]:
    """Return a way in which only values of the schema do not fit; the columns' errors name them."""
    columns = [
        index
        for index, attribute in enumerate(attributes)
        if index in model.categorical or _has_texts(attribute)
    ]
    sizes = [len(values) for values in model.categories]
    if len(columns) != len(sizes) or not all(
        _codes_fit(model.infos[index], size) for index, size in zip(columns, sizes, strict=True)
    ):
        return []
    return [tuple((index, place) for place, index in enumerate(columns))]


def _add(ways: list[_Way], way: _Way) -> None:
    """Add a way with other codes than those that are known."""
    if len(ways) < MAX_WAYS and all(known.changed != way.changed for known in ways):
        ways.append(way)


def _codes_fit(info: str, n_categories: int) -> bool:
    """Return whether the codes that a feature had in the training are those of a list.

    A number has its limits in brackets, a category its codes, −1 being a missing one, and a
    constant feature "none".
    """
    if info == "none":
        return True
    try:
        codes = [float(code) for code in info.strip("[]").split(":")]
    except ValueError:
        return False
    least = 0 if info.startswith("[") else -1
    return all(code.is_integer() and least <= code < n_categories for code in codes)


def _has_texts(attribute: Attribute) -> bool:
    """Return whether a column has texts, which LightGBM reads from a column of categories only."""
    return isinstance(attribute, Categorical) and any(
        isinstance(value, str) for value in attribute.values
    )


def _shares(attribute: Attribute, values: Sequence[Value]) -> bool:
    """Return whether a column of the schema has one of these values."""
    if isinstance(attribute, Categorical):
        return any(_key(value) in map(_key, attribute.values) for value in values)
    if isinstance(attribute, Derived):
        return False
    numbers = [value for value in values if not isinstance(value, str)]
    if isinstance(attribute, Levels):
        return any(value in attribute.numbers for value in numbers)
    return any(attribute.low <= value <= attribute.high for value in numbers)


def _is_numbered(attribute: Attribute, values: Sequence[Value]) -> bool:
    """Return whether the codes of a column's values are the values themselves."""
    if not isinstance(attribute, Categorical) or [_key(value) for value in values] != [
        (False, index) for index in range(len(values))
    ]:
        return False
    return {_key(value) for value in attribute.values} <= {_key(value) for value in values}


def _key(value: Value) -> tuple[bool, Value]:
    """Return a key that distinguishes booleans from numbers."""
    return isinstance(value, bool), value
