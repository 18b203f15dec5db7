"""All steps on all folds, in several processes; finished results are stored in the journal."""

import multiprocessing
import time
from collections.abc import Callable, Generator, Iterator, Sequence, Set
from concurrent.futures import FIRST_COMPLETED, Future, ProcessPoolExecutor, wait
from concurrent.futures.process import BrokenProcessPool
from contextlib import closing, contextmanager
from dataclasses import dataclass, fields
from functools import partial
from pathlib import Path
from typing import Any, Protocol

from feta.auditing.workers import become_worker
from feta.engine.lattice import LatticeEngine
from feta.engine.registry import engines
from feta.errors import EngineError
from feta.io.model_file import save_model
from feta.model import Model
from feta_paper.fold import load_fold, model_path
from feta_paper.journal import Key, RunJournal
from feta_paper.protocol import Protocol as PaperProtocol
from feta_paper.steps import Unit, units_of

# Seconds between two progress updates of the workers.
POLL_SECONDS = 0.5

# Called with the finished share of all work, and a description of the current work.
Watch = Callable[[float, str], None]

# The result of a unit as plain values, and its seconds.
UnitResult = tuple[dict[str, Any], float]
Known = dict[str, float]
Done = dict[Key, dict[str, Any]]
# Called with the finished share of each running unit, by its index.
ReportShares = Callable[[dict[int, float]], None]


class WorkUnit(Protocol):
    """A part of a run with its own result."""

    @property
    def key(self) -> Key:
        """The key in the journal."""
        ...

    @property
    def needs(self) -> Set[Key]:
        """The keys of the units that must be done before."""
        ...

    @property
    def weight(self) -> float:
        """An estimate of its seconds, for the progress bar only."""
        ...

    @property
    def alone(self) -> bool:
        """Whether it measures times, so that nothing else may run."""
        ...

    @property
    def title(self) -> str:
        """Its name in the progress bar."""
        ...


class Work(Protocol):
    """A run that can be divided among processes; it must be picklable."""

    @property
    def folder(self) -> Path:
        """The folder of the results."""
        ...

    @property
    def units(self) -> Sequence[WorkUnit]:
        """All units, each after those that it needs."""
        ...

    def tidy(self) -> None:
        """Remove files that only an unfinished run needs."""
        ...

    def carry_out(self, index: int, known: Known, progress: Callable[[float], None]) -> UnitResult:
        """Run one unit."""
        ...


@dataclass(frozen=True)
class Run:
    """A protocol with a seed and a number of folds, and the folder of its networks."""

    protocol: PaperProtocol
    seed: int
    folder: Path
    folds: int

    @property
    def units(self) -> list[Unit]:
        """All units of work."""
        return units_of(self.protocol, self.folds)

    def tidy(self) -> None:
        """Remove training checkpoints and partial files."""
        for pattern in ("*.training", ".*.part"):
            for path in (self.folder / "models").glob(pattern):
                path.unlink()

    def carry_out(self, index: int, known: Known, progress: Callable[[float], None]) -> UnitResult:
        """Run one unit and save its networks; `known` has the figures of the units it needs."""
        unit, started = self.units[index], time.perf_counter()
        (self.folder / "models").mkdir(parents=True, exist_ok=True)
        checkpoint = self.folder / "models" / f"{unit.name}-{unit.fold_number}.training"
        with one_thread():
            fold = load_fold(
                self.protocol,
                seed=self.seed,
                number=unit.fold_number,
                variant=unit.variant,
                folder=self.folder,
                checkpoint=checkpoint,
                known=known,
                progress=progress,
            )
            result = unit.step.work(fold)
        fingerprints = {}
        for name, network in result.networks.items():
            model = Model(fold.space, network)
            save_model(model, model_path(self.folder, f"{unit.variant}{name}", unit.fold_number))
            fingerprints[name] = model.fingerprint
        values = {
            field.name: getattr(result, field.name)
            for field in fields(result)
            if field.name != "networks"
        }
        return values | {"models": fingerprints}, time.perf_counter() - started


