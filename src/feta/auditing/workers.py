"""Workers: several processes that ask about people; one that dies takes nobody's answer with it."""

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
from feta.auditing.finding import Finding
from feta.errors import EngineError

# People handed to a worker at a time: the way there and back is small against them.
PIECE = 32

# Deaths in a row without an answer between them, after which something else must be wrong.
MAX_DEATHS = 6

DIED = "the process that asked about this person died, perhaps for lack of memory"

Piece = tuple[int, Matrix]  # the first person's place, and the people

_auditor: Auditor | None = None  # a worker's own


@contextmanager
def _interruptions_blocked() -> Iterator[None]:
    """Let processes that start here never be interrupted: the one that started them ends them."""
    if not hasattr(signal, "pthread_sigmask"):  # Windows
        yield
        return
    before = signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGINT})
    try:
        yield
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, before)


class Workers:
    """A pool of processes, each with an auditor that `make` gives it; `make` must be picklable."""

    def __init__(self, make: Callable[[], Auditor], jobs: int) -> None:
        if jobs < 1:
            raise EngineError(f"there must be at least one job, got {jobs}")
        self.make, self.jobs = make, jobs
        self.deaths = 0
        self.pool: ProcessPoolExecutor | None = None

    def _started(self) -> ProcessPoolExecutor:
        if self.pool is None:
            # Spawned, not forked: runtimes with threads of their own do not survive a fork.
            context = multiprocessing.get_context("spawn")
            self.pool = ProcessPoolExecutor(self.jobs, context, _begin, (self.make,))
        return self.pool

    def _submitted(self, piece: Matrix) -> "Future[list[Finding]]":
        """Hand over some people; this may start a process, which must never be interrupted."""
        with _interruptions_blocked():
            return self._started().submit(_ask, piece)

    def stop(self) -> None:
        """End all workers at once, in the middle of whatever they do."""
        pool, self.pool = self.pool, None
        if pool is not None:
            for process in list((pool._processes or {}).values()):  # noqa: SLF001 - the pool only waits for them
                process.kill()
            pool.shutdown(cancel_futures=True)

    def ask(self, people: Matrix) -> Iterator[tuple[int, list[Finding]]]:
        """Give findings as they come, with the place of the first person of each piece."""
        pieces = [(start, people[start : start + PIECE]) for start in range(0, len(people), PIECE)]
        left: dict[int, Piece] = dict(enumerate(pieces))
        try:
            for number, findings in self._together(pieces):
                yield left.pop(number)[0], findings
        except BrokenProcessPool:
            self._buried()
        # Any of those left may have been the death of a worker, so each is asked about alone.
        for piece in left.values():
            yield from self._alone(piece)

    def _together(self, pieces: Sequence[Piece]) -> Iterator[tuple[int, list[Finding]]]:
        numbers: dict[Future[list[Finding]], int] = {
            self._submitted(piece): number for number, (_, piece) in enumerate(pieces)
        }
        waiting = set(numbers)
        while waiting:
            done, waiting = wait(waiting, return_when=FIRST_COMPLETED)
            for future in done:
                if not isinstance(future.exception(), BrokenProcessPool):
                    findings = future.result()
                    self.deaths = 0
                    yield numbers[future], findings
            for future in done:
                future.result()  # a dead worker is told after what was done before it died

    def _alone(self, piece: Piece) -> Iterator[tuple[int, list[Finding]]]:
        start, people = piece
        try:
            found = self._submitted(people).result()
        except BrokenProcessPool:
            self._buried()
        else:
            self.deaths = 0
            yield start, found
            return
        if len(people) == 1:
            yield start, [Finding(0, "undecided", reason=DIED)]
            return
        for index in range(len(people)):
            yield from self._alone((start + index, people[index : index + 1]))

    def _buried(self) -> None:
        self.stop()
        self.deaths += 1
        if self.deaths > MAX_DEATHS:
            message = f"{self.deaths} processes died one after another without an answer; try --jobs 1, which says why"
            raise EngineError(message)


def obey() -> None:
    """Make a process a worker: Ctrl-C is the parent's to hear, and nobody outlives the parent."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    parent = multiprocessing.parent_process()
    if parent is not None:
        threading.Thread(target=_follow, args=(parent.join,), daemon=True).start()


def _begin(make: Callable[[], Auditor]) -> None:
    global _auditor  # noqa: PLW0603 - a process pool knows no other place for what its workers keep
    obey()
    _auditor = make()


def _follow(parent_ends: Callable[[], None]) -> None:
    parent_ends()
    os._exit(1)


def _ask(people: Matrix) -> list[Finding]:
    assert _auditor is not None  # _begin ran first
    return _auditor.ask(people)
