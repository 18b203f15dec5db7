"""What makes a fair decision favorable: the changes, and whether they are proved to be minimal."""

from dataclasses import dataclass
from enum import StrEnum
from typing import Any

from feta.space.attribute import Value


class Finding(StrEnum):
    """What the search for changes ended with."""

    FAVORABLE = "already favorable"
    FOUND = "found"
    NONE = "no allowed change suffices"  # proved
    NOT_FOUND = "none found"
    UNDECIDED = "undecided"


@dataclass(frozen=True, slots=True)
class ValueChange:
    """One column that changes; the size is in units of its spread, or of the user's own."""

    column: str
    before: Value
    after: Value
    size: float


@dataclass(frozen=True, slots=True)
class Explanation:
    """The fewest and smallest changes of a person that make the fair decision the wanted one."""

    finding: Finding
    decision: str  # the fair decision; empty if it is undecided
    wanted: str
    changes: tuple[ValueChange, ...] = ()
    minimal: bool = False  # proved: the fewest columns, then the smallest total size
    decided: int = 0  # the number of fair decisions that the search made

    @property
    def size(self) -> float:
        """The total size of the changes."""
        return sum(change.size for change in self.changes)

    @property
    def content(self) -> dict[str, Any]:
        """The explanation as JSON."""
        return {
            "finding": str(self.finding),
            "decision": self.decision,
            "wanted": self.wanted,
            "changes": [
                {"column": c.column, "before": c.before, "after": c.after, "size": c.size}
                for c in self.changes
            ],
            "minimal": self.minimal,
            "decided": self.decided,
        }
