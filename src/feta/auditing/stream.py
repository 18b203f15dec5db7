"""The stream of an audit: any iterator of blocks in, the same blocks with findings out."""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace

import numpy as np

from feta.arrays import Matrix
from feta.auditing.block import AuditedBlock, Block
from feta.auditing.executor import Executor
from feta.auditing.finding import AuditFault, Finding
from feta.auditing.journal import AuditJournal


@dataclass
class AuditStream:
    """An executor, and optionally a journal of the answers."""

    executor: Executor
    journal: AuditJournal | None = None
    lost: int = 0  # people without an answer because their worker died

    def blocks(self, blocks: Iterable[Block]) -> Iterator[AuditedBlock]:
        """Audit one block after the other."""
        for block in blocks:
            yield block.audited(self.audit(block.people))

    def audit(self, people: Matrix) -> list[Finding]:
        """Audit everybody who is not in the journal; rows are numbered from 0."""
        findings: list[Finding | None] = [None] * len(people)
        if self.journal is not None:
            findings = self.journal.known(people)
        rows = np.flatnonzero([finding is None for finding in findings])
        for start, computed in self.executor.audit(people[rows]):
            indices = rows[start : start + len(computed)]
            self._store(people[indices], computed)
            for index, finding in zip(indices.tolist(), computed, strict=True):
                findings[index] = replace(finding, row=index)
        return [finding for finding in findings if finding is not None]

    def _store(self, people: Matrix, findings: list[Finding]) -> None:
        """Store answers; a fault is none, so a resumed audit retries its people."""
        answered = [row for row, finding in enumerate(findings) if finding.verdict is not None]
        self.lost += [finding.reason for finding in findings].count(AuditFault.WORKER_DIED)
        if self.journal is not None and answered:
            self.journal.write(people[answered], [findings[row] for row in answered])
