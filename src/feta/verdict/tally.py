"""Tally: how many counterparts of each person are decided each way."""

from dataclasses import dataclass

import numpy as np

from feta.arrays import Counts, Flags


@dataclass(frozen=True, slots=True, eq=False)
class Tally:
    """Counts, one row a person; `undecided` counterparts were not reached within the budget."""

    by_class: Counts  # (people, classes)
    undecided: Counts
    safe: Flags  # whose counterparts' decisions the source's own runtime is sure to share (S6)

    @property
    def favorable(self) -> Counts:
        """How many counterparts are decided favorably."""
        return self.by_class[:, 1]

    @property
    def unfavorable(self) -> Counts:
        """How many are not."""
        return self.by_class[:, 0]

    @property
    def settled(self) -> Flags:
        """Whose majority is certain, however the undecided counterparts would be decided."""
        return (self.favorable >= self.unfavorable + self.undecided) | (
            self.unfavorable > self.favorable + self.undecided
        )

    @property
    def decision(self) -> Flags:
        """The majority's decision; a tie is favorable.

        The rule may look at the counts only, never at the person's own decision: Algorithm 1 of the
        paper flips on a tie, so the two sides of an even split would swap places and stay apart.
        Eq. 5, followed here, gives both the same.
        """
        return np.asarray(self.favorable >= self.unfavorable)
