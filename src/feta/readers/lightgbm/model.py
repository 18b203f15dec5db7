"""The parts of a LightGBM file that its scores depend on."""

from dataclasses import dataclass

import numpy as np

from feta.arrays import Array, Counts, Vector
from feta.errors import NetworkError, unknown_choice
from feta.readers.lightgbm.text import ModelText, Section
from feta.readers.trees.builder import SourceTree
from feta.readers.trees.features import Value
from feta.readers.trees.splits import Bands, Codes, Split

VERSIONS = ("v3", "v4")

# Votes and counts store the class index in int8.
MAX_CLASSES = 127

# Bits of a decision type: a category, missing numbers go left, and two bits for what is missing.
CATEGORY, DEFAULT_LEFT, MISSING_SHIFT = 1, 2, 2
MISSING_NONE, MISSING_ZERO, MISSING_NAN = 0, 1, 2

# Numbers up to this size count as 0: LightGBM's constant is a float32.
ZERO = float(np.float32(1e-35))
BELOW_ZERO = float(np.nextafter(-ZERO, -1))

BITS = 32  # of an element of a set of codes

# Larger codes overflow LightGBM's integers.
MAX_CODE = 2**31 - 1


@dataclass(frozen=True, slots=True, eq=False)
class LightgbmModel:
    """A model as it is stored."""

    names: tuple[str, ...]
    infos: tuple[str, ...]  # what the training knew of each feature: limits, codes, or "none"
    categorical: frozenset[int]  # the features that are read as categories
    categories: tuple[tuple[Value, ...], ...]  # of pandas columns, in order
    objective: tuple[str, ...]  # its name and settings
    n_outputs: int
    trees: tuple[SourceTree, ...]  # tree i adds to output i modulo the number of outputs
    average: bool  # whether scores are means over iterations

    @property
    def n_iterations(self) -> int:
        """The number of boosting rounds."""
        return len(self.trees) // self.n_outputs


def parse_model(text: ModelText) -> LightgbmModel:
    """Return the model of a file; refuse what it computes in another way."""
    header = text.header
    version = " ".join(header.words("version"))
    if version not in VERSIONS:
        raise NetworkError(
            f"unsupported version of the file: {unknown_choice(version, VERSIONS)}; "
            "save it with LightGBM 3 or 4"
        )
    names = header.words("feature_names")
    if len(names) != header.integer("max_feature_idx") + 1 or len(set(names)) != len(names):
        raise header.error("feature_names", "one name per feature, each once")
    infos = header.words("feature_infos")
    if len(infos) != len(names):
        raise header.error("feature_infos", f"{len(names)} words")
    n_outputs = header.integer("num_tree_per_iteration")
    if not 1 <= n_outputs <= MAX_CLASSES:
        raise header.error("num_tree_per_iteration", f"1 to {MAX_CLASSES}")
    trees = tuple(_tree(section) for section in text.trees)
    if len(trees) % n_outputs:
        raise NetworkError(
            f"wrong number of trees: got {len(trees)}; expected a multiple of {n_outputs}"
        )
    # Numbers have limits in brackets, categories have codes, constant columns have neither.
    declared = {i for i, info in enumerate(infos) if info[:1] != "[" and info != "none"}
    tested = (tree.category_features for tree in trees)
    return LightgbmModel(
        tuple(names),
        tuple(infos),
        frozenset(declared.union(*tested)),
        tuple(tuple(values) for values in text.categories),
        tuple(header.words("objective")) if "objective" in header.fields else (),
        n_outputs,
        trees,
        "average_output" in header.fields,
    )


@dataclass(frozen=True, slots=True, eq=False)
class _Nodes:
    """The tests of the inner nodes of one tree."""

    types: Counts
    thresholds: Vector
    codes: dict[int, Counts]  # of the nodes that test a category: the set of codes that go left

    def split(self, node: int) -> Split:
        """Return the test of a node."""
        if node in self.codes:
            return Codes(_unpacked(self.codes[node]), listed_left=True, missing_left=False)
        kind = int(self.types[node])
        default_left = bool(kind & DEFAULT_LEFT)
        threshold = float(self.thresholds[node])
        missing = kind >> MISSING_SHIFT
        if missing == MISSING_ZERO:
            return zero_split(threshold, default_left=default_left)
        if missing == MISSING_NONE:  # a missing number counts as 0
            default_left = threshold >= 0
        return Bands.cut(_cut(threshold), missing_left=default_left)


