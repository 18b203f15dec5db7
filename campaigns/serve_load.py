"""Campaign of load on the service, on loopback: every answer is compared with `FairPredictor`.

    python -m campaigns.serve_load [--singles 100000] [--batches 2000] [--overload 20]

The server has one process, the recommended vote for German credit, the log and the metrics. Its
processor time per request is the one that the system reports, next to a bare ASGI application with
a constant answer, and to the unfair network in onnxruntime behind the same server. Then more
clients than the server can answer send batches, while two different models are swapped: refused
requests must get 503, and accepted ones must be right for the digest they name. Single requests are
timed meanwhile, and before on the idle server, from a process of their own.
"""

import argparse
import asyncio
import hashlib
import multiprocessing
import os
import re
import signal
import subprocess
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from http import HTTPStatus
from pathlib import Path
from typing import Any

import numpy as np
import orjson

from campaigns.fair_onnx import german
from campaigns.result import finish
from feta import FairPredictor, save_model, write_onnx
from feta.arrays import Matrix
from feta.serve.audit_log import check_log
from feta.space.sampling import draw_people

CLIENTS, BATCH = 64, 1000
SWAP_SECONDS = 0.7


@dataclass(frozen=True)
class Asked:
    """A body, and the right decisions by the digest of the model that is served."""

    body: bytes
    decisions: dict[str, list[str]]

    def check(self, status: int, answer: bytes) -> str:
        """Return what kind of answer this is."""
        if status == HTTPStatus.SERVICE_UNAVAILABLE:
            return "refused with 503"
        if status != 200:
            return f"WRONG: status {status}"
        content = orjson.loads(answer)
        got = content.get("decisions") or [content["decision"]]
        if self.decisions.get(content["model"]) != got:
            return "WRONG: decisions"
        return f"right, model {list(self.decisions).index(content['model']) + 1}"


def named(name: str, kinds: Counter[str]) -> Counter[str]:
    """Return the kinds with where they occurred; wrong ones still begin with WRONG."""
    return Counter({f"{kind} ({name})": count for kind, count in kinds.items()})


@dataclass
class Result:
    """Kinds of answers, and the seconds of each request."""

    kinds: Counter[str] = field(default_factory=Counter)
    seconds: list[float] = field(default_factory=list)


@contextmanager
def running(command: Sequence[str], folder: Path) -> Iterator[tuple[int, int]]:
    """Start a server; yield its process id and its port."""
    environment = {**os.environ, "OMP_NUM_THREADS": "1", "SERVED_FOLDER": str(folder)}
    process = subprocess.Popen(
        command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, env=environment
    )
    assert process.stdout is not None
    try:
        for line in process.stdout:
            match = re.search(r"http://127\.0\.0\.1:(\d+)", line)
            if match:
                yield process.pid, int(match[1])
                break
    finally:
        process.send_signal(signal.SIGTERM)
        process.communicate(timeout=60)


def feta_command(path: Path, log: Path) -> list[str]:
    """Return the command of the service."""
    return [sys.executable, "-m", "feta", "serve", str(path), "--port", "0", "--log", str(log)]


def floor_command(name: str) -> list[str]:
    """Return the command of one of the applications to compare with."""
    app = f"campaigns.serve_floor:{name}"
    return [sys.executable, "-m", "uvicorn", app, "--port", "0", "--no-access-log", "--ws", "none"]


