"""Benchmark of fair decisions: their time compared with the network's forward pass, in one run.

    python -m benchmarks [--quick] [--out DIR] [--seed 0]

Times are processor times of one thread per person, best of five, unless a row states otherwise: on
a busy machine, wall-clock times would include other processes. A run takes about five minutes, with
--quick one or two. UCI Adult and Law School are read from the folder FETA_DATA_DIR, or downloaded;
they are skipped if neither is possible.
"""

import argparse
import json
import math
import platform
from collections.abc import Iterable, Iterator
from dataclasses import asdict
from pathlib import Path

import torch
from threadpoolctl import threadpool_limits

from benchmarks.networks import FOLDS, TRAINING, Trained, train
from benchmarks.sweep import Cell, plot, sweep
from benchmarks.ways import (
    UNIT,
    Row,
    compare,
    decide_batch,
    lattice_engine,
    real_age_batch,
    spread,
    with_best_unit,
)
from feta.errors import FetaError
from feta_paper.timing import forward_seconds

# On a lattice of this size, the times of people differ by more than the time of a call.
LARGE = 10**5


def readable(seconds: float) -> str:
    """Format a time in a suitable unit."""
    for scale, unit in ((1.0, "s"), (1e3, "ms"), (1e6, "µs")):
        if seconds * scale >= 1:
            return f"{seconds * scale:.3g} {unit}"
    return f"{seconds * 1e6:.3g} µs"


def show(rows: list[Row]) -> None:
    """Print rows with their ratios to the first one, torch's forward pass of a single row."""
    unit = rows[0].seconds
    assert unit is not None
    print("\n| per person | time | ÷ torch single | |\n|---|---|---|---|")
    for row in rows:
        time = "-" if row.seconds is None else readable(row.seconds)
        ratio = "-" if row.seconds is None else f"{row.seconds / unit:,.3g}"
        print(f"| {row.way} | {time} | {ratio} | {row.note} |", flush=True)


def measure(trained: Trained, *, quick: bool) -> list[Row]:
    """Print the table of a data set; on a large lattice, also how people differ."""
    size = trained.model.space.lattice.size
    title = f"{trained.title}: {size:,} counterparts, network {trained.accuracy:.1%} accurate"
    print(f"\n## {title}", flush=True)

    def rows() -> Iterable[Row]:
        yield from compare(trained)
        if size >= LARGE:
            yield from spread(trained, 50 if quick else 300)

    table = with_best_unit(trained, rows())
    show(table)
    return table


def over_folds(name: str, folds: int, seed: int) -> list[dict[str, float]]:
    """Print the times of several networks of one data set, because a single one may be atypical."""
    print(
        "\n| network of fold | accuracy | fair decision, a batch, ÷ torch single "
        "| maximum violation with real age, a batch, ÷ torch single |"
    )
    print("|---|---|---|---|", flush=True)
    results: list[dict[str, float]] = []
    for number in range(folds):
        trained = train(name, seed=seed, fold_number=number)
        ways = decide_batch, real_age_batch
        unit, times = math.inf, [math.inf, math.inf]
        for _ in range(3):  # alternating, because the load of the machine changes
            unit = min(unit, forward_seconds(trained.model, trained.people[:1]))
            times = [
                min(best, way(trained.model, trained.people))
                for best, way in zip(times, ways, strict=True)
            ]
        ratios = [seconds / unit for seconds in times]
        accuracy = trained.accuracy
        print(f"| {number} | {accuracy:.1%} | {ratios[0]:.3f} | {ratios[1]:.3f} |", flush=True)
        results.append({"accuracy": accuracy, "decision": ratios[0], "real age": ratios[1]})
    means = {key: sum(row[key] for row in results) / folds for key in results[0]}
    print(f"| mean | {means['accuracy']:.1%} | {means['decision']:.3f} | {means['real age']:.3f} |")
    return results


def show_each(cells: Iterable[Cell]) -> Iterator[Cell]:
    """Print each cell of the sweep when it is measured."""
    print("\n## Random networks, lattice engine in batch\n")
    print(
        "| depth, width | counterparts | time | ÷ torch single | decided in time "
        "| every counterpart, ÷ torch |"
    )
    print("|---|---|---|---|---|---|")
    for cell in cells:
        over = "" if cell.decided == cell.people else "over "
        every = "-" if cell.enumeration is None else f"{cell.enumeration / cell.forward:,.3g}"
        ratio = f"{cell.seconds / cell.forward:,.3g}"
        print(
            f"| {cell.depth}, {cell.width} | {cell.counterparts:,} "
            f"| {over}{readable(cell.seconds)} | {over}{ratio} "
            f"| {cell.decided}/{cell.people} | {every} |",
            flush=True,
        )
        yield cell


def write(
    folder: Path,
    tables: dict[str, tuple[int, list[Row]]],
    folds: list[dict[str, float]],
    cells: list[Cell],
) -> None:
    """Write all numbers as JSON, and the plot."""
    folder.mkdir(parents=True, exist_ok=True)
    content = {
        "machine": platform.processor() or platform.machine(),
        "trained": {
            name: {"counterparts": size, "rows": [asdict(row) for row in rows]}
            for name, (size, rows) in tables.items()
        },
        "german by fold": folds,
        "random": [asdict(cell) for cell in cells],
    }
    (folder / "benchmarks.json").write_text(json.dumps(content, indent=1) + "\n", encoding="utf-8")
    stars = {}
    for name, (size, rows) in tables.items():
        seconds = {row.way: row.seconds for row in rows}
        batch, unit = seconds.get("engine lattice, a batch"), seconds.get(UNIT)
        if batch and unit:
            stars[name] = (size, batch / unit)
    plot(cells, stars, folder / "cost.svg")
    print(f"\n{folder / 'benchmarks.json'} and {folder / 'cost.svg'} are written")


@threadpool_limits.wrap(limits=1)  # type: ignore[untyped-decorator]  # threadpoolctl has no types
def main() -> None:
    """Run from the command line."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument(
        "--quick", action="store_true", help="few shapes and people: one or two minutes"
    )
    parser.add_argument("--out", type=Path, help="folder for benchmarks.json and cost.svg")
    parser.add_argument("--seed", type=int, default=0)
    options = parser.parse_args()
    torch.set_num_threads(1)
    lattice_engine().threads = 1
    tables: dict[str, tuple[int, list[Row]]] = {}
    folds: list[dict[str, float]] = []
    cells: list[Cell] = []
    try:
        for name in TRAINING:
            try:
                trained = train(name, seed=options.seed)
            except (FetaError, OSError) as error:
                print(f"\n## {name}: the data set is not available ({error})")
                continue
            tables[name] = trained.model.space.lattice.size, measure(trained, quick=options.quick)
            if name == "german":
                folds = over_folds(name, 2 if options.quick else FOLDS, options.seed)
        seconds = 15.0 if options.quick else 150.0
        measured = sweep(quick=options.quick, seconds=seconds, seed=options.seed)
        for cell in show_each(measured):
            cells.append(cell)  # noqa: PERF402 - one by one, so that Ctrl-C keeps them
    except KeyboardInterrupt:
        print("\ninterrupted; finished tables are kept")
    if options.out is not None:
        write(options.out, tables, folds, cells)


if __name__ == "__main__":
    main()
