"""Linear equations fitted to a table by least squares, with diagnostics.

A fit describes the table. Whether its effects are causes is an assumption that no table proves.
"""

import itertools
import re
from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

import numpy as np

from feta.arrays import Flags, Matrix, Vector
from feta.errors import SchemaError, unknown_choice
from feta.relation.consequences import Consequences
from feta.relation.effects import step_of
from feta.space.attribute import Attribute, Categorical, Derived, Integer, Levels, Real
from feta.space.feature_space import FeatureSpace

# Digits of a slope in the schema: more than its standard error supports.
DIGITS = 6

# Fewer people per unknown number give an arbitrary fit.
PEOPLE_PER_NUMBER = 10

# People whose counterparts are counted.
MAX_COUNTED = 500


@dataclass(frozen=True, slots=True)
class FittedEquation:
    """One equation as a file stores it, and how well it describes the table."""

    entry: dict[str, Any]
    diagnostics: tuple[str, ...]


def read_graph(text: str, space: FeatureSpace) -> dict[str, list[str]]:
    """Return the parents of each descendant of a text such as "sex -> income; age -> income"."""
    names = [a.name for a in space.attributes if not isinstance(a, Derived)]
    parents: dict[str, list[str]] = {}
    for part in filter(None, (one.strip() for one in re.split(r"[;\n]", text))):
        ends = [end.strip() for end in part.split("->")]
        if len(ends) < 2 or not all(ends):  # noqa: PLR2004 - a cause and a consequence
            raise SchemaError(
                f'invalid arrow: got {part!r}; expected causes and consequences, such as "sex -> '
                'income; age -> income"'
            )
        for causes, consequences in itertools.pairwise(ends):
            for cause in causes.split(","):
                for consequence in consequences.split(","):
                    _add(parents, cause.strip(), consequence.strip(), names)
    if not parents:
        raise SchemaError('no arrows: expected some, such as "sex -> income; age -> income"')
    return parents


def _add(parents: dict[str, list[str]], cause: str, consequence: str, names: list[str]) -> None:
    for name in (cause, consequence):
        if name not in names:
            raise SchemaError(f"unknown column in the graph: {unknown_choice(name, names)}")
    known = parents.setdefault(consequence, [])
    if cause not in known:
        known.append(cause)


def fit_equations(
    space: FeatureSpace, people: Matrix, parents: dict[str, list[str]]
) -> list[FittedEquation]:
    """Fit one linear equation per descendant, with the person's noise as the residual.

    Raise for a graph that is no causal model of the space, before anything is fitted.
    """
    plain = [{"column": name, **_zero(space, causes)} for name, causes in parents.items()]
    Consequences.of(space, *plain)
    return [_fit(space, people, name, causes) for name, causes in parents.items()]


def _zero(space: FeatureSpace, causes: Sequence[str]) -> dict[str, Any]:
    entry: dict[str, Any] = {}
    for cause in causes:
        attribute = space.attribute(cause)
        if isinstance(attribute, Categorical):
            value = str(attribute.values[-1])
            entry.setdefault("shifts", {})[cause] = {value: 0.0}
        else:
            entry.setdefault("slopes", {})[cause] = 0.0
    return entry


