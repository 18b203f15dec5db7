"""Campaign of killed workers: on a Dask cluster, results are those of one process, by digest.

    python -m campaigns.cluster [--rows 40000] [--parts 8] [--kills 5] [--work audit predict]
        [--folder FOLDER] [--seed 0]

People are drawn from the space of German credit and written to one Parquet file per part. One
process audits and decides all of them. Then two workers do the same, and are killed with SIGKILL at
random moments. Files are compared by SHA-256, and reports without measured times. A second run must
keep every file of the first (Linux only, because workers are found in /proc). `--folder` keeps all
files, and the results of the one process are used again.
"""

import argparse
import contextlib
import hashlib
import json
import os
import random
import resource
import signal
import subprocess
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pyarrow.csv

from campaigns.kills import workers_of
from campaigns.large_tables import FETA, batches, save_german_model, write_parts, write_table
from campaigns.result import finish

TABLES = ("pairs.csv", "verdicts.csv")

# Parts of audit.json that name files or contain measured times.
UNCOMPARED = ("data", "data_sha256", "seconds", "latency")

# The longest time after a part is finished at which a worker is killed (seconds).
MAX_DELAY = 0.5

WORKERS = 2


def prepare(folder: Path, rows: int, parts: int, seed: int) -> None:
    """Write a model, a table in parts, and the same table in one file."""
    if (folder / "all.parquet").exists():
        return
    folder.mkdir(exist_ok=True)
    space = save_german_model(folder / "model.feta")
    tables = batches(space, rows, seed, size=-(-rows // parts))
    write_table(write_parts(tables, folder / "people"), folder / "all.parquet")


def start(folder: Path, work: str, data: str, out: str, *more: str) -> subprocess.Popen[str]:
    """Start a command; its messages are in a pipe."""
    command = [*FETA, work, "model.feta", "--data", data, "--id", "id", "--out", out, *more]
    quiet = subprocess.DEVNULL
    return subprocess.Popen(command, cwd=folder, stdout=quiet, stderr=subprocess.PIPE, text=True)


@contextlib.contextmanager
def measured(what: str) -> Iterator[None]:
    """Print the time and the processor time of the processes that end in the context."""
    started, before = time.perf_counter(), resource.getrusage(resource.RUSAGE_CHILDREN)
    yield
    after, seconds = resource.getrusage(resource.RUSAGE_CHILDREN), time.perf_counter() - started
    used = after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime
    print(f"{what}: {seconds:.0f} s, {used:.0f} s of processors", flush=True)


def digest(*paths: Path, headers: bool = True) -> str:
    """Return the SHA-256 of some files, one after the other; of tables, with one header only."""
    found = hashlib.sha256()
    for number, path in enumerate(paths):
        with path.open("rb") as file:
            if number or not headers:
                file.readline()
            while block := file.read(2**22):
                found.update(block)
    return found.hexdigest()


def shown(folder: Path) -> dict[str, object]:
    """Return what a report shows, except names and measured times."""
    content: dict[str, object] = json.loads((folder / "audit.json").read_bytes())
    return {name: value for name, value in content.items() if name not in UNCOMPARED}


def results(folder: Path, work: str, out: str) -> dict[str, object]:
    """Return what must be equal: digests of tables, and the report."""
    path = folder / out
    if work == "audit":
        found: dict[str, object] = {name: digest(path / name) for name in TABLES}
        return found | {"report": shown(path)}
    parts = sorted((path / "parts").glob("*.csv")) if path.is_dir() else [path]
    return {"decisions": digest(*parts)}


def count_ids(folder: Path, work: str, out: str) -> np.ndarray:
    """Return the ids in the table of one process, in order."""
    path = folder / out / "verdicts.csv" if work == "audit" else folder / out
    options = pyarrow.csv.ConvertOptions(include_columns=["id"])
    ids: np.ndarray = pyarrow.csv.read_csv(path, convert_options=options)["id"].to_numpy()
    return ids.astype(np.int64)


def finished(out: Path) -> int:
    """Return the number of parts that are finished."""
    return sum(1 for _ in out.glob("parts/*.receipt.json"))


def kill_workers(
    process: subprocess.Popen[str], out: Path, parts: int, kills: int, dice: random.Random
) -> int:
    """Kill workers at random moments until the process ends; return how many."""
    moments = sorted(dice.randrange(max(1, parts - WORKERS)) for _ in range(kills))
    killed = 0
    while process.poll() is None and killed < kills:
        workers = workers_of(process.pid)
        if workers and finished(out) >= moments[killed]:
            time.sleep(dice.uniform(0.0, MAX_DELAY))
            with contextlib.suppress(ProcessLookupError):
                os.kill(dice.choice(workers), signal.SIGKILL)
                killed += 1
                print(f"  killed a worker after {finished(out)} parts", flush=True)
        time.sleep(0.01)
    return killed


def inodes(folder: Path) -> dict[str, tuple[int, int]]:
    """Return which files there are, and when they were written."""
    stats = {path.name: path.stat() for path in folder.iterdir()}
    return {name: (stat.st_ino, stat.st_mtime_ns) for name, stat in stats.items()}


def run(folder: Path, work: str, options: argparse.Namespace, counts: Counter[str]) -> None:
    """Compare a killed run, and a second one, with one process."""
    dice, end = random.Random(options.seed), {"audit": 1, "predict": 0}[work]
    one = {"audit": "one", "predict": "one.csv"}[work]
    if not (folder / one).exists():
        with measured(f"{work} in one process"):
            _, words = (process := start(folder, work, "all.parquet", one)).communicate()
        counts[f"WRONG end of one process: {words}"] += process.returncode != end
    expected = results(folder, work, one)
    print(f"  {expected | {'report': '…'} if work == 'audit' else expected}", flush=True)
    counts["WRONG rows of one process"] += not np.array_equal(
        count_ids(folder, work, one), np.arange(options.rows)
    )
    out = f"killed-{work}"
    on = ("--on", f"local:{WORKERS}")
    with measured(f"{work} with killed workers"):
        process = start(folder, work, "people", out, *on)
        counts["workers killed"] += kill_workers(
            process, folder / out, options.parts, options.kills, dice
        )
        _, words = process.communicate()
    counts[f"WRONG end with killed workers: {words}"] += process.returncode != end
    counts["WRONG results with killed workers"] += results(folder, work, out) != expected
    before = inodes(folder / out / "parts")
    with measured(f"{work} again"):
        _, words = (process := start(folder, work, "people", out, *on)).communicate()
    counts[f"WRONG end of a second run: {words}"] += process.returncode != end
    counts["WRONG results of a second run"] += results(folder, work, out) != expected
    kept = f"{options.parts} of {options.parts} parts were finished before" in words
    counts["WRONG recomputed parts"] += not kept or inodes(folder / out / "parts") != before
    counts[f"runs of {work}"] += 1


def main() -> int:
    """Run from the command line; exit 1 if any result differs."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--rows", type=int, default=40_000)
    parser.add_argument("--parts", type=int, default=8)
    parser.add_argument("--kills", type=int, default=5)
    parser.add_argument("--work", nargs="+", default=["audit", "predict"])
    parser.add_argument("--folder", type=Path)
    parser.add_argument("--seed", type=int, default=0)
    options = parser.parse_args()
    started, counts = time.perf_counter(), Counter[str]()
    with tempfile.TemporaryDirectory() as name:
        folder = options.folder or Path(name) / "cluster"
        prepare(folder, options.rows, options.parts, options.seed)
        for work in options.work:
            run(folder, work, options, counts)
    missed = len(options.work) * options.kills - counts["workers killed"]
    counts["runs that ended before all kills"] += missed
    return finish(+counts, started)


if __name__ == "__main__":
    sys.exit(main())
