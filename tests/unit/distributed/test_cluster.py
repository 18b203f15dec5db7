"""Clusters: addresses, a scheduler that does not answer, and workers that die."""

from collections.abc import Callable, Iterator, Sequence
from functools import partial
from typing import Any, cast

import pytest

import feta
from feta.arrays import Matrix
from feta.auditing.finding import AuditFault
from feta.distributed import cluster, cluster_executor
from feta.distributed.cluster import Cluster, ClusterError, WorkersDied
from feta.distributed.cluster_executor import ClusterExecutor
from feta.errors import EngineError

pytest.importorskip("distributed")
pytest.importorskip("cryptography")


@pytest.mark.parametrize(
    "address", ["local", "local:0", "local:-1", "dask://host", "tcp://host:1", "dask://a b:1", ""]
)
def test_invalid_addresses(address: str) -> None:
    with pytest.raises(EngineError, match=r"invalid cluster: got .*; expected local:N"):
        feta.Cluster(address)


def test_no_scheduler(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(cluster, "CONNECT_SECONDS", 0.5)
    with (
        pytest.raises(
            ClusterError, match=r"dask://127\.0\.0\.1:1: no scheduler answers: got OSError"
        ),
        Cluster("dask://127.0.0.1:1"),
    ):
        pass


class Workerless:
    """A client of Dask without workers."""

    def __init__(self) -> None:
        self.looks = 0

    def scheduler_info(self, *, n_workers: int) -> dict[str, dict[str, object]]:
        assert n_workers == -1
        self.looks += 1
        return {"workers": {}}


def test_a_run_without_workers_ends(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(cluster, "ALONE_SECONDS", 0.05)
    monkeypatch.setattr(cluster, "LOOK_SECONDS", 0.01)
    started = Cluster("local:1")
    started._client = client = Workerless()
    with pytest.raises(ClusterError, match=r"^local:1: no workers are left: got none for 0\.05 "):
        started._wait(lambda: False)
    assert client.looks > 1
    started._wait(lambda: True)


def double(factor: int, item: int) -> int:
    return factor * item


def test_work_is_done_by_workers() -> None:
    with Cluster("local:1") as started:
        found = dict(started.each(double, started.share(2), range(5)))
    assert found == {item: 2 * item for item in range(5)}


SPACE = feta.FeatureSpace(
    (feta.Integer("age", 18, 90, sensitive=True), feta.Real("income", 0.0, 9.0))
)
MODEL = feta.Model(SPACE, feta.Network.from_layers([([[0.1, 1.0]], [-12.0])]))
FATAL = 2.5  # the income of a person on whom workers die


class Here:
    """A cluster that is this process."""

    def share(self, value: object) -> object:
        return value

    def each(
        self, work: Callable[[Any, Any], object], shared: object, items: Sequence[Matrix]
    ) -> Iterator[tuple[int, object]]:
        for index in reversed(range(len(items))):
            died = FATAL in items[index][:, 1]
            yield index, WorkersDied("they died") if died else work(shared, items[index])


def test_an_audit_of_a_table_in_memory(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(cluster_executor, "PIECE", 4)
    here = partial(ClusterExecutor, cast(Cluster, Here()))
    people = [{"age": 20.0 + 5 * number, "income": float(number)} for number in range(10)]
    expected = feta.audit(MODEL, people)
    found = feta.audit(MODEL, people, executor=here)
    assert found.summary == expected.summary
    assert [finding.status for finding in found.findings] == [
        finding.status for finding in expected.findings
    ]
    assert [finding.row for finding in found.findings] == list(range(10))
    people[6]["income"] = FATAL
    found = feta.audit(MODEL, people, executor=here)
    assert [finding.row for finding in found.findings if finding.reason] == [6]
    assert found.findings[6].reason == AuditFault.WORKER_DIED
