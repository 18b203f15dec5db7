"""Dask clusters: the only place that connects to one, or starts one on this machine."""

import logging
import re
import tempfile
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Self, TypeVar

from feta.auditing.workers import interrupts_blocked
from feta.errors import EngineError, MissingExtra

if TYPE_CHECKING:
    from feta.auditing.auditor import Auditor
    from feta.distributed.cluster_executor import ClusterExecutor

Item = TypeVar("Item")
Result = TypeVar("Result")

LOCAL = re.compile(r"local:([1-9][0-9]{0,3})")
REMOTE = re.compile(r"dask://([^/\s:]+|\[[0-9a-fA-F:]+\]):([0-9]{1,5})/?")

# Seconds to connect to a scheduler, and to reconnect to one that was lost.
CONNECT_SECONDS = 15

# A run ends if there is no worker at all for so many seconds. The supervisor of a worker may fail,
# and then nobody starts another one.
ALONE_SECONDS = 120

# Seconds between two looks at a cluster that gives no results, and between two looks at results.
LOOK_SECONDS = 5.0
FIRST_PAUSE, LAST_PAUSE = 0.001, 0.05

# How often a cluster of this machine is started until all workers are ready.
MAX_STARTS = 3

# A task whose workers die this often is given up, on a cluster of this machine.
MAX_DEATHS = 10


class ClusterError(EngineError):
    """A cluster that cannot be reached, or was lost."""


class WorkersDied(ClusterError):
    """A piece of work on which all of its workers died."""


