"""Campaign of killed reproductions: they end with the results of an undisturbed one.

    python -m campaigns.reproduction_kills [--kills 12] [--seed 0]

The command line runs the quick protocol on German credit with two processes, and is killed with
SIGKILL at random moments. All of results.json is compared, except times and whether a solver
counted in time.
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

# Seconds before a kill; the start takes about three.
MIN_SECONDS, MAX_SECONDS = 3.0, 9.0


def start(out: Path) -> subprocess.Popen[bytes]:
    """Start a run without output, in a separate process group that includes its workers."""
    quiet = subprocess.DEVNULL
    return subprocess.Popen(
        [*COMMAND, str(out)], stdout=quiet, stderr=quiet, start_new_session=True
    )


def results(out: Path) -> dict[str, Any]:
    """Read the results of a run without everything that depends on speed."""
    content: dict[str, Any] = json.loads((out / "results.json").read_text(encoding="utf-8"))
    del content["times"]
    content["missing"] = {
        key: reason for key, reason in content["missing"].items() if "milp" not in key
    }
    return content


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
        expected = results(undisturbed)
        while True:
            process = start(killed)
            kills_remain = counts["kills"] < options.kills
            try:
                process.wait(dice.uniform(MIN_SECONDS, MAX_SECONDS) if kills_remain else None)
            except subprocess.TimeoutExpired:
                os.killpg(process.pid, signal.SIGKILL)
                process.wait()
                counts["kills"] += 1
                continue
            counts["runs compared"] += 1
            counts["WRONG results"] += int(results(killed) != expected)
            if not kills_remain:
                break
            shutil.rmtree(killed)  # it ended before all kills: run it again
        counts["figures compared"] = len(expected["figures"])
    return finish(counts, started)


if __name__ == "__main__":
    sys.exit(main())
