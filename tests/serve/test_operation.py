"""API keys, the log, hot reload, overload, several processes, and the end of a server."""

import asyncio
import hashlib
import json
import os
import signal
import threading
import time
from collections import Counter
from pathlib import Path

import httpx
import orjson
import pytest

from feta.errors import FetaError
from feta.serve.audit_log import AuditLog, check_log, person_hashes
from feta.serve.keys import ApiKeys, KeyFile
from feta.serve.limits import ServiceLimits
from tests.cli.commands import run
from tests.serve.conftest import wait_until_ready
from tests.serve.service import SPACE, decisions, predictor, records, serving, write

KEY = "a key of a client"


def test_keys_and_log(tmp_path: Path) -> None:
    decider, people = write(tmp_path / "credit.feta", 0), records(20, seed=1)
    digest = hashlib.sha256(KEY.encode()).hexdigest()
    (tmp_path / "keys").write_text(f"# clients\nbank {digest}\n")
    options = ("--key-file", str(tmp_path / "keys"), "--log", str(tmp_path / "log"))
    with serving(tmp_path / "credit.feta", *options) as server:
        wait_until_ready(server)
        with httpx.Client(base_url=server.url, timeout=60) as client:
            for headers in ({}, {"authorization": "Bearer wrong"}, {"x-api-key": digest}):
                for address in ("/v1/schema", "/metrics", "/v2/models/credit"):
                    refused = client.get(address, headers=headers)
                    assert refused.status_code == 401
                    assert "expected `Authorization: Bearer KEY`" in refused.json()["error"]
            assert client.get("/").status_code == 200
            good = {"authorization": f"Bearer {KEY}"}
            client.post("/v1/decide", json=people, headers=good)
            client.post("/v1/decide", json=people[0] | {"age": 20}, headers={"x-api-key": KEY})
            client.post("/v1/decide", json=[*people[:2], {"income": 1}], headers=good)
    (path,) = (tmp_path / "log").glob("*.jsonl")
    check = check_log(path)
    assert (check.lines, check.decisions, check.closed) == (4, 23, True)
    lines = [json.loads(line) for line in path.read_text().splitlines()]
    assert lines[0]["decisions"] == decisions(decider, people)
    assert [line.get("client") for line in lines[:3]] == ["bank"] * 3
    assert lines[2]["refused"] == 1
    # The hash of a person needs the key, and does not depend on sensitive values.
    assert lines[1]["people"] == lines[0]["people"][:1]
    key = (tmp_path / "log" / "salt.key").read_bytes()
    shared = SPACE.encode(people, sensitive="ignore")[:, ~SPACE.sensitive_columns]
    assert person_hashes(shared, key) == lines[0]["people"]
    assert person_hashes(shared, b"0" * 32) != lines[0]["people"]
    assert (tmp_path / "log" / "salt.key").stat().st_mode & 0o077 == 0
    assert path.stat().st_mode & 0o077 == 0
    assert str(people[0]["debt"]) not in path.read_text()


def test_keys_are_read_again_when_their_file_changes(tmp_path: Path) -> None:
    write(tmp_path / "credit.feta", 0)
    digests = {key: hashlib.sha256(key.encode()).hexdigest() for key in ("old", "new")}
    (tmp_path / "keys").write_text(f"bank {digests['old']}\n")
    with serving(tmp_path / "credit.feta", "--key-file", str(tmp_path / "keys")) as server:
        wait_until_ready(server)
        with httpx.Client(base_url=server.url, timeout=60) as client:

            def status(key: str) -> int:
                return client.get("/v1/card", headers={"x-api-key": key}).status_code

            assert (status("old"), status("new")) == (200, 401)
            (tmp_path / "part").write_text(f"bank {digests['new']}\n")
            (tmp_path / "part").replace(tmp_path / "keys")
            deadline = time.monotonic() + 30
            while status("old") == 200 and time.monotonic() < deadline:
                pass
            assert (status("old"), status("new")) == (401, 200)


def test_a_damaged_key_file_changes_nothing(tmp_path: Path) -> None:
    path = tmp_path / "keys"
    path.write_text(f"bank {hashlib.sha256(b'old').hexdigest()}\n")
    keys = KeyFile.read(path)

    async def watch_until_noticed() -> None:
        watching = asyncio.create_task(keys.watch(ServiceLimits(reload_seconds=0.001)))
        for content in (b"damaged", b"\xff", b""):
            before = keys.signature
            path.write_bytes(content)
            while keys.signature == before:
                await asyncio.sleep(0.001)
            assert keys.current.client(b"old") == "bank"
        watching.cancel()

    asyncio.run(watch_until_noticed())


