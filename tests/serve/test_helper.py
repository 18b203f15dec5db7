"""The helper process: it dies, hangs, fails or cannot start, and the model changes meanwhile."""

import asyncio
import hashlib
import io
import os
import signal
import sys
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any

import httpx
import orjson
import pytest

from feta.serve.application import Guard, application
from feta.serve.frames import LENGTHS, frame, read_frame, write_frame
from feta.serve.helper import Helper
from feta.serve.helper_program import HelperProgram
from feta.serve.limits import LIMITS
from feta.serve.long_work import Kind, Question, answer
from feta.serve.served import Served
from feta.serve.server import ServeOptions, build
from tests.serve.conftest import wait_until_ready
from tests.serve.service import (
    decisions,
    helper_of,
    is_helper,
    predictor,
    records,
    serving,
    write,
)

PEOPLE = records(60, seed=3)
RIGHT = decisions(predictor(0), PEOPLE)
AWAY = "the process that answers lists and what-ifs"

# A helper whose work fails or never ends; the program is otherwise the real one.
FAILING = """
import feta.serve.helper_program as program
def fail(served, question, gone):
    raise RuntimeError(f"no such town: {question.body}")
program.answer = fail
program.main()
"""
SLEEPING = FAILING.replace("    raise", "    import time; time.sleep(1e6)\n    raise")


@contextmanager
def running(tmp_path: Path, *, program: str = "", seconds: float = 60.0) -> Iterator[Guard]:
    """Return an application whose helper runs."""
    write(tmp_path / "m.feta", 0)
    service = build(ServeOptions(str(tmp_path / "m.feta"), "m")).service
    if program:
        helper = Helper(service.helper.current, command=(sys.executable, "-c", program))
        service = replace(service, helper=helper)
    app = application(replace(service, limits=replace(LIMITS, long_seconds=seconds)))
    service.helper.start()
    try:
        yield app
    finally:
        service.helper.stop()
    assert service.helper.channel is None


def ask(app: Guard, *bodies: object, address: str = "/v1/decide") -> list[httpx.Response]:
    """Answer requests one after another."""

    async def send() -> list[httpx.Response]:
        transport = httpx.ASGITransport(app=app)
        async with httpx.AsyncClient(transport=transport, base_url="http://x") as client:
            return [await client.post(address, json=body) for body in bodies]

    return asyncio.run(send())


def until_right(app: Guard) -> None:
    """Ask until a list is answered; until then the answer is 503, in words."""
    for _ in range(2000):
        (one,) = ask(app, PEOPLE)
        if one.status_code == 200:
            assert one.json()["decisions"] == RIGHT
            return
        assert one.status_code == 503
        assert one.headers["retry-after"] == "1"
        time.sleep(0.02)
    pytest.fail("the helper was not started again")


def process_of(app: Guard) -> int:
    channel = app.service.helper.channel
    assert channel is not None
    return channel.process.pid