def _fit(space: FeatureSpace, people: Matrix, name: str, causes: Sequence[str]) -> FittedEquation:
    attribute = space.attribute(name)
    assert isinstance(attribute, Integer | Levels)  # `Consequences` accepts no others
    present = np.ones(len(people), dtype=bool)
    for one in (attribute, *(space.attribute(cause) for cause in causes)):
        present &= ~_missing(space, one, people)
    rows = people[present]
    columns: list[Vector] = [np.ones(len(rows))]
    labels: list[tuple[str, str | None]] = []
    unknown: list[str] = []
    for cause in causes:
        parent = space.attribute(cause)
        codes = rows[:, space.columns_of(parent)]
        if isinstance(parent, Categorical):
            for index, value in enumerate(parent.values[1:], start=1):
                if not codes[:, index].any():
                    unknown.append(f"{cause} = {value}: nobody has it, so no effect is known")
                else:
                    columns.append(codes[:, index])
                    labels.append((cause, str(value)))
        else:
            columns.append(codes[:, 0])
            labels.append((cause, None))
    needed = PEOPLE_PER_NUMBER * len(columns)
    if len(rows) < needed:
        raise SchemaError(
            f"too few people to fit {name!r}: got {len(rows)} without missing cells; expected at "
            f"least {needed}; give more people, or fewer causes"
        )
    matrix, target = np.stack(columns, axis=1), rows[:, space.columns_of(attribute)][:, 0]
    # Centered columns keep the digits of large numbers.
    means = matrix[:, 1:].mean(axis=0)
    centered = matrix[:, 1:] - means
    if np.linalg.matrix_rank(centered) < centered.shape[1]:
        raise SchemaError(
            f"the causes of {name!r} determine each other in this table: got "
            f"{', '.join(causes)}; expected columns that vary independently; remove one"
        )
    effects = np.linalg.lstsq(centered, target - target.mean(), rcond=None)[0]
    residuals = target - target.mean() - centered @ effects
    errors = _standard_errors(centered, residuals)
    step = step_of(attribute)
    entry: dict[str, Any] = {"column": name}
    for (cause, known), effect in zip(labels, effects.tolist(), strict=True):
        if known is None:
            entry.setdefault("slopes", {})[cause] = float(f"{effect:.{DIGITS}g}")
        else:
            rounded = float(step * round(Fraction(effect) / step))
            entry.setdefault("shifts", {}).setdefault(cause, {})[known] = rounded
    lines = _diagnostics(name, target, residuals, len(people) - len(rows))
    lines += [
        f"{cause if value is None else f'{cause} = {value}'}: {effect:.4g} ± {1.96 * error:.2g}"
        for (cause, value), effect, error in zip(labels, effects, errors, strict=True)
    ]
    lines += unknown
    lines += _spreads(space, rows, causes, residuals)
    return FittedEquation(entry, tuple(lines))


def _missing(space: FeatureSpace, attribute: Attribute, people: Matrix) -> Flags:
    codes = people[:, space.columns_of(attribute)]
    if isinstance(attribute, Derived) or not attribute.missing:
        return np.zeros(len(people), dtype=bool)
    return np.asarray(codes[:, -1] == 1.0)


def _standard_errors(matrix: Matrix, residuals: Vector) -> Vector:
    """Return standard errors that hold for groups of different spread (HC1)."""
    n_people, n_effects = matrix.shape
    inverse = np.linalg.inv(matrix.T @ matrix)
    weighted = matrix * residuals[:, None]
    middle = weighted.T @ weighted * (n_people / max(1, n_people - n_effects - 1))
    return np.asarray(np.sqrt(np.diag(inverse @ middle @ inverse)))


def _diagnostics(name: str, target: Vector, residuals: Vector, left_out: int) -> list[str]:
    total = float(((target - target.mean()) ** 2).sum())
    explained = 1 - float((residuals**2).sum()) / total if total else 0.0
    without = f", {left_out:,} with missing cells left out" if left_out else ""
    return [
        f"{name}: {len(target):,} people{without}; the causes explain {explained:.1%} of the "
        f"variance; noise of standard deviation {residuals.std():.4g}"
    ]


def _spreads(
    space: FeatureSpace, rows: Matrix, causes: Sequence[str], residuals: Vector
) -> list[str]:
    """State where noise is not the same in all groups, which additive noise assumes."""
    lines = []
    for cause in causes:
        attribute = space.attribute(cause)
        codes = rows[:, space.columns_of(attribute)]
        groups: list[Flags]
        if isinstance(attribute, Categorical):
            groups = [codes[:, index] == 1.0 for index in range(len(attribute.values))]
        else:
            assert isinstance(attribute, Integer | Levels | Real)
            middle = np.median(codes[:, 0])
            groups = [codes[:, 0] <= middle, codes[:, 0] > middle]
        spreads = [residuals[group].std() for group in groups if group.sum() >= PEOPLE_PER_NUMBER]
        if len(spreads) > 1:
            ratio = max(spreads) / min(spreads) if min(spreads) > 0 else np.inf
            doubt = "; additive noise is doubtful" if ratio > MAX_RATIO else ""
            lines.append(
                f"noise by {cause}: the widest group has {ratio:.2f} times the spread{doubt}"
            )
    return lines


# Groups whose noise differs by more do not have the same noise.
MAX_RATIO = 1.25


def share_left_out(relation: Consequences, people: Matrix) -> float:
    """Return the share of counterparts that would leave their domain, for some people."""
    chosen = people[np.linspace(0, len(people) - 1, min(MAX_COUNTED, len(people))).astype(int)]
    exist = sum(relation.count(person) for person in chosen)
    return 1 - exist / (len(chosen) * relation.size)
