"""Task: what a network is trained for, by its rule: the loss, the targets, and how right it is."""

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import ArrayLike

from feta.arrays import Matrix, Vector
from feta.errors import DomainError, SchemaError
from feta.rule import Argmax, OneVsRest, Rule, Threshold, Tolerance
from feta.train.ensemble_stack import import_torch

if TYPE_CHECKING:
    from torch import Tensor


@dataclass(frozen=True, slots=True)
class Task:
    """A rule to be learned.

    With a threshold the score is the log-odds of the class above it, and the loss binary
    cross-entropy; several classes have cross-entropy, regression the squared error.
    """

    rule: Rule

    def __post_init__(self) -> None:
        if isinstance(self.rule, OneVsRest):
            raise SchemaError("training needs all classes; give Argmax, and ask one_vs_rest later")

    @classmethod
    def of(cls, rule: Rule | None, outputs: int) -> "Task":
        """Take the rule given, or the usual one for this many scores."""
        if rule is None:
            names = tuple(str(index) for index in range(outputs))
            rule = Threshold(0.0) if outputs == 1 else Argmax(names)
        if rule.outputs != outputs:
            message = f"{type(rule).__name__} needs {rule.outputs} score(s), but the network gives {outputs}"
            raise SchemaError(message)
        return cls(rule)

    def targets(self, labels: ArrayLike, n_people: int) -> Vector:
        """Check labels: favorable or not, a class's number, or the right score."""
        found = np.asarray(labels)
        if found.shape != (n_people,) or found.dtype.kind not in "biuf":
            message = f"labels must be {n_people} numbers or booleans, one a person, got the shape {found.shape} of {found.dtype}"
            raise DomainError(message)
        numbers = found.astype(np.float64)
        bad = np.flatnonzero(~np.isfinite(numbers))
        if not isinstance(self.rule, Tolerance):
            known = np.arange(float(self.rule.n_classes))
            bad = np.flatnonzero(~np.isin(numbers, known))
        if bad.size:
            due = (
                "finite" if isinstance(self.rule, Tolerance) else f"0 to {self.rule.n_classes - 1}"
            )
            message = f"labels must be {due}, got {found[bad[0]].item()!r} (row {bad[0]})"
            raise DomainError(message, row=int(bad[0]))
        return numbers

    def losses(self, scores: "Tensor", targets: "Tensor") -> "Tensor":
        """Give each person's loss, (members, people), from scores (members, people, outputs)."""
        torch = import_torch()
        match self.rule:
            case Threshold(favors=favors):
                odds = scores[..., 0] if favors == "above" else -scores[..., 0]
                # ln(1 + e^z) − y·z: the binary cross-entropy, with the minus sign that Eq. 7 lost.
                return torch.nn.functional.softplus(odds) - targets * odds
            case Tolerance():
                return (scores[..., 0] - targets) ** 2
            case _:
                classes = targets.long().expand(scores.shape[:2])[..., None]
                return scores.logsumexp(-1) - scores.gather(-1, classes)[..., 0]

    def decisions(self, scores: Matrix) -> Vector:
        """Decide by float64 scores, to follow a training by; regression keeps the score."""
        match self.rule:
            case Threshold(value=value, favors=favors):
                side = scores[:, 0] >= value if favors == "above" else scores[:, 0] <= value
                return side.astype(np.float64)
            case Tolerance():
                return scores[:, 0]
            case _:
                return np.argmax(scores, axis=1).astype(np.float64)

    def accuracy(self, decisions: Vector, targets: Vector) -> float:
        """Give the share decided rightly; for regression the share of the variance explained."""
        if not isinstance(self.rule, Tolerance):
            return float(np.mean(decisions == targets))
        spread = float(np.mean((targets - targets.mean()) ** 2))
        error = float(np.mean((decisions - targets) ** 2))
        return max(0.0, 1.0 - error / spread) if spread > 0 else float(error == 0)