def test_a_helper_that_dies_is_replaced(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    with running(tmp_path) as app:
        for _ in range(2):
            until_right(app)
            before = process_of(app)
            os.kill(before, signal.SIGKILL)
            (single,) = ask(app, PEOPLE[0])
            assert single.json()["decision"] == RIGHT[0]
            until_right(app)
            assert process_of(app) != before
    assert "ended (status -9): it is started again" in caplog.text


def test_a_request_whose_process_dies_is_refused_in_words(tmp_path: Path) -> None:
    with running(tmp_path, program=SLEEPING) as app:
        pid = process_of(app)
        threading.Timer(1.0, lambda: os.kill(pid, signal.SIGKILL)).start()
        (refused,) = ask(app, PEOPLE)
        assert refused.status_code == 503
        assert refused.headers["retry-after"] == "1"
        assert f"{AWAY} ended while it worked on the request" in refused.json()["error"]


@pytest.mark.skipif(not hasattr(signal, "SIGSTOP"), reason="this system cannot stop a process")
def test_a_helper_that_hangs_is_ended(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    with running(tmp_path, seconds=3.0) as app:
        until_right(app)
        before = process_of(app)
        os.kill(before, signal.SIGSTOP)
        (refused,) = ask(app, PEOPLE)
        assert refused.status_code == 503
        assert "no answer within 3 seconds; send fewer people" in refused.json()["error"]
        until_right(app)
        assert process_of(app) != before
    assert "took 3 seconds: its process is ended" in caplog.text


@pytest.mark.skipif(not hasattr(signal, "SIGSTOP"), reason="this system cannot stop a process")
def test_the_service_ends_although_its_helper_hangs(tmp_path: Path) -> None:
    with running(tmp_path) as app:
        until_right(app)
        os.kill(process_of(app), signal.SIGSTOP)


def test_a_helper_that_cannot_start_is_refused_in_words(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    write(tmp_path / "m.feta", 0)
    service = build(ServeOptions(str(tmp_path / "m.feta"), "m")).service
    helper = Helper(service.helper.current, command=(str(tmp_path / "nowhere"),))
    app = application(replace(service, helper=helper))
    helper.start()
    refused, single = ask(app, PEOPLE, PEOPLE[0])
    helper.stop()
    assert refused.status_code == 503
    assert f"{AWAY} is not running, and is started again" in refused.json()["error"]
    assert single.json()["decision"] == RIGHT[0]
    assert "cannot be started: No such file" in caplog.text


def test_an_error_in_the_helper_shows_no_value_of_a_person(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    with running(tmp_path, program=FAILING) as app:
        (failed,) = ask(app, [PEOPLE[0] | {"town": "Secretville"}])
    assert failed.status_code == 500
    assert failed.json() == {"error": "internal error; the log of the service names it"}
    assert "internal error: RuntimeError in" in caplog.text
    assert "in fail" in caplog.text
    assert "Secretville" not in caplog.text


def test_answers_name_the_model_that_decided_while_it_changes_and_the_helper_dies(
    tmp_path: Path,
) -> None:
    path = tmp_path / "m.feta"
    with running(tmp_path) as app:
        for turn in range(6):
            decider = write(path, turn % 2)
            digest = hashlib.sha256(path.read_bytes()).hexdigest()
            (reloaded,) = ask(app, {}, address="/v1/reload")
            assert reloaded.json() == {"model": digest}
            if turn % 3 == 2:
                os.kill(process_of(app), signal.SIGKILL)
            answered = 0
            while answered < 3:
                (one,) = ask(app, PEOPLE)
                assert one.status_code in (200, 503)
                if one.status_code == 200:
                    assert one.json()["model"] == digest
                    assert one.json()["decisions"] == decisions(decider, PEOPLE)
                    answered += 1


def test_a_helper_does_not_decide_with_another_model_than_demanded(tmp_path: Path) -> None:
    write(tmp_path / "m.feta", 0)
    served = Served.load(tmp_path / "m.feta", "m")
    program = HelperProgram(replies := io.BytesIO(), served)
    for number, digest in enumerate((served.digest, "0" * 64)):
        program.running[number] = threading.Event()
        header = {"id": number, "kind": Kind.DECIDE, "digest": digest, "client": ""}
        program._answer(header, orjson.dumps(PEOPLE), served)
    replies.seek(0)
    right, wrong = read_frame(replies), read_frame(replies)
    assert right is not None
    assert orjson.loads(right[1])["decisions"] == RIGHT
    assert wrong is not None
    assert wrong[0]["failed"] == "LookupError"
    assert wrong[1] == b""


def test_work_for_a_client_that_has_gone_ends(tmp_path: Path) -> None:
    write(tmp_path / "m.feta", 0)
    served = Served.load(tmp_path / "m.feta", "m")
    looks = iter([False, False, True])
    question = Question(Kind.DECIDE, orjson.dumps(records(5000)), "", None)
    with pytest.raises(ConnectionResetError):
        answer(served, question, lambda: next(looks))
    assert not list(looks)


def test_a_client_that_goes_gives_its_place_to_the_next(tmp_path: Path) -> None:
    """Clients close their connections while the helper works on their lists."""
    people = records(9000, seed=5)
    body = orjson.dumps(people)
    head = b"POST /v1/decide HTTP/1.1\r\nHost: x\r\nContent-Type: application/json\r\n"
    write(tmp_path / "m.feta", 0)

    async def go(port: int) -> None:
        _, writer = await asyncio.open_connection("127.0.0.1", port)
        writer.write(head + b"Content-Length: %d\r\n\r\n" % len(body) + body)
        await writer.drain()
        writer.close()

    with serving(tmp_path / "m.feta") as server:
        wait_until_ready(server)
        for _ in range(12):  # more than may wait
            asyncio.run(go(server.port))
        with httpx.Client(base_url=server.url, timeout=60) as client:
            last = client.post("/v1/decide", json=PEOPLE)
            for _ in range(1000):
                if last.status_code == 200:
                    break
                time.sleep(0.05)
                last = client.post("/v1/decide", json=PEOPLE)
            assert last.json()["decisions"] == RIGHT
            assert client.post("/v1/decide", json=PEOPLE[0]).json()["decision"] == RIGHT[0]


@pytest.mark.skipif(not Path("/proc/self/task").exists(), reason="this system has no /proc")
@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT, signal.SIGKILL])
def test_a_helper_ends_with_the_service_and_by_no_other_order(
    tmp_path: Path, number: signal.Signals
) -> None:
    write(tmp_path / "m.feta", 0)
    with serving(tmp_path / "m.feta") as server:
        wait_until_ready(server)
        helper = helper_of(server.process.pid)
        with httpx.Client(base_url=server.url, timeout=60) as client:
            client.post("/v1/decide", json=PEOPLE)
            for ignored in (signal.SIGINT, signal.SIGTERM):  # a service manager signals all
                os.kill(helper, ignored)
            assert client.post("/v1/decide", json=PEOPLE).json()["decisions"] == RIGHT
        assert helper_of(server.process.pid) == helper
        if number is signal.SIGKILL:
            server.process.kill()
            server.process.wait()
            server.process.returncode = 0  # as `serving` expects
        else:
            server.process.send_signal(number)
            server.process.wait(timeout=60)
    for _ in range(600):
        if not is_helper(helper):
            return
        time.sleep(0.05)
    pytest.fail("the helper outlives the service")


@pytest.mark.parametrize("parts", [[], [b""], [b"a"], [b"x" * 70_000, b"", b"yz"]])
def test_messages_arrive_as_they_were_sent(parts: list[bytes]) -> None:
    class Narrow(io.BytesIO):
        def write(self, content: Any) -> int:  # noqa: ANN401 - a buffer
            return super().write(content[:1000])

    stream, header = Narrow(), {"id": 7, "content": {"error": "é"}}
    for _ in range(2):
        write_frame(stream, frame(header, parts))
    stream.seek(0)
    assert [read_frame(stream) for _ in range(3)] == [(header, b"".join(parts))] * 2 + [None]


@pytest.mark.parametrize("length", [0, 5, LENGTHS.size, LENGTHS.size + 3, -1])
def test_a_message_that_was_cut_off_is_no_message(length: int) -> None:
    content = b"".join(frame({"id": 7}, [b"body"]))
    assert read_frame(io.BytesIO(content[:length])) is None


def test_the_helper_has_a_lower_priority(tmp_path: Path) -> None:
    with running(tmp_path) as app:
        until_right(app)
        if hasattr(os, "getpriority"):
            other = os.getpriority(os.PRIO_PROCESS, process_of(app))
            assert other == min(19, os.getpriority(os.PRIO_PROCESS, 0) + 5)


def test_a_helper_that_answers_nonsense_is_replaced(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    program = """
import sys
from feta.serve.frames import frame, write_frame
sys.stdin.buffer.read(100)
write_frame(sys.stdout.buffer, frame({"id": 10**6}))
sys.stdout.flush()
sys.stdin.buffer.read()
"""
    with running(tmp_path, program=program) as app:
        while "damaged: KeyError" not in caplog.text:
            (first,) = ask(app, PEOPLE)
            assert first.status_code == 503
            time.sleep(0.01)
        (refused, single) = ask(app, PEOPLE, PEOPLE[0])
        assert refused.status_code == 503
        assert single.json()["decision"] == RIGHT[0]


def test_a_file_in_the_working_directory_replaces_no_module(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "secrets.py").write_text("raise SystemExit(1)\n")
    monkeypatch.chdir(tmp_path)
    with running(tmp_path) as app:
        until_right(app)
