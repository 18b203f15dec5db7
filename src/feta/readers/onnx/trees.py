"""Reader of ONNX's tree operators (ai.onnx.ml, versions 1 to 5)."""

from dataclasses import dataclass, replace
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from feta.arrays import Array, Matrix, Vector
from feta.errors import FetaError, NetworkError
from feta.readers.onnx.load import decode
from feta.readers.onnx.tensor_data import DOUBLE
from feta.readers.onnx.trees_check import check_runtime, run_sums
from feta.readers.onnx.trees_columns import bind_columns, check_integers
from feta.readers.onnx.trees_graph import TreeGraph, read_graph, tree_operators
from feta.readers.onnx.trees_nodes import (
    AGGREGATES,
    TRANSFORMS,
    Options,
    StoredTrees,
    Weights,
    read_listed,
    read_version5,
)
from feta.readers.trees.builder import TreesBuilder
from feta.readers.trees.source_table import SourceTable
from feta.scorer.forest.forest import Forest
from feta.scorer.forest.summation import Summation
from feta.scorer.protocol import Link, Side
from feta.space.feature_space import FeatureSpace

if TYPE_CHECKING:
    from collections.abc import Callable

    import onnx

# Votes and counts store the class index in int8.
MAX_CLASSES = 127

# The version since which files may use TreeEnsemble; later ones may change its meaning.
NEWEST_VERSION = 5


@dataclass(frozen=True, slots=True, eq=False)
class Sums:
    """Which sums of weights are the scores, in the order in which the runtime adds them."""

    n_sums: int
    weights: Weights
    constants: tuple[Vector, ...] = ()  # added after all trees, one after the other
    equality: Side | None = None
    link: Link = "identity"
    mean: bool = False

    def complemented(self) -> "Sums":
        """Return the two sums 1 − s and s in place of s."""
        own = self.weights
        both = Weights(
            np.tile(own.tree, 2),
            np.tile(own.node, 2),
            np.repeat([0, 1], len(own.tree)),
            np.concatenate([-own.weight, own.weight]),
        )
        constants = [np.array([-base[0], base[0]]) for base in self.constants]
        return Sums(2, both, (*constants, np.array([1.0, 0.0])), "below", link="share")


def has_trees(path: str | Path) -> bool:
    """Return whether an ONNX file contains a tree operator."""
    return bool(tree_operators(decode(Path(path))))


def read_onnx_trees(source: "str | Path | onnx.ModelProto", space: FeatureSpace) -> Forest:
    """Read a tree ensemble from an ONNX file or model.

    Supported are one TreeEnsembleClassifier, TreeEnsembleRegressor or TreeEnsemble; before it,
    Cast, Concat, Reshape, Flatten, Identity, Gather and ArrayFeatureExtractor on columns; after it,
    operators that keep its results, ZipMap and Normalizer. Scores are the sums of weights, before
    the operator's transformation. Thresholds and weights are those of the file, usually float32,
    although the trained model may have been more precise.

    Decisions are those of the label that onnxruntime computes. With two classes and one set of
    weights s, that is s > 0; if no weight is negative, it is s > 0.5, and the scores are 1 − s and
    s. Files for which its label and its probabilities disagree are refused. The replay adds in
    onnxruntime's order with one thread; several threads may add trees in another order. If
    onnxruntime is installed, sums are compared bit for bit, and labels.

    Parameters
    ----------
    source
        A .onnx file, or a model in memory.
    space
        The columns: by the names of the graph's inputs if each is one column, else in order. If a
        graph has one column per column of an encoded person, it reads encoded people.

    Raises
    ------
    NetworkError
        If the file is damaged, or the graph is not supported; the message names the place.
    SchemaError
        If the columns of the space do not fit the graph.
    """
    place = f"{source}: " if isinstance(source, str | Path) else ""
    try:
        with np.errstate(all="ignore"):
            model = decode(Path(source)) if isinstance(source, str | Path) else source
            return _read_model(model, space)
    except NetworkError as error:
        raise NetworkError(f"{place}{error}") from None
    except (FetaError, ImportError, OSError):
        raise
    except Exception as error:  # untrusted input may hold anything
        raise NetworkError(
            f"{place}the trees cannot be read ({type(error).__name__}: {error}); export them again"
        ) from error


