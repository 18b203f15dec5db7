"""What an audit does for one more unfair person: functions and files passed, checks, certificates.

    python scripts/trace_audit.py [--people 1000]

It makes the demo (`feta demo --out`) and audits its people, traced. Then it audits 60 unfair
people, and 61: what is called more often is the path of one row. It also counts the calls of the
checker.
"""

import argparse
import contextlib
import csv
import io
import sys
import tempfile
import threading
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from types import FrameType

import feta
from feta.cli.run_command import run_command

ROOT = str(Path(feta.__file__).parent)

# Unfair people of both audits; the pairs with the largest gaps are shown in reports.
UNFAIR_PEOPLE = 60

Calls = Counter[tuple[str, str]]


def main() -> None:
    """Trace both audits and print the figures."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--people", type=int, default=1000)
    options = parser.parse_args()
    with tempfile.TemporaryDirectory(prefix="trace_audit_") as name:
        folder = Path(name)
        command("demo", "--out", str(folder / "demo"))
        table = read(folder / "demo" / "people.csv")
        whole = audit(folder, "whole", [table[0], *table[1 : options.people + 1]])
        verdicts = list(csv.DictReader((folder / "whole" / "verdicts.csv").open(encoding="utf-8")))
        show_evidence(whole, verdicts)
        unfair = [row for row in verdicts if row["verdict"] == "unfair"]
        unfair.sort(key=lambda row: -float(row["gap"]))
        rows = [table[int(row["row"])] for row in unfair]
        few = audit(folder, "few", [table[0], *rows[:UNFAIR_PEOPLE]])
        more = audit(folder, "more", [table[0], *rows[:UNFAIR_PEOPLE], rows[-1]])
        show_path(more - few)


def show_evidence(calls: Calls, verdicts: list[dict[str, str]]) -> None:
    """Print how many certificates and calls of the checker an audit needs."""
    statuses = Counter(row["verdict"] for row in verdicts)
    print(f"{len(verdicts):,} people: {dict(statuses)}")
    print(f"calls of checker.admit: {calls['checker/admit.py', 'admit']:,}")
    print(f"calls of space.check: {calls['space/feature_space.py', 'FeatureSpace.check']:,}")


def show_path(calls: Calls) -> None:
    """Print the functions and files that one more unfair person passes."""
    functions = [name for _, name in calls if not name.rsplit(".", 1)[-1].startswith("<")]
    files = sorted({path for path, _ in calls})
    checks = calls["space/feature_space.py", "FeatureSpace.check"]
    print(
        f"one more unfair person: {len(functions)} functions in {len(files)} files, "
        f"{sum(calls.values())} calls, {checks} of them space.check"
    )
    print("files: " + ", ".join(files))


def read(path: Path) -> list[list[str]]:
    """Return the rows of a table, the header first."""
    with path.open(encoding="utf-8", newline="") as file:
        return list(csv.reader(file))


def audit(folder: Path, name: str, rows: list[list[str]]) -> Calls:
    """Audit some rows of the demo; return how often each function of FETA was called."""
    path = folder / f"{name}.csv"
    with path.open("w", encoding="utf-8", newline="") as file:
        csv.writer(file).writerows(rows)
    model, out = str(folder / "demo" / "model.feta"), str(folder / name)
    return traced(
        lambda: command("audit", model, "--data", str(path), "--label", "credit", "--out", out)
    )


def command(*arguments: str) -> None:
    """Run a command of FETA without its output."""
    with contextlib.redirect_stdout(io.StringIO()), contextlib.redirect_stderr(io.StringIO()):
        run_command(list(arguments))


def traced(call: Callable[[], object]) -> Calls:
    """Count the calls of FETA's functions, in all threads."""
    calls: Calls = Counter()

    def record(frame: FrameType, event: str, argument: object) -> None:
        del argument
        path = frame.f_code.co_filename
        if event == "call" and path.startswith(ROOT):
            calls[path[len(ROOT) + 1 :], frame.f_code.co_qualname] += 1

    threading.setprofile(record)
    sys.setprofile(record)
    try:
        call()
    finally:
        sys.setprofile(None)
        threading.setprofile(None)
    return calls


if __name__ == "__main__":
    main()
