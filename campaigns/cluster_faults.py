"""Campaign of faults in runs on a cluster: a clear message each, and nothing is lost.

    python -m campaigns.cluster_faults [--rows 40000] [--parts 8] [--only NAME …] [--seed 0]

An audit on two workers meets a fault: the scheduler is killed, the command is killed or interrupted
by Ctrl-C, the disk is full (a tmpfs, which needs the right to mount one), a part is damaged, a part
has another schema, a result is damaged, or the folder has results of another model. The message
must say so, and finished parts must remain. Without the fault, the same command must then keep
them, and end with the results of one process (Linux only).
"""

import argparse
import contextlib
import os
import random
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq

from campaigns.cluster import finished, inodes, prepare, results, start
from campaigns.kills import workers_of
from campaigns.result import finish
from feta import load_model, save_model

LOCAL = "local:2"

# Parts that must be finished before a fault.
ENOUGH = 2

# Seconds after which workers without their parent must have ended.
PATIENCE = 60

KEPT = "parts are finished and kept in"


@dataclass
class Case:
    """A dataset, what is expected of it, and what was counted."""

    folder: Path
    parts: int
    expected: dict[str, object]
    counts: Counter[str]
    dice: random.Random

    def begin(self, name: str, *, on: str = LOCAL) -> subprocess.Popen[str]:
        """Start the audit."""
        return start(self.folder, "audit", "people", name, "--on", on)

    def check(self, what: str, *, holds: bool) -> None:
        """Count a check."""
        self.counts["checks"] += 1
        self.counts[f"WRONG {what}"] += not holds

    def fails(self, name: str, *messages: str) -> None:
        """Run the audit; it must fail with the messages."""
        self.ended(self.begin(name), name, *messages)

    def ended(
        self, process: subprocess.Popen[str], name: str, *messages: str, code: int = 2
    ) -> None:
        """Wait for the end of an audit, which must print the messages."""
        words = process.communicate()[1]
        print(f"{name}: {words.strip()}", flush=True)
        self.check(f"end of {name}: {process.returncode}", holds=process.returncode == code)
        for message in messages:
            self.check(f"message of {name}: no {message!r}", holds=message in words)

    def resumes(self, name: str, least: int = ENOUGH) -> None:
        """Run the audit without its fault; it must keep parts, and end as one process does."""
        before = finished(self.folder / name)
        words = (process := self.begin(name)).communicate()[1]
        kept = f"{before} of {self.parts} parts were finished before" in words
        self.check(f"kept parts of {name}: {before}, {words}", holds=kept and before >= least)
        self.check(f"end of the resumed {name}", holds=process.returncode == 1)
        same = results(self.folder, "audit", name) == self.expected
        self.check(f"results of the resumed {name}", holds=same)

    def wait(self, process: subprocess.Popen[str], name: str) -> None:
        """Wait until some parts are finished."""
        while process.poll() is None and finished(self.folder / name) < ENOUGH:
            time.sleep(0.01)

    def some_part(self) -> Path:
        """Return the file of any part."""
        return self.dice.choice(sorted((self.folder / "people").iterdir()))


def silent(command: list[str]) -> subprocess.Popen[bytes]:
    """Start a process without output."""
    quiet = subprocess.DEVNULL
    return subprocess.Popen(command, stdout=quiet, stderr=quiet)


@contextlib.contextmanager
def dask_cluster() -> Iterator[tuple[str, subprocess.Popen[bytes]]]:
    """Start a scheduler and two workers; yield the address and the scheduler."""
    with socket.create_server(("127.0.0.1", 0)) as free:
        port = free.getsockname()[1]
    module = [sys.executable, "-m", "distributed.cli.dask_scheduler"]
    local = ["--host", "127.0.0.1"]
    scheduler = silent([*module, *local, "--port", str(port), "--no-dashboard"])
    module = [sys.executable, "-m", "distributed.cli.dask_worker", f"tcp://127.0.0.1:{port}"]
    options = [*local, "--nworkers", "2", "--nthreads", "1", "--no-dashboard"]
    workers = silent([*module, *options])
    try:
        yield f"dask://127.0.0.1:{port}", scheduler
    finally:
        for process in (scheduler, workers):
            process.terminate()
            process.wait()


def scheduler_killed(case: Case, name: str) -> None:
    """Kill the scheduler when some parts are finished."""
    with dask_cluster() as (on, scheduler):
        process = case.begin(name, on=on)
        case.wait(process, name)
        scheduler.kill()
        case.ended(process, name, "the scheduler does not answer any more", KEPT)
    case.resumes(name)


def command_killed(case: Case, name: str) -> None:
    """Kill the command itself; its workers must end, too."""
    process = case.begin(name)
    case.wait(process, name)
    workers = workers_of(process.pid)
    process.kill()
    case.ended(process, name, code=-signal.SIGKILL)
    deadline = time.monotonic() + PATIENCE
    while any(Path(f"/proc/{one}").exists() for one in workers) and time.monotonic() < deadline:
        time.sleep(0.1)
    left = [one for one in workers if Path(f"/proc/{one}").exists()]
    case.check("workers left behind", holds=bool(workers) and not left)
    case.resumes(name)


def interrupted(case: Case, name: str) -> None:
    """Press Ctrl-C."""
    process = case.begin(name)
    case.wait(process, name)
    process.send_signal(signal.SIGINT)
    case.ended(process, name, KEPT, "run the same command again to resume", code=130)
    case.resumes(name)