def onnx_tree_sums(source: str | Path, space: FeatureSpace) -> "Callable[[Matrix], Array] | None":
    """Return a function that scores encoded people in onnxruntime; None if it is not installed."""
    if find_spec("onnxruntime") is None:
        return None
    model = decode(Path(source))
    graph = read_graph(model)
    columns = bind_columns(graph, space)

    def sums(people: Matrix) -> Array:
        return run_sums(model, graph, SourceTable((), (), columns, ()).matrix(people))

    return sums


def _read_model(model: "onnx.ModelProto", space: FeatureSpace) -> Forest:
    graph = read_graph(model)
    if not 1 <= graph.version <= NEWEST_VERSION:
        raise NetworkError(
            f"the version of ai.onnx.ml is not supported: got {graph.version}; expected 1 to "
            f"{NEWEST_VERSION}"
        )
    options = Options.of(graph.node)
    classifier = graph.node.op_type == "TreeEnsembleClassifier"
    if graph.node.op_type == "TreeEnsemble":
        stored = read_version5(options)
    else:
        stored = read_listed(options, "class" if classifier else "target")
    sums = _classes(options, stored) if classifier else _targets(options, stored)
    columns = bind_columns(graph, space)
    features = [columns[column.source] for column in graph.read.columns]
    check_integers(stored.integer_features(), features, space)
    forest = _forest(graph, stored, sums, TreesBuilder(features, sums.n_sums), space.width)
    check_runtime(model, graph, forest, columns, space)
    return forest


def _forest(
    graph: TreeGraph, stored: StoredTrees, sums: Sums, builder: TreesBuilder, width: int
) -> Forest:
    # With double numbers, onnxruntime converts thresholds and weights and adds in double.
    wide = graph.read.kind == DOUBLE
    singles = np.array([column.single or not wide for column in graph.read.columns])
    for tree in stored.with_values(sums.weights, n_sums=sums.n_sums, singles=singles):
        builder.add(tree)
    for constants in sums.constants:
        if constants.any():
            builder.add_constants(constants)
    start = np.zeros(sums.n_sums)
    return Forest(
        builder.trees(),
        start,
        Summation(
            "onnxruntime with one thread",
            "float64" if wide else "float32",
            start,
            divide=sums.mean,
        ),
        width,
        denominator=len(stored.trees) if sums.mean else 1,
        equality=sums.equality,
        link=sums.link,
    )


def _transform(options: Options) -> str:
    transform = options.choice("post_transform", "NONE", TRANSFORMS)
    if transform not in TRANSFORMS or transform == "PROBIT":
        raise NetworkError(
            f"the transformation of scores is not supported: got {transform!r}; expected NONE, "
            "LOGISTIC, SOFTMAX or SOFTMAX_ZERO"
        )
    return transform


def _check_weights(stored: StoredTrees, n_targets: int) -> None:
    targets = stored.weights.target
    if not ((targets >= 0) & (targets < n_targets)).all():
        raise NetworkError(f"a weight has an unknown target: expected 0 to {n_targets - 1}")
    if not np.isfinite(stored.weights.weight).all():
        raise NetworkError("invalid value of a leaf: got NaN or infinity; expected numbers")


def _constants(options: Options, expected: tuple[int, ...]) -> tuple[Vector, ...]:
    base = options.numbers("base_values")
    if len(base) not in expected or not np.isfinite(base).all():
        counts = " or ".join(map(str, expected))
        raise NetworkError(
            f"the base values are not supported: got {base.tolist()[:8]}; expected {counts} "
            "finite numbers"
        )
    return (base,) if len(base) else ()


def _targets(options: Options, stored: StoredTrees) -> Sums:
    """Return the sums of an operator without labels."""
    n_targets = int(options.values.get("n_targets", 0))
    if not 1 <= n_targets <= MAX_CLASSES:
        raise NetworkError(
            f"unsupported number of targets: got {n_targets}; expected 1 to {MAX_CLASSES}"
        )
    _check_weights(stored, n_targets)
    transform = _transform(options)
    if transform == "SOFTMAX_ZERO" or (n_targets == 1 and transform != "NONE"):
        raise NetworkError(
            f"runtimes disagree about {transform} of {n_targets} targets: expected NONE"
        )
    aggregate = options.choice("aggregate_function", "SUM", AGGREGATES)
    if aggregate not in ("SUM", "AVERAGE"):
        raise NetworkError(
            f"the aggregate of trees is not supported: got {aggregate!r}; expected SUM or AVERAGE"
        )
    constants = _constants(options, (0, n_targets))
    mean = aggregate == "AVERAGE"
    if mean and any(base.any() for base in constants):
        raise NetworkError("base values after a mean are not supported: expected none, or SUM")
    two = n_targets == 2  # noqa: PLR2004 - the first wins a tie
    return Sums(
        n_targets,
        stored.weights,
        () if mean else constants,
        "below" if two and transform != "NONE" else None,
        link="identity" if transform == "NONE" else "logit",
        mean=mean,
    )


