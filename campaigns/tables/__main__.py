"""Campaign of tables with every content and every encoder, against the pipeline's predict.

    python -m campaigns.tables [--part K/N] [--limit N] [--jobs 2] [--seed S] [--list] [--only TEXT]

It tests the full product of column content, encoder, file, reading and role of the column. Each
combination writes a table, reads it with pandas as a user does, fits a pipeline, and calls
`feta init`, `audit` and `predict` on both, or the Python API. The oracle substitutes every value
of the sensitive column into the user's frame and calls the pipeline's predict.

It exits with 1 on a wrong verdict, decision or schema, on a crash, on a refusal that does not name
column, value and remedy, and, of 100 combinations or more, if fewer than 85 % are answered.
"""

import argparse
import sys
import time
from collections.abc import Iterable, Iterator
from concurrent.futures import ProcessPoolExecutor
from functools import partial
from pathlib import Path

import numpy as np

from campaigns.tables.combinations import Combination, combinations
from campaigns.tables.outcome import Outcome, outcome_of
from campaigns.tables.summary import print_left_out, summarize


def select(options: argparse.Namespace) -> list[Combination]:
    """Choose combinations by name, then one of several random parts, then a seeded sample."""
    chosen = [combination for combination in combinations() if options.only in combination.name]
    part, parts = options.part
    order = np.random.default_rng(0).permutation(len(chosen))  # the same parts for every seed
    chosen = [chosen[index] for index in sorted(order[part - 1 :: parts])]
    if options.limit is None:
        return chosen
    chosen = [combination for combination in chosen if not combination.left_out]
    sample = np.random.default_rng(options.seed).permutation(len(chosen))[: options.limit]
    return [chosen[index] for index in sorted(sample)]


def part_of(text: str) -> tuple[int, int]:
    """Parse `K/N`."""
    part, _, parts = text.partition("/")
    if not (part.isdigit() and parts.isdigit() and 1 <= int(part) <= int(parts)):
        raise argparse.ArgumentTypeError(f"invalid part: got {text!r}; expected K/N, such as 1/4")
    return int(part), int(parts)


def run(chosen: list[Combination], *, jobs: int, seed: int, keep: Path | None) -> list[Outcome]:
    """Run the combinations in processes."""
    run_one = partial(outcome_of, seed=seed, keep=keep)
    if jobs == 1:
        return list(_with_progress(map(run_one, chosen), len(chosen)))
    # A command ignores SIGTERM when it ends, so workers must not be ended by that signal.
    with ProcessPoolExecutor(jobs) as pool:
        return list(_with_progress(pool.map(run_one, chosen, chunksize=4), len(chosen)))


def _with_progress(outcomes: Iterable[Outcome], total: int) -> Iterator[Outcome]:
    """Report every hundredth combination on standard error."""
    for number, outcome in enumerate(outcomes, start=1):
        if number % 100 == 0:
            print(f"{number} of {total} combinations", file=sys.stderr, flush=True)
        yield outcome


def main() -> int:
    """Run from the command line."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--part", type=part_of, default=(1, 1), help="K/N: the K-th of N parts")
    parser.add_argument("--limit", type=int, help="a seeded sample of this many combinations")
    parser.add_argument("--jobs", type=int, default=2)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--only", default="", help="combinations whose name contains this")
    parser.add_argument("--keep", type=Path, help="folder for the files of each combination")
    parser.add_argument("--list", action="store_true", help="list the combinations and stop")
    parser.add_argument("--verbose", action="store_true", help="print every refusal and crash")
    options = parser.parse_args()
    started = time.perf_counter()
    chosen = select(options)
    if options.list:
        return print_left_out(chosen)
    outcomes = run(chosen, jobs=options.jobs, seed=options.seed, keep=options.keep)
    failed = summarize(outcomes, verbose=options.verbose)
    print(f"{time.perf_counter() - started:.0f} s")
    return failed


if __name__ == "__main__":
    sys.exit(main())
