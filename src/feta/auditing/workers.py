"""Worker processes of an audit; a crashed worker loses no results."""

import multiprocessing
import os
import signal
import threading
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import FIRST_COMPLETED, Future, ProcessPoolExecutor, wait
from concurrent.futures.process import BrokenProcessPool
from contextlib import contextmanager

from feta.arrays import Matrix
from feta.auditing.auditor import Auditor
from feta.auditing.finding import AuditFault, Finding
from feta.errors import EngineError

# People sent to a worker at a time: enough that the communication costs little in comparison.
PIECE = 32

# People of a block per process: progress is shown after each block.
PEOPLE_PER_JOB = 256

# Maximum crashes in a row without a result in between; more have a common cause.
MAX_CRASHES = 6

Piece = tuple[int, Matrix]  # the index of the first person, and the people

_auditor: Auditor | None = None  # in a worker process: its auditor


@contextmanager
def interrupts_blocked() -> Iterator[None]:
    """Block SIGINT in processes that start here: their parent stops them."""
    if not hasattr(signal, "pthread_sigmask"):  # Windows
        yield
        return
    before = signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGINT})
    try:
        yield
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, before)


class Workers:
    """A pool of processes, each with the auditor that `make` returns; `make` must be picklable."""

    def __init__(self, make: Callable[[], Auditor], jobs: int) -> None:
        if jobs < 1:
            raise EngineError(f"invalid number of jobs: got {jobs}; expected at least 1")
        self.make, self.jobs = make, jobs
        self.crashes = 0
        self.pool: ProcessPoolExecutor | None = None

    @property
    def block_size(self) -> int:
        """How many people to pass to `audit` at a time."""
        return PEOPLE_PER_JOB * self.jobs

    def _started_pool(self) -> ProcessPoolExecutor:
        if self.pool is None:
            # Spawned, not forked: runtimes that use threads do not survive a fork.
            context = multiprocessing.get_context("spawn")
            self.pool = ProcessPoolExecutor(self.jobs, context, _start_worker, (self.make,))
        return self.pool

    def _submit(self, piece: Matrix) -> "Future[list[Finding]]":
        """Submit some people; this may start a process, which must ignore interrupts."""
        with interrupts_blocked():
            return self._started_pool().submit(_audit, piece)

    def stop(self) -> None:
        """Kill all workers immediately."""
        pool, self.pool = self.pool, None
        if pool is not None:
            # `shutdown` alone would wait for them.
            for process in list((pool._processes or {}).values()):  # noqa: SLF001
                process.kill()
            pool.shutdown(cancel_futures=True)

    def audit(self, people: Matrix) -> Iterator[tuple[int, list[Finding]]]:
        """Yield findings as they arrive, with the index of the first person of each piece."""
        pieces = [(start, people[start : start + PIECE]) for start in range(0, len(people), PIECE)]
        remaining: dict[int, Piece] = dict(enumerate(pieces))
        try:
            for number, findings in self._audit_pieces(pieces):
                yield remaining.pop(number)[0], findings
        except BrokenProcessPool:
            self._restart()
        # Any of the remaining pieces may have caused the crash, so each is submitted alone.
        for piece in remaining.values():
            yield from self._audit_alone(piece)

    def _audit_pieces(self, pieces: Sequence[Piece]) -> Iterator[tuple[int, list[Finding]]]:
        numbers: dict[Future[list[Finding]], int] = {
            self._submit(piece): number for number, (_, piece) in enumerate(pieces)
        }
        waiting = set(numbers)
        while waiting:
            done, waiting = wait(waiting, return_when=FIRST_COMPLETED)
            for future in done:
                if not isinstance(future.exception(), BrokenProcessPool):
                    findings = future.result()
                    self.crashes = 0
                    yield numbers[future], findings
            for future in done:
                future.result()  # raises after a crash, once all finished results are delivered

    def _audit_alone(self, piece: Piece) -> Iterator[tuple[int, list[Finding]]]:
        """Audit one piece; after a crash, each of its people alone."""
        start, people = piece
        try:
            findings = self._submit(people).result()
        except BrokenProcessPool:
            self._restart()
        else:
            self.crashes = 0
            yield start, findings
            return
        if len(people) == 1:
            yield start, [Finding(0, reason=AuditFault.WORKER_DIED)]
            return
        for index in range(len(people)):
            yield from self._audit_alone((start + index, people[index : index + 1]))

    def _restart(self) -> None:
        """Discard the pool after a crash; the next submission starts another one."""
        self.stop()
        self.crashes += 1
        if self.crashes > MAX_CRASHES:
            raise EngineError(
                f"worker processes keep crashing: got {self.crashes} crashes in a row without a "
                "result; run with --jobs 1 to see the cause"
            )


def become_worker() -> None:
    """Make this process a worker: it ignores Ctrl-C, and exits when its parent does."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    parent = multiprocessing.parent_process()
    if parent is not None:
        threading.Thread(target=_exit_after, args=(parent.join,), daemon=True).start()


def _start_worker(make: Callable[[], Auditor]) -> None:
    global _auditor  # noqa: PLW0603 - a process pool offers its workers no other place for state
    become_worker()
    _auditor = make()


def _exit_after(wait_for_parent: Callable[[], None]) -> None:
    wait_for_parent()
    os._exit(1)


def _audit(people: Matrix) -> list[Finding]:
    assert _auditor is not None  # _start_worker ran first
    return _auditor.audit(people)
