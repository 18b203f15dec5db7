"""Which people are meant: a condition on the columns that counterparts share."""

from dataclasses import dataclass

import numpy as np

from feta.arrays import Flags, Matrix
from feta.conditions.condition import AllOf, Condition, columns_of
from feta.conditions.evaluate import cells_of, evaluate
from feta.conditions.parse import parse_condition
from feta.errors import SchemaError
from feta.space.attribute import Derived
from feta.space.feature_space import FeatureSpace


@dataclass(frozen=True, slots=True)
class Where:
    """A condition, as a text and as a value; the empty text admits everybody."""

    text: str = ""
    condition: Condition | None = None

    @classmethod
    def of(cls, text: str | None, space: FeatureSpace) -> "Where":
        """Parse a condition; raise `SchemaError` if it reads a sensitive column."""
        if text is None or not text.strip():
            return cls()
        condition = parse_condition(text, space.attributes)
        for name in sorted(columns_of(condition)):
            if space.is_sensitive(space.attribute(name)):
                raise SchemaError(
                    f"invalid condition: got the sensitive column {name!r}; expected columns that "
                    "counterparts share; a person and their counterparts differ in "
                    f"{name!r}, so leave it out"
                )
        return cls(text.strip(), condition)

    def holds(self, space: FeatureSpace, people: Matrix) -> Flags:
        """Flag the people for whom the condition is true; a missing cell is not."""
        if self.condition is None:
            return np.ones(len(people), dtype=bool)
        truth = evaluate(self.condition, cells_of(space, people)).true
        return np.asarray(np.broadcast_to(truth, (len(people),)))


def by_column(where: Where, space: FeatureSpace) -> tuple[dict[str, Condition], tuple[str, ...]]:
    """Split a condition into parts that read one column each.

    Return the parts by the column that determines them, and the columns of the parts that link
    several columns.
    """
    separate: dict[str, list[Condition]] = {}
    linked: set[str] = set()
    for part in _parts(where.condition):
        names = {_source(space, name) for name in columns_of(part)}
        if len(names) == 1:
            separate.setdefault(names.pop(), []).append(part)
        else:
            linked |= names
    joined = {name: AllOf(tuple(parts)) for name, parts in separate.items()}
    return dict(joined), tuple(sorted(linked))


def _parts(condition: Condition | None) -> list[Condition]:
    match condition:
        case None:
            return []
        case AllOf(parts=parts):
            return [inner for part in parts for inner in _parts(part)]
    return [condition]


def _source(space: FeatureSpace, name: str) -> str:
    attribute = space.attribute(name)
    return attribute.source if isinstance(attribute, Derived) else name
