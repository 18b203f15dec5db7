"""Random relations, each with the related people that an oracle lists itself, from records.

Nothing of `feta.relation` and `feta.conditions` is used to decide who is related: constraints are
functions of records, in fractions, with three truth values.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

import numpy as np

from feta.arrays import Vector
from feta.model import Model
from feta.space.attribute import Attribute, Categorical, Derived, Integer, Levels, Real
from feta.space.feature_space import FeatureSpace
from tests import oracle

Record = Mapping[str, Any]
Naive = Callable[[Record], bool | None]
Entry = dict[str, Any]

COMPARE: dict[str, Callable[[Fraction], bool]] = {
    "<": lambda x: x < 0,
    "<=": lambda x: x <= 0,
    "==": lambda x: x == 0,
    "!=": lambda x: x != 0,
    ">=": lambda x: x >= 0,
    ">": lambda x: x > 0,
}


@dataclass(frozen=True)
class NaiveConstraints:
    """Constraints as functions; a person is plausible unless one of them is false."""

    naive: tuple[Naive, ...]
    all_if_none: bool = False

    def plausible(self, space: FeatureSpace, person: Vector) -> bool:
        """Return whether a person violates no constraint."""
        record = record_of(space, person)
        return all(check(record) is not False for check in self.naive)

    def counterparts(self, model: Model, person: Vector) -> list[tuple[int, Vector]]:
        """List the plausible people with the same other columns, with their assignment ids."""
        everybody = list(enumerate(oracle.counterparts(model, person)))
        rows = [(n, row) for n, row in everybody if self.plausible(model.space, row)]
        return everybody if self.all_if_none and not rows else rows


def similar_rows(model: Model, person: Vector, distances: Mapping[str, float]) -> list[Vector]:
    """List everybody who differs in sensitive columns, and in others by these distances."""
    names = [*(a.name for a in model.space.sensitive), *distances]
    wider = Model(model.space.with_sensitive(names), model.network, model.rule)
    own = record_of(model.space, person)
    return [
        row
        for row in oracle.counterparts(wider, person)
        if all(
            abs(Fraction(record_of(model.space, row)[name]) - Fraction(own[name])) <= Fraction(size)
            for name, size in distances.items()
        )
    ]


def record_of(space: FeatureSpace, person: Vector) -> dict[str, Any]:
    """Read a row of numbers, column by column."""
    record: dict[str, Any] = {}
    start = 0
    for attribute in space.attributes:
        if isinstance(attribute, Derived):
            bands = person[start : start + len(attribute.bands)].tolist()
            record[attribute.name] = attribute.bands[bands.index(1.0)][0]
            start += len(attribute.bands)
        elif isinstance(attribute, Categorical):
            values = oracle.values_of(attribute)
            record[attribute.name] = values[person[start : start + len(values)].tolist().index(1)]
            start += len(values)
        else:
            absent = attribute.missing and person[start + 1] == 1
            record[attribute.name] = None if absent else float(person[start])
            start += 1 + attribute.missing
    return record


def negation(value: bool | None) -> bool | None:
    return None if value is None else not value


def conjunction(first: bool | None, second: bool | None) -> bool | None:
    if first is False or second is False:
        return False
    return None if first is None or second is None else True


def random_constraints(
    rng: np.random.Generator, space: FeatureSpace
) -> tuple[list[Entry], NaiveConstraints]:
    """Draw one to three constraints as entries of a file, and as functions."""
    entries, naive = [], []
    for _ in range(rng.integers(1, 4)):
        entry, check = [_condition, _condition, _forbidden, _support][rng.integers(4)](rng, space)
        entries.append(entry)
        naive.append(check)
    return entries, NaiveConstraints(tuple(naive), bool(rng.random() < 0.3))


def _condition(rng: np.random.Generator, space: FeatureSpace) -> tuple[Entry, Naive]:
    text, check = _atom(rng, space)
    kind = rng.integers(4)
    if kind:
        other, second = _atom(rng, space)
        text, check = {
            1: (f"{text} => {other}", lambda r, p=check, q=second: negation(
                conjunction(p(r), negation(q(r))))),
            2: (f"({text}) or not ({other})", lambda r, p=check, q=second: negation(
                conjunction(negation(p(r)), q(r)))),
            3: (f"{text} and {other}", lambda r, p=check, q=second: conjunction(p(r), q(r))),
        }[int(kind)]  # fmt: skip
    return {"condition": text}, check


def _atom(rng: np.random.Generator, space: FeatureSpace) -> tuple[str, Naive]:
    kinds = [_comparison, _comparison, _membership, _missing]
    return kinds[rng.integers(4)](rng, space)


def _numbers(space: FeatureSpace) -> list[Attribute]:
    return [a for a in space.attributes if isinstance(a, Integer | Levels | Real)]


def _comparison(rng: np.random.Generator, space: FeatureSpace) -> tuple[str, Naive]:
    numbers = _numbers(space)
    chosen = [numbers[k] for k in rng.permutation(len(numbers))[: rng.integers(1, 3)]]
    factors = [float(rng.choice([1.0, -1.0, 2.0, 0.1, 0.5])) for _ in chosen]
    if chosen[0].name == "income":
        edge = float(rng.integers(-64, 65) / 8)
    else:
        edge = float(rng.choice([20.0, 21.0, 22.0, 22.5, 0.5, 2.1]))
    operator = str(rng.choice(list(COMPARE)))
    text = " + ".join(f"{k!r} * {a.name}" for k, a in zip(factors, chosen, strict=True))

    def check(record: Record) -> bool | None:
        values = [record[a.name] for a in chosen]
        if any(value is None for value in values):
            return None
        products = [Fraction(k) * Fraction(x) for k, x in zip(factors, values, strict=True)]
        return COMPARE[operator](sum(products, -Fraction(edge)))

    return f"{text} {operator} {edge!r}", check


def _membership(rng: np.random.Generator, space: FeatureSpace) -> tuple[str, Naive]:
    categories = [a for a in space.attributes if isinstance(a, Categorical | Derived)]
    if not categories:
        return _comparison(rng, space)
    attribute = categories[rng.integers(len(categories))]
    values = _values(attribute)
    chosen = [values[k] for k in rng.permutation(len(values))[: rng.integers(1, 3)]]

    def check(record: Record) -> bool | None:
        value = record[attribute.name]
        return None if value is None else value in chosen

    return f"{attribute.name} in ({', '.join(map(repr, chosen))})", check


def _missing(rng: np.random.Generator, space: FeatureSpace) -> tuple[str, Naive]:
    plain = [a for a in space.attributes if not isinstance(a, Derived)]
    name = plain[rng.integers(len(plain))].name
    return f"{name} is not missing", lambda record: record[name] is not None


def _values(attribute: Categorical | Derived) -> list[Any]:
    if isinstance(attribute, Derived):
        return [label for label, _, _ in attribute.bands]
    return list(attribute.values)


def _row(rng: np.random.Generator, names: list[Attribute]) -> tuple[Entry, Naive]:
    """Draw values of these columns: a category, several of them, a number or a band."""
    cells: Entry = {}
    for attribute in names:
        if isinstance(attribute, Categorical | Derived):
            values = _values(attribute)
            chosen = [values[k] for k in rng.permutation(len(values))[: rng.integers(1, 3)]]
            cells[attribute.name] = chosen if len(chosen) > 1 else chosen[0]
        else:
            low = float(rng.integers(18, 24)) if attribute.name == "age" else -1.0
            cells[attribute.name] = [low, low + float(rng.integers(0, 4))]

    def check(record: Record) -> bool | None:
        result: bool | None = True
        for name, cell in cells.items():
            value = record[name]
            if value is None:
                matches = None
            elif isinstance(value, str):
                matches = value in (cell if isinstance(cell, list) else [cell])
            else:
                matches = Fraction(cell[0]) <= Fraction(value) <= Fraction(cell[1])
            result = conjunction(result, matches)
        return result

    return cells, check


def _some(rng: np.random.Generator, space: FeatureSpace) -> list[Attribute]:
    attributes = list(space.attributes)
    return [attributes[k] for k in rng.permutation(len(attributes))[: rng.integers(1, 3)]]


def _forbidden(rng: np.random.Generator, space: FeatureSpace) -> tuple[Entry, Naive]:
    cells, check = _row(rng, _some(rng, space))
    return {"forbidden": cells}, lambda record: negation(check(record))


def _support(rng: np.random.Generator, space: FeatureSpace) -> tuple[Entry, Naive]:
    names = _some(rng, space)
    rows = [_row(rng, names) for _ in range(rng.integers(1, 4))]

    def check(record: Record) -> bool | None:
        result: bool | None = False
        for _, matches in rows:
            result = negation(conjunction(negation(result), negation(matches(record))))
        return result

    entry = {"support": [a.name for a in names], "seen": [cells for cells, _ in rows], "least": 3}
    return entry, check
