"""Reader of CatBoost's tree ensembles: files in JSON, .cbm files, and objects of the library."""

import tempfile
from pathlib import Path
from typing import Any

import numpy as np

from feta.arrays import Matrix
from feta.errors import NetworkError, SchemaError
from feta.io.regular_file import read_bytes
from feta.readers.catboost.columns import bind_features
from feta.readers.catboost.model import CatboostModel, parse_model
from feta.readers.catboost.objective import find_loss
from feta.readers.trees.builder import TreesBuilder
from feta.readers.trees.document import parse_json
from feta.readers.trees.features import ListedFeature
from feta.readers.trees.source_table import CHECKED_ROWS, SourceTable, check_bits
from feta.scorer.forest.forest import Forest
from feta.scorer.forest.summation import Summation
from feta.space.attribute import Categorical
from feta.space.feature_space import FeatureSpace
from feta.space.sampling import draw_people

# Only the exact types: a subclass may decide differently.
KINDS = (
    "catboost.core.CatBoost",
    "catboost.core.CatBoostClassifier",
    "catboost.core.CatBoostRegressor",
    "catboost.core.CatBoostRanker",
)

# The first bytes of CatBoost's own format.
BINARY = b"CBM1"


def is_catboost(source: object) -> bool:
    """Return whether an object is a supported model of CatBoost."""
    return f"{type(source).__module__}.{type(source).__qualname__}" in KINDS


def read_catboost(
    source: Any,  # noqa: ANN401 - a path, or an object of a library that may not be installed
    space: FeatureSpace,
    *,
    iterations: int | None = None,
) -> Forest:
    """Read a tree ensemble of CatBoost that reads the columns of a space directly.

    The score is the raw score (prediction_type="RawFormulaVal"): log-odds of Logloss, the logarithm
    of the prediction for Poisson and Tweedie, one score per class for MultiClass. CatBoost rounds
    numbers to float32 and tests x > border. Missing numbers are below or above all borders, as each
    feature states. Categories are known by hashes of their texts. A test names one category, or
    compares statistics of the column's categories with a border. Statistics of combinations of
    columns are refused.

    The exact score is the real sum of the stored numbers. The replay adds them in float64, tree by
    tree, and the bias at the end.

    With two classes, CatBoostClassifier decides raw > 0. So a score of 0 is below the threshold
    (`equality`); probabilities of tiny positive scores may round to 0.5 (`link`).

    Parameters
    ----------
    source
        A .json or .cbm file, a CatBoost, CatBoostClassifier, CatBoostRegressor or CatBoostRanker.
        The library is needed for .cbm files and objects; their scores are then compared bit for
        bit.
    space
        The columns, by the names of the features; in order if the model has no names. Categories
        of the model must be categories of the space, with texts or integers and none missing, as
        CatBoost requires.
    iterations
        The number of trees. By default, all that the model contains: with an early stop, CatBoost
        keeps those up to the best iteration.

    Raises
    ------
    NetworkError
        If the file is damaged, or the model is not supported; the message names the place.
    SchemaError
        If the columns of the space do not fit the model.
    """
    if isinstance(source, str | Path):
        try:
            content = read_bytes(Path(source))
            if content.startswith(BINARY):
                return _read_object(_load_binary(Path(source)), space, iterations)
            return _forest(_parse(content), space, iterations)[0]
        except NetworkError as error:
            raise NetworkError(f"{source}: {error}") from None
    name = type(source).__name__
    if not is_catboost(source):
        raise NetworkError(
            f"the source is not supported: got {name}; expected a path, a CatBoost, "
            "CatBoostClassifier, CatBoostRegressor or CatBoostRanker"
        )
    if not source.is_fitted():
        raise NetworkError(f"{name} is not fitted; call its fit before it is read")
    return _read_object(source, space, iterations)


def _parse(content: bytes) -> CatboostModel:
    if not content[:64].lstrip().startswith(b"{"):
        raise NetworkError(
            f"the file is not a model of CatBoost: got the first bytes {content[:8]!r}; "
            'expected JSON or .cbm; save it with save_model(path, format="json")'
        )
    return parse_model(parse_json(content))


