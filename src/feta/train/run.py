"""Run: what a fair training did, epoch by epoch, and the network it chose."""

from dataclasses import asdict, dataclass
from typing import Literal

import numpy as np

from feta.scorer.network.network import Network
from feta.train.selection import undominated
from feta.train.violation import Violations

SelectOn = Literal["validation", "train"]


@dataclass(frozen=True, slots=True)
class Fairness:
    """How right and how fair a network is to some people; violations are in scores (logits)."""

    accuracy: float
    ce_rate: float
    mean_violation: float  # over people with a counterexample
    mean_violation_all: float  # over all; nothing where there is no counterexample
    max_violation: float
    largest_class: float  # the share of people who get the most frequent decision

    @classmethod
    def of(cls, found: Violations, accuracy: float, *, scores: bool = False) -> "Fairness":
        """Sum up what was found about some people."""
        gaps, apart = found.gaps, found.apart
        shares = np.unique(found.decisions, return_counts=True)[1] / len(gaps)
        return cls(
            accuracy=accuracy,
            ce_rate=float(np.mean(apart)),
            mean_violation=float(gaps[apart].mean()) if apart.any() else 0.0,
            mean_violation_all=float(gaps.mean()),
            max_violation=float(gaps.max(initial=0.0)),
            largest_class=0.0 if scores else float(shares.max()),
        )


@dataclass(frozen=True, slots=True)
class Epoch:
    """One epoch: its people as they were met, batch by batch, and those chosen by, at its end."""

    number: int  # counted from 1
    loss: float
    met: Fairness
    chosen_by: Fairness


@dataclass(frozen=True, slots=True, eq=False)
class TrainingRun:
    """A network in people's own units, and the curve it was chosen from."""

    network: Network
    epochs: tuple[Epoch, ...]
    chosen: int  # the epoch's number
    start: Fairness  # of the network given, on the people chosen by
    select_on: SelectOn

    @property
    def best(self) -> Epoch:
        """The epoch that was chosen."""
        return self.epochs[self.chosen - 1]

    @property
    def pareto(self) -> list[int]:
        """The numbers of the epochs that no other beats in both accuracy and CE rate."""
        points = [(one.chosen_by.accuracy, one.chosen_by.ce_rate) for one in self.epochs]
        return [index + 1 for index in undominated(points)]

    def as_json(self) -> dict[str, object]:
        """Give the curve as plain values."""
        return {
            "select_on": self.select_on,
            "chosen": self.chosen,
            "pareto": self.pareto,
            "start": asdict(self.start),
            "epochs": [asdict(one) for one in self.epochs],
        }
