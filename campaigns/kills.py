"""Campaign of killed audits: they end with the same files as an undisturbed one.

    python -m campaigns.kills [--kills 50] [--workers 10] [--people 1000] [--seed 0]

The command line audits German credit with one process and with two alternately, and is killed with
SIGKILL. A third of the kills are at a random time after the start, the others soon after a write to
the journal. Files are compared byte for byte, except measured times. In `--workers` further audits
with two processes, workers are killed at random moments; when the command is repeated, every person
must have a verdict (Linux only, because workers are found in /proc).
"""

import argparse
import contextlib
import json
import os
import random
import re
import signal
import subprocess
import sys
import tempfile
import time
from collections import Counter
from pathlib import Path

import numpy as np

from campaigns.result import finish
from feta import datasets, save_model
from feta.cli.demo import train_model

FILES = ("pairs.csv", "verdicts.csv", "report.html", "audit.json")

MEASURED_TIME = re.compile(r'class="(n )?measured">[^<]*<')


def prepare(folder: Path, people: int) -> list[str]:
    """Write a model and a table; return the command that audits them."""
    dataset = datasets.load("german")
    rows = dataset.space.encode(dataset.frame)
    model = train_model(dataset, rows, np.arange(len(rows)) % 5 != 0, seed=0)
    save_model(model, folder / "model.feta")
    dataset.frame.head(people).to_csv(folder / "people.csv", index=False)
    files = [str(folder / "model.feta"), "--data", str(folder / "people.csv")]
    # The slow engine, so that one audit is killed many times.
    return [sys.executable, "-m", "feta", "audit", *files, "--engine", "exhaustive", "--out"]


def contents(out: Path) -> dict[str, str]:
    """Read the files of an audit, without measured times and without the name of its folder."""
    texts = {name: (out / name).read_text(encoding="utf-8") for name in FILES}
    files = {name: text.replace(f"--out {out.name}<", "<") for name, text in texts.items()}
    content = json.loads(files["audit.json"])
    files["audit.json"] = json.dumps(content | {"seconds": None, "latency": None})
    files["report.html"] = MEASURED_TIME.sub("", files["report.html"])
    return files


def start(command: list[str], out: Path, jobs: int) -> subprocess.Popen[bytes]:
    """Start an audit without output."""
    quiet = subprocess.DEVNULL
    return subprocess.Popen([*command, str(out), "--jobs", str(jobs)], stdout=quiet, stderr=quiet)


def journal_size(out: Path) -> int:
    """Return the size of the journal's files; SQLite may remove some of them at any time."""
    size = 0
    for path in out.glob("journal.sqlite*"):
        with contextlib.suppress(FileNotFoundError):
            size += path.stat().st_size
    return size


def wait_to_kill(process: subprocess.Popen[bytes], out: Path, dice: random.Random) -> None:
    """Wait for a random moment, or for the end of the audit."""
    started = time.monotonic()
    if dice.random() < 1 / 3:
        deadline = started + dice.uniform(0.0, 2.5)
    else:
        before = journal_size(out)
        while (
            process.poll() is None
            and journal_size(out) <= before
            and time.monotonic() < started + 30
        ):
            time.sleep(0.005)
        deadline = time.monotonic() + dice.uniform(0.0, 0.1)
    while process.poll() is None and time.monotonic() < deadline:
        time.sleep(0.005)


def workers_of(process: int) -> list[int]:
    """Find the workers of an audit."""
    workers = []
    for path in Path(f"/proc/{process}/task").glob("*/children"):  # any thread may start one
        with contextlib.suppress(FileNotFoundError, ProcessLookupError):
            for child in map(int, path.read_text(encoding="ascii").split()):
                with contextlib.suppress(FileNotFoundError):
                    if b"spawn_main" in Path(f"/proc/{child}/cmdline").read_bytes():
                        workers.append(child)
    return workers


def kill_workers(
    command: list[str],
    out: Path,
    expected: dict[str, str],
    counts: Counter[str],
    dice: random.Random,
) -> None:
    """Kill workers of one audit, then resume it; its files must be as in `expected`."""
    process = start(command, out, 2)
    before = journal_size(out)
    next_kill, remaining = time.monotonic() + dice.uniform(0.2, 2.0), dice.randint(1, 8)
    while process.poll() is None:
        workers = workers_of(process.pid)
        if remaining and workers and journal_size(out) > before and time.monotonic() > next_kill:
            with contextlib.suppress(ProcessLookupError):
                os.kill(dice.choice(workers), signal.SIGKILL)
                counts["workers killed"] += 1
            remaining -= 1
            next_kill = time.monotonic() + dice.uniform(0.1, 2.0)
        time.sleep(0.01)
    counts[f"audits with killed workers, exit {process.returncode}"] += 1
    if process.returncode not in (1, 2, 3):
        counts["WRONG end of an audit with killed workers"] += 1
    unfinished = (out / "journal.sqlite").exists()  # it remains if a person has no verdict
    if process.returncode == 1 and not unfinished and contents(out) != expected:
        counts["WRONG files after killed workers"] += 1
    # Exit 2 means that too many workers died in a row.
    start(command, out, 2).wait()
    counts["resumed after killed workers"] += 1
    counts["WRONG files after a resumed run"] += contents(out) != expected
    for path in out.iterdir():
        path.unlink()


def main() -> int:
    """Run from the command line; exit 1 if any audit ended with other files."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--kills", type=int, default=50)
    parser.add_argument("--workers", type=int, default=10)
    parser.add_argument("--people", type=int, default=1000)
    parser.add_argument("--seed", type=int, default=0)
    options = parser.parse_args()
    dice = random.Random(options.seed)
    started = time.perf_counter()
    counts: Counter[str] = Counter()
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        command = prepare(folder, options.people)
        start(command, folder / "undisturbed", 1).wait()
        expected = contents(folder / "undisturbed")
        out = folder / "killed"
        killed_once = False
        while counts["kills"] < options.kills or killed_once:
            process = start(command, out, 1 + counts["kills"] % 2)
            if counts["kills"] < options.kills:
                wait_to_kill(process, out, dice)
            else:
                process.wait()
            if process.poll() is None:
                process.kill()
                counts["kills"] += 1
                killed_once = True
            process.wait()
            if process.returncode == -9:
                continue
            counts["audits ended"] += 1
            files = contents(out)
            counts["WRONG files"] += files != expected
            counts["WRONG people"] += files["verdicts.csv"].count("\n") != options.people + 1
            for path in out.iterdir():
                path.unlink()
            killed_once = False
        for _ in range(options.workers if Path("/proc/self/task").exists() else 0):
            kill_workers(command, folder / "workers", expected, counts, dice)
    return finish(counts, started)


if __name__ == "__main__":
    sys.exit(main())
