"""Loss, targets and accuracy of a training, by its decision rule."""

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import ArrayLike

from feta.arrays import Matrix, Vector
from feta.errors import DomainError, SchemaError
from feta.rule import Argmax, Rule, Threshold, rule_kind
from feta.train.import_torch import import_torch

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
        if self.rule.merges_classes:
            kind = rule_kind(self.rule)
            raise SchemaError(f"training needs all classes: got {kind}; expected Argmax")

    @classmethod
    def of(cls, rule: Rule | None, outputs: int) -> "Task":
        """Return the task of a rule; None is the usual rule for this number of scores."""
        if rule is None:
            names = tuple(str(index) for index in range(outputs))
            rule = Threshold(0.0) if outputs == 1 else Argmax(names)
        if rule.outputs != outputs:
            raise SchemaError(
                f"wrong number of scores for {rule_kind(rule)}: "
                f"got {outputs}; expected {rule.outputs}"
            )
        return cls(rule)

    def targets(self, labels: ArrayLike, n_people: int) -> Vector:
        """Check labels: favorable or not, the index of a class, or the correct score."""
        array = np.asarray(labels)
        if array.shape != (n_people,) or array.dtype.kind not in "biuf":
            raise DomainError(
                f"invalid labels: got the shape {array.shape} of {array.dtype}; "
                f"expected {n_people} numbers or booleans, one per person"
            )
        numbers = array.astype(np.float64)
        bad = np.flatnonzero(~np.isfinite(numbers))
        if self.rule.tolerance is None:
            known = np.arange(float(self.rule.n_classes))
            bad = np.flatnonzero(~np.isin(numbers, known))
        if bad.size:
            expected = (
                "a finite number"
                if self.rule.tolerance is not None
                else f"an integer from 0 to {self.rule.n_classes - 1}"
            )
            label = array[bad[0]].item()
            message = f"invalid label in row {bad[0]}: got {label!r}; expected {expected}"
            raise DomainError(message, row=int(bad[0]))
        return numbers

    def losses(self, scores: "Tensor", targets: "Tensor") -> "Tensor":
        """Compute each person's loss, (members, people), from scores (members, people, outputs)."""
        torch = import_torch()
        if self.rule.threshold is not None:
            odds = scores[..., 0] if self.rule.favors == "above" else -scores[..., 0]
            # ln(1 + e^z) − y·z: the binary cross-entropy, with the minus sign that Eq. 7 lacks.
            return torch.nn.functional.softplus(odds) - targets * odds
        if self.rule.tolerance is not None:
            return (scores[..., 0] - targets) ** 2
        classes = targets.long().expand(scores.shape[:2])[..., None]
        return scores.logsumexp(-1) - scores.gather(-1, classes)[..., 0]

    def decisions(self, scores: Matrix) -> Vector:
        """Decide by float64 scores, to monitor a training; a regression keeps the score."""
        threshold = self.rule.threshold
        if threshold is not None:
            above = self.rule.favors == "above"
            side = scores[:, 0] >= threshold if above else scores[:, 0] <= threshold
            return side.astype(np.float64)
        if self.rule.tolerance is not None:
            return scores[:, 0]
        return np.argmax(scores, axis=1).astype(np.float64)

    def accuracy(self, decisions: Vector, targets: Vector) -> float:
        """Return the share of correct decisions; for regression the share of variance explained."""
        if self.rule.tolerance is None:
            return float(np.mean(decisions == targets))
        spread = float(np.mean((targets - targets.mean()) ** 2))
        error = float(np.mean((decisions - targets) ** 2))
        return max(0.0, 1.0 - error / spread) if spread > 0 else float(error == 0)