def _classes(options: Options, stored: StoredTrees) -> Sums:
    """Return the sums of a classifier."""
    labels: list[Any] = options.texts("classlabels_strings")
    labels = labels or options.integers("classlabels_int64s").tolist()
    if not 2 <= len(labels) <= MAX_CLASSES or len(set(labels)) != len(labels):  # noqa: PLR2004 - a choice
        raise NetworkError(
            f"unsupported classes: got {len(labels)}; expected 2 to {MAX_CLASSES} different labels"
        )
    _check_weights(stored, len(labels))
    transform = _transform(options)
    if len(labels) == 2:  # noqa: PLR2004 - onnxruntime's binary case
        listed = set(stored.weights.target.tolist())
        if len(listed) == 1:
            return _one_set(options, stored, transform, listed.pop())
        return _two_sets(options, stored, transform, labels)
    constants = _constants(options, (0, len(labels)))
    if not constants:
        _check_every_class(stored, len(labels))
    return Sums(
        len(labels), stored.weights, constants, link="identity" if transform == "NONE" else "logit"
    )


def _check_every_class(stored: StoredTrees, n_classes: int) -> None:
    """Refuse classes that may have no score for a person: they cannot win, unlike a score of 0."""
    weights = stored.weights
    sizes = np.array([(tree.left == -1).sum() for tree in stored.trees])
    counts = np.zeros((len(sizes), n_classes), dtype=np.int64)
    np.add.at(counts, (weights.tree, weights.target), 1)
    lacking = np.flatnonzero(~(counts == sizes[:, None]).any(axis=0))
    if lacking.size:
        raise NetworkError(
            f"class {int(lacking[0])} may have no score: expected a tree whose leaves all have a "
            "weight for it, or base values"
        )


def _one_set(options: Options, stored: StoredTrees, transform: str, target: int) -> Sums:
    """Return the score of two classes with one set of weights, as onnxruntime labels people."""
    constants = _constants(options, (0, 1) if target == 0 else (0,))
    weights = replace(stored.weights, target=np.zeros_like(stored.weights.target))
    positive = bool((weights.weight >= 0).all())
    # For class 0 onnxruntime ignores a softmax; for class 1 it compares the score with 0.
    sigmoid = transform == "LOGISTIC" or (target == 1 and transform != "NONE")
    if (transform == "SOFTMAX_ZERO" and target == 1) or (positive and sigmoid):
        raise NetworkError(
            f"onnxruntime's labels and probabilities disagree: got {transform} and weights of one "
            "class that are never negative; expected NONE; export it with weights of all classes"
        )
    sums = Sums(1, weights, constants, "below", link="logit" if sigmoid else "identity")
    return sums.complemented() if positive else sums


def _two_sets(options: Options, stored: StoredTrees, transform: str, labels: list[Any]) -> Sums:
    """Return the score of two classes with weights each; the label is that of the second's sign."""
    own = stored.weights
    order = np.lexsort((own.target, own.node, own.tree))
    pairs = own.weight[order]
    opposite = len(pairs) % 2 == 0 and np.array_equal(pairs[::2], -pairs[1::2])
    alternating = bool((own.target[order] == np.arange(len(order)) % 2).all())
    if not (opposite and alternating) or len(options.numbers("base_values")):
        raise NetworkError(
            "onnxruntime labels by the second of two scores, not by the largest: expected weights "
            "of one class, or opposite weights of both without base values"
        )
    if labels != [0, 1] and not isinstance(labels[0], str):
        raise NetworkError(f"onnxruntime labels people 0 or 1: got the classes {labels}")
    if transform == "SOFTMAX_ZERO":
        raise NetworkError("runtimes disagree about SOFTMAX_ZERO of two classes: expected SOFTMAX")
    if transform == "SOFTMAX":
        return Sums(2, own, (), "below", link="logit")
    second = own.target == 1
    count = int(second.sum())
    weights = Weights(
        own.tree[second], own.node[second], np.zeros(count, dtype=np.int64), own.weight[second]
    )
    return Sums(1, weights, (), "below", link="logit" if transform == "LOGISTIC" else "identity")