def test_a_log_that_was_changed_is_noticed(tmp_path: Path) -> None:
    log = AuditLog.open(tmp_path)
    for number in range(5):
        log.append({"decisions": [number]})
    log.close()
    lines = log.path.read_bytes().splitlines(keepends=True)
    assert check_log(log.path).decisions == 5
    changes = {
        "changed": [*lines[:2], lines[2].replace(b"[2]", b"[7]"), *lines[3:]],
        "removed": [*lines[:2], *lines[3:]],
        "inserted": [*lines[:2], lines[1], *lines[2:]],
        "swapped": [lines[0], lines[2], lines[1], *lines[3:]],
        "damaged": [*lines[:4], lines[4][:-9]],
    }
    for name, content in changes.items():
        path = tmp_path / f"{name}.jsonl"
        path.write_bytes(b"".join(content))
        with pytest.raises(FetaError, match=r"line \d"):
            check_log(path)
    short = tmp_path / "short.jsonl"
    short.write_bytes(b"".join(lines[:3]))
    assert not check_log(short).closed


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("", "no keys: got an empty file"),
        ("bank", "invalid line 1: got 4 characters"),
        ("bank abc", "invalid line 1"),
        ("# c\nbank " + "g" * 64, "invalid line 2"),
    ],
)
def test_bad_key_files_are_refused(tmp_path: Path, text: str, expected: str) -> None:
    path = tmp_path / "keys"
    path.write_text(text)
    with pytest.raises(FetaError, match=expected):
        ApiKeys.read(path)


def test_a_swap_of_two_models_never_mixes_them(tmp_path: Path) -> None:
    """Clients ask while the file is replaced again and again by one of two models."""
    path, people = tmp_path / "credit.feta", records(40, seed=2)
    deciders, contents = {}, []
    for seed in (1, 2):
        decider = write(path, seed)
        contents.append(path.read_bytes())
        deciders[hashlib.sha256(contents[-1]).hexdigest()] = decisions(decider, people)
    assert len({tuple(answer) for answer in deciders.values()}) == 2
    results: Counter[str] = Counter()
    with serving(path) as server:
        wait_until_ready(server)
        done = threading.Event()

        def ask() -> None:
            with httpx.Client(base_url=server.url, timeout=60) as client:
                while not done.is_set():
                    answer = client.post("/v1/decide", json=people).json()
                    right = answer["decisions"] == deciders[answer["model"]]
                    results[answer["model"] if right else "wrong"] += 1

        threads = [threading.Thread(target=ask) for _ in range(3)]
        for thread in threads:
            thread.start()
        digest = ""
        with httpx.Client(base_url=server.url, timeout=60) as client:
            for turn in range(8):
                replacement = tmp_path / "new.feta"
                replacement.write_bytes(contents[turn % 2])
                replacement.replace(path)
                digest = client.post("/v1/reload", json={}).json()["model"]
                assert digest == hashlib.sha256(contents[turn % 2]).hexdigest()
                answer = client.post("/v1/decide", json=people).json()
                assert answer["model"] == digest
        done.set()
        for thread in threads:
            thread.join(timeout=60)
        # A damaged file changes nothing.
        path.write_bytes(contents[0][:-50])
        with httpx.Client(base_url=server.url, timeout=60) as client:
            refused = client.post("/v1/reload", json={})
            assert refused.status_code == 409
            assert "the old one stays" in refused.json()["error"]
            assert client.post("/v1/decide", json=people).json()["model"] == digest
    assert results["wrong"] == 0
    assert set(results) == set(deciders)


def test_a_changed_file_is_noticed_without_a_request(tmp_path: Path) -> None:
    path, person = tmp_path / "credit.feta", records(1)[0]
    write(path, 1)
    with serving(path) as server:
        wait_until_ready(server)
        with httpx.Client(base_url=server.url, timeout=60) as client:
            before = client.post("/v1/decide", json=person).json()["model"]
            write(path, 2)
            after = hashlib.sha256(path.read_bytes()).hexdigest()
            models = [before]
            while models[-1] != after and len(models) < 100_000:
                models.append(client.post("/v1/decide", json=person).json()["model"])
    assert set(models) == {before, after}


