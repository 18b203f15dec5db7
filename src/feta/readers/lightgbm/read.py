"""Reader of LightGBM's tree ensembles: text files, boosters and wrappers."""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np

from feta.arrays import Matrix
from feta.errors import NetworkError, SchemaError
from feta.io.regular_file import read_bytes
from feta.readers.lightgbm.columns import bind_features
from feta.readers.lightgbm.model import LightgbmModel, parse_model
from feta.readers.lightgbm.objective import classifier_objective, find_objective, score_factor
from feta.readers.lightgbm.text import parse_text
from feta.readers.trees.boosted import BoostedTrees
from feta.readers.trees.features import Value
from feta.readers.trees.source_table import CHECKED_ROWS, SourceTable, check_bits
from feta.scorer.forest.forest import Forest
from feta.scorer.forest.summation import Summation
from feta.space.feature_space import FeatureSpace
from feta.space.sampling import draw_people

# Only the exact types: a subclass may decide differently.
BOOSTER = "lightgbm.basic.Booster"
WRAPPERS = (
    "lightgbm.sklearn.LGBMClassifier",
    "lightgbm.sklearn.LGBMRegressor",
    "lightgbm.sklearn.LGBMRanker",
)


def read_lightgbm(
    source: Any,  # noqa: ANN401 - a path, or an object of a library that may not be installed
    space: FeatureSpace,
    *,
    iterations: int | None = None,
    categories: Mapping[str, Sequence[Value]] | None = None,
) -> Forest:
    """Read a tree ensemble of LightGBM that reads the columns of a space directly.

    The score is the raw score (`raw_score=True`): log-odds of binary, the logarithm of the
    prediction for poisson, gamma and tweedie, one score per class for multiclass. With a setting
    `sigmoid` other than 1, which must be a power of two, it is the raw score times `sigmoid`. With
    boosting="rf" it is the mean over the trees, which LightGBM's predictions use, although its
    raw score is the sum.

    LightGBM replaces numbers within ±1e-35 by 0 and compares float64 numbers by x ≤ t. Each node
    states what is missing: nothing (NaN counts as 0), NaN, or NaN and 0. Missing categories go
    right. The exact score is the real sum of the stored numbers; the replay adds them in float64,
    tree by tree.

    With two classes, LGBMClassifier takes the first of the largest probabilities, in float64. So a
    score of 0 is below the threshold (`equality`), and tiny positive scores may be as well
    (`sigmoid`).

    Parameters
    ----------
    source
        A text file that `save_model` wrote, a Booster, LGBMClassifier, LGBMRegressor or LGBMRanker.
        The library is needed for objects only; their scores are then compared bit for bit.
    space
        The columns, by the names of the features; in order if the model has no names. Features
        with native categories must be categories of the space.
    iterations
        The number of boosting rounds. By default, all that the file contains: LightGBM saves, and
        predicts with, those up to the best iteration.
    categories
        The categories of columns in the order of their codes, if the file does not state which
        column they belong to. Without categories, integers are the codes themselves.

    Raises
    ------
    NetworkError
        If the file is damaged, or the model is not supported; the message names the place.
    SchemaError
        If the columns of the space do not fit the model.
    """
    if isinstance(source, str | Path):
        try:
            model = parse_model(parse_text(read_bytes(Path(source))))
            return _forest(model, space, iterations, categories or {})[0]
        except NetworkError as error:
            raise NetworkError(f"{source}: {error}") from None
    model, booster = read_object(source)
    forest, table = _forest(model, space, iterations, categories or {})
    people = draw_people(space, np.random.default_rng(0), CHECKED_ROWS)
    expected = source_scores(booster, model, table, people, iterations=iterations)
    check_bits(forest, people, expected / forest.denominator, "LightGBM")
    return forest


def read_object(source: Any) -> tuple[LightgbmModel, Any]:  # noqa: ANN401 - an object of any kind
    """Return the stored model of an object, and its booster."""
    booster = _booster(source)
    model = parse_model(parse_text(booster.model_to_string().encode()))
    if not hasattr(source, "classes_"):
        return model, booster
    objective = classifier_objective(model.objective, model.n_outputs, len(source.classes_))
    return replace(model, objective=objective), booster


def _booster(source: Any) -> Any:  # noqa: ANN401 - objects of the library
    """Return the booster of a supported object; refuse all others."""
    kind = f"{type(source).__module__}.{type(source).__qualname__}"
    name = type(source).__name__
    if kind not in (BOOSTER, *WRAPPERS):
        raise NetworkError(
            f"the source is not supported: got {name}; expected a path, a Booster, LGBMClassifier, "
            "LGBMRegressor or LGBMRanker"
        )
    if kind != BOOSTER and not source.__sklearn_is_fitted__():
        raise NetworkError(f"{name} is not fitted; call its fit before it is read")
    booster = source if kind == BOOSTER else source.booster_
    if booster.params.get("pred_early_stop"):
        raise NetworkError(
            f"{name} stops predictions early: got pred_early_stop=True; expected all trees to be "
            "used; remove the setting"
        )
    return booster


def _forest(
    model: LightgbmModel,
    space: FeatureSpace,
    iterations: int | None,
    categories: Mapping[str, Sequence[Value]],
) -> tuple[Forest, SourceTable]:
    """Return the ensemble, and the columns that the model reads."""
    boosted = boosted_trees(model, iterations)
    attributes, features, lists = bind_features(model, space, categories)
    names = tuple(attribute.name for attribute in attributes)
    table = SourceTable(names, attributes, features, lists)
    return boosted.forest(features, space.width), table


def source_table(model: LightgbmModel, space: FeatureSpace) -> SourceTable:
    """Return the columns that the model reads."""
    attributes, features, lists = bind_features(model, space, {})
    return SourceTable(
        tuple(attribute.name for attribute in attributes), attributes, features, lists
    )


def boosted_trees(model: LightgbmModel, iterations: int | None = None) -> BoostedTrees:
    """Return the trees that a prediction uses."""
    objective = find_objective(model.objective, model.n_outputs)
    rounds = _count_rounds(model, iterations)
    n_trees = rounds * model.n_outputs
    base = np.zeros(model.n_outputs)
    two = objective.several and model.n_outputs == 2  # noqa: PLR2004 - the first wins a tie
    return BoostedTrees(
        model.trees[:n_trees],
        np.arange(n_trees) % model.n_outputs,
        np.full(n_trees, score_factor(model.objective)),
        base,
        Summation("LightGBM", "float64", base, divide=model.average),
        rounds if model.average else 1,
        "below" if two else objective.equality,
        objective.prediction,
    )


def _count_rounds(model: LightgbmModel, iterations: int | None) -> int:
    available = model.n_iterations
    rounds = available if iterations is None else iterations
    if not 0 < rounds <= available:
        raise SchemaError(f"invalid number of iterations: got {rounds}; expected 1 to {available}")
    return rounds


def source_scores(
    booster: Any,  # noqa: ANN401 - an object of the library
    model: LightgbmModel,
    table: SourceTable,
    people: Matrix,
    *,
    iterations: int | None = None,
) -> Matrix:
    """Return the raw scores that the library itself predicts, times its setting `sigmoid`."""
    rows = table.frame(people) if model.categories else table.matrix(people)
    raw = booster.predict(rows, raw_score=True, num_iteration=iterations)
    return np.asarray(raw) * score_factor(model.objective)
