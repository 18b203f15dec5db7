"""Run: all steps on all folds, in as many processes as the user allows; what is done is kept."""

import multiprocessing
import time
from collections.abc import Callable, Generator, Iterator
from concurrent.futures import FIRST_COMPLETED, Future, ProcessPoolExecutor, wait
from concurrent.futures.process import BrokenProcessPool
from contextlib import closing, contextmanager
from dataclasses import dataclass, fields
from functools import partial
from pathlib import Path
from typing import Any

from feta.auditing.workers import become_worker
from feta.engine.lattice import LatticeEngine
from feta.engine.registry import engines
from feta.errors import EngineError
from feta.io.model_file import save_model
from feta.model import Model
from feta_paper.fold import bench_of, model_path
from feta_paper.journal import Key, RunJournal
from feta_paper.protocol import Protocol
from feta_paper.steps import Unit, units_of

# Seconds between two looks at how far the workers are.
GLANCE = 0.5

# Told the share of the whole work that is done, and what is being done.
Watch = Callable[[float, str], None]

Told = tuple[dict[str, Any], float]
Known = dict[str, float]
Done = dict[Key, dict[str, Any]]


@dataclass(frozen=True)
class Run:
    """What is to be carried out, and where its networks are kept."""

    protocol: Protocol
    seed: int
    folder: Path
    folds: int

    @property
    def units(self) -> list[Unit]:
        """All there is to do."""
        return units_of(self.protocol, self.folds)

    def tidy(self) -> None:
        """Remove what trainings kept on their way, when all is done."""
        for pattern in ("*.training", ".*.part"):
            for left in (self.folder / "models").glob(pattern):
                left.unlink()

    def carry_out(self, number: int, known: Known, tell: Callable[[float], None]) -> Told:
        """Do one unit: its outcome as plain values, and the seconds it took.

        `known` are the figures of the units that it needs.
        """
        from threadpoolctl import threadpool_limits  # noqa: PLC0415 - comes with scikit-learn

        unit, started = self.units[number], time.perf_counter()
        checkpoint = self.folder / "models" / f"{unit.name}-{unit.fold}.training"
        with (
            _one_thread(),
            threadpool_limits(1),
        ):  # sums of floats in the same order, whatever the machine
            bench = bench_of(
                self.protocol,
                seed=self.seed,
                fold=unit.fold,
                variant=unit.variant,
                folder=self.folder,
                checkpoint=checkpoint,
                known=known,
                tell=tell,
            )
            outcome = unit.step.work(bench)
        prints = {}
        for name, network in outcome.networks.items():
            model = Model(bench.space, network)
            save_model(model, model_path(self.folder, f"{unit.variant}{name}", unit.fold))
            prints[name] = model.fingerprint
        told = {
            one.name: getattr(outcome, one.name)
            for one in fields(outcome)
            if one.name != "networks"
        }
        return told | {"models": prints}, time.perf_counter() - started


@contextmanager
def _one_thread() -> Iterator[None]:
    """Let the compiled engine use one thread: the same work in one process as in several."""
    lattice = engines()[LatticeEngine.name]
    assert isinstance(lattice, LatticeEngine)
    before, lattice.threads = lattice.threads, 1
    try:
        yield
    finally:
        lattice.threads = before


def carry_out(run: Run, journal: RunJournal, *, jobs: int, watch: Watch) -> None:
    """Do what the journal does not know yet; times are taken last, one at a time."""
    (run.folder / "models").mkdir(parents=True, exist_ok=True)
    begun, units = time.monotonic(), run.units
    known = {one.key for one in units}
    done: Done = {key: told for key, (told, _) in journal.done().items() if key in known}
    total = sum(one.step.weight for one in units)

    def note(number: int, told: Told) -> None:
        journal.note(units[number].key, *told, time.monotonic() - begun)
        done[units[number].key] = told[0]

    def progress(shares: dict[int, float]) -> None:
        finished = sum(one.step.weight for one in units if one.key in done)
        under_way = sum(units[number].step.weight * one for number, one in shares.items())
        now = ", ".join(f"{units[n].name} on fold {units[n].fold + 1}" for n in sorted(shares))
        watch((finished + under_way) / total, now)

    for alone in (False, True):
        todo = [n for n, one in enumerate(units) if one.step.alone == alone and one.key not in done]
        way = _in_turn if jobs == 1 or alone else _side_by_side
        # Closed at once when something goes wrong, so that no worker is waited for.
        with closing(way(run, todo, done, jobs, progress)) as found:
            for number, told in found:
                note(number, told)
    run.tidy()


def _needed(unit: Unit, done: Done) -> Known:
    """Gather the figures of the units that this one needs."""
    return {key: figure for need in unit.needs for key, figure in done[need]["figures"].items()}


def _in_turn(
    run: Run,
    todo: list[int],
    done: Done,
    jobs: int,
    progress: Callable[[dict[int, float]], None],
) -> Generator[tuple[int, Told]]:
    """Do one unit after another here."""
    del jobs  # units come in an order in which each finds what it needs
    for number in todo:
        progress({number: 0.0})
        known = _needed(run.units[number], done)
        yield number, run.carry_out(number, known, partial(_only, progress, number))


def _only(progress: Callable[[dict[int, float]], None], number: int, share: float) -> None:
    progress({number: share})


def _side_by_side(
    run: Run,
    todo: list[int],
    done: Done,
    jobs: int,
    progress: Callable[[dict[int, float]], None],
) -> Generator[tuple[int, Told]]:
    """Do units in several processes, each as soon as what it needs is there."""
    units, waiting = run.units, list(todo)
    # Spawned, not forked: runtimes with threads of their own do not survive a fork.
    context = multiprocessing.get_context("spawn")
    shares = context.Array("d", len(units))
    pool = ProcessPoolExecutor(jobs, context, _begin, (run, shares))
    working: dict[Future[Told], int] = {}
    try:
        while waiting or working:
            for number in [n for n in waiting if units[n].needs <= done.keys()][
                : jobs - len(working)
            ]:
                waiting.remove(number)
                working[pool.submit(_work, number, _needed(units[number], done))] = number
            ready, _ = wait(working, timeout=GLANCE, return_when=FIRST_COMPLETED)
            for future in ready:
                yield working.pop(future), future.result()
            progress({number: shares[number] for number in working.values()})
    except BrokenProcessPool:
        message = "a process died in the middle of its work, perhaps for lack of memory; what is done is kept: run the same command again, with --jobs 1"
        raise EngineError(message) from None
    finally:
        for process in list((pool._processes or {}).values()):  # noqa: SLF001 - the pool only waits for them
            process.kill()
        pool.shutdown(cancel_futures=True)


_run: Run | None = None  # a worker's own
_shares: Any = None


def _begin(run: Run, shares: Any) -> None:  # noqa: ANN401 - shared memory
    global _run, _shares  # a process pool knows no other place for what its workers keep
    become_worker()
    _run, _shares = run, shares


def _work(number: int, known: Known) -> Told:
    assert _run is not None  # _begin ran first

    def tell(share: float) -> None:
        _shares[number] = share

    return _run.carry_out(number, known, tell)
