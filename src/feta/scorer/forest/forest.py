"""Tree ensembles as scorers: (base + Σ leaf values) / denominator, exact.

The stored numbers define the model: its scores are the exact real sums. The rounding of the
library that trained it is replayed in its own order (`summation.py`).
"""

import hashlib
import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np

from feta.arrays import Array, Matrix, Vector, frozen
from feta.errors import NetworkError, SchemaError
from feta.relation.protocol import Relation
from feta.rounding import LARGEST_ACTIVATION, SOURCES, Arithmetic
from feta.scorer.forest.evaluation import ExactLeaves, ForestRows
from feta.scorer.forest.leaf_search import LeafSearch
from feta.scorer.forest.real_sections import real_sections
from feta.scorer.forest.restricted import RestrictedForest
from feta.scorer.forest.summation import Summation
from feta.scorer.forest.trees import LEAF, Numbers, OneHot, Trees
from feta.scorer.protocol import (
    Link,
    Provenance,
    Restricted,
    Side,
    StoredScorer,
    link_of_difference,
)
from feta.scorer.raw_columns import check_unscaled
from feta.scorer.restricted_rows import RestrictedRows
from feta.space.attribute import Attribute
from feta.space.feature_space import FeatureSpace


@dataclass(frozen=True, eq=False)
class Forest:
    """A tree ensemble; leaf values already contain learning rates and tree weights."""

    trees: Trees
    base: Vector  # (sums,)
    summation: Summation
    width: int  # the number of columns
    directions: Matrix = None  # type: ignore[assignment]  # (outputs, sums): −1, 0 and 1
    denominator: int = 1  # the mean of n trees is their sum over n
    equality: Side | None = None  # the side of ties in the source, if known
    link: Link = "identity"  # what the library's own prediction is, in terms of the score
    provenance: Provenance = "proved"

    def __post_init__(self) -> None:
        object.__setattr__(self, "base", frozen(self.base))
        directions = np.eye(self.trees.sums) if self.directions is None else self.directions
        object.__setattr__(self, "directions", frozen(directions))
        if self.base.shape != (self.trees.sums,) or not np.isfinite(self.base).all():
            raise NetworkError(
                f"invalid base of an ensemble: got {self.base!r}; expected {self.trees.sums} "
                "finite numbers"
            )
        beyond = [column for column in self.trees.columns() if not 0 <= column < self.width]
        if beyond:
            raise NetworkError(
                f"invalid columns of trees: got {beyond}; expected columns below {self.width}"
            )
        if self.denominator < 1:
            raise NetworkError(
                f"invalid denominator of an ensemble: got {self.denominator}; expected 1 or more"
            )

    @property
    def outputs(self) -> int:
        """The number of scores."""
        return len(self.directions)

    @property
    def description(self) -> str:
        """The library, the trees and their leaves."""
        trees = self.trees
        n_leaves = int((trees.kind == LEAF).sum())
        return f"Trees of {self.summation.library}: {len(trees.roots):,} trees, {n_leaves:,} leaves"

    @property
    def output_limits(self) -> tuple[Vector, Vector]:
        """No bounds: sums of leaf values are limited only by all of them."""
        return np.full(self.outputs, -np.inf), np.full(self.outputs, np.inf)

    @property
    def source(self) -> str:
        """The number format of the user's runtime."""
        return self.summation.format

    @property
    def arithmetic(self) -> Arithmetic:
        """The arithmetic of the user's runtime, whose rounding may change decisions."""
        return SOURCES[self.summation.format]

    @property
    def cost(self) -> int:
        """The number of leaf values per person."""
        return len(self.trees.roots) * self.trees.sums

    @cached_property
    def exact_leaves(self) -> ExactLeaves:
        """The leaf values and the base as integers of one scale."""
        return ExactLeaves.of(self.trees, self.base)

    @cached_property
    def leaf_search(self) -> LeafSearch:
        """The search for the leaves that people reach."""
        return LeafSearch(self.trees, self.width)

    @cached_property
    def fingerprint(self) -> str:
        """A sha256 of all numbers that affect decisions, and of the facts about the source."""
        arrays = self.stored().arrays
        facts: list[object] = [self.equality, self.link, self.provenance]
        facts += self.summation.facts
        facts += [[name, list(array.shape), str(array.dtype)] for name, array in arrays.items()]
        digest = hashlib.sha256(json.dumps(facts).encode())
        for array in arrays.values():
            digest.update(np.ascontiguousarray(array).tobytes())
        return digest.hexdigest()

    def stored(self) -> StoredScorer:
        """Return all numbers that define the score.

        `domainK.first` and `.width` describe one-hot columns, `domainK.column`, `.numbers` and
        `.flag` a finite number. `Trees` documents the other arrays.
        """
        trees = self.trees
        names = ("roots", "kind", "source", "cut", "flag", "missing_left", "start", "left", "right")
        arrays: dict[str, Array] = {name: getattr(trees, name) for name in names}
        arrays |= {"values": trees.values, "members": trees.members, "base": self.base}
        arrays["directions"] = self.directions
        arrays["denominator"] = np.array(self.denominator)
        for index, domain in enumerate(trees.domains):
            match domain:
                case OneHot(first=first, width=width):
                    arrays[f"domain{index}.first"] = np.array(first)
                    arrays[f"domain{index}.width"] = np.array(width)
                case Numbers(column=column, numbers=numbers, flag=flag):
                    arrays[f"domain{index}.column"] = np.array(column)
                    arrays[f"domain{index}.numbers"] = numbers
                    arrays[f"domain{index}.flag"] = np.array(flag)
        return StoredScorer("tree ensemble", arrays)

    def reads(self, attribute: Attribute, space: FeatureSpace) -> bool:
        """Return whether a score can depend on the columns of an attribute."""
        columns = space.columns_of(attribute)
        return bool(self.trees.columns() & set(range(columns.start, columns.stop)))

    def __call__(self, people: Matrix) -> Matrix:
        """Compute scores as the library does, (people, outputs), for display only."""
        return ForestRows(self, people).replayed()

    def difference(self) -> "Forest":
        """Return the ensemble whose score is the second output minus the first."""
        directions = np.array([[-1.0, 1.0]]) @ self.directions
        return replace(self, directions=directions, link=link_of_difference(self.link))

    def output(self, index: int) -> "Forest":
        """Return the ensemble of one output."""
        return replace(self, directions=self.directions[index : index + 1], equality=None)

    def with_link(self, link: Link) -> "Forest":
        """Return the same scores, of which the library's prediction is another function."""
        return replace(self, link=link)

    def unscaled(
        self, space: FeatureSpace, centers: Sequence[float], scales: Sequence[float]
    ) -> "Forest":
        """Return the ensemble itself: it reads raw columns."""
        check_unscaled(space, centers, scales)
        return self

    def over(self, space: FeatureSpace) -> "Forest":
        """Return the ensemble for the columns of a space; raise if its sums could overflow."""
        if self.width != space.width:
            raise SchemaError(
                f"wrong number of columns of the ensemble: got {self.width}; expected "
                f"{space.width}, the columns of the space"
            )
        largest = float(np.abs(self.trees.values).sum() + np.abs(self.base).sum())
        if not largest < LARGEST_ACTIVATION:
            raise NetworkError(
                f"scores of the ensemble could overflow: got values up to {largest:.3g}; expected "
                f"less than {LARGEST_ACTIVATION:g}; rescale the target"
            )
        return self

    def obstacle(self, column: int, low: float, high: float) -> str:
        """Return why a column must not leave the limits of the space; empty if it may."""
        del low, high
        listed = any(
            isinstance(domain, Numbers) and domain.column == column for domain in self.trees.domains
        )
        return "the model reads this column by a table of values" if listed else ""

    def widened(self, limits: Mapping[int, tuple[float, float]], magnitudes: Vector) -> "Forest":
        """Return the ensemble itself: its sums do not depend on the limits."""
        del limits, magnitudes
        return self

    def points(self, people: Matrix) -> ForestRows:
        """Return people as points, one per row."""
        return ForestRows(self, people)

    def restrict(self, relation: Relation) -> Restricted:
        """Return the ensemble on people's counterparts."""
        whole = relation.enclosing
        if whole is not None and whole.finite:
            return RestrictedForest(self, whole)
        sections = real_sections(self.trees, relation) if relation.complete else None
        return RestrictedRows(self, relation, sections)