def test_an_overloaded_server_refuses_and_answers_right(tmp_path: Path) -> None:
    decider, people = write(tmp_path / "credit.feta", 0), records(2500, seed=3)
    expected, content = decisions(decider, people), orjson.dumps(people)
    results: Counter[str] = Counter()
    with serving(tmp_path / "credit.feta") as server:
        wait_until_ready(server)

        def ask() -> None:
            with httpx.Client(base_url=server.url, timeout=120) as client:
                for _ in range(2):
                    answer = client.post(
                        "/v1/decide", content=content, headers={"content-type": "application/json"}
                    )
                    if answer.status_code == 503:
                        assert answer.headers["retry-after"] == "1"
                        assert "the service is busy" in answer.json()["error"]
                        results["refused"] += 1
                    else:
                        right = answer.json()["decisions"] == expected
                        results["right" if right else "wrong"] += 1

        threads = [threading.Thread(target=ask) for _ in range(30)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join(timeout=300)
    assert results["wrong"] == 0
    assert results["right"] >= 10  # as many as are admitted at once
    assert results["refused"] > 0
    assert sum(results.values()) == 60


@pytest.mark.skipif(not Path("/proc/self/task").exists(), reason="this system has no /proc")
def test_a_killed_worker_is_replaced_and_others_answer(tmp_path: Path) -> None:
    decider, people = write(tmp_path / "credit.feta", 0), records(30, seed=4)
    options = ("--jobs", "2", "--log", str(tmp_path / "log"))
    with serving(tmp_path / "credit.feta", *options) as server:
        wait_until_ready(server)
        expected, lost = decisions(decider, people), 0
        before = workers(server.process.pid)
        assert len(before) == 2
        os.kill(before[0], signal.SIGKILL)
        anew = httpx.Limits(max_keepalive_connections=0)  # each request is a new connection
        with httpx.Client(base_url=server.url, timeout=60, limits=anew) as client:
            for row in range(100):
                try:
                    answer = client.post("/v1/decide", json=people).json()
                except httpx.TransportError:
                    lost += 1  # the connection of the killed process
                    continue
                assert answer["decisions"] == expected, row
            assert lost <= 2
            assert "feta_people_total" in client.get("/metrics").text
    logs = list((tmp_path / "log").glob("*.jsonl"))
    assert sum(check_log(path).decisions for path in logs) == 30 * (100 - lost)


def workers(parent: int) -> list[int]:
    """Return the processes that serve; multiprocessing also starts a resource tracker."""
    children = Path(f"/proc/{parent}/task/{parent}/children").read_text().split()
    commands = {int(pid): Path(f"/proc/{pid}/cmdline").read_text() for pid in children}
    return [pid for pid, command in commands.items() if "spawn_main" in command]


def test_a_request_in_progress_is_answered_at_the_end(tmp_path: Path) -> None:
    decider, people = write(tmp_path / "credit.feta", 0), records(9000, seed=5)
    answers: list[list[str]] = []
    with serving(tmp_path / "credit.feta") as server:
        wait_until_ready(server)

        def ask() -> None:
            with httpx.Client(base_url=server.url, timeout=60) as client:
                for _ in range(200):
                    try:
                        answers.append(client.post("/v1/decide", json=people).json()["decisions"])
                    except httpx.ConnectError:
                        return

        thread = threading.Thread(target=ask)
        thread.start()
        while not answers:
            thread.join(timeout=0.05)
        server.process.send_signal(signal.SIGTERM)
        thread.join(timeout=60)
    assert len(answers) >= 2
    assert all(answer == decisions(decider, people) for answer in answers)


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (("missing.feta",), "missing.feta"),
        (("model.onnx",), "not a .feta file: got '.onnx'; expected a model with its schema"),
        (("damaged.feta",), "damaged.feta"),
        (("credit.feta", "--name", "a/b"), "invalid --name: got 'a/b'; expected letters"),
        (("credit.feta", "--key-file", "nowhere"), "nowhere"),
    ],
)
def test_what_cannot_be_served_is_refused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, arguments: tuple[str, ...], words: str
) -> None:
    monkeypatch.chdir(tmp_path)
    write(tmp_path / "credit.feta", 0)
    Path("damaged.feta").write_bytes(Path("credit.feta").read_bytes()[:-9])
    Path("model.onnx").write_bytes(b"")
    done = run("serve", *arguments, "--port", "0")
    assert done.returncode == 2
    assert words in done.stderr


def test_the_model_of_these_tests_has_two_decisions() -> None:
    assert len(set(decisions(predictor(0), records(100)))) == 2
