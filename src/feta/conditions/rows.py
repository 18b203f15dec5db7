"""Long lists of alternatives, narrowed to those that fit the value of one category."""

from collections.abc import Collection, Mapping
from dataclasses import dataclass

from feta.conditions.condition import AllOf, Among, AnyOf, Condition
from feta.conditions.evaluate import Cells
from feta.space.attribute import Value

# Shorter lists are evaluated as they are.
LONG = 8


@dataclass(frozen=True, slots=True, eq=False)
class Narrowing:
    """A condition, and its alternatives by the value of a column that each of them states."""

    condition: Condition
    column: str = ""  # empty: the condition is not such a list
    by_value: Mapping[Value, AnyOf] | None = None

    @classmethod
    def of(cls, condition: Condition, columns: Collection[str]) -> "Narrowing":
        """Return the alternatives by the first of these columns that all of them state."""
        if not isinstance(condition, AnyOf) or len(condition.parts) <= LONG:
            return cls(condition)
        stated = [_stated(part) for part in condition.parts]
        for column in columns:
            if all(column in values for values in stated):
                by_value: dict[Value, tuple[Condition, ...]] = {}
                for part, values in zip(condition.parts, stated, strict=True):
                    for value in values[column]:
                        by_value[value] = (*by_value.get(value, ()), part)
                return cls(condition, column, {key: AnyOf(one) for key, one in by_value.items()})
        return cls(condition)

    def among(self, cells: Mapping[str, Cells]) -> Condition:
        """Return a condition that has the same truth for people with these cells.

        The other alternatives are false. If all of them are, the first one stands for them.
        """
        if self.by_value is None or not isinstance(self.condition, AnyOf):
            return self.condition
        column = cells[self.column]
        if column.numbers.size != 1 or column.missing.item():
            return self.condition
        value = column.values[int(column.numbers.item())]
        return self.by_value.get(value, self.condition.parts[0])


def _stated(part: Condition) -> dict[str, tuple[Value, ...]]:
    """Return the values of the categories that an alternative states."""
    parts = part.parts if isinstance(part, AllOf) else (part,)
    return {one.column: one.values for one in parts if isinstance(one, Among)}
