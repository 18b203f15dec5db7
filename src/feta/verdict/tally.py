"""Tally of the decisions that people's counterparts get."""

from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal

import numpy as np

from feta.arrays import Answers, Counts, Flags
from feta.deprecation import renamed
from feta.errors import EngineError

if TYPE_CHECKING:
    from collections.abc import Sequence


@dataclass(frozen=True, slots=True, eq=False)
class Tally:
    """Counts, one row per person; `undecided` counterparts were not reached within the budget."""

    by_class: Counts  # (people, classes)
    undecided: Counts
    runtime_safe: Flags  # whether the source runtime provably makes the same decisions (S6)
    ties_to: Literal["first", "last"] = "last"

    safe = renamed("safe", "runtime_safe")
    settled = renamed("settled", "decided")

    @property
    def outcomes(self) -> Answers:
        """The winner: True for favorable; several classes: the index of the class."""
        return self.winner if self.ties_to == "first" else self.winner == 1

    def rows(self, indices: Counts) -> "Tally":
        """Return the people at these indices."""
        return Tally(
            self.by_class[indices],
            self.undecided[indices],
            self.runtime_safe[indices],
            self.ties_to,
        )

    def followed_by(self, other: "Tally") -> "Tally":
        """Return these people, then the others."""
        return Tally.joined([self, other])

    @classmethod
    def joined(cls, parts: "Sequence[Tally]") -> "Tally":
        """Concatenate the tallies of several groups of people."""
        return cls(
            np.concatenate([part.by_class for part in parts]),
            np.concatenate([part.undecided for part in parts]),
            np.concatenate([part.runtime_safe for part in parts]),
            parts[0].ties_to,
        )

    @property
    def favorable(self) -> Counts:
        """Number of counterparts with the favorable decision; two classes only."""
        return self._of_two(1)

    @property
    def unfavorable(self) -> Counts:
        """Number of counterparts with the unfavorable decision; two classes only."""
        return self._of_two(0)

    def _of_two(self, index: int) -> Counts:
        n_classes = self.by_class.shape[1]
        if n_classes != 2:  # noqa: PLR2004 - favorable or not
            raise EngineError(
                f"no favorable class in this tally: got {n_classes} classes; expected 2; "
                "use by_class"
            )
        return self.by_class[:, index]

    @property
    def unanimous(self) -> Flags:
        """Whether all decided counterparts of a person get the same decision."""
        return np.asarray((self.by_class > 0).sum(axis=1) <= 1)

    @property
    def winner(self) -> Counts:
        """The class that most counterparts get.

        It may depend on the counts only, never on the person's own decision. Algorithm 1 of the
        paper flips decisions on a tie, so the two halves of an even split would swap their
        decisions and still differ. This follows Eq. 5, which gives both halves the same decision:
        the favorable one, and among several classes the first.
        """
        if self.ties_to == "first":
            return np.argmax(self.by_class, axis=1)
        return self.by_class.shape[1] - 1 - np.argmax(self.by_class[:, ::-1], axis=1)

    @property
    def decided(self) -> Flags:
        """Whether the winner is certain, whatever the undecided counterparts get."""
        winner = self.winner
        rows = np.arange(len(winner))
        margins = self.by_class[rows, winner][:, None] - self.by_class
        classes = np.arange(self.by_class.shape[1])
        loses_ties = classes > winner[:, None]
        if self.ties_to == "last":
            loses_ties = classes < winner[:, None]
        certain = margins - self.undecided[:, None] >= np.where(loses_ties, 0, 1)
        certain[rows, winner] = True
        has_votes = self.by_class.sum(axis=1) + self.undecided > 0
        return np.asarray(certain.all(axis=1) & has_votes)

    @property
    def decision(self) -> Flags:
        """Whether the majority is favorable; a tie counts as favorable. Two classes only."""
        self._of_two(1)
        return np.asarray(self.winner == 1)


def complete_tally(
    by_class: Counts, total: int | Counts, runtime_safe: Flags, *, ties_to: Literal["first", "last"]
) -> Tally:
    """Return the tally of `total` votes per person; those not counted are undecided."""
    undecided = total - by_class.sum(axis=1)
    return Tally(by_class, undecided, runtime_safe & (undecided == 0), ties_to)