def _cut(threshold: float) -> float:
    """Return the largest number that goes left: LightGBM first replaces tiny numbers by 0."""
    if -ZERO <= threshold < ZERO:
        return ZERO if threshold >= 0 else BELOW_ZERO
    return threshold


def zero_split(threshold: float, *, default_left: bool) -> Bands:
    """Return the test x ≤ threshold if both missing numbers and 0 go to the default side."""
    edges = sorted({BELOW_ZERO, ZERO, threshold})
    left = [edge <= threshold for edge in edges]
    left[edges.index(ZERO)] = default_left
    if BELOW_ZERO < threshold < ZERO:  # the threshold is inside the band that counts as 0
        left[edges.index(threshold)] = default_left
    return Bands(tuple(edges), (*left, False), default_left)


def _tree(section: Section) -> SourceTree:
    """Return one tree; leaves become the nodes after the inner ones."""
    n_leaves = section.integer("num_leaves")
    if n_leaves < 1:
        raise section.error("num_leaves", "1 or more")
    if section.fields.get("is_linear", "0").strip() != "0":
        raise NetworkError(
            f"{section.name} is linear: got a linear model in each leaf; expected numbers; "
            "train with linear_tree=False"
        )
    n_inner = n_leaves - 1
    leaves = section.numbers("leaf_value", n_leaves)
    values = np.concatenate([np.zeros(n_inner), leaves])
    none = np.full(n_leaves, -1)
    if not n_inner:
        tested = _Nodes(none, values, {})
        return SourceTree(section.name, none, none, none, values, tested.split)
    left = _node_ids(section.integers("left_child", n_inner))
    right = _node_ids(section.integers("right_child", n_inner))
    types = section.integers("decision_type", n_inner)
    if ((types < 0) | (types >> MISSING_SHIFT > MISSING_NAN)).any():
        raise section.error("decision_type", "types from 0 to 11")
    thresholds = section.numbers("threshold", n_inner)
    features = section.integers("split_feature", n_inner)
    codes = _codes(section, np.flatnonzero(types & CATEGORY), thresholds)
    return SourceTree(
        section.name,
        np.concatenate([left, none]),
        np.concatenate([right, none]),
        np.concatenate([features, none]),
        values,
        _Nodes(types, thresholds, codes).split,
        frozenset(features[sorted(codes)].tolist()),
    )


def _node_ids(children: Counts) -> Array:
    """Return the nodes of children: leaf i, after the inner nodes, is written as −1 − i."""
    return np.where(children < 0, len(children) - 1 - children, children)


def _codes(section: Section, nodes: Counts, thresholds: Vector) -> dict[int, Counts]:
    """Return the set of codes that go left, for each node that tests a category."""
    n_sets = section.integer("num_cat")
    if not nodes.size:
        return {}
    used = thresholds[nodes].tolist()
    if n_sets != len(used) or sorted(used) != list(range(n_sets)):
        raise section.error("num_cat", "one set for each node that tests a category")
    bounds = section.integers("cat_boundaries", n_sets + 1)
    if bounds[0] != 0 or (np.diff(bounds) < 0).any():
        raise section.error("cat_boundaries", "ascending numbers from 0")
    parts = section.integers("cat_threshold", int(bounds[-1]))
    if ((parts < 0) | (parts >= 2**BITS)).any():
        raise section.error("cat_threshold", f"numbers of {BITS} bits")
    return {
        node: parts[bounds[int(index)] : bounds[int(index) + 1]]
        for node, index in zip(nodes.tolist(), used, strict=True)
    }


def _unpacked(words: Counts) -> Counts:
    """Return the codes of a set: bit b of word w stands for 32·w + b."""
    content = words.astype("<u4").tobytes()
    bits = np.unpackbits(np.frombuffer(content, dtype=np.uint8), bitorder="little")
    return np.flatnonzero(bits)
