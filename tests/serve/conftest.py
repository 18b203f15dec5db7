"""One server for all tests that do not change it."""

from collections.abc import Iterator

import pytest

for package in ("starlette", "uvicorn", "orjson", "prometheus_client", "httpx"):
    pytest.importorskip(package)

import httpx

from tests.serve.service import Server, serving, write


@pytest.fixture(scope="session")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Server]:
    """Return a server of the model with seed 0, without API keys."""
    model = tmp_path_factory.mktemp("served") / "credit.feta"
    write(model, 0)
    with serving(model) as running:
        wait_until_ready(running)
        yield running


@pytest.fixture
def client(server: Server) -> Iterator[httpx.Client]:
    """Return a client of that server."""
    with httpx.Client(base_url=server.url, timeout=60) as open_client:
        yield open_client


def wait_until_ready(server: Server) -> None:
    """Return once the server answers: the socket is open before the first worker listens."""
    with httpx.Client(base_url=server.url, timeout=60) as client:
        assert client.get("/health/ready").status_code == 200
