"""Counted models as scorers: every score is an answer of the user's own function."""

import hashlib
import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import ClassVar

import numpy as np

from feta.arrays import Matrix, Vector, frozen
from feta.errors import SchemaError
from feta.relation.protocol import Relation
from feta.rounding import FLOAT64, Arithmetic
from feta.scorer.counted.answers import RawAnswers
from feta.scorer.counted.evaluator import CHUNK, Evaluator
from feta.scorer.counted.points import CountedRestricted, CountedRows, enclosure
from feta.scorer.protocol import (
    Link,
    Provenance,
    Restricted,
    Side,
    StoredScorer,
    link_of_difference,
)
from feta.scorer.raw_columns import check_unscaled
from feta.space.attribute import Attribute
from feta.space.feature_space import FeatureSpace

# Engines pass 2^16 // cost counterparts at a time: one chunk.
COST = 2**16 // CHUNK


@dataclass(frozen=True, eq=False)
class Counted:
    """The user's function, evaluated on every counterpart: directions · answers + offsets.

    The float64 numbers that the function returns are exact numbers of this runtime. A function
    that returns labels has one score per class: 1 for the label and 0 for the others. Decisions
    are exact, but gaps mean nothing: `has_scores` is False.

    Nothing is proved about the function. "Fair" means that it was evaluated on every counterpart,
    repeatedly, in other batches and another order, with equal answers.
    """

    evaluator: Evaluator
    name: str  # of the function, for messages
    probes: Matrix  # some people, and the answers to them; they identify the function
    probed: RawAnswers
    directions: Matrix  # (outputs, answers)
    offsets: Vector  # (outputs,)
    classes: tuple[str, ...] = ()  # of a classifier; none for numbers
    equality: Side | None = None  # the side of ties in the source, if known
    has_scores: bool = True  # whether gaps mean something
    link: Link = "identity"  # a share if the answers are probabilities
    exact_only: bool = False  # whether answers in doubt are an error instead of intervals
    version: str = ""  # of the model, stated by the user

    arithmetic: ClassVar[Arithmetic] = FLOAT64
    source: ClassVar[str] = "float64"
    provenance: ClassVar[Provenance] = "counted"
    cost: ClassVar[int] = COST

    def __post_init__(self) -> None:
        object.__setattr__(self, "directions", frozen(self.directions))
        object.__setattr__(self, "offsets", frozen(self.offsets))

    @property
    def width(self) -> int:
        """The number of columns."""
        return self.evaluator.calls.space.width

    @property
    def outputs(self) -> int:
        """The number of scores."""
        return len(self.directions)

    @property
    def description(self) -> str:
        """The function that is evaluated."""
        return f"Function: {self.name}; it is evaluated, not read"

    @property
    def output_limits(self) -> tuple[Vector, Vector]:
        """No bounds: nothing is known about the function."""
        return np.full(self.outputs, -np.inf), np.full(self.outputs, np.inf)

    @cached_property
    def plain(self) -> bool:
        """Whether the scores are the answers themselves."""
        identity = np.eye(self.directions.shape[1])
        return np.array_equal(self.directions, identity) and not self.offsets.any()

    @cached_property
    def fingerprint(self) -> str:
        """A sha256 of the function's name and version, and of its answers to the probes.

        A function cannot be hashed: another function with the same name and the same answers to
        the probes has the same fingerprint. State a version to distinguish them.
        """
        facts: list[object] = [
            self.name,
            self.version,
            self.classes,
            self.equality,
            self.has_scores,
        ]
        facts += [self.directions.tolist(), self.offsets.tolist()]
        facts += [self.evaluator.calls.ask.columns.tolist(), sorted(self.probed.problems)]
        digest = hashlib.sha256(json.dumps(facts).encode())
        for array in self.stored().arrays.values():
            digest.update(np.ascontiguousarray(array).tobytes())
        return digest.hexdigest()

    def stored(self) -> StoredScorer:
        """Return probes and answers: the function itself cannot be stored."""
        arrays = {"probes": self.probes, "answers": self.probed.values}
        return StoredScorer("counted", arrays)

    def reads(self, attribute: Attribute, space: FeatureSpace) -> bool:
        """Return whether the columns of an attribute reach the function."""
        columns = space.columns_of(attribute)
        received = self.evaluator.calls.ask.columns
        return bool(((received >= columns.start) & (received < columns.stop)).any())

    def __call__(self, people: Matrix) -> Matrix:
        """Return the answers as scores, (people, outputs); NaN where there is no valid answer."""
        scores = enclosure(self, self.points(people).answers)
        return np.where(np.isfinite(scores.errors), scores.values, np.nan)

    def difference(self) -> "Counted":
        """Return the scorer whose score is the second output minus the first."""
        both = np.array([[-1.0, 1.0]])
        return replace(
            self,
            directions=both @ self.directions,
            offsets=(both @ self.offsets[:, None])[:, 0],
            link=link_of_difference(self.link),
        )

    def output(self, index: int) -> "Counted":
        """Return the scorer of one output."""
        rows = slice(index, index + 1)
        return replace(
            self, directions=self.directions[rows], offsets=self.offsets[rows], equality=None
        )

    def with_link(self, link: Link) -> "Counted":
        """Return the scorer itself: the answers are the function's own predictions."""
        del link
        return self

    def unscaled(
        self, space: FeatureSpace, centers: Sequence[float], scales: Sequence[float]
    ) -> "Counted":
        """Return the scorer itself: the function reads raw columns."""
        check_unscaled(space, centers, scales)
        return self

    def for_regression(self) -> "Counted":
        """Return the scorer that raises `UnreliableAnswer` for answers in doubt.

        Engines take the centers of intervals as the scores of a regression.
        """
        return replace(self, exact_only=True)

    def over(self, space: FeatureSpace) -> "Counted":
        """Return the scorer itself; raise if the space has other columns."""
        if space.width != self.width:
            raise SchemaError(
                f"wrong number of columns of the counted model: got {self.width}; expected "
                f"{space.width}, the columns of the space"
            )
        return self

    def obstacle(self, column: int, low: float, high: float) -> str:
        """Return no reason: the function itself is evaluated, wherever a number is."""
        del column, low, high
        return ""

    def widened(self, limits: Mapping[int, tuple[float, float]], magnitudes: Vector) -> "Counted":
        """Return the scorer itself: answers do not depend on limits."""
        del limits, magnitudes
        return self

    def points(self, people: Matrix) -> CountedRows:
        """Return people as points, one per row."""
        return CountedRows(self, np.asarray(people, dtype=np.float64))

    def restrict(self, relation: Relation) -> Restricted:
        """Return the function on people's counterparts."""
        return CountedRestricted(self, relation)

    def confirm(self) -> None:
        """Raise `ModelChanged` if the function was replaced since the last confirmation.

        Call it before results are stored: those since the last confirmation may mix two models.
        """
        self.evaluator.confirm()

    def expect(self, people: Matrix, relation: Relation) -> int:
        """State whose counterparts will be evaluated; return the number of rows, repeats included.

        Progress reports contain this number and the time that is left.
        """
        calls = self.evaluator.calls
        n_people = len(set(relation.keys(people))) if relation.has_key else len(people)
        axes = [axis for axis in relation.axes if set(axis.columns) & set(calls.ask.columns)]
        per_person = int(np.prod([len(axis) for axis in axes], dtype=object))
        rows = round(n_people * per_person * (1 + calls.options.repeat))
        calls.expected = calls.rows + rows
        return rows
