"""Executors: how blocks of people become findings, in this process or in others."""

import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Protocol

from feta.arrays import Matrix
from feta.auditing.auditor import Auditor
from feta.auditing.finding import Finding
from feta.auditing.interruptible import run_interruptibly

# Target time of a piece of work, which is how much is lost when the process is killed.
PIECE_SECONDS = 0.5
FIRST_PIECE = 16
MAX_PEOPLE = 1024


class Executor(Protocol):
    """Audits blocks of people.

    Whatever the executor, the same people get the same findings.
    """

    @property
    def block_size(self) -> int:
        """How many people to pass to `audit` at a time."""
        ...

    def audit(self, people: Matrix) -> Iterator[tuple[int, list[Finding]]]:
        """Yield findings as they arrive, with the index of the first person of each piece.

        Each person occurs once. Findings are numbered from 0 in each piece.
        """
        ...

    def stop(self) -> None:
        """End all work immediately."""
        ...


def fitting_of(executor: Executor) -> Callable[[], int] | None:
    """Return the executor's estimate of how many people take half a second, if it has one."""
    fitting: Callable[[], int] | None = getattr(executor, "fitting", None)
    return fitting


# Returns the executor of an audit; `feta.Cluster` is one.
MakeExecutor = Callable[[Auditor], Executor]


@dataclass
class InProcess:
    """Audits in this process, in another thread so that Ctrl-C can interrupt compiled code."""

    auditor: Auditor
    interruptible: bool = True
    size: int = FIRST_PIECE  # people in the next piece, adapted to PIECE_SECONDS

    @property
    def block_size(self) -> int:
        """How many people to pass to `audit` at a time."""
        return MAX_PEOPLE

    def fitting(self) -> int:
        """Return how many people take about as long as the target."""
        return self.size

    def audit(self, people: Matrix) -> Iterator[tuple[int, list[Finding]]]:
        """Audit pieces that take about as long as the target."""
        start, audit = 0, self.auditor.audit
        while start < len(people):
            piece = people[start : start + self.size]
            started = time.perf_counter()
            yield start, run_interruptibly(audit, piece) if self.interruptible else audit(piece)
            start += len(piece)
            seconds = max(time.perf_counter() - started, 1e-9)
            fitting = int(PIECE_SECONDS * len(piece) / seconds)
            self.size = max(1, min(MAX_PEOPLE, 2 * self.size, fitting))

    def stop(self) -> None:
        """Do nothing: an interrupted computation ends with the process."""
