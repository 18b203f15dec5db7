"""Campaign: a reproduction killed (-9) at random moments ends with the same results as an undisturbed one.

    python -m campaigns.reproduction_kills [--kills 12] [--seed 0]

German credit, the quick protocol, two processes, the command line itself. All of results.json is compared, but for
what a clock measured, and whether a solver counted in time.
"""

import argparse
import json
import os
import random
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from collections import Counter
from pathlib import Path
from typing import Any

from campaigns.result import finish

COMMAND = [sys.executable, "-m", "feta", "reproduce", "german", "--quick", "--jobs", "2", "--out"]

# Seconds before a kill: starting alone takes about three.
SOONEST, LATEST = 3.0, 9.0


def start(out: Path) -> subprocess.Popen[bytes]:
    """Start a run that says nothing, in a group of its own: its workers die with it."""
    quiet = subprocess.DEVNULL
    return subprocess.Popen(
        [*COMMAND, str(out)], stdout=quiet, stderr=quiet, start_new_session=True
    )


def results(out: Path) -> dict[str, Any]:
    """Read what a run measured, without the clock."""
    told: dict[str, Any] = json.loads((out / "results.json").read_text(encoding="utf-8"))
    del told["times"]
    told["missing"] = {key: why for key, why in told["missing"].items() if "milp" not in key}
    return told


def main() -> int:
    """Run from the command line; exit 1 if the killed run ended with other results."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--kills", type=int, default=12)
    parser.add_argument("--seed", type=int, default=0)
    options = parser.parse_args()
    dice, started = random.Random(options.seed), time.perf_counter()
    counts: Counter[str] = Counter()
    with tempfile.TemporaryDirectory() as name:
        undisturbed, killed = Path(name) / "undisturbed", Path(name) / "killed"
        start(undisturbed).wait()
        due = results(undisturbed)
        while True:
            process = start(killed)
            left = counts["kills"] < options.kills
            try:
                process.wait(dice.uniform(SOONEST, LATEST) if left else None)
            except subprocess.TimeoutExpired:
                os.killpg(process.pid, signal.SIGKILL)
                process.wait()
                counts["kills"] += 1
                continue
            counts["runs compared"] += 1
            counts["WRONG results"] += int(results(killed) != due)
            if not left:
                break
            shutil.rmtree(killed)  # it ended before all kills were made: once more
        counts["figures compared"] = len(due["figures"])
    return finish(counts, started)


if __name__ == "__main__":
    sys.exit(main())
