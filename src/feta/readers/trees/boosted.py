"""Boosted trees as a library stores them, before they are bound to columns."""

from collections.abc import Sequence
from dataclasses import dataclass

from feta.arrays import Counts, Vector
from feta.readers.trees.builder import SourceTree, TreesBuilder
from feta.readers.trees.features import Feature
from feta.scorer.forest.forest import Forest
from feta.scorer.forest.summation import Summation
from feta.scorer.protocol import Link, Side


@dataclass(frozen=True, slots=True, eq=False)
class BoostedTrees:
    """The trees that a prediction uses, and how their values become scores."""

    trees: Sequence[SourceTree]
    outputs: Counts  # (trees,): the output that a tree adds to
    factors: Vector  # (trees,): leaf values are multiplied by these
    base: Vector  # (outputs,)
    summation: Summation
    denominator: int = 1
    equality: Side | None = None  # the side of ties in the source, if known
    link: Link = "identity"

    def forest(self, features: Sequence[Feature], width: int) -> Forest:
        """Return the ensemble; `features` are what its tests read, of `width` columns."""
        builder = TreesBuilder(features, len(self.base))
        for tree, output, factor in zip(self.trees, self.outputs, self.factors, strict=True):
            builder.add(tree, int(output), factor=float(factor))
        return Forest(
            builder.trees(),
            self.base,
            self.summation,
            width,
            denominator=self.denominator,
            equality=self.equality,
            link=self.link,
        )
