"""The runner of an audit: findings from the journal, or from the auditor or its workers."""

import time
from collections.abc import Iterator
from dataclasses import dataclass, replace

import numpy as np

from feta.arrays import Matrix
from feta.auditing.auditor import Auditor
from feta.auditing.confirm import confirm, rows_to_confirm
from feta.auditing.finding import Finding
from feta.auditing.interruptible import run_interruptibly
from feta.auditing.journal import AuditJournal
from feta.auditing.workers import DIED, Workers

# Target time of a block, which is how much work is lost when the process is killed.
BLOCK_SECONDS = 0.5
FIRST_BLOCK = 16
MAX_PEOPLE = 256


@dataclass
class AuditRunner:
    """An auditor, optionally worker processes, and optionally a journal of the results."""

    auditor: Auditor
    workers: Workers | None = None
    journal: AuditJournal | None = None
    size: int = FIRST_BLOCK  # people in the next block, adapted to BLOCK_SECONDS
    lost: int = 0  # people without an answer because their worker died

    @property
    def block_size(self) -> int:
        """How many people to pass to `audit` at a time."""
        return MAX_PEOPLE * (1 if self.workers is None else self.workers.jobs)

    def audit(self, people: Matrix) -> list[Finding]:
        """Audit everybody who is not in the journal; rows are numbered from 0."""
        findings = self._known(people)
        rows = np.flatnonzero([finding is None for finding in findings])
        for start, computed in self._compute(people[rows]):
            indices = rows[start : start + len(computed)]
            self._store(people[indices], computed)
            for index, finding in zip(indices.tolist(), computed, strict=True):
                findings[index] = replace(finding, row=index)
        return [finding for finding in findings if finding is not None]

    def _known(self, people: Matrix) -> list[Finding | None]:
        """Look people up in the journal; prove again what an earlier session called fair."""
        if self.journal is None:
            return [None] * len(people)
        known = self.journal.known_since(people)
        findings = [finding for finding, _ in known]
        rows = rows_to_confirm(known)
        if len(rows):
            fair = [finding for row in rows.tolist() if (finding := findings[row]) is not None]
            auditor = self.auditor
            results = run_interruptibly(confirm, auditor.model, people[rows], fair, auditor.budget)
            for row, finding in zip(rows.tolist(), results, strict=True):
                findings[row] = finding
            proved = [row for row in rows.tolist() if findings[row] is not None]
            self._store(
                people[proved],
                [finding for row in proved if (finding := findings[row]) is not None],
            )
        return findings

    def _store(self, people: Matrix, findings: list[Finding]) -> None:
        """Store answers; the death of a worker is none, so a resumed run audits its people."""
        answered = [row for row, finding in enumerate(findings) if finding.reason != DIED]
        self.lost += len(findings) - len(answered)
        if self.journal is not None and answered:
            self.journal.write(people[answered], [findings[row] for row in answered])

    def _compute(self, people: Matrix) -> Iterator[tuple[int, list[Finding]]]:
        if self.workers is not None:
            yield from self.workers.audit(people)
            return
        start = 0
        while start < len(people):
            block = people[start : start + self.size]
            started = time.perf_counter()
            yield start, run_interruptibly(self.auditor.audit, block)
            start += len(block)
            seconds = max(time.perf_counter() - started, 1e-9)
            fitting = int(BLOCK_SECONDS * len(block) / seconds)
            self.size = max(1, min(MAX_PEOPLE, 2 * self.size, fitting))
