"""Campaign of shared folders: of two audits, one is refused, the other's files are complete.

    python -m campaigns.folders [--runs 50] [--people 1500] [--seed 0]

Two processes of the command line start at random times, with tables of different lengths. An audit
that starts after the other has ended is not refused; then the folder has the files of the later
one. Every tenth run kills the first audit: its lock must not remain.
"""

import argparse
import csv
import json
import random
import subprocess
import sys
import tempfile
import time
from collections import Counter
from pathlib import Path

import numpy as np

import feta
from campaigns.result import finish

# The longest time between the two starts (seconds); an audit takes about two seconds.
MAX_DELAY = 1.5

REFUSAL = "another audit is writing to this folder (process {}, since "


def prepare(folder: Path, people: int) -> list[list[str]]:
    """Write one model and two tables; return the commands without --out."""
    space = feta.FeatureSpace(
        (feta.Integer("age", 18, 90, sensitive=True), feta.Real("income", 0, 10_000))
    )
    rng = np.random.default_rng(0)
    layers = [(rng.normal(size=(8, 2)), rng.normal(size=8)), (rng.normal(size=(1, 8)), np.zeros(1))]
    model = feta.Model(space, feta.Network.from_layers(layers, activation="relu"))
    feta.save_model(model, folder / "model.feta")
    commands = []
    for name, count in (("a", people), ("b", people + 7)):
        rows = [f"{name}{n},{18 + n % 73},{n}" for n in range(count)]
        (folder / f"{name}.csv").write_text("\n".join(["id,age,income", *rows]), encoding="utf-8")
        files = [str(folder / "model.feta"), "--data", str(folder / f"{name}.csv"), "--id", "id"]
        commands.append([sys.executable, "-m", "feta", "audit", *files, "--out"])
    return commands


def start(command: list[str], out: Path) -> subprocess.Popen[str]:
    """Start an audit."""
    return subprocess.Popen(
        [*command, str(out)], stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True
    )


def wrong_files(out: Path, name: str, people: int) -> str:
    """Return what is wrong with the files of a complete audit, or an empty text."""
    names = sorted(path.name for path in out.iterdir())
    if names != ["audit.json", "pairs.csv", "report.html", "verdicts.csv"]:
        return f"files {names}"
    if any(b"\0" in path.read_bytes() for path in out.iterdir()):
        return "NUL bytes"
    with (out / "verdicts.csv").open(encoding="utf-8", newline="") as file:
        rows = list(csv.DictReader(file))
    if [row["id"] for row in rows] != [f"{name}{n}" for n in range(people)]:
        return f"{len(rows)} rows"
    content = json.loads((out / "audit.json").read_text(encoding="utf-8"))
    verdicts = Counter(row["verdict"] for row in rows)
    counts = {verdict: content["summary"][verdict] for verdict in ("fair", "unfair")}
    if content["partial"] or counts != {verdict: verdicts[verdict] for verdict in counts}:
        return "audit.json"
    return ""


def run_once(
    commands: list[list[str]], out: Path, counts: Counter[str], dice: random.Random
) -> None:
    """Start two audits, and check their files."""
    order = dice.sample([0, 1], 2)
    first = start(commands[order[0]], out)
    time.sleep(dice.uniform(0.0, MAX_DELAY))
    second = start(commands[order[1]], out)
    if dice.random() < 0.1:
        time.sleep(dice.uniform(0.5, MAX_DELAY))
        first.kill()
    processes = {order[0]: first, order[1]: second}
    ends = {
        which: (process.communicate()[1], process.returncode)
        for which, process in processes.items()
    }
    refused = [which for which, (_, code) in ends.items() if code == 2]
    killed = [which for which, (_, code) in ends.items() if code == -9]
    done = [which for which, (_, code) in ends.items() if code in (0, 1)]
    counts[f"{len(refused)} refused, {len(killed)} killed, {len(done)} complete"] += 1
    if len(refused) + len(killed) + len(done) != 2 or len(refused) == 2:
        counts[f"WRONG ends {[code for _, code in ends.values()]}"] += 1
    for which in refused:
        if REFUSAL.format(processes[1 - which].pid) not in ends[which][0]:
            counts["WRONG refusal"] += 1
    if len(done) == 1:
        name = "ab"[done[0]]
        table = Path(commands[done[0]][commands[done[0]].index("--data") + 1])
        people = table.read_text(encoding="utf-8").count("\n")
        wrong = wrong_files(out, name, people)
        if wrong:
            counts[f"WRONG files: {wrong}"] += 1


def main() -> int:
    """Run from the command line; exit 1 if any files are incomplete."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--runs", type=int, default=50)
    parser.add_argument("--people", type=int, default=1500)
    parser.add_argument("--seed", type=int, default=0)
    options = parser.parse_args()
    dice, started = random.Random(options.seed), time.perf_counter()
    counts: Counter[str] = Counter()
    with tempfile.TemporaryDirectory() as name:
        commands = prepare(Path(name), options.people)
        for number in range(options.runs):
            run_once(commands, Path(name) / f"out-{number}", counts, dice)
            counts["runs"] += 1
    return finish(counts, started)


if __name__ == "__main__":
    sys.exit(main())
