"""The parts of an XGBoost document that its scores depend on."""

from dataclasses import dataclass

import numpy as np

from feta.arrays import Array, Counts, Vector
from feta.errors import NetworkError, unknown_choice
from feta.readers.trees.builder import SourceTree
from feta.readers.trees.document import Place
from feta.readers.trees.float32_cut import float32_cuts
from feta.readers.trees.splits import Bands, Codes, Split
from feta.readers.xgboost.categories import StoredCategories, read_categories

# XGBoost stores categories in float32; from here on, neighbors would be equal.
MAX_CODE = 2**24 - 1

# What a wrapper writes into its file if it is a classifier.
CLASSIFIER = '"classifier"'

# Votes and counts store the class index in int8.
MAX_CLASSES = 127


@dataclass(frozen=True, slots=True, eq=False)
class XgboostModel:
    """A model as it is stored."""

    version: tuple[int, ...]
    names: tuple[str, ...]  # of the features; empty if they have none
    categories: tuple[StoredCategories, ...]  # per feature; empty if the model stores none
    categorical: frozenset[int]  # the features that are read as categories
    n_features: int
    objective: str
    base_score: Array  # float32, as stored: the link of the objective is not yet applied
    n_outputs: int
    trees: tuple[SourceTree, ...]
    outputs: Counts  # (trees,): the output that a tree adds to
    weights: Vector | None  # (trees,), of DART
    rounds: Counts  # the first tree of each boosting round, and the number of trees
    best_iteration: int | None
    from_wrapper: bool  # whether a scikit-learn wrapper saved it
    classifier: bool  # whether this wrapper decides between classes


def parse_model(document: Place) -> XgboostModel:
    """Return the model of a document; refuse what it computes in another way."""
    learner = document.member("learner")
    weights, model = _booster(learner.member("gradient_booster"))
    parameters = learner.member("learner_model_param")
    n_outputs = _check_outputs(parameters)
    n_features = parameters.member("num_feature").integer()
    trees = tuple(
        _tree(tree, f"tree {index}") for index, tree in enumerate(model.member("trees").items())
    )
    if weights is not None and len(weights) != len(trees):
        raise NetworkError(
            f"wrong number of weights of trees: got {len(weights)}; expected {len(trees)}"
        )
    attributes = learner.member("attributes") if learner.has("attributes") else Place({}, "")
    stopped = attributes.has("best_iteration")
    return XgboostModel(
        tuple(document.member("version").integers().tolist()),
        tuple(_texts(learner, "feature_names", n_features)),
        read_categories(model, n_features),
        _categorical(_texts(learner, "feature_types", n_features), trees),
        n_features,
        learner.member("objective").member("name").text(),
        _base_score(parameters, n_outputs),
        n_outputs,
        trees,
        _outputs(model, len(trees), n_outputs),
        weights,
        _rounds(model, len(trees), n_outputs),
        attributes.member("best_iteration").integer() if stopped else None,
        attributes.has("scikit_learn"),
        attributes.has("scikit_learn") and CLASSIFIER in attributes.member("scikit_learn").text(),
    )


def _outputs(model: Place, n_trees: int, n_outputs: int) -> Counts:
    """Return the output to which each tree adds."""
    outputs = model.member("tree_info").integers(n_trees)
    if ((outputs < 0) | (outputs >= n_outputs)).any():
        raise model.member("tree_info").error(f"outputs from 0 to {n_outputs - 1}")
    return outputs


def _texts(learner: Place, member: str, n_features: int) -> list[str]:
    """Return a text for each feature; none if the model does not store them."""
    texts = learner.member(member).texts() if learner.has(member) else []
    if texts and len(texts) != n_features:
        raise NetworkError(
            f"wrong length of {member}: got {len(texts)}; expected {n_features}, the features"
        )
    return texts


def _categorical(types: list[str], trees: tuple[SourceTree, ...]) -> frozenset[int]:
    """Return the features that are read as categories."""
    declared = {index for index, kind in enumerate(types) if kind == "c"}
    return frozenset(declared.union(*(tree.category_features for tree in trees)))


def _booster(booster: Place) -> tuple[Vector | None, Place]:
    """Return the weights of DART's trees, and the member with the trees."""
    name = booster.member("name").text()
    if name == "gblinear":
        raise NetworkError(
            "the booster is not supported: got gblinear, a linear model; expected gbtree or dart; "
            "train a linear model of scikit-learn instead"
        )
    if name not in ("gbtree", "dart"):
        raise NetworkError(f"unknown booster: {unknown_choice(name, ('gbtree', 'dart'))}")
    if name == "gbtree":
        return None, booster.member("model")
    weights = booster.member("weight_drop").floats()
    if not np.isfinite(weights).all():
        raise NetworkError("invalid weights of trees: got NaN or infinity; expected numbers")
    return weights.astype(np.float64), booster.member("gbtree").member("model")


def _check_outputs(parameters: Place) -> int:
    """Return the number of outputs; several targets are refused."""
    n_targets = parameters.member("num_target").integer() if parameters.has("num_target") else 1
    if n_targets > 1:
        raise NetworkError(
            f"the model has several targets: got {n_targets}; expected 1; "
            "train one model per target"
        )
    n_classes = parameters.member("num_class").integer()
    if not 0 <= n_classes <= MAX_CLASSES:
        raise NetworkError(
            f"unsupported number of classes: got {n_classes}; expected at most {MAX_CLASSES}"
        )
    return max(1, n_classes)


