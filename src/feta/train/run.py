"""Result of a fair training: its epochs and the chosen network."""

from dataclasses import asdict, dataclass
from typing import Literal

import numpy as np

from feta.scorer.network.network import Network
from feta.train.selection import undominated
from feta.train.violation import Violations

SelectOn = Literal["validation", "train"]


@dataclass(frozen=True, slots=True)
class Fairness:
    """Accuracy and fairness of a network on some people; violations are in scores (logits)."""

    accuracy: float
    ce_rate: float
    mean_violation: float  # over people with a counterexample
    mean_violation_all: float  # over all people; 0 without a counterexample
    max_violation: float
    largest_class: float  # the share of people who get the most frequent decision

    @classmethod
    def of(cls, results: Violations, accuracy: float, *, scores: bool = False) -> "Fairness":
        """Summarize the violations of some people."""
        gaps, differs = results.gaps, results.differs
        shares = np.unique(results.decisions, return_counts=True)[1] / len(gaps)
        return cls(
            accuracy=accuracy,
            ce_rate=float(np.mean(differs)),
            mean_violation=float(gaps[differs].mean()) if differs.any() else 0.0,
            mean_violation_all=float(gaps.mean()),
            max_violation=float(gaps.max(initial=0.0)),
            largest_class=0.0 if scores else float(shares.max()),
        )


@dataclass(frozen=True, slots=True)
class Epoch:
    """One epoch: its batches at the time of each step, and the selection people at its end."""

    number: int  # counted from 1
    loss: float
    met: Fairness
    chosen_by: Fairness


@dataclass(frozen=True, slots=True, eq=False)
class TrainingRun:
    """A network in raw units, and the curve it was chosen from."""

    network: Network
    epochs: tuple[Epoch, ...]
    chosen: int  # the epoch's number
    start: Fairness  # of the given network, on the selection people
    select_on: SelectOn

    @property
    def best(self) -> Epoch:
        """The epoch that was chosen."""
        return self.epochs[self.chosen - 1]

    @property
    def pareto(self) -> list[int]:
        """The numbers of the epochs on the Pareto front of accuracy and CE rate."""
        points = [(epoch.chosen_by.accuracy, epoch.chosen_by.ce_rate) for epoch in self.epochs]
        return [index + 1 for index in undominated(points)]

    def as_json(self) -> dict[str, object]:
        """Return the curve as plain values."""
        return {
            "select_on": self.select_on,
            "chosen": self.chosen,
            "pareto": self.pareto,
            "start": asdict(self.start),
            "epochs": [asdict(epoch) for epoch in self.epochs],
        }
