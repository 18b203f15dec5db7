"""Sampling: how features made by unknown code hang on the columns, as far as trying them out tells.

This is no proof, and models read this way are labelled so.
"""

from dataclasses import replace
from itertools import combinations

import numpy as np

from feta.absorb.evaluation import Evaluation
from feta.absorb.feature import Feature, example
from feta.arrays import Flags, Matrix, Vector
from feta.errors import NetworkError
from feta.space.attribute import Integer, Levels, Real
from feta.space.sampling import draw_people

# Points at which a real column's line is tried.
TRIED_POINTS = 129

# A finite column of more values is tried as a line, like a real one.
MAX_TRIED = 2**12

# Joint changes of each two columns that are tried, and people drawn at the end.
TRIED_PAIRS = 16
TRIED_PEOPLE = 4096


def sampled(features: list[Feature], evaluation: Evaluation, allowed: float) -> list[Feature]:
    """Find out which columns opaque features hang on, and refuse those that are not additive.

    `allowed` is how far off they may be, relative to 1 + their size.
    """
    opaque = np.array([one.opaque for one in features])
    values = evaluation.features(evaluation.probes())[:, opaque]
    if not np.isfinite(values).all():
        raise NetworkError(
            "a step whose code FETA does not know gives numbers that are not finite; fill missing values before it"
        )
    scale = allowed * (1 + np.abs(values).max(axis=0))
    moved: dict[str, Flags] = {}
    lines: dict[str, bool] = {}
    for name in evaluation.roots:
        moved[name], lines[name] = _tried(name, evaluation, opaque, scale)
    _check_pairs([name for name, one in moved.items() if one.any()], evaluation, opaque, scale)
    made = list(features)
    for index, column in enumerate(np.flatnonzero(opaque)):
        names = frozenset(name for name, one in moved.items() if one[index])
        straight = frozenset(name for name in names if lines[name])
        # Nothing was tried beyond the limits, not even whether a column matters there.
        local = features[column].columns | names
        made[column] = replace(
            features[column], lines=straight, tables=names - straight, local=local
        )
    return made


def _tried(name: str, evaluation: Evaluation, opaque: Flags, scale: Vector) -> tuple[Flags, bool]:
    """Vary one column: which features move, and whether the column must enter as a line."""
    attribute = evaluation.space.attribute(name)
    base = evaluation.features(evaluation.base[None, :])[:, opaque]
    wide = isinstance(attribute, Real) or (
        isinstance(attribute, Integer | Levels) and attribute.n_values > MAX_TRIED
    )
    codes = evaluation.some_codes(name, TRIED_POINTS if wide else MAX_TRIED)
    values = evaluation.features(evaluation.varied(name, codes))[:, opaque]
    moved = (values != base).any(axis=0)
    if wide and moved.any():
        present = codes[:, -1] == 0 if codes.shape[1] > 1 else np.ones(len(codes), dtype=bool)
        _check_line(attribute, codes[present, 0], values[present], scale)
    return moved, wide


def _check_line(attribute: object, numbers: Vector, values: Matrix, scale: Vector) -> None:
    assert isinstance(attribute, Real | Integer | Levels)
    width = numbers[-1] - numbers[0] or 1.0
    share = ((numbers - numbers[0]) / width)[:, None]
    line = values[0] + share * (values[-1] - values[0])
    if (np.abs(values - line) > scale).any():
        hint = f" ({example(attribute)})" if isinstance(attribute, Real) else ""
        raise NetworkError(
            f"a step whose code FETA does not know bends {attribute.name!r}, so its share is neither a slope nor a table; declare a step for it{hint}, which makes it finite, or scale it without bending"
        )


def _check_pairs(names: list[str], evaluation: Evaluation, opaque: Flags, scale: Vector) -> None:
    """Change each two columns together and apart; the changes must add up."""
    rng = np.random.default_rng(0)
    drawn = draw_people(evaluation.space, rng, TRIED_PAIRS)
    base = evaluation.features(evaluation.base[None, :])[:, opaque]
    for one, other in combinations(names, 2):
        rows = [np.repeat(evaluation.base[None, :], TRIED_PAIRS, axis=0) for _ in range(3)]
        for index, columns in enumerate(((one,), (other,), (one, other))):
            for name in columns:
                codes = drawn[:, evaluation.space.columns_of(evaluation.space.attribute(name))]
                evaluation.put(rows[index], name, codes)
        first, second, both = np.split(evaluation.features(np.concatenate(rows))[:, opaque], 3)
        if (np.abs(both - first - second + base) > 4 * scale).any():
            raise NetworkError(
                f"a step whose code FETA does not know makes an interaction of {one!r} and {other!r}, so no column's share can be told apart; leave the interaction out, or make one category of these columns"
            )
