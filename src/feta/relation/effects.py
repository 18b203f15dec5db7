"""Equations of a structural causal model: what a descendant gains by the values of its parents.

An equation is value = effects of the parents + noise. Every effect is rounded once to the step of
the descendant, half to even, so that noise and counterparts are exact. A missing parent has no
effect.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from fractions import Fraction
from math import prod
from typing import Any, Literal

import numpy as np

from feta.arrays import Counts
from feta.errors import SchemaError, unknown_choice
from feta.relation.bands import Mapped, read_mapped
from feta.space.attribute import Attribute, Categorical, Derived, Integer, Levels, Value
from feta.space.feature_space import FeatureSpace
from feta.space.level_grid import even_step

Entry = Mapping[str, Any]

KINDS = ("shifts", "slopes", "tables", "bands", "quantiles")
NUMERIC = KINDS[:3]

# Combinations of parents' values that one table of effects may have.
MAX_TABLE = 2**22

# Indices and noise stay far below 2^62, so that no sum of them overflows.
LARGEST_EFFECT = 2**52


@dataclass(frozen=True, slots=True)
class Effect:
    """One effect: a slope of one column, or an amount per combination of values."""

    kind: Literal["slope", "amounts"]
    parents: tuple[str, ...]
    slope: Fraction = Fraction(0)
    amounts: tuple[tuple[tuple[Value, ...], Fraction], ...] = ()  # others have no effect


@dataclass(frozen=True, slots=True)
class Equation:
    """The equation of one descendant, and its entry in a file."""

    column: str
    effects: tuple[Effect, ...]
    mapped: Mapped | None  # of a category: bands or quantiles instead of effects
    entry: Entry = field(compare=False)

    @property
    def parents(self) -> tuple[str, ...]:
        """The columns that it reads, each once, in order."""
        names = [name for effect in self.effects for name in effect.parents]
        names += [] if self.mapped is None else self.mapped.columns
        return tuple(dict.fromkeys(names))


def read_equations(entries: object, attributes: Sequence[Attribute]) -> tuple[Equation, ...]:
    """Read the entries of `[[consequences.equations]]`; messages name the column."""
    if not isinstance(entries, list) or not all(isinstance(entry, Mapping) for entry in entries):
        raise SchemaError(
            f"equations is not a list of tables: got {entries!r}; expected entries such as "
            '{ column = "income", shifts = { sex = { male = 3000 } } }'
        )
    if not entries:
        raise SchemaError(
            "no equations: expected one or more; without them, the default relation is the same"
        )
    equations = tuple(_read_equation(entry, attributes) for entry in entries)
    names = [equation.column for equation in equations]
    for name in names:
        if names.count(name) > 1:
            raise SchemaError(
                f"two equations for {name!r}: expected one per column; write all effects into one"
            )
    return equations


def _read_equation(entry: Entry, attributes: Sequence[Attribute]) -> Equation:
    name = entry.get("column")
    attribute = _attribute(name, attributes)
    for key in entry:
        if key != "column" and key not in KINDS:
            raise SchemaError(
                f"equation of {name!r}: unknown key: {unknown_choice(key, ['column', *KINDS])}"
            )
    kinds = [kind for kind in KINDS if kind in entry]
    mapped = [kind for kind in kinds if kind not in NUMERIC]
    if not kinds or (mapped and len(kinds) > 1):
        raise SchemaError(
            f"equation of {name!r}: got {' and '.join(kinds) or 'no effect'}; expected shifts, "
            "slopes and tables for a number, or one of bands and quantiles for a category"
        )
    try:
        if mapped:
            return Equation(
                attribute.name, (), read_mapped(mapped[0], entry[mapped[0]], attribute), dict(entry)
            )
        effects = [
            *_shifts(entry.get("shifts", {}), attributes),
            *_slopes(entry.get("slopes", {}), attributes),
            *_tables(entry.get("tables", []), attributes),
        ]
    except SchemaError as error:
        raise SchemaError(f"equation of {name!r}: {error}") from None
    if not effects:
        raise SchemaError(f"equation of {name!r}: got no effect; expected one or more; remove it")
    return Equation(attribute.name, tuple(effects), None, dict(entry))


def _attribute(name: object, attributes: Sequence[Attribute]) -> Attribute:
    for attribute in attributes:
        if attribute.name == name and not isinstance(attribute, Derived):
            return attribute
    names = [a.name for a in attributes if not isinstance(a, Derived)]
    raise SchemaError(f"unknown column in an equation: {unknown_choice(name, names)}")


def _pairs(content: object, what: str) -> list[tuple[str, Any]]:
    if not isinstance(content, Mapping):
        raise SchemaError(f"{what} is not a table: got {content!r}; expected values by column")
    return list(content.items())


def _shifts(content: object, attributes: Sequence[Attribute]) -> list[Effect]:
    effects = []
    for parent, amounts in _pairs(content, "shifts"):
        attribute = _attribute(parent, attributes)
        if not isinstance(attribute, Categorical):
            raise SchemaError(
                f"shifts need a category: got {parent!r}; expected slopes or tables for a number"
            )
        by_text = {str(value): value for value in attribute.values}
        rows = []
        for text, amount in _pairs(amounts, f"shifts.{parent}"):
            if text not in by_text:
                raise SchemaError(f"unknown value of {parent!r}: {unknown_choice(text, by_text)}")
            rows.append(((by_text[text],), _number(amount)))
        effects.append(Effect("amounts", (parent,), amounts=tuple(rows)))
    return effects


def _slopes(content: object, attributes: Sequence[Attribute]) -> list[Effect]:
    effects = []
    for parent, slope in _pairs(content, "slopes"):
        attribute = _attribute(parent, attributes)
        if isinstance(attribute, Categorical):
            raise SchemaError(f"slopes need a number: got {parent!r}, a category; expected shifts")
        effects.append(Effect("slope", (parent,), _number(slope)))
    return effects


def _tables(content: object, attributes: Sequence[Attribute]) -> list[Effect]:
    if not isinstance(content, list):
        raise SchemaError(f"tables is not a list: got {content!r}; expected columns and rows each")
    return [_table(table, attributes) for table in content]


def _table(table: object, attributes: Sequence[Attribute]) -> Effect:
    if not isinstance(table, Mapping) or set(table) != {"columns", "rows"}:
        raise SchemaError(
            f"invalid table: got {table!r}; expected columns and rows, such as "
            '{ columns = ["sex", "race"], rows = [["female", "Black", -2.0]] }'
        )
    columns, rows = table["columns"], table["rows"]
    if not isinstance(columns, list) or not columns or not isinstance(rows, list) or not rows:
        raise SchemaError(f"invalid table: got {table!r}; expected lists with one entry or more")
    parents = [_attribute(name, attributes) for name in columns]
    if len(set(columns)) != len(columns):
        raise SchemaError(f"invalid table: got the columns {columns!r}; expected each once")
    amounts: dict[tuple[Value, ...], Fraction] = {}
    for row in rows:
        if not isinstance(row, list) or len(row) != len(columns) + 1:
            raise SchemaError(
                f"invalid row: got {row!r}; expected a value of each of {columns!r}, and the effect"
            )
        cells = tuple(_cell(one, cell) for one, cell in zip(parents, row[:-1], strict=True))
        if cells in amounts:
            raise SchemaError(f"repeated row: got {row!r}; expected each combination once")
        amounts[cells] = _number(row[-1])
    return Effect("amounts", tuple(columns), amounts=tuple(amounts.items()))


def _cell(attribute: Attribute, cell: Any) -> Value:  # noqa: ANN401 - any TOML value
    """Return a value of a finite attribute; types must be equal for categories."""
    match attribute:
        case Categorical(values=values):
            if not any(type(one) is type(cell) and one == cell for one in values):
                raise SchemaError(
                    f"unknown value of {attribute.name!r}: {unknown_choice(cell, values)}"
                )
            return cell
        case Integer() | Levels():
            if not bool(attribute.valid(np.array([[_as_float(cell)] + [0.0] * attribute.missing]))):
                raise SchemaError(
                    f"invalid value of {attribute.name!r}: got {cell!r}; expected "
                    f"{attribute.domain()}"
                )
            return float(cell)
        case _:
            raise SchemaError(
                f"tables need finitely many values: got {attribute.name!r}, a real number; "
                "expected slopes, or declare it integer, or give a step"
            )


def _as_float(cell: object) -> float:
    is_number = isinstance(cell, int | float) and not isinstance(cell, bool)
    return float(cell) if is_number else np.nan  # type: ignore[arg-type]  # a number


def _number(value: object) -> Fraction:
    if isinstance(value, bool) or not isinstance(value, int | float) or not abs(value) < np.inf:
        raise SchemaError(f"invalid effect: got {value!r}; expected a finite number")
    return Fraction(float(value))


def step_of(attribute: Attribute) -> Fraction:
    """Return the step of a descendant; raise if its noise cannot be recovered exactly."""
    if isinstance(attribute, Integer):
        return Fraction(1)
    step = even_step(attribute.numbers) if isinstance(attribute, Levels) else None
    if step is None:
        raise SchemaError(
            f"the noise of {attribute.name!r} cannot be recovered exactly: got {attribute.domain()}"
            ", whose sums are rounded; expected an integer or a step; declare it integer, give a "
            "step, or use bands for a category"
        )
    return step


@dataclass(frozen=True, slots=True, eq=False)
class CompiledEffect:
    """An effect in steps of its descendant."""

    parents: tuple[str, ...]
    shape: tuple[int, ...]  # of the table; () for a slope of numbers
    table: Counts | None  # by index; the amount per combination
    slope: Fraction  # in steps per unit
    numbers: tuple[Fraction, ...] | None = None  # first number and step of an indexed parent

    @classmethod
    def of(cls, effect: Effect, step: Fraction, space: FeatureSpace) -> "CompiledEffect":
        """Compile an effect on a descendant with this step."""
        attributes = [space.attribute(name) for name in effect.parents]
        if effect.kind == "slope":
            attribute, slope = attributes[0], effect.slope / step
            numbers = (
                None
                if not isinstance(attribute, Integer | Levels)
                else tuple(
                    map(Fraction, attribute.codes(np.arange(attribute.n_values))[:, 0].tolist())
                )
                if attribute.n_values <= MAX_TABLE
                else None
            )
            if numbers is None:
                return cls(effect.parents, (), None, slope)
            amounts = [_steps(slope * number) for number in numbers]
            if attribute.missing:  # type: ignore[union-attr]  # a number
                amounts[-1] = 0
            table = np.array(amounts, dtype=np.int64)
            return cls(effect.parents, table.shape, table, slope)
        shape = tuple(attribute.n_values for attribute in attributes)  # type: ignore[union-attr]
        if prod(shape) > MAX_TABLE:
            raise SchemaError(
                f"too large a table of effects: got {prod(shape):,} combinations of "
                f"{', '.join(effect.parents)}; expected at most {MAX_TABLE:,}"
            )
        table = np.zeros(shape, dtype=np.int64)
        for cells, amount in effect.amounts:
            place = tuple(_index(one, cell) for one, cell in zip(attributes, cells, strict=True))
            table[place] = _steps(amount / step)
        return cls(effect.parents, shape, table.ravel(), Fraction(0))

    def at(self, values: Mapping[str, Any]) -> Counts:
        """Return the effect at these values: indices of finite columns, or else numbers."""
        arrays = [values[name] for name in self.parents]
        if self.table is not None:
            if len(arrays) == 1:
                return np.asarray(self.table[arrays[0]])
            joint = np.ravel_multi_index(np.broadcast_arrays(*arrays), self.shape)
            return np.asarray(self.table[joint])
        different, places = np.unique(np.asarray(arrays[0], dtype=np.float64), return_inverse=True)
        steps = [
            0 if np.isnan(number) else _steps(self.slope * Fraction(number))
            for number in different.tolist()
        ]
        return np.array(steps, dtype=np.int64)[places].reshape(np.shape(arrays[0]))


def _steps(amount: Fraction) -> int:
    """Round to an integer, half to even."""
    steps = round(amount)
    if abs(steps) > LARGEST_EFFECT:
        raise SchemaError(
            f"too large an effect: got {float(amount):.3g} steps; expected at most 2^52; "
            "correct the equation"
        )
    return steps


def _index(attribute: Attribute, cell: Value) -> int:
    if isinstance(attribute, Categorical):
        return attribute.values.index(cell)
    assert isinstance(attribute, Integer | Levels)
    code = np.array([[float(cell), *[0.0] * attribute.missing]])  # type: ignore[arg-type]  # a number
    return int(attribute.indices(code)[0])


def indexed(attribute: Attribute) -> bool:
    """Return whether effects read the index of an attribute's value, not its number."""
    if isinstance(attribute, Categorical):
        return True
    return isinstance(attribute, Integer | Levels) and attribute.n_values <= MAX_TABLE
