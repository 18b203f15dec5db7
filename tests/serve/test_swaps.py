"""Files that are replaced at the worst time, logs that cannot be written, and errors inside."""

import asyncio
import errno
import hashlib
import logging
import os
from collections.abc import AsyncIterator, Coroutine
from pathlib import Path
from typing import Any

import httpx
import orjson
import pytest

from feta.serve import endpoints, long_work
from feta.serve.application import Guard
from feta.serve.audit_log import AuditLog, check_log
from feta.serve.limits import ServiceLimits
from feta.serve.metrics import Metrics
from feta.serve.reloading import CurrentModel
from feta.serve.served import Served
from tests.serve.service import SPACE, built, decisions, records, write

PEOPLE = records(60, seed=3)
JSON = {"content-type": "application/json"}


def ask(app: Guard, *requests: httpx.Request) -> list[httpx.Response]:
    """Answer requests by the application itself, without a socket."""

    async def send() -> list[httpx.Response]:
        transport = httpx.ASGITransport(app=app)
        async with httpx.AsyncClient(transport=transport) as client:
            return [await client.send(one) for one in requests]

    asking: Coroutine[Any, Any, list[httpx.Response]] = send()
    return asyncio.run(asking)


def post(address: str, body: object) -> httpx.Request:
    return httpx.Request("POST", f"http://x{address}", json=body)


def digest(content: bytes) -> str:
    return hashlib.sha256(content).hexdigest()


