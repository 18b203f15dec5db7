"""The executor of a cluster: `feta.audit` of a table in memory, answered by Dask's workers."""

from collections.abc import Iterator
from dataclasses import dataclass

from feta.arrays import Matrix
from feta.auditing.auditor import Auditor
from feta.auditing.finding import AuditFault, Finding
from feta.distributed.cluster import Cluster, WorkersDied
from feta.distributed.part_model import WORKING

# People sent at a time: enough that the communication costs little in comparison.
PIECE = 1024

# People of a block: enough pieces for the workers of a cluster.
BLOCK = 256 * PIECE

Piece = tuple[int, Matrix]  # the index of the first person, and the people


@dataclass
class ClusterExecutor:
    """Audits on a cluster, with one auditor that is sent to the workers."""

    cluster: Cluster
    auditor: Auditor

    @property
    def block_size(self) -> int:
        """How many people to pass to `audit` at a time."""
        return BLOCK

    def audit(self, people: Matrix) -> Iterator[tuple[int, list[Finding]]]:
        """Yield findings as they arrive, with the index of the first person of each piece."""
        shared = self.cluster.share(self.auditor)
        pieces = [(start, people[start : start + PIECE]) for start in range(0, len(people), PIECE)]
        again: list[Piece] = []
        for number, findings in self.cluster.each(_audit, shared, [rows for _, rows in pieces]):
            if isinstance(findings, WorkersDied):
                again += _one_by_one(*pieces[number])
            else:
                yield pieces[number][0], findings
        for number, findings in self.cluster.each(_audit, shared, [rows for _, rows in again]):
            if isinstance(findings, WorkersDied):
                findings = [Finding(0, reason=AuditFault.WORKER_DIED)]  # noqa: PLW2901
            yield again[number][0], findings

    def stop(self) -> None:
        """Do nothing: the cluster belongs to the caller."""


def _one_by_one(start: int, people: Matrix) -> list[Piece]:
    """Return each person alone: any of them may be the reason for the death of the workers."""
    return [(start + index, people[index : index + 1]) for index in range(len(people))]


def _audit(auditor: Auditor, people: Matrix) -> list[Finding]:
    with WORKING:
        return auditor.audit(people)