def _load_binary(path: Path) -> Any:  # noqa: ANN401 - an object of the library
    try:
        import catboost  # noqa: PLC0415 - only for its own format
    except ImportError:
        raise NetworkError(
            "a .cbm file needs the library: got no catboost; install it, or save the model with "
            'save_model(path, format="json")'
        ) from None
    try:
        return catboost.CatBoost().load_model(str(path), format="cbm")
    except catboost.CatBoostError as error:
        reason = " ".join(str(error).split())[:200]
        raise NetworkError(f"CatBoost cannot load the file: {reason}; save it again") from None


def _read_object(source: Any, space: FeatureSpace, iterations: int | None) -> Forest:  # noqa: ANN401 - an object of the library
    """Read an object through its JSON, and compare the scores."""
    import catboost  # noqa: PLC0415 - only for objects of the library

    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "model.json"
        try:
            source.save_model(str(path), format="json")
        except catboost.CatBoostError as error:
            reason = " ".join(str(error).split())[:200]
            raise NetworkError(f"CatBoost cannot convert the model to JSON: {reason}") from None
        model = _parse(read_bytes(path))
    forest, table = _forest(model, space, iterations)
    people = draw_people(space, np.random.default_rng(0), CHECKED_ROWS)
    expected = source_scores(source, model, table, people, iterations=iterations)
    check_bits(forest, people, expected, f"CatBoost {catboost.__version__}")
    return forest


def _forest(
    model: CatboostModel, space: FeatureSpace, iterations: int | None
) -> tuple[Forest, SourceTable]:
    """Return the ensemble, and the columns that the model reads."""
    n_outputs = len(model.bias)
    loss = find_loss(model.loss, n_outputs)
    attributes, features = bind_features(model, space)
    builder = TreesBuilder(features, n_outputs)
    for tree in model.trees[: _count_trees(model, iterations)]:
        builder.add(tree, factor=model.scale)
    if model.bias.any():
        builder.add_constants(model.bias)
    base = np.zeros(n_outputs)
    two = loss.several and n_outputs == 2  # noqa: PLR2004 - the first wins a tie
    forest = Forest(
        builder.trees(),
        base,
        Summation("CatBoost", "float64", base),
        space.width,
        equality="below" if two else loss.equality,
        link=loss.link,
    )
    names = model.names or tuple(str(index) for index in range(model.n_features))
    return forest, SourceTable(names, attributes, features, [() for _ in features])


def _count_trees(model: CatboostModel, iterations: int | None) -> int:
    available = len(model.trees)
    if not available:
        raise NetworkError("an ensemble needs at least one tree: got none; train it first")
    count = available if iterations is None else iterations
    if not 0 < count <= available:
        raise SchemaError(f"invalid number of iterations: got {count}; expected 1 to {available}")
    return count


def source_scores(
    source: Any,  # noqa: ANN401 - an object of the library
    model: CatboostModel,
    table: SourceTable,
    people: Matrix,
    *,
    iterations: int | None = None,
) -> Matrix:
    """Return the raw scores that the library itself predicts."""
    import catboost  # noqa: PLC0415 - only for objects of the library

    frame = table.frame(people)
    for index in model.categories:
        attribute, feature = table.attributes[index], table.features[index]
        assert isinstance(attribute, Categorical)
        assert isinstance(feature, ListedFeature)
        values = [attribute.all_values[at] for at in feature.domain.indices(people)]
        frame[table.names[index]] = np.array(values, dtype=object)
    pool = catboost.Pool(frame, cat_features=sorted(model.categories))
    return raw_scores(source, pool, iterations)


def raw_scores(source: Any, rows: Any, iterations: int | None = None) -> Matrix:  # noqa: ANN401 - objects of the library
    """Return the raw scores of a frame or pool; `CatBoostRanker.predict` has no prediction_type."""
    import catboost  # noqa: PLC0415 - only for objects of the library

    scores = catboost.CatBoost.predict(
        source, rows, prediction_type="RawFormulaVal", ntree_end=iterations or 0
    )
    return np.asarray(scores, dtype=np.float64)
