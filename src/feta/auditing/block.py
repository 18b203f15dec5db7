"""Blocks: consecutive rows of a table, encoded as people, and what was found about them."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field

from feta.arrays import Matrix
from feta.auditing.finding import Finding
from feta.errors import DomainError
from feta.io.chunk import Chunk
from feta.rule import Outcome


@dataclass(frozen=True, slots=True, eq=False)
class UnreadRow:
    """A row that could not be read: why, and its cells if it is from a file."""

    error: DomainError
    cells: Chunk | None = None


@dataclass(frozen=True, slots=True, eq=False)
class Block:
    """Rows of a table: the people of those that could be read, and why the others could not."""

    start: int  # the number of the first row, counted from 0
    people: Matrix  # one row per row that could be read
    labels: tuple[Outcome | None, ...]  # one per row; None: not known
    names: tuple[str, ...]  # the ids in the table, one per row; empty texts without ids
    unread: Mapping[int, UnreadRow] = field(default_factory=dict)  # by the index of the row
    progress: float = 1.0  # the share of the table that ends with this block

    def __len__(self) -> int:
        return len(self.names)

    @property
    def readable(self) -> list[int]:
        """The indices of the rows that could be read."""
        return [index for index in range(len(self)) if index not in self.unread]

    def first(self, n_people: int) -> "Block":
        """Return the rows before the person with this number; all of them if there is none."""
        readable = self.readable
        if n_people >= len(readable):
            return self
        stop = readable[n_people]
        unread = {index: row for index, row in self.unread.items() if index < stop}
        return Block(
            self.start,
            self.people[:n_people],
            self.labels[:stop],
            self.names[:stop],
            unread,
            self.progress,
        )

    def audited(self, findings: Sequence[Finding]) -> "AuditedBlock":
        """Return the block with the findings about its people, which are numbered here."""
        start, unread = self.start, self.unread
        of_people = iter(findings)
        numbered = [
            Finding(start + index, reason=str(unread[index].error))
            if index in unread
            else next(of_people).numbered(start + index)
            for index in range(len(self))
        ]
        return AuditedBlock(self, tuple(numbered))


@dataclass(frozen=True, slots=True, eq=False)
class AuditedBlock:
    """A block, and one finding per row."""

    block: Block
    findings: tuple[Finding, ...]

    @property
    def of_people(self) -> tuple[list[Finding], list[Outcome | None], list[str]]:
        """The findings, labels and names of the rows that could be read."""
        block, rows = self.block, self.block.readable
        return (
            [self.findings[row] for row in rows],
            [block.labels[row] for row in rows],
            [block.names[row] for row in rows],
        )


def blocks_in_memory(
    people: Matrix,
    size: int,
    labels: Sequence[Outcome | None] | None = None,
    names: Sequence[str] | None = None,
) -> Iterator[Block]:
    """Split people who are in memory into blocks."""
    for start in range(0, len(people), size):
        part = slice(start, start + size)
        rows = people[part]
        yield Block(
            start,
            rows,
            (None,) * len(rows) if labels is None else tuple(labels[part]),
            ("",) * len(rows) if names is None else tuple(names[part]),
            progress=(start + len(rows)) / len(people),
        )
