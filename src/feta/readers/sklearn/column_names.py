"""Names of the columns that a bare estimator was trained on, compared with encoded people.

An estimator that reads encoded people reads columns by position. Its names must confirm this: a
number has the name of its column, and a category has one column per value in the schema's order,
as `pandas.get_dummies` (job_boss), scikit-learn (encoder__job_boss) or DictVectorizer (job=boss)
name them.
"""

import re
from collections.abc import Sequence
from typing import Any

from feta.errors import NetworkError
from feta.space.attribute import OTHER, Attribute, Categorical, Derived
from feta.space.feature_space import FeatureSpace

# What encoders write for a missing cell, and for all texts that are not listed.
MISSING_TEXTS = ("nan", "NaN", "None", "<NA>", "NA", "missing")
OTHER_TEXTS = (OTHER, "other", "infrequent_sklearn")

# Occurs in the names of columns that state whether a number is missing.
FLAG = re.compile(r"missing|isna|isnull|nan", re.IGNORECASE)

# More names than this are abbreviated in messages.
MAX_SHOWN = 6


def check_columns(space: FeatureSpace, estimator: Any) -> None:  # noqa: ANN401 - scikit-learn ships no types
    """Reject an estimator whose names contradict the columns of encoded people.

    Names that only count the columns (x0, x1, …) state nothing.
    """
    names = [str(name) for name in getattr(estimator, "feature_names_in_", ())]
    if _only_count(names, {attribute.name for attribute in space.attributes}):
        return
    _check_positions(space, names)
    if len(names) != space.width:  # the model rejects this number of columns
        return
    for attribute in space.attributes:
        columns = names[space.columns_of(attribute)]
        if not _fits(attribute, [_spelled(name) for name in columns]):
            raise NetworkError(_mismatch(attribute, columns))


def _only_count(names: Sequence[str], known: set[str]) -> bool:
    """Return whether names are a common beginning with the number of the column, or none."""
    if known & set(names):
        return False
    start = names[0].rstrip("0123456789") if names else ""
    return any(
        list(names) == [f"{start}{first + index}" for index in range(len(names))]
        for first in (0, 1)
    )


def _check_positions(space: FeatureSpace, names: Sequence[str]) -> None:
    for attribute in space.attributes:
        index = space.columns_of(attribute).start
        if attribute.name in names and names.index(attribute.name) != index:
            raise NetworkError(
                f"{attribute.name!r} is in the wrong position: got column {index} of the space; "
                f"expected column {names.index(attribute.name)}, as in the estimator's training; "
                "put the attributes in that order"
            )


def _spelled(name: str) -> str:
    """Return a name as LightGBM writes it; other libraries keep the spaces."""
    return name.replace(" ", "_")


def _fits(attribute: Attribute, names: Sequence[str]) -> bool:
    """Return whether the names of an attribute's columns are those of its number or its values."""
    own = re.escape(_spelled(attribute.name))
    return _fits_values(attribute, own, names) if _values(attribute) else _fits_number(own, names)


def _fits_number(own: str, names: Sequence[str]) -> bool:
    number, *flags = names
    alone = rf"(?<![^\W_]){own}(?![^\W_])"
    return re.fullmatch(rf"(.*__)?{own}", number) is not None and all(
        re.search(alone, flag) and FLAG.search(flag) for flag in flags
    )


def _fits_values(attribute: Attribute, own: str, names: Sequence[str]) -> bool:
    """Return whether names are one beginning, with the attribute's name, and then the values."""
    pairs = zip(names, _value_texts(attribute), strict=True)
    beginnings = set.intersection(
        *[
            {name.removesuffix(text) for text in texts if name.endswith(text)}
            for name, texts in pairs
        ]
    )
    numbers = any(isinstance(value, int) for value in _values(attribute))
    end = r"[\W_]*" + (r"(?<!-)" if numbers else "")  # a minus belongs to the number after it
    return any(re.fullmatch(rf"(.*[\W_])?{own}{end}", beginning) for beginning in beginnings)


def _values(attribute: Attribute) -> tuple[object, ...]:
    """Return what each column of a category stands for; nothing for numbers."""
    if isinstance(attribute, Categorical):
        return attribute.all_values
    return tuple(label for label, _, _ in attribute.bands) if isinstance(attribute, Derived) else ()


def _value_texts(attribute: Attribute) -> list[tuple[str, ...]]:
    """Return the texts that encoders write for each value."""
    return [_texts(value) for value in _values(attribute)]


def _texts(value: object) -> tuple[str, ...]:
    if value is None:
        return MISSING_TEXTS
    if value == OTHER:
        return OTHER_TEXTS
    if isinstance(value, int):  # a boolean as well
        return tuple({str(value), str(int(value)), str(float(value))})
    return (_spelled(str(value)),)


def _mismatch(attribute: Attribute, columns: Sequence[str]) -> str:
    values = _value_texts(attribute)
    expected = [f"{attribute.name}_{text[0]}" for text in values] or [attribute.name]
    return (
        f"the estimator was trained on other columns than those of {attribute.name!r}: got "
        f"{_shown(columns)} in their place; expected {_shown(expected)}; list the columns of the "
        "schema, and their values, in the order of the training, with no value left out"
    )


def _shown(names: Sequence[str]) -> str:
    more = ", …" if len(names) > MAX_SHOWN else ""
    return ", ".join(repr(name) for name in names[:MAX_SHOWN]) + more
