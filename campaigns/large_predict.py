"""Campaign of a large table: its memory is bounded, and nobody is lost.

    python -m campaigns.large_predict [--rows 10000000] [--megabytes 500] [--seed 0]

People are drawn from the space of German credit and written to one Parquet file. `feta predict`
decides them in one process. Its largest resident memory must be below the limit, and there must be
one decision for each person, in order. A part of them is compared with `feta.FairPredictor` (Linux
only, because memory is read in /proc).
"""

import argparse
import contextlib
import os
import subprocess
import sys
import tempfile
import time
from collections import Counter
from pathlib import Path

import numpy as np
import pyarrow.csv
import pyarrow.parquet as pq

import feta
from campaigns.large_tables import DRAWN, FETA, batches, save_german_model, write_table
from campaigns.result import finish

# Row groups of which the decisions are compared.
COMPARED = (0, -1)


def largest_megabytes(process: int) -> float:
    """Return the largest resident memory of a process so far.

    The `ru_maxrss` of a child includes the memory of its parent at the start.
    """
    with contextlib.suppress(FileNotFoundError, ProcessLookupError):
        for line in Path(f"/proc/{process}/status").read_text(encoding="ascii").splitlines():
            if line.startswith("VmHWM:"):
                return int(line.split()[1]) / 1024
    return 0.0


def main() -> int:
    """Run from the command line; exit 1 for too much memory or a wrong decision."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--rows", type=int, default=10_000_000)
    parser.add_argument("--megabytes", type=int, default=500)
    parser.add_argument("--seed", type=int, default=0)
    options = parser.parse_args()
    started, counts = time.perf_counter(), Counter[str]()
    with tempfile.TemporaryDirectory() as name:
        people, model, out = (Path(name) / one for one in ("p.parquet", "m.feta", "d.csv"))
        space = save_german_model(model)
        write_table(batches(space, options.rows, options.seed), people)
        command = [*FETA, "predict", str(model), "--data", str(people), "--id", "id"]
        process = subprocess.Popen([*command, "--out", str(out)])
        megabytes = 0.0
        while not (ended := os.wait4(process.pid, os.WNOHANG))[0]:
            megabytes = max(megabytes, largest_megabytes(process.pid))
            time.sleep(0.02)
        process.returncode = os.waitstatus_to_exitcode(ended[1])
        seconds = ended[2].ru_utime + ended[2].ru_stime
        print(f"{options.rows:,} rows, {people.stat().st_size / 1e6:.0f} MB of Parquet")
        print(f"{seconds:.1f} s of a processor, {options.rows / seconds:,.0f} rows per second")
        print(f"{megabytes:.0f} MB of memory at most")
        counts["WRONG exit"] += process.returncode != 0
        counts["WRONG memory"] += megabytes > options.megabytes
        columns = pyarrow.csv.ConvertOptions(include_columns=["id", "decision"])
        decided = pyarrow.csv.read_csv(out, convert_options=columns)
        ids = decided["id"].to_numpy().astype(np.int64)
        counts["WRONG ids"] += not np.array_equal(ids, np.arange(options.rows))
        predictor, file = feta.FairPredictor(feta.load_model(model)), pq.ParquetFile(people)
        for group in COMPARED:
            number = group % file.num_row_groups
            table = file.read_row_group(number)
            expected = predictor.decide(space.encode(table.drop_columns(["id"]))).tolist()
            names = [predictor.model.describe(outcome) for outcome in expected]
            found = decided["decision"].slice(number * DRAWN, len(table)).to_pylist()
            counts["WRONG decisions"] += found != names
            counts["decisions compared"] += len(names)
        counts["rows decided"] += len(decided)
    return finish(+counts, started)


if __name__ == "__main__":
    sys.exit(main())
