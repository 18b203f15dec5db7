"""The parts of a CatBoost document that its scores depend on."""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from feta.arrays import Array, Vector
from feta.errors import NetworkError, unknown_choice
from feta.readers.catboost.statistics import AboveBorder, Statistic, read_statistics
from feta.readers.catboost.trees import Test, read_trees
from feta.readers.trees.builder import SourceTree
from feta.readers.trees.document import Place, parse_json
from feta.readers.trees.float32_cut import float32_cuts
from feta.readers.trees.splits import Bands, Codes

# Votes and counts store the class index in int8.
MAX_CLASSES = 127

# No table of people has more columns; a file that claims more is meant to exhaust memory.
MAX_FEATURES = 2**16

# The probability that a classifier compares with, if it is not 0.5.
THRESHOLD = "binclass_probability_threshold"

# Where a missing number goes: whether "above the border" counts as true.
MISSING_ABOVE = {"AsIs": False, "AsFalse": False, "AsTrue": True}


@dataclass(frozen=True, slots=True, eq=False)
class CategoryFeature:
    """A feature that the model reads as a category."""

    index: int  # in the order of columns
    values: tuple[int, ...]  # the categories that tests name, in the order of the tests
    statistics: tuple[Statistic, ...]


@dataclass(frozen=True, slots=True, eq=False)
class CatboostModel:
    """A model as it is stored."""

    names: tuple[str, ...]  # of the features; empty if they have none
    categories: dict[int, CategoryFeature]  # by the index of the feature
    n_features: int
    loss: str
    trees: tuple[SourceTree, ...]
    scale: float
    bias: Vector  # (outputs,)


def parse_model(document: Place) -> CatboostModel:
    """Return the model of a document; refuse what it computes in another way."""
    features = document.member("features_info")
    for kind in ("text_features", "embedding_features"):
        if features.has(kind) and features.member(kind).items():
            raise NetworkError(
                f"the model reads {kind.replace('_', ' ')}: expected numbers and categories only"
            )
    scale, bias = _scale_and_bias(document.member("scale_and_bias"))
    numbers, listed = (
        features.member(group).items() if features.has(group) else []
        for group in ("float_features", "categorical_features")
    )
    names = _read_names([*numbers, *listed])
    statistics = read_statistics(document, len(listed))
    categories = [_category(place, at, statistics) for at, place in enumerate(listed)]
    tests = [*_number_tests(numbers), *_category_tests(categories)]
    for statistic, borders in statistics:
        index = categories[statistic.category_feature].index
        tests += [
            Test(index, AboveBorder(statistic, border), border) for border in _finite(borders)
        ]
    return CatboostModel(
        names if any(names) else (),
        {category.index: category for category in categories},
        len(names),
        _loss(document),
        read_trees(document, tests, len(bias)),
        scale,
        bias,
    )


def _scale_and_bias(place: Place) -> tuple[float, Vector]:
    """Return the factor of all leaf values, and the constants added at the end."""
    parts = place.items()
    if len(parts) != 2:  # noqa: PLR2004 - scale and bias
        raise place.error("a scale and a list of biases")
    scale = parts[0].number()
    single = not isinstance(parts[1].value, list)  # older versions
    bias: Array = np.array([parts[1].number()]) if single else parts[1].doubles()
    if not np.isfinite([scale, *bias]).all() or not 1 <= len(bias) <= MAX_CLASSES:
        raise place.error(f"finite numbers for 1 to {MAX_CLASSES} outputs")
    # A power of two changes no digit, so sums remain those of CatBoost.
    if scale <= 0 or np.frexp(scale)[0] != 0.5:  # noqa: PLR2004 - a power of two
        raise NetworkError(
            f"the scale of the model is not supported: got {scale}; expected a power of two, such "
            "as the default 1; remove it with set_scale_and_bias"
        )
    return scale, bias


def _read_names(features: Sequence[Place]) -> tuple[str, ...]:
    """Return the names of all features in the order of columns."""
    names: dict[int, str] = {}
    for place in features:
        flat = place.member("flat_feature_index")
        if not 0 <= flat.integer() < MAX_FEATURES or flat.integer() in names:
            raise flat.error(f"different numbers from 0 to {MAX_FEATURES - 1}")
        name = place.member("feature_id").text() if place.has("feature_id") else ""
        names[flat.integer()] = name
    if sorted(names) != list(range(len(names))):
        raise NetworkError(
            "the model does not list all its features: got the positions "
            f"{sorted(names)[:12]}; expected all from 0 to {max(names)}; save the model again"
        )
    return tuple(names[index] for index in range(len(names)))


def _category(
    place: Place, at: int, statistics: Sequence[tuple[Statistic, Array]]
) -> CategoryFeature:
    values = place.member("values").integers() if place.has("values") else np.zeros(0, int)
    return CategoryFeature(
        place.member("flat_feature_index").integer(),
        tuple(values.tolist()),
        tuple(statistic for statistic, _ in statistics if statistic.category_feature == at),
    )


def _number_tests(numbers: Sequence[Place]) -> list[Test]:
    tests = []
    for place in numbers:
        treatment = "AsIs"
        if place.has("nan_value_treatment"):
            treatment = place.member("nan_value_treatment").text()
        if treatment not in MISSING_ABOVE:
            problem = unknown_choice(treatment, MISSING_ABOVE)
            raise NetworkError(f"unknown treatment of missing values: {problem}")
        index = place.member("flat_feature_index").integer()
        borders = np.array(_finite(place.member("borders").floats()), dtype=np.float32)
        # CatBoost rounds numbers to float32 and tests x > border; all others go left.
        with np.errstate(over="ignore"):
            cuts = float32_cuts(np.nextafter(borders, np.float32(np.inf)))
        missing_left = not MISSING_ABOVE[treatment]
        for border, cut in zip(borders.tolist(), cuts.tolist(), strict=True):
            tests.append(Test(index, Bands.cut(cut, missing_left=missing_left), border))
    return tests


def _category_tests(categories: Sequence[CategoryFeature]) -> list[Test]:
    """Return the tests of single categories: the one that is named goes right."""
    return [
        Test(
            category.index,
            Codes(np.array([value]), listed_left=False, missing_left=True),
            float(value),
        )
        for category in categories
        for value in category.values
    ]


def _finite(borders: Array) -> list[float]:
    if not np.isfinite(borders).all():
        raise NetworkError("invalid border: got NaN or infinity; expected numbers of float32")
    return [float(border) for border in borders]


def _loss(document: Place) -> str:
    """Return the name of the loss; a sum of models stores it in another place, as a text."""
    info = document.member("model_info")
    if info.has(THRESHOLD) and info.member(THRESHOLD).value not in ("0.5", 0.5):
        raise NetworkError(
            f"the model decides by its own probability: got {info.member(THRESHOLD).value!r}; "
            "expected 0.5; call set_probability_threshold(0.5) and write the probability in the "
            "schema"
        )
    loss = (_parsed(info.member("params")) if info.has("params") else info).member("loss_function")
    return _parsed(loss).member("type").text()


def _parsed(place: Place) -> Place:
    """Return an object, also if it is stored as a text."""
    if not isinstance(place.value, str):
        return place
    return Place(parse_json(place.value.encode()).value, place.where)