def _base_score(parameters: Place, n_outputs: int) -> Array:
    """Return the base score of each output: a list since version 3.1, one number before."""
    place = parameters.member("base_score")
    text = place.text().strip()
    parts = text[1:-1].split(",") if text.startswith("[") and text.endswith("]") else [text]
    try:
        numbers = np.array([float(part) for part in parts], dtype=np.float32)
    except (ValueError, OverflowError):
        raise place.error("numbers") from None
    if len(numbers) not in (1, n_outputs) or not np.isfinite(numbers).all():
        raise place.error(f"one finite number, or {n_outputs}")
    return np.broadcast_to(numbers, n_outputs).copy()


def _rounds(model: Place, n_trees: int, n_outputs: int) -> Counts:
    """Return the first tree of each boosting round; older files store only their size."""
    if model.has("iteration_indptr"):
        rounds = model.member("iteration_indptr").integers()
        if (
            not rounds.size
            or rounds[0] != 0
            or rounds[-1] != n_trees
            or (np.diff(rounds) < 0).any()
        ):
            raise NetworkError(
                f"invalid boosting rounds: got {rounds.tolist()[:12]}; "
                f"expected ascending numbers from 0 to {n_trees}, the number of trees"
            )
        return rounds
    settings = model.member("gbtree_model_param")
    parallel = settings.member("num_parallel_tree").integer() or 1
    size = parallel * n_outputs
    if n_trees % size:
        raise NetworkError(
            f"wrong number of trees: got {n_trees}; expected a multiple of {size}, one round"
        )
    return np.arange(0, n_trees + 1, size)


@dataclass(frozen=True, slots=True, eq=False)
class _Nodes:
    """The tests of the inner nodes of one tree."""

    cuts: Vector
    default_left: Array
    codes: dict[int, Counts]  # of the nodes that test a category: these codes go right

    def split(self, node: int) -> Split:
        """Return the test of a node."""
        missing_left = bool(self.default_left[node])
        if node in self.codes:
            return Codes(self.codes[node], listed_left=False, missing_left=missing_left)
        return Bands.cut(float(self.cuts[node]), missing_left=missing_left)


def _tree(place: Place, name: str) -> SourceTree:
    """Return one tree; the values of leaves are stored in place of thresholds."""
    try:
        return _checked_tree(place, name)
    except NetworkError as error:
        raise NetworkError(f"{name}: {error}" if name not in str(error) else str(error)) from None


def _checked_tree(place: Place, name: str) -> SourceTree:
    sizes = place.member("tree_param")
    n_nodes = sizes.member("num_nodes").integer()
    n_values = sizes.member("size_leaf_vector").integer() if sizes.has("size_leaf_vector") else 1
    if n_values > 1:
        raise NetworkError(
            f"its leaves have several values: got {n_values}; expected 1; "
            "train with multi_strategy='one_output_per_tree'"
        )
    left = place.member("left_children").integers(n_nodes)
    right = place.member("right_children").integers(n_nodes)
    conditions = place.member("split_conditions").floats(n_nodes)
    if not n_nodes:
        raise NetworkError("it has no nodes; save the model again")
    inner = left != -1
    if np.isnan(conditions[inner]).any():
        node = int(np.flatnonzero(inner & np.isnan(conditions))[0])
        raise NetworkError(f"node {node}: invalid threshold: got NaN; expected a number")
    kinds = np.zeros(n_nodes, dtype=bool)
    if place.has("split_type"):
        kinds = place.member("split_type").flags(n_nodes)
    nodes = _Nodes(
        float32_cuts(np.where(inner, conditions, np.float32(0))),
        place.member("default_left").flags(n_nodes),
        _codes(place, np.flatnonzero(kinds & inner)),
    )
    features = place.member("split_indices").integers(n_nodes)
    tested = frozenset(features[kinds & inner].tolist())
    values = conditions.astype(np.float64)
    return SourceTree(name, left, right, features, values, nodes.split, tested)


def _codes(place: Place, nodes: Counts) -> dict[int, Counts]:
    """Return the codes that go right at each node that tests a category."""
    if not nodes.size:
        return {}
    listed = place.member("categories").integers()
    owners = place.member("categories_nodes").integers()
    starts = place.member("categories_segments").integers(len(owners)).tolist()
    sizes = place.member("categories_sizes").integers(len(owners)).tolist()
    if ((listed < 0) | (listed > MAX_CODE)).any():
        raise place.member("categories").error(f"codes from 0 to {MAX_CODE}")
    codes: dict[int, Counts] = {}
    stop = 0
    for node, start, size in zip(owners.tolist(), starts, sizes, strict=True):
        if start != stop or size < 0 or start + size > len(listed):
            raise NetworkError(
                f"node {node}: invalid categories: got {size} from {start}; expected them after "
                f"those of other nodes, from {stop}, and within the {len(listed)} stored ones"
            )
        stop = start + size
        codes[node] = listed[start:stop]
    without = sorted(set(nodes.tolist()) - set(codes))
    if without:
        raise NetworkError(f"node {without[0]}: got a test of categories without its categories")
    return codes