def test_a_digest_names_the_model_that_decides_while_files_are_swapped(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Whatever a model reads from its file, it reads at once: here, each read finds another."""
    path, deciders, contents = tmp_path / "m.feta", {}, []
    for seed in (1, 2):
        decider = write(path, seed)
        contents.append(path.read_bytes())
        deciders[digest(contents[-1])] = decider
    first, second = (decisions(decider, PEOPLE) for decider in deciders.values())
    assert first != second
    for order in ((0, 1, 1, 0), (0, 1, 0, 1), (0, 0, 1, 0)):
        turns = iter([*order] * 3)
        monkeypatch.setattr(Path, "read_bytes", lambda _, turns=turns: contents[next(turns)])
        served = Served.load(path, "m")
        rows = SPACE.encode(PEOPLE, sensitive="ignore")
        names = [served.describe(one) for one in served.predictor.decide(rows).tolist()]
        assert names == decisions(deciders[served.digest], PEOPLE)


def test_a_change_while_the_first_model_is_opened_is_noticed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path, load = tmp_path / "m.feta", Served.load
    write(path, 1)

    def slow(path: Path, name: str) -> Served:
        served = load(path, name)
        write(path, 2)
        return served

    monkeypatch.setattr(Served, "load", slow)
    current = CurrentModel.load(path, "m", Metrics())
    monkeypatch.setattr(Served, "load", load)

    async def watch_until_noticed() -> None:
        limits = ServiceLimits(reload_seconds=0.001)
        watching = asyncio.create_task(current.watch(limits))
        for _ in range(20_000):
            if current.served.digest == digest(path.read_bytes()):
                break
            await asyncio.sleep(0.001)
        watching.cancel()

    asyncio.run(watch_until_noticed())
    assert current.served.digest == digest(path.read_bytes())


def test_a_demanded_version_is_not_answered_by_another(tmp_path: Path) -> None:
    """The model is replaced after the head of the request, and before the end of its body."""
    path = tmp_path / "m.feta"
    write(path, 1)
    app = built(path)
    version = app.service.current.served.digest
    tensors = [
        {"name": "income", "datatype": "INT64", "shape": [1], "data": [3]},
        {"name": "debt", "datatype": "FP64", "shape": [1], "data": [3.0]},
        {"name": "town", "datatype": "BYTES", "shape": [1], "data": ["a"]},
    ]
    content = orjson.dumps({"inputs": tensors})

    async def body() -> AsyncIterator[bytes]:
        yield content[:10]
        write(path, 2)
        await app.service.current.reload()
        yield content[10:]

    address = f"/v2/models/m/versions/{version}/infer"
    same = httpx.Request("POST", f"http://x{address}", headers=JSON, content=content)
    changed = httpx.Request("POST", f"http://x{address}", headers=JSON, content=body())
    answers = ask(app, same, changed)
    assert [one.status_code for one in answers] == [200, 404]
    assert answers[0].json()["model_version"] == version
    assert "unknown version" in answers[1].json()["error"]


def test_a_decision_that_cannot_be_logged_is_not_answered(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    write(tmp_path / "m.feta", 1)
    app = built(tmp_path / "m.feta", log=str(tmp_path / "log"))
    right, real = post("/v1/decide", PEOPLE[0]), os.write

    def half(descriptor: int, content: bytes) -> int:
        return real(descriptor, content[: len(content) // 2])

    def full(_: int, __: bytes) -> int:
        raise OSError(errno.ENOSPC, "No space left on device")

    assert ask(app, right)[0].status_code == 200
    for failing in (half, full):
        monkeypatch.setattr(os, "write", failing)
        for body in (PEOPLE[0], PEOPLE):
            (refused,) = ask(app, post("/v1/decide", body))
            assert refused.status_code == 503
            assert "could not be logged" in refused.json()["error"]
    monkeypatch.setattr(os, "write", real)
    assert ask(app, right)[0].status_code == 200
    assert isinstance(app.service.log, AuditLog)
    app.service.log.close()
    check = check_log(app.service.log.path)  # the chain continues after the failures
    assert (check.lines, check.decisions, check.closed) == (3, 2, True)


def test_an_error_inside_shows_no_value_of_a_person(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    write(tmp_path / "m.feta", 1)
    app = built(tmp_path / "m.feta")

    def fail(_: Served, records: list[dict[str, Any]]) -> None:
        raise RuntimeError(f"no such town: {records[0]['town']}")

    for module in (endpoints, long_work):
        monkeypatch.setattr(module, "decide_records", fail)
    with caplog.at_level(logging.DEBUG, logger="feta.serve"):
        answers = ask(
            app,
            post("/v1/decide", PEOPLE[0] | {"town": "Secretville"}),
            post("/v1/decide", [PEOPLE[0] | {"town": "Secretville"}]),
        )
    for answer in answers:
        assert answer.status_code == 500
        assert answer.json() == {"error": "internal error; the log of the service names it"}
    assert "internal error: RuntimeError in" in caplog.text
    assert "in fail" in caplog.text
    assert "Secretville" not in caplog.text


def test_a_refused_reload_names_the_file_and_no_folder(tmp_path: Path) -> None:
    path = tmp_path / "m.feta"
    write(path, 1)
    app = built(path)
    path.write_bytes(path.read_bytes()[:-9])
    (refused,) = ask(app, post("/v1/reload", {}))
    assert refused.status_code == 409
    assert "m.feta" in refused.json()["error"]
    assert str(tmp_path) not in refused.text


def test_any_host_header_gets_words(tmp_path: Path) -> None:
    write(tmp_path / "m.feta", 1)
    app = built(tmp_path / "m.feta")
    for host in ("[", "[::1", "a:b:c", "x" * 300, ""):
        (answer,) = ask(app, httpx.Request("GET", "http://x/nowhere", headers={"host": host}))
        assert answer.status_code == 404
        assert "unknown address: got '/nowhere'" in answer.json()["error"]


def test_a_long_unknown_column_is_shown_in_part(tmp_path: Path) -> None:
    write(tmp_path / "m.feta", 1)
    app = built(tmp_path / "m.feta")
    people = [PEOPLE[0] | {"x" * 5000: 1}, PEOPLE[1]]
    (answer,) = ask(app, post("/v1/decide", people))
    content = answer.json()
    assert content["decisions"][0] is None
    assert content["decisions"][1] is not None
    assert content["refused"][0]["column"] == "x" * 100
    assert len(answer.content) < 1000
