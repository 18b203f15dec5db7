"""Tally: how many counterparts of each person are decided each way."""

from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal

import numpy as np

from feta.arrays import Counts, Flags
from feta.deprecation import renamed
from feta.errors import EngineError

if TYPE_CHECKING:
    from collections.abc import Sequence


@dataclass(frozen=True, slots=True, eq=False)
class Tally:
    """Counts, one row a person; `undecided` counterparts were not reached within the budget."""

    by_class: Counts  # (people, classes)
    undecided: Counts
    runtime_safe: (
        Flags  # whose counterparts' decisions the source's own runtime is sure to share (S6)
    )
    ties_to: Literal["first", "last"] = "last"

    safe = renamed("safe", "runtime_safe")
    settled = renamed("settled", "decided")

    @classmethod
    def joined(cls, parts: "Sequence[Tally]") -> "Tally":
        """Put the tallies of some people after each other."""
        return cls(
            np.concatenate([one.by_class for one in parts]),
            np.concatenate([one.undecided for one in parts]),
            np.concatenate([one.runtime_safe for one in parts]),
            parts[0].ties_to,
        )

    @property
    def favorable(self) -> Counts:
        """How many counterparts are decided favorably; two classes only."""
        return self._of_two(1)

    @property
    def unfavorable(self) -> Counts:
        """How many are not; two classes only."""
        return self._of_two(0)

    def _of_two(self, index: int) -> Counts:
        if self.by_class.shape[1] != 2:  # noqa: PLR2004 - favorable or not
            message = f"favorable and unfavorable need two classes, got {self.by_class.shape[1]}; use by_class"
            raise EngineError(message)
        return self.by_class[:, index]

    @property
    def unanimous(self) -> Flags:
        """Whose counterparts are all decided alike, as far as they are decided."""
        return np.asarray((self.by_class > 0).sum(axis=1) <= 1)

    @property
    def winner(self) -> Counts:
        """The class that most counterparts get.

        The rule may look at the counts only, never at the person's own decision: Algorithm 1 of the
        paper flips on a tie, so the two sides of an even split would swap places and stay apart.
        Eq. 5, followed here, gives both the same: the favorable decision, and among several classes
        the first.
        """
        if self.ties_to == "first":
            return np.argmax(self.by_class, axis=1)
        return self.by_class.shape[1] - 1 - np.argmax(self.by_class[:, ::-1], axis=1)

    @property
    def decided(self) -> Flags:
        """Whose winner is certain, however the undecided counterparts would be decided."""
        winner = self.winner
        rows = np.arange(len(winner))
        lead = self.by_class[rows, winner][:, None] - self.by_class
        classes = np.arange(self.by_class.shape[1])
        beats_on_tie = classes > winner[:, None]
        if self.ties_to == "last":
            beats_on_tie = classes < winner[:, None]
        enough = lead - self.undecided[:, None] >= np.where(beats_on_tie, 0, 1)
        enough[rows, winner] = True
        return np.asarray(enough.all(axis=1))

    @property
    def decision(self) -> Flags:
        """Whether the majority is favorable; a tie is. Two classes only."""
        self._of_two(1)
        return np.asarray(self.winner == 1)
