"""Where unfairness lives: conditions, found on one half of the draws and measured on the other."""

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

from feta.arrays import Flags, Matrix
from feta.conditions.evaluate import Cells, cells_of
from feta.conditions.tokens import KEYWORDS
from feta.everybody.sequence import Interval, interval_of
from feta.everybody.where import Where
from feta.space.attribute import Derived, Value
from feta.space.feature_space import FeatureSpace

# Leaves of the tree, people in a leaf, and thresholds that are tried per column.
MOST_LEAVES = 6
FEWEST_PEOPLE = 50
QUANTILES = 32

# Fewer unfair people than this say little about where others are.
FEWEST_UNFAIR = 10


@dataclass(frozen=True, slots=True)
class Region:
    """A condition on shared columns, and how many people meet it and are treated unfairly there."""

    where: str  # as `--where` takes it
    path: tuple[str, ...]  # the conditions of the tree, from its root to this leaf
    people: int  # measured draws that meet it
    unfair: int
    drawn: int  # all measured draws
    drawn_unfair: int
    share_unfair: Interval  # among the people of the region

    @property
    def share_of_people(self) -> float:
        """The share of all measured draws that meet the condition."""
        return self.people / self.drawn

    @property
    def share_of_unfair(self) -> float:
        """The share of all unfair draws that meet the condition."""
        return self.unfair / self.drawn_unfair if self.drawn_unfair else 0.0


@dataclass(frozen=True, slots=True, eq=False)
class _Split:
    gain: float
    inside: Flags
    yes: str
    no: str


@dataclass(frozen=True, slots=True, eq=False)
class _Leaf:
    conditions: tuple[str, ...]
    rows: Flags


def regions_of(
    space: FeatureSpace, people: Matrix, unfair: Flags, *, alpha: float
) -> tuple[Region, ...]:
    """Return the leaves of the tree from left to right; none if too few people are unfair."""
    fit, rest = np.arange(len(people)) % 2 == 0, np.arange(len(people)) % 2 == 1
    if unfair[fit].sum() < FEWEST_UNFAIR:
        return ()
    leaves = _leaves(space, people[fit], unfair[fit])
    if len(leaves) == 1:
        return ()
    measured, found = people[rest], unfair[rest]
    result = []
    for leaf in leaves:
        text = " and ".join(_merged(leaf.conditions))
        inside = Where.of(text, space).holds(space, measured)
        n_people, n_unfair = int(inside.sum()), int((inside & found).sum())
        share = interval_of(n_people, n_unfair, n_unfair, alpha=alpha / len(leaves))
        counts = n_people, n_unfair, len(measured), int(found.sum())
        result.append(Region(text, leaf.conditions, *counts, share))
    return tuple(result)


def _leaves(space: FeatureSpace, people: Matrix, unfair: Flags) -> list[_Leaf]:
    """Grow a tree: each time the split that separates unfair people best."""
    columns = [
        (attribute.name, cells, isinstance(attribute, Derived))
        for attribute, cells in zip(space.attributes, cells_of(space, people).values(), strict=True)
        if not space.is_sensitive(attribute)
    ]
    leaves = [_Leaf((), np.ones(len(people), dtype=bool))]
    while len(leaves) < MOST_LEAVES:
        splits = [_best(columns, leaf.rows, unfair) for leaf in leaves]
        gains = [0.0 if split is None else split.gain for split in splits]
        best = int(np.argmax(gains))
        split, leaf = splits[best], leaves[best]
        if split is None or gains[best] <= 0:
            break
        leaves[best : best + 1] = [
            _Leaf((*leaf.conditions, split.yes), leaf.rows & split.inside),
            _Leaf((*leaf.conditions, split.no), leaf.rows & ~split.inside),
        ]
    return leaves


def _best(columns: list[tuple[str, Cells, bool]], rows: Flags, unfair: Flags) -> _Split | None:
    if not (rows & unfair).any():
        return None
    total, bad = int(rows.sum()), int((rows & unfair).sum())
    best: _Split | None = None
    for inside, yes, no in (one for column in columns for one in _splits(column, rows)):
        n_inside = int((rows & inside).sum())
        if min(n_inside, total - n_inside) < FEWEST_PEOPLE:
            continue
        n_bad = int((rows & inside & unfair).sum())
        gain = (
            _impurity(bad, total)
            - _impurity(n_bad, n_inside)
            - _impurity(bad - n_bad, total - n_inside)
        )
        # Noise gains about 1: a chi-squared number with one degree of freedom, over 2.
        if gain > 6.0 and (best is None or gain > best.gain):  # noqa: PLR2004 - as above
            best = _Split(gain, inside, yes, no)
    return best


def _impurity(bad: int, total: int) -> float:
    """Return the log-loss of a leaf that predicts its share."""
    if bad in (0, total):
        return 0.0
    share = bad / total
    return float(-bad * np.log(share) - (total - bad) * np.log(1 - share))


def _splits(column: tuple[str, Cells, bool], rows: Flags) -> Iterator[tuple[Flags, str, str]]:
    """Yield splits of a column: who is inside, and the two conditions."""
    name, cells, _ = column
    shown = _name(name)
    if cells.missing[rows].any():
        yield cells.missing, f"{shown} is missing", f"{shown} is not missing"
    if cells.values:
        for index, value in enumerate(cells.values):
            inside = (cells.numbers == index) & ~cells.missing
            other = f"{shown} != {_value(value)}"
            if cells.missing.any():
                other = f"({other} or {shown} is missing)"
            yield inside, f"{shown} == {_value(value)}", other
        return
    numbers = cells.numbers[rows & ~cells.missing]
    if not numbers.size:
        return
    cuts = np.unique(np.quantile(numbers, np.linspace(0, 1, QUANTILES + 1)[1:-1], method="lower"))
    for cut in cuts.tolist():
        inside = (cells.numbers <= cut) & ~cells.missing
        other = f"{shown} > {_number(cut)}"
        if cells.missing.any():
            other = f"({other} or {shown} is missing)"
        yield inside, f"{shown} <= {_number(cut)}", other


def _merged(conditions: tuple[str, ...]) -> list[str]:
    """Keep only the narrowest of several limits of one column on one side."""
    kept: dict[str, str] = {}
    for condition in conditions:
        simple = not condition.startswith("(") and (" <= " in condition or " > " in condition)
        key = condition.rsplit(" ", 1)[0] if simple else condition
        kept.pop(key, None)  # a later limit is narrower
        kept[key] = condition
    return list(kept.values())


def _name(name: str) -> str:
    plain = name.isidentifier() and name not in KEYWORDS
    return name if plain else "`" + name.replace("`", "``") + "`"


def _value(value: Value) -> str:
    if isinstance(value, bool):
        return "true" if value else "false"
    return "'" + value.replace("'", "''") + "'" if isinstance(value, str) else str(value)


def _number(number: float) -> str:
    return str(int(number)) if number == int(number) and abs(number) < 2**53 else repr(number)
