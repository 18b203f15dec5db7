"""What may change about a person: one column, in which direction, how far and in which steps."""

import math
import re
from dataclasses import dataclass, replace
from typing import Any, Literal

from feta.errors import SchemaError, unknown_choice
from feta.model import Model
from feta.space.attribute import Categorical, Derived, Integer, Levels, Real
from feta.space.limits import limits_of

Direction = Literal["any", "up", "down"]
DIRECTIONS: tuple[Direction, ...] = ("any", "up", "down")

# Steps from one end of a column to the other, if the user names no step.
STEPS = 100

# Steps that a column may have.
MAX_STEPS = 100_000

NUMBER = r"[-+]?(?:\d+\.?\d*|\.\d+)(?:[eE][-+]?\d+)?"
LIMITS = re.compile(rf"({NUMBER})?\.\.({NUMBER})?")


@dataclass(frozen=True, slots=True)
class Changeable:
    """A column that may change; without further arguments, to any value of its domain.

    Parameters
    ----------
    column
        The name of a column that is not sensitive.
    direction
        "up" or "down": numbers may only grow or shrink.
    low, high
        Limits of the new number; the limits of the schema hold in any case.
    step
        A number changes by multiples of this; by default, about a hundredth of its domain.
    unit
        A change of a number by this much counts as 1; by default, its spread.
    values
        The categories that are possible; by default, all of them.
    """

    column: str
    direction: Direction = "any"
    low: float | None = None
    high: float | None = None
    step: float | None = None
    unit: float | None = None
    values: tuple[str | int | bool, ...] = ()

    @classmethod
    def read(cls, text: str) -> "Changeable":
        """Read "duration:down", "amount:500..4000:step=100:per=1000" or "purpose=car|repairs"."""
        column, *options = text.split(":")
        name, _, values = column.partition("=")
        one = cls(name.strip(), values=tuple(filter(None, map(str.strip, values.split("|")))))
        for option in options:
            one = _with_option(one, option.strip(), text)
        return one

    def checked(self, model: Model) -> "Changeable":
        """Return it with a step and values of the model's schema; raise if it must not change."""
        attribute = self._attribute(model)
        if isinstance(attribute, Categorical):
            return self._of_category(attribute)
        if self.values:
            raise self._invalid(f"values {self.values!r} of a number", "limits, such as 6..48")
        for name, number in (("step", self.step), ("unit", self.unit)):
            if number is not None and not (math.isfinite(number) and number > 0):
                raise self._invalid(f"{name} {number!r}", "a positive number")
        if not isinstance(attribute, Levels):
            return self._with_step(attribute)
        if self.step is not None:
            raise self._invalid("a step", f"none, because it is {attribute.domain()}")
        return self

    def _attribute(self, model: Model) -> Categorical | Integer | Levels | Real:
        """Return the attribute; raise unless it may be a reason."""
        space = model.space
        names = [a.name for a in space.attributes]
        if self.column not in names:
            raise SchemaError(f"unknown column: {unknown_choice(self.column, names)}")
        attribute = space.attribute(self.column)
        moving = model.relation.moving  # sensitive columns, and those that move along with them
        if space.is_sensitive(attribute) or moving[space.columns_of(attribute)].any():
            raise SchemaError(
                f"{self.column!r} is no reason: got a sensitive column, or a consequence of one; "
                "expected other columns; remove it"
            )
        if isinstance(attribute, Derived):
            raise SchemaError(
                f"{self.column!r} follows from {attribute.source!r}: got a derived column; "
                f"expected its source; name {attribute.source!r} instead"
            )
        return attribute

    def _with_step(self, attribute: Integer | Real) -> "Changeable":
        low, high = limits_of(attribute)
        step = self.step
        if step is None:
            step = nice((high - low) / STEPS or 1.0)
            step = max(1.0, step) if isinstance(attribute, Integer) else step
        if isinstance(attribute, Integer) and step != int(step):
            raise self._invalid(f"the step {step!r} of an integer", "an integer")
        if (high - low) / step > MAX_STEPS:
            raise self._invalid(f"{(high - low) / step:,.0f} steps", f"at most {MAX_STEPS:,}")
        return replace(self, step=step)

    def _of_category(self, attribute: Categorical) -> "Changeable":
        if self.direction != "any" or (self.low, self.high, self.step, self.unit) != (None,) * 4:
            raise self._invalid("a direction, limits, step or unit of a category", "values")
        known: dict[Any, str | int | bool] = {str(value): value for value in attribute.values}
        known |= {value: value for value in attribute.values}
        for value in self.values:
            if value not in known:
                raise self._invalid(repr(value), f"values out of {attribute.domain()}")
        return replace(self, values=tuple(known[value] for value in self.values))

    def _invalid(self, got: str, expected: str) -> SchemaError:
        return SchemaError(f"invalid change of {self.column!r}: got {got}; expected {expected}")


def _with_option(one: Changeable, option: str, text: str) -> Changeable:
    if option in DIRECTIONS:
        return replace(one, direction=option)
    limits = LIMITS.fullmatch(option)
    if limits:
        low, high = (None if part is None else float(part) for part in limits.groups())
        return replace(one, low=low, high=high)
    name, _, number = option.partition("=")
    if name in ("step", "per") and re.fullmatch(NUMBER, number):
        value = float(number)
        return replace(one, step=value) if name == "step" else replace(one, unit=value)
    raise SchemaError(
        f"invalid change: got {option!r} in {text!r}; expected up, down, LOW..HIGH, step=NUMBER or "
        "per=NUMBER after the column, such as duration:down:6..48:step=6"
    )


def read_changes(text: str) -> tuple[Changeable, ...]:
    """Read several columns, separated by commas."""
    return tuple(Changeable.read(part.strip()) for part in text.split(",") if part.strip())


def nice(number: float) -> float:
    """Return the smallest of 1, 2 and 5 times a power of ten that is not below a number."""
    power = float(f"1e{math.floor(math.log10(number))}")
    return next(float(f"{m * power:.12g}") for m in (1, 2, 5, 10) if m * power >= number)
