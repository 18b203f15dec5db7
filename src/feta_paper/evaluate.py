"""Look: a network put to a test fold: its own decisions, its counterparts' counts, and the vote."""

from dataclasses import dataclass

import numpy as np

import feta
from feta.arrays import Counts, Flags, Matrix
from feta.rule import Threshold
from feta.scorer.network.network import Network
from feta.space.attribute import Integer
from feta.space.feature_space import FeatureSpace
from feta.train.task import Task
from feta.train.violation import violations
from feta_paper.outcome import Figures


@dataclass(frozen=True, eq=False)
class Look:
    """One entry a person."""

    labels: Flags
    own: Flags
    favorable: Counts
    counterparts: int
    apart_real: Flags | None = None  # with a real-valued age

    @property
    def vote(self) -> Flags:
        """The fair decisions: a tie is favorable."""
        return np.asarray(2 * self.favorable >= self.counterparts)

    @property
    def apart(self) -> Flags:
        """Who has a counterexample."""
        return np.asarray((self.favorable > 0) & (self.favorable < self.counterparts))

    def of(self, rows: Flags) -> "Look":
        """Look at some of the people only."""
        real = None if self.apart_real is None else self.apart_real[rows]
        return Look(
            self.labels[rows], self.own[rows], self.favorable[rows], self.counterparts, real
        )

    def figures(self, arm: str, vote: str) -> Figures:
        """Give rates of the network and of its vote, in per cent."""
        told: Figures = {
            f"{arm}.accuracy": percent(self.own == self.labels),
            f"{arm}.flip_rate": percent(self.own != self.vote),
            f"{arm}.ce_rate": percent(self.apart),
            f"{vote}.accuracy": percent(self.vote == self.labels),
        }
        if self.apart_real is not None:
            told[f"{arm}.ce_rate_real"] = percent(self.apart_real)
        return told

    def printed(self, arm: str) -> Figures:
        """Count the people whom Algorithm 1 as printed treats apart, which flips on a tie.

        It flips a decision if at least half of the counterparts are decided otherwise, rounded up: on
        an even split both sides are flipped, and stay apart.
        """
        half = -(-self.counterparts // 2)
        against = (
            self.counterparts - self.favorable
        )  # counterexamples of somebody decided favorably
        favored = against < half  # what those get who were decided favorably
        others = self.favorable >= half  # and what the others get
        return {
            f"{arm}.treated_apart": float((self.apart & (favored != others)).sum()),
            f"{arm}.tied": float((2 * self.favorable == self.counterparts).sum()),
        }


def look_at(
    space: FeatureSpace, network: Network, people: Matrix, labels: Flags, *, real: bool = False
) -> Look:
    """Decide and count; `real` also searches every value of a whole-number age, where there is one."""
    model = feta.Model(space, network)
    counts = feta.tally(model, people)
    apart = None
    if real and any(isinstance(one, Integer) for one in space.sensitive):
        task = Task(Threshold(0.0))
        apart = violations(space, network, task, people, numbers="real").differs
    own = np.asarray(model.decide(people), dtype=bool)
    return Look(labels, own, np.asarray(counts.favorable), space.lattice.size, apart)


def percent(flags: Flags) -> float:
    """Give a share in per cent."""
    return 100.0 * float(np.mean(flags))