@dataclass
class Cluster:
    """A Dask cluster: `local:N` starts N processes here, `dask://host:port` is a running one.

    Use it as a context. Whoever can connect to a cluster can run code in it: a cluster of this
    machine accepts its own processes only, and a running one must be in a trusted network.

    Parameters
    ----------
    address
        "local:4", or "dask://scheduler:8786".

    Raises
    ------
    MissingExtra
        If Dask is not installed.
    EngineError
        If the address is invalid, or no scheduler answers there.

    Examples
    --------
    In a script, start it below `if __name__ == "__main__":`, as for all processes of Python.

    >>> import feta
    >>> feta.Cluster("local:2").address
    'local:2'
    """

    address: str
    _stack: ExitStack = field(default_factory=ExitStack, init=False, repr=False)
    _client: Any = field(default=None, init=False, repr=False)

    def __post_init__(self) -> None:
        if not (LOCAL.fullmatch(self.address) or REMOTE.fullmatch(self.address)):
            raise EngineError(
                f"invalid cluster: got {self.address!r}; expected local:N for N processes on this "
                "machine, or dask://host:port for a Dask scheduler, such as dask://localhost:8786"
            )

    def __enter__(self) -> Self:
        distributed = _distributed()
        try:
            # Ctrl-C is for this process; workers inherit the mask of the thread that starts them.
            with interrupts_blocked():
                self._client = self._connect(distributed)
        except BaseException:
            self._stack.close()
            raise
        return self

    def __exit__(self, *_: object) -> None:
        self._client = None
        self._stack.close()

    def _connect(self, distributed: Any) -> Any:  # noqa: ANN401 - Dask's types
        import dask  # noqa: PLC0415 - an extra

        for name in ("distributed", *logging.root.manager.loggerDict):
            if name.split(".")[0] == "distributed":  # its errors are messages of FETA
                logging.getLogger(name).setLevel(logging.CRITICAL + 1)
        self._stack.enter_context(
            dask.config.set(
                {
                    "distributed.comm.timeouts.connect": CONNECT_SECONDS,
                    "distributed.scheduler.allowed-failures": MAX_DEATHS,
                }
            )
        )
        local = LOCAL.fullmatch(self.address)
        if local is None:
            return self._remote(distributed)
        client = distributed.Client(self._start(distributed, int(local[1])))
        return self._stack.enter_context(client)

    def _remote(self, distributed: Any) -> Any:  # noqa: ANN401 - Dask's types
        host_and_port = self.address.removeprefix("dask://").rstrip("/")
        try:
            client = distributed.Client(f"tcp://{host_and_port}", timeout=CONNECT_SECONDS)
        except (OSError, ValueError) as error:
            raise ClusterError(
                f"{self.address}: no scheduler answers: got {type(error).__name__}; expected a "
                "running Dask scheduler; start one with dask scheduler, and check host and port"
            ) from None
        self._stack.enter_context(client)
        try:
            client.wait_for_workers(1, timeout=CONNECT_SECONDS)
        except TimeoutError:
            raise ClusterError(
                f"{self.address}: no workers: got a scheduler without any; expected at least one; "
                f"start one with dask worker tcp://{host_and_port}"
            ) from None
        return client

    def _start(self, distributed: Any, n_workers: int) -> Any:  # noqa: ANN401 - Dask's types
        """Start a cluster of this machine, again if a worker dies before it is ready."""
        for attempt in range(1, MAX_STARTS + 1):
            try:
                return self._stack.enter_context(self._local_cluster(distributed, n_workers))
            except (RuntimeError, OSError) as error:
                if attempt == MAX_STARTS:
                    raise ClusterError(
                        f"{self.address}: the workers do not start: got {type(error).__name__}: "
                        f"{error}; expected {n_workers} processes; free some memory, or ask for "
                        "fewer"
                    ) from None
        raise AssertionError  # unreachable

    def _local_cluster(self, distributed: Any, n_workers: int) -> Any:  # noqa: ANN401 - Dask's types
        scratch = self._stack.enter_context(tempfile.TemporaryDirectory(ignore_cleanup_errors=True))
        return distributed.LocalCluster(
            n_workers=n_workers,
            threads_per_worker=1,
            dashboard_address=None,
            worker_dashboard_address=None,
            local_directory=scratch,
            silence_logs=logging.CRITICAL,
            security=_own_keys(distributed),
            memory_limit=None,  # parts are read in batches; a worker is not paused for others
        )

    def __call__(self, auditor: "Auditor") -> "ClusterExecutor":
        """Return the executor of `feta.audit(..., executor=cluster)`."""
        from feta.distributed.cluster_executor import ClusterExecutor  # noqa: PLC0415 - a circle

        return ClusterExecutor(self, auditor)

    def share(self, value: Result) -> Any:  # noqa: ANN401 - Dask's types
        """Return a handle to a value that all workers can read, also after some have died."""
        return self._client.submit(_same, value, pure=False)

    def each(
        self, work: Callable[[Any, Item], Result], shared: object, items: Sequence[Item]
    ) -> Iterator[tuple[int, Result | WorkersDied]]:
        """Do the work on each item, with the shared value; yield results as they arrive.

        Raises
        ------
        ClusterError
            If the scheduler was lost.
        """
        from distributed import as_completed  # noqa: PLC0415 - an extra

        futures: dict[Any, int] = {}
        try:
            with self._described_loss():
                for index, item in enumerate(items):
                    futures[self._client.submit(work, shared, item, pure=False)] = index
                done: Any = as_completed(futures)  # type: ignore[no-untyped-call]  # Dask's
            while done.count():
                with self._described_loss():
                    self._wait(done.has_ready)
                    future = next(done)
                    result = self._result(future)
                yield futures[future], result
        finally:
            self._cancel(list(futures))

    def _wait(self, ready: Callable[[], bool]) -> None:
        """Wait until something is ready; raise if there are no workers for a long time."""
        pause, looked, seen = FIRST_PAUSE, time.monotonic(), time.monotonic()
        while not ready():
            time.sleep(pause)
            pause = min(2 * pause, LAST_PAUSE)
            now = time.monotonic()
            if now - looked < LOOK_SECONDS:
                continue
            looked = now
            if self._client.scheduler_info(n_workers=-1)["workers"]:
                seen = now
            elif now - seen > ALONE_SECONDS:
                raise ClusterError(
                    f"{self.address}: no workers are left: got none for {ALONE_SECONDS} seconds; "
                    "expected at least one; run the command again"
                )

    @contextmanager
    def _described_loss(self) -> Iterator[None]:
        """Name the scheduler, and not a socket, in the error about a lost connection."""
        from distributed import CancelledError  # noqa: PLC0415 - an extra
        from distributed.comm.core import CommClosedError  # noqa: PLC0415 - an extra

        try:
            yield
        except (CommClosedError, CancelledError):
            raise self._lost() from None
        except TimeoutError:
            raise ClusterError(
                f"{self.address}: a result does not arrive: got none in {ALONE_SECONDS} seconds; "
                "expected one; run the command again"
            ) from None

    def _cancel(self, futures: Sequence[Any]) -> None:
        """Cancel what is not done; a scheduler that was lost needs no message."""
        if self._client is not None and self._client.status == "running":
            self._client.cancel([future for future in futures if not future.done()])

    def _lost(self) -> ClusterError:
        return ClusterError(
            f"{self.address}: the scheduler does not answer any more: got a lost connection; "
            "expected a running scheduler"
        )

    def _result(self, future: Any) -> Any:  # noqa: ANN401 - Dask's types
        from distributed import KilledWorker  # noqa: PLC0415 - an extra

        if future.status in ("cancelled", "lost"):
            raise self._lost()
        self._wait(future.done)  # a worker that dies now takes its results with it
        error = future.exception(timeout=ALONE_SECONDS)
        if isinstance(error, KilledWorker):
            return WorkersDied(
                "the workers died: got the death of every worker that had this work, possibly "
                "for lack of memory; expected a result; give the workers more memory"
            )
        return future.result(timeout=ALONE_SECONDS)


def _same(value: Result) -> Result:
    return value


def _distributed() -> Any:  # noqa: ANN401 - Dask's types
    try:
        import distributed  # noqa: PLC0415 - an extra
    except ImportError:
        raise MissingExtra("distributed", "dask") from None
    return distributed


def _own_keys(distributed: Any) -> Any:  # noqa: ANN401 - Dask's types
    """Return keys that only the processes of one cluster have: others cannot connect."""
    try:
        return distributed.Security.temporary()
    except ImportError:
        raise MissingExtra("cryptography", "dask") from None