def disk_full(case: Case, name: str) -> None:
    """Fill the disk, and make it larger."""
    disk = case.folder / name
    disk.mkdir()
    size = sum(path.stat().st_size for path in (case.folder / "one").iterdir())
    mount = ["mount", "-t", "tmpfs", "-o", f"size={size // 2}", "tmpfs", str(disk)]
    if subprocess.run(mount, capture_output=True, check=False).returncode:
        case.counts["tmpfs cannot be mounted"] += 1
        return
    try:
        case.fails(name, "No space left on device", "free some space", KEPT)
        leftover = [path.name for path in (disk / "parts").glob(".*")]
        case.check(f"unfinished files {leftover}", holds=not leftover)
        larger = ["mount", "-o", f"remount,size={4 * size}", str(disk)]
        subprocess.run(larger, check=True)
        case.resumes(name, least=1)
    finally:
        subprocess.run(["umount", str(disk)], check=True)


@contextlib.contextmanager
def changed(case: Case, name: str, change: Callable[[Path], None]) -> Iterator[Path]:
    """Finish an audit, and change a part for a while; finished results must remain."""
    shutil.copytree(case.folder / "done", case.folder / name)
    before = inodes(case.folder / name / "parts")
    part = case.some_part()
    content = part.read_bytes()
    change(part)
    try:
        yield part
    finally:
        part.write_bytes(content)
    case.check(f"files lost in {name}", holds=inodes(case.folder / name / "parts") == before)
    case.resumes(name, least=case.parts)


def part_truncated(case: Case, name: str) -> None:
    """Cut off a part."""

    def truncate(part: Path) -> None:
        part.write_bytes(part.read_bytes()[: part.stat().st_size // 2])

    with changed(case, name, truncate) as part:
        case.fails(name, f"{part.name}: the file is not a complete Parquet file")


def part_damaged(case: Case, name: str) -> None:
    """Overwrite bytes of a part."""

    def damage(part: Path) -> None:
        content = bytearray(part.read_bytes())
        content[4:600] = bytes(596)
        part.write_bytes(bytes(content))

    with changed(case, name, damage) as part:
        case.fails(name, part.name)


def other_type(case: Case, name: str) -> None:
    """Write texts instead of numbers into a column of a part."""

    def retype(part: Path) -> None:
        table = pq.read_table(part)
        index = table.column_names.index("amount_dm")
        texts = pa.array(["much"] * len(table))
        pq.write_table(table.set_column(index, "amount_dm", texts), part)

    with changed(case, name, retype) as part:
        case.fails(name, "another schema: the column 'amount_dm' has", part.name)


def column_lacks(case: Case, name: str) -> None:
    """Drop a column of a part."""

    def drop(part: Path) -> None:
        pq.write_table(pq.read_table(part).drop_columns(["purpose"]), part)

    with changed(case, name, drop) as part:
        case.fails(name, f"{part.name}: the table must have the column 'purpose'")


def result_damaged(case: Case, name: str) -> None:
    """Change a stored result: its part, and no other, is audited again."""
    shutil.copytree(case.folder / "done", case.folder / name)
    path = case.dice.choice(sorted((case.folder / name / "parts").glob("*.verdicts.csv")))
    path.write_text(path.read_text().replace("unfair", "fair", 1))
    words = case.begin(name).communicate()[1]
    kept = f"{case.parts - 1} of {case.parts} parts were finished before" in words
    case.check(f"kept parts beside a damaged one: {words}", holds=kept)
    same = results(case.folder, "audit", name) == case.expected
    case.check("results after a damaged one", holds=same)


def other_model(case: Case, name: str) -> None:
    """Audit another model with the folder of the first."""
    shutil.copytree(case.folder / "done", case.folder / name)
    before, path = inodes(case.folder / name / "parts"), case.folder / "model.feta"
    content = path.read_bytes()
    model = load_model(path)
    save_model(model.with_sensitive(["age"]), path)
    case.fails(name, "the folder has results of another run: got another", "name another --out")
    path.write_bytes(content)
    case.check("files of another model", holds=inodes(case.folder / name / "parts") == before)
    case.resumes(name, least=case.parts)


CASES = (
    scheduler_killed, command_killed, interrupted, disk_full, part_truncated, part_damaged,
    other_type, column_lacks, result_damaged, other_model,
)  # fmt: skip


def main() -> int:
    """Run from the command line; exit 1 if any check fails."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--rows", type=int, default=40_000)
    parser.add_argument("--parts", type=int, default=8)
    parser.add_argument("--only", nargs="+", choices=[case.__name__ for case in CASES])
    parser.add_argument("--seed", type=int, default=0)
    options = parser.parse_args()
    started, counts = time.perf_counter(), Counter[str]()
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name) / "cluster"
        prepare(folder, options.rows, options.parts, options.seed)
        start(folder, "audit", "all.parquet", "one").communicate()
        start(folder, "audit", "people", "done", "--on", LOCAL).communicate()
        expected = results(folder, "audit", "one")
        counts["WRONG results of a run without faults"] += (
            results(folder, "audit", "done") != expected
        )
        case = Case(folder, options.parts, expected, counts, random.Random(options.seed))
        for fault in CASES:
            if options.only is None or fault.__name__ in options.only:
                fault(case, fault.__name__.replace("_", "-"))
                counts["faults"] += 1
    return finish(+counts, started)


if __name__ == "__main__":
    os.environ.setdefault("COLUMNS", "200")
    sys.exit(main())