def processor_seconds(pid: int) -> float:
    """Return the processor time of a process and of its running children."""
    fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    own = (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")
    tasks = Path(f"/proc/{pid}/task").glob("*/children")
    children = [int(child) for task in tasks for child in task.read_text().split()]
    return own + sum(map(processor_seconds, children))


async def ask(
    port: int,
    asked: Sequence[Asked],
    result: Result,
    *,
    checked: bool = True,
    patient: bool = False,
) -> None:
    """Send requests one after another over one connection; the patient ones until answered."""
    reader, writer = await asyncio.open_connection("127.0.0.1", port, limit=2**22)
    left = list(reversed(asked))
    while left:
        one = left.pop()
        head = (
            b"POST /v1/decide HTTP/1.1\r\nHost: x\r\nContent-Type: application/json\r\n"
            b"Content-Length: %d\r\n\r\n" % len(one.body)
        )
        started = time.perf_counter()
        writer.write(head + one.body)
        lines = (await reader.readuntil(b"\r\n\r\n")).lower()
        length = int(re.search(rb"content-length: (\d+)", lines)[1])  # type: ignore[index]  # always
        answer = await reader.readexactly(length)
        result.seconds.append(time.perf_counter() - started)
        status = int(lines[9:12])
        result.kinds[one.check(status, answer) if checked else "not checked"] += 1
        if patient and status == HTTPStatus.SERVICE_UNAVAILABLE:
            left.append(one)
            await asyncio.sleep(1.0)  # as Retry-After says
    writer.close()


async def ask_all(
    port: int,
    asked: Sequence[Asked],
    n_clients: int,
    *,
    checked: bool = True,
    patient: bool = False,
) -> Result:
    """Send requests from several clients at once."""
    result = Result()
    parts = [asked[start::n_clients] for start in range(n_clients)]
    await asyncio.gather(
        *(ask(port, part, result, checked=checked, patient=patient) for part in parts)
    )
    return result


@dataclass(frozen=True)
class Subject:
    """Two models of the same space, their files, and people with their right decisions."""

    folder: Path
    predictors: dict[str, FairPredictor]  # by digest; the first one is served at first
    people: Matrix

    @classmethod
    def made(cls, folder: Path) -> "Subject":
        """Write the files: two votes of one network decide differently."""
        model, table = german()
        first = FairPredictor.fitted(model, table)
        second = FairPredictor.fitted(model, table, level=0.8)
        predictors = {}
        for name, predictor in (("first", first), ("second", second)):
            save_model(predictor, folder / f"{name}.feta")
            content = (folder / f"{name}.feta").read_bytes()
            predictors[hashlib.sha256(content).hexdigest()] = predictor
        (folder / "served.feta").write_bytes((folder / "first.feta").read_bytes())
        write_onnx(model, folder / "unfair.onnx", precision="float64")
        people = draw_people(model.space, np.random.default_rng(1), 20 * BATCH)
        return cls(folder, predictors, people)

    def asked(self, rows: Sequence[np.ndarray[Any, Any]], *, single: bool) -> list[Asked]:
        """Return requests about these people."""
        space = next(iter(self.predictors.values())).model.space
        right = {
            digest: [
                str(one.model.describe(outcome)) for outcome in one.decide(self.people).tolist()
            ]
            for digest, one in self.predictors.items()
        }
        records = [space.decode(person) for person in self.people]
        return [
            Asked(
                orjson.dumps(records[row[0]] if single else [records[index] for index in row]),
                {digest: [names[index] for index in row] for digest, names in right.items()},
            )
            for row in rows
        ]


def measure(
    name: str,
    command: Sequence[str],
    subject: Subject,
    asked: Sequence[Asked],
    *,
    repeat: int,
) -> Counter[str]:
    """Send every request `repeat` times; print the server's processor time.

    A request that is refused because the service is busy is sent again after a second.
    """
    checked = "feta" in command
    with running(command, subject.folder) as (pid, port):
        asyncio.run(ask_all(port, asked[:CLIENTS], CLIENTS, checked=checked, patient=True))
        if checked:  # a list, which the helper process answers once it runs
            first = Asked(b"[%b]" % asked[0].body.removeprefix(b"[").removesuffix(b"]"), {})
            asyncio.run(ask_all(port, [first], 1, checked=False))
        before = processor_seconds(pid)
        result = asyncio.run(
            ask_all(port, list(asked) * repeat, CLIENTS, checked=checked, patient=True)
        )
        used = processor_seconds(pid) - before
    total, n_people = len(asked) * repeat, len(next(iter(asked[0].decisions.values())))
    answered = sum(n for kind, n in result.kinds.items() if not kind.startswith("refused"))
    result.kinds["WRONG: lost"] = total - answered
    print(
        f"{name}: {total:,} requests, {used / total * 1e6:.0f} µs of processor time per request"
        f", {total * n_people / used:,.0f} decisions per second of processor time",
        flush=True,
    )
    return named(name, result.kinds)


def overload(
    subject: Subject, singles: list[Asked], batches: list[Asked], seconds: float
) -> Counter[str]:
    """Send five times as many batches as can wait, and swap two models meanwhile."""
    counts: Counter[str] = Counter()
    served, log = subject.folder / "served.feta", subject.folder / "log-overload"
    with running(feta_command(served, log), subject.folder) as (_, port):
        idle = _timed_singles(port, singles, 3.0, lambda: None)
        load = multiprocessing.Process(target=_send_batches, args=(port, batches, seconds, log))
        load.start()
        turn = iter(range(10**6))

        def swap() -> None:
            name = ("second", "first")[next(turn) % 2]
            part = subject.folder / "new.feta"
            part.write_bytes((subject.folder / f"{name}.feta").read_bytes())
            part.replace(served)

        busy = _timed_singles(port, singles, seconds, swap)
        load.join()
        counts.update(orjson.loads((log / "batches.json").read_bytes()))
    for name, result in (("idle", idle), ("overload", busy)):
        p50, p99 = np.quantile(result.seconds, [0.5, 0.99]) * 1e3
        print(f"single requests, {name}: p50 {p50:.1f} ms, p99 {p99:.1f} ms, {len(result.seconds)}")
        counts.update(named(f"singles, {name}", result.kinds))
    lines = [check_log(path) for path in log.glob("*.jsonl")]
    print(f"log: {sum(one.decisions for one in lines):,} decisions, the chain holds", flush=True)
    return counts


def _timed_singles(port: int, singles: list[Asked], seconds: float, act: Any) -> Result:  # noqa: ANN401
    """Send single requests over one connection, and act now and then."""
    result, deadline = Result(), time.perf_counter() + seconds
    next_act = time.perf_counter() + SWAP_SECONDS
    while time.perf_counter() < deadline:
        part = asyncio.run(ask_all(port, singles[:50], 1))
        result.kinds += part.kinds
        result.seconds += part.seconds
        if time.perf_counter() > next_act:
            act()
            next_act = time.perf_counter() + SWAP_SECONDS
    return result


def _send_batches(port: int, batches: list[Asked], seconds: float, log: Path) -> None:
    """Send batches from fifty clients, five times as many as are admitted at once.

    They use the processor that is left, as if they were on another machine, also if the campaign
    runs at a real-time priority.
    """
    os.sched_setscheduler(0, os.SCHED_OTHER, os.sched_param(0))
    os.nice(10)
    counts: Counter[str] = Counter()
    deadline = time.perf_counter() + seconds
    while time.perf_counter() < deadline:
        result = asyncio.run(ask_all(port, batches * 10, 50))
        counts.update(named("batches, overload", result.kinds))
    (log / "batches.json").write_bytes(orjson.dumps(dict(counts)))


def main() -> None:
    """Run the campaign."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--singles", type=int, default=100_000)
    parser.add_argument("--batches", type=int, default=2000)
    parser.add_argument("--overload", type=float, default=20.0)
    options = parser.parse_args()
    started, counts = time.perf_counter(), Counter[str]()
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        subject = Subject.made(folder)
        rows = np.arange(len(subject.people))
        singles = subject.asked(list(rows[:2000, None]), single=True)
        batches = subject.asked(list(rows.reshape(-1, BATCH)), single=False)
        turns = max(1, options.singles // len(singles))
        command = feta_command(folder / "served.feta", folder / "log")
        for label in ("bare", "unfair"):
            measure(label, floor_command(label), subject, singles, repeat=max(1, turns // 5))
        counts.update(measure("service, singles", command, subject, singles, repeat=turns))
        repeat = max(1, options.batches // len(batches))
        counts.update(measure("service, batches", command, subject, batches, repeat=repeat))
        counts.update(overload(subject, singles, batches, options.overload))
    sys.exit(finish(counts, started))


if __name__ == "__main__":
    main()
