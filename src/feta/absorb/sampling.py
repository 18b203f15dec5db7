"""Dependence of features on columns, estimated by sampling where the code is unknown.

Sampling is not a proof; such models have the provenance "sampled".
"""

from dataclasses import replace
from itertools import combinations

import numpy as np

from feta.absorb.evaluation import Evaluation
from feta.absorb.feature import Feature, example, interaction_message, nonlinear_message
from feta.arrays import Flags, Matrix, Vector
from feta.errors import NetworkError
from feta.space.attribute import Integer, Levels, Real
from feta.space.sampling import draw_people

# Points at which the linearity of a real column is checked.
LINE_POINTS = 129

# A finite column with more values must be linear, like a real one.
MAX_LISTED = 2**12

# Joint changes sampled for each pair of columns, and people drawn for the final comparison.
SAMPLED_PAIRS = 16
SAMPLED_PEOPLE = 4096

UNKNOWN_STEP = "a step whose code FETA does not know"


def resolve_opaque(
    features: list[Feature], evaluation: Evaluation, tolerance: float
) -> list[Feature]:
    """Determine the columns of opaque features by sampling; reject features that are not additive.

    `tolerance` bounds their differences, relative to 1 + their size.
    """
    opaque = np.array([feature.opaque for feature in features])
    values = evaluation.features(evaluation.probes())[:, opaque]
    if not np.isfinite(values).all():
        raise NetworkError(
            f"{UNKNOWN_STEP} gives numbers that are not finite; fill missing values before it"
        )
    scale = tolerance * (1 + np.abs(values).max(axis=0))
    changes: dict[str, Flags] = {}
    is_linear: dict[str, bool] = {}
    for name in evaluation.roots:
        changes[name], is_linear[name] = _vary_column(name, evaluation, opaque, scale)
    used = [name for name, changed in changes.items() if changed.any()]
    _check_pairs(used, evaluation, opaque, scale)
    resolved = list(features)
    for index, column in enumerate(np.flatnonzero(opaque)):
        names = frozenset(name for name, changed in changes.items() if changed[index])
        linear = frozenset(name for name in names if is_linear[name])
        # Nothing was sampled beyond the limits: there, any column may matter.
        local = features[column].columns | names
        resolved[column] = replace(
            features[column], linear=linear, tabular=names - linear, local=local
        )
    return resolved


def _vary_column(
    name: str, evaluation: Evaluation, opaque: Flags, scale: Vector
) -> tuple[Flags, bool]:
    """Vary one column; return which features change, and whether it must enter linearly."""
    attribute = evaluation.space.attribute(name)
    base = evaluation.features(evaluation.base[None, :])[:, opaque]
    wide = isinstance(attribute, Real) or (
        isinstance(attribute, Integer | Levels) and attribute.n_values > MAX_LISTED
    )
    codes = evaluation.sample_codes(name, LINE_POINTS if wide else MAX_LISTED)
    values = evaluation.features(evaluation.vary(name, codes))[:, opaque]
    changed = (values != base).any(axis=0)
    if wide and changed.any():
        present = codes[:, -1] == 0 if codes.shape[1] > 1 else np.ones(len(codes), dtype=bool)
        _check_line(attribute, codes[present, 0], values[present], scale)
    return changed, wide


def _check_line(attribute: object, numbers: Vector, values: Matrix, scale: Vector) -> None:
    """Reject values that are not a linear function of a column."""
    assert isinstance(attribute, Real | Integer | Levels)
    width = numbers[-1] - numbers[0] or 1.0
    share = ((numbers - numbers[0]) / width)[:, None]
    line = values[0] + share * (values[-1] - values[0])
    if (np.abs(values - line) > scale).any():
        line_example = example(attribute) if isinstance(attribute, Real) else ""
        raise NetworkError(nonlinear_message(UNKNOWN_STEP, attribute.name, line_example))


def _check_pairs(names: list[str], evaluation: Evaluation, opaque: Flags, scale: Vector) -> None:
    """Change each two columns jointly and separately; reject changes that do not add up."""
    rng = np.random.default_rng(0)
    drawn = draw_people(evaluation.space, rng, SAMPLED_PAIRS)
    base = evaluation.features(evaluation.base[None, :])[:, opaque]
    for one, other in combinations(names, 2):
        rows = [np.repeat(evaluation.base[None, :], SAMPLED_PAIRS, axis=0) for _ in range(3)]
        for index, columns in enumerate(((one,), (other,), (one, other))):
            for name in columns:
                codes = drawn[:, evaluation.space.columns_of(evaluation.space.attribute(name))]
                evaluation.set_column(rows[index], name, codes)
        first, second, both = np.split(evaluation.features(np.concatenate(rows))[:, opaque], 3)
        if (np.abs(both - first - second + base) > 4 * scale).any():
            raise NetworkError(interaction_message(UNKNOWN_STEP, f"{one!r} and {other!r}"))