@contextmanager
def one_thread() -> Iterator[None]:
    """Limit everything to one thread: the same work in one process as in several.

    Floats are then summed in the same order on every machine.
    """
    from threadpoolctl import threadpool_limits  # noqa: PLC0415 - comes with scikit-learn

    lattice = engines()[LatticeEngine.name]
    assert isinstance(lattice, LatticeEngine)
    before, lattice.threads = lattice.threads, 1
    try:
        with threadpool_limits(1):
            yield
    finally:
        lattice.threads = before


def carry_out(run: Work, journal: RunJournal, *, jobs: int, watch: Watch) -> None:
    """Run the units that the journal does not have; those that measure times run last, alone."""
    begun, units = time.monotonic(), run.units
    keys = {unit.key for unit in units}
    done: Done = {key: result for key, (result, _) in journal.done().items() if key in keys}
    total = sum(unit.weight for unit in units)

    def report(shares: dict[int, float]) -> None:
        finished = sum(unit.weight for unit in units if unit.key in done)
        running = sum(units[index].weight * share for index, share in shares.items())
        watch(
            (finished + running) / total, ", ".join(units[index].title for index in sorted(shares))
        )

    for alone in (False, True):
        pending = [
            index
            for index, unit in enumerate(units)
            if unit.alone == alone and unit.key not in done
        ]
        execute = _sequential if jobs == 1 or alone else _parallel
        # Closed at once on an error, so that no worker is waited for.
        with closing(execute(run, pending, done, jobs, report)) as results:
            for index, (result, seconds) in results:
                journal.note(units[index].key, result, seconds, time.monotonic() - begun)
                done[units[index].key] = result
    run.tidy()


def _needed(unit: WorkUnit, done: Done) -> Known:
    """Collect the figures of the units that this one needs."""
    return {key: figure for need in unit.needs for key, figure in done[need]["figures"].items()}


def _sequential(
    run: Work, pending: list[int], done: Done, jobs: int, report: ReportShares
) -> Generator[tuple[int, UnitResult]]:
    """Run one unit after another in this process."""
    del jobs  # each unit comes after those that it needs
    for index in pending:
        report({index: 0.0})
        known = _needed(run.units[index], done)
        yield index, run.carry_out(index, known, partial(_report_one, report, index))


def _report_one(report: ReportShares, index: int, share: float) -> None:
    report({index: share})


def _parallel(
    run: Work, pending: list[int], done: Done, jobs: int, report: ReportShares
) -> Generator[tuple[int, UnitResult]]:
    """Run units in several processes, each as soon as the units that it needs are done."""
    units, waiting = run.units, list(pending)
    # Spawned, not forked: libraries that have started threads do not survive a fork.
    context = multiprocessing.get_context("spawn")
    shares = context.Array("d", len(units))
    pool = ProcessPoolExecutor(jobs, context, _start_worker, (run, shares))
    working: dict[Future[UnitResult], int] = {}
    try:
        while waiting or working:
            ready = [index for index in waiting if units[index].needs <= done.keys()]
            for index in ready[: jobs - len(working)]:
                waiting.remove(index)
                working[pool.submit(_work, index, _needed(units[index], done))] = index
            finished, _ = wait(working, timeout=POLL_SECONDS, return_when=FIRST_COMPLETED)
            for future in finished:
                yield working.pop(future), future.result()
            report({index: shares[index] for index in working.values()})
    except BrokenProcessPool:
        message = (
            "a worker process died, perhaps for lack of memory; finished steps are saved; "
            "run the same command again with --jobs 1"
        )
        raise EngineError(message) from None
    finally:
        # The pool itself would wait for its processes.
        for process in list((pool._processes or {}).values()):  # noqa: SLF001 - no public way
            process.kill()
        pool.shutdown(cancel_futures=True)


_run: Work | None = None  # of this worker process
_shares: Any = None


def _start_worker(run: Work, shares: Any) -> None:  # noqa: ANN401 - shared memory
    global _run, _shares  # a process pool has no other place for the state of a worker
    become_worker()
    _run, _shares = run, shares


def _work(index: int, known: Known) -> UnitResult:
    assert _run is not None  # _start_worker ran first

    def progress(share: float) -> None:
        _shares[index] = share

    return _run.carry_out(index, known, progress)
