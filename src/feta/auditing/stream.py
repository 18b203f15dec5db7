"""The stream of an audit: any iterator of blocks in, the same blocks with findings out."""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from itertools import takewhile

import numpy as np

from feta.arrays import Matrix
from feta.auditing.block import AuditedBlock, Block
from feta.auditing.executor import Executor
from feta.auditing.finding import AuditFault, Finding
from feta.auditing.journal import AuditJournal
from feta.auditing.stability import Stability, is_answer
from feta.errors import ModelFailure


@dataclass
class AuditStream:
    """An executor, and optionally a journal of the answers."""

    executor: Executor
    journal: AuditJournal | None = None
    lost: int = 0  # people without an answer because their worker died
    stopped: str = ""  # why the audit ended early: a counted model whose answers cannot be used
    stability: Stability = field(default_factory=Stability)

    def blocks(self, blocks: Iterable[Block]) -> Iterator[AuditedBlock]:
        """Audit one block after the other; if the audit must stop, keep what is done."""
        for block in blocks:
            findings = self.audit(block.people)
            if self.stopped:
                yield block.first(len(findings)).audited(findings)
                return
            yield block.audited(findings)

    def audit(self, people: Matrix) -> list[Finding]:
        """Audit everybody who is not in the journal; rows are numbered from 0.

        If the audit stops, the result has the people before the first one without a finding.
        """
        findings: list[Finding | None] = [None] * len(people)
        if self.journal is not None:
            findings = self.journal.known(people)
        rows = np.flatnonzero([finding is None for finding in findings])
        for start, computed in self._pieces(people[rows]):
            indices = rows[start : start + len(computed)]
            self._store(people[indices], computed)
            for index, finding in zip(indices.tolist(), computed, strict=True):
                findings[index] = finding.numbered(index)
        return list(takewhile(lambda finding: finding is not None, findings))  # type: ignore[arg-type]  # it ends at None

    def _pieces(self, people: Matrix) -> Iterator[tuple[int, list[Finding]]]:
        """Yield findings until the answers of a counted model cannot be used any more."""
        try:
            for start, computed in self.executor.audit(people):
                yield start, computed
                self.stability.add(computed)
                self.stopped = self.stability.objection
                if self.stopped:
                    return
        except ModelFailure as error:
            self.stopped = str(error)

    def _store(self, people: Matrix, findings: list[Finding]) -> None:
        """Store answers; a fault is none, so a resumed audit retries its people."""
        answered = [row for row, finding in enumerate(findings) if is_answer(finding)]
        self.lost += [finding.reason for finding in findings].count(AuditFault.WORKER_DIED)
        if self.journal is not None and answered:
            self.journal.write(people[answered], [findings[row] for row in answered])
