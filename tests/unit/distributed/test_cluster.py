"""Clusters: addresses, a scheduler that does not answer, and workers that die."""

import os
import signal
from pathlib import Path

import pytest

import feta
from feta.distributed import cluster
from feta.distributed.cluster import Cluster, ClusterError, WorkersDied
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


def die_once(folder: Path, item: int) -> int:
    """Kill this process the first time that it gets item 2, and always with item 3."""
    mark = folder / "died"
    if item == 3 or (item == 2 and not mark.exists()):
        mark.touch()
        os.kill(os.getpid(), signal.SIGKILL)
    return item * item


def test_workers_die(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(cluster, "MAX_DEATHS", 1)
    with Cluster("local:1") as started:
        found = dict(started.each(die_once, started.share(tmp_path), range(5)))
    died = found.pop(3)
    assert isinstance(died, WorkersDied)
    assert "for lack of memory; expected a result; give the workers more memory" in str(died)
    assert found == {item: item * item for item in (0, 1, 2, 4)}
