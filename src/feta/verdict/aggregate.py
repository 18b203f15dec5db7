"""What all counterparts of a person get together."""

from typing import Protocol, Self

from feta.arrays import Answers, Counts, Flags


class Aggregate(Protocol):
    """One outcome per person: the majority of decisions (`Tally`) or the median (`Spread`)."""

    @property
    def decided(self) -> Flags:
        """Whether the outcome is certain."""
        ...

    @property
    def outcomes(self) -> Answers:
        """The outcome of each person: booleans, the indices of classes, or scores."""
        ...

    def rows(self, indices: Counts) -> Self:
        """Return the people at these indices."""
        ...

    def followed_by(self, other: Self) -> Self:
        """Return these people, then the others."""
        ...
