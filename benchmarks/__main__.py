"""Benchmark: what a fair decision costs beside the network's own forward pass, side by side in one run.

    python -m benchmarks [--quick] [--out DIR] [--seed 0]

Processor time of one thread, a person, best of five, unless a row says otherwise: on a busy machine the
clock on the wall would measure the neighbors. About five minutes, with --quick one or two. UCI Adult and Law
School come from the folder named by FETA_DATA_DIR, or are downloaded; they are left out where neither can be.
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
    compiled,
    decide_batch,
    real_age_batch,
    spread,
    with_best_unit,
)
from feta.errors import FetaError
from feta_paper.timing import forward_seconds

# A lattice is large where people differ in what they cost by more than the call itself.
LARGE = 10**5


def readable(seconds: float) -> str:
    """Give a time in the unit that reads best."""
    for scale, unit in ((1.0, "s"), (1e3, "ms"), (1e6, "µs")):
        if seconds * scale >= 1:
            return f"{seconds * scale:.3g} {unit}"
    return f"{seconds * 1e6:.3g} µs"


def show(rows: list[Row]) -> None:
    """Print rows beside the first of them: torch's forward of a single row."""
    unit = rows[0].seconds
    assert unit is not None
    print("\n| a person | time | ÷ torch single | |\n|---|---|---|---|")
    for row in rows:
        time = "-" if row.seconds is None else readable(row.seconds)
        ratio = "-" if row.seconds is None else f"{row.seconds / unit:,.3g}"
        print(f"| {row.way} | {time} | {ratio} | {row.note} |", flush=True)


def measure(trained: Trained, *, quick: bool) -> list[Row]:
    """Print one data set's table, and, on a large lattice, how people differ."""
    size = trained.model.space.lattice.size
    title = f"{trained.title}: {size:,} counterparts, network {trained.accuracy:.1%} accurate"
    print(f"\n## {title}", flush=True)

    def rows() -> Iterable[Row]:
        yield from compare(trained)
        if size >= LARGE:
            yield from spread(trained, 50 if quick else 300)

    told = with_best_unit(trained, rows())
    show(told)
    return told


def over_folds(name: str, folds: int, seed: int) -> list[dict[str, float]]:
    """Print what several networks of one data set cost: one alone may be a lucky one."""
    print(
        "\n| network of fold | accurate | fair decision, a batch, ÷ torch single | maximum violation with real age, a batch, ÷ torch single |"
    )
    print("|---|---|---|---|", flush=True)
    told: list[dict[str, float]] = []
    for fold in range(folds):
        one = train(name, seed=seed, fold=fold)
        ways = decide_batch, real_age_batch
        unit, times = math.inf, [math.inf, math.inf]
        for _ in range(3):  # by turns: the neighbors' load changes meanwhile
            unit = min(unit, forward_seconds(one.model, one.people[:1]))
            times = [
                min(best, way(one.model, one.people)) for best, way in zip(times, ways, strict=True)
            ]
        ratios = [seconds / unit for seconds in times]
        print(f"| {fold} | {one.accuracy:.1%} | {ratios[0]:.3f} | {ratios[1]:.3f} |", flush=True)
        told.append({"accuracy": one.accuracy, "decision": ratios[0], "real age": ratios[1]})
    means = {key: sum(row[key] for row in told) / folds for key in told[0]}
    print(f"| mean | {means['accuracy']:.1%} | {means['decision']:.3f} | {means['real age']:.3f} |")
    return told


def show_each(cells: Iterable[Cell]) -> Iterator[Cell]:
    """Print the sweep as it comes."""
    print("\n## Random networks, lattice engine in batch\n")
    print(
        "| depth, width | counterparts | time | ÷ torch single | settled in time | every counterpart, ÷ torch |"
    )
    print("|---|---|---|---|---|---|")
    for one in cells:
        least = "" if one.decided == one.people else "over "
        plain = "-" if one.enumeration is None else f"{one.enumeration / one.forward:,.3g}"
        print(
            f"| {one.depth}, {one.width} | {one.counterparts:,} | {least}{readable(one.seconds)} "
            f"| {least}{one.seconds / one.forward:,.3g} | {one.decided}/{one.people} | {plain} |",
            flush=True,
        )
        yield one


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
        "--quick", action="store_true", help="one or two minutes: few shapes, few people"
    )
    parser.add_argument("--out", type=Path, help="a folder for benchmarks.json and cost.svg")
    parser.add_argument("--seed", type=int, default=0)
    options = parser.parse_args()
    torch.set_num_threads(1)
    compiled().threads = 1
    tables: dict[str, tuple[int, list[Row]]] = {}
    folds: list[dict[str, float]] = []
    cells: list[Cell] = []
    try:
        for name in TRAINING:
            try:
                trained = train(name, seed=options.seed)
            except (FetaError, OSError) as error:
                print(f"\n## {name}: the data set is not at hand ({error})")
                continue
            tables[name] = trained.model.space.lattice.size, measure(trained, quick=options.quick)
            if name == "german":
                folds = over_folds(name, 2 if options.quick else FOLDS, options.seed)
        seconds = 15.0 if options.quick else 150.0
        drawn = sweep(quick=options.quick, seconds=seconds, seed=options.seed)
        for cell in show_each(drawn):
            cells.append(cell)  # noqa: PERF402 - one by one, so that Ctrl-C keeps them
    except KeyboardInterrupt:
        print("\nstopped; the tables finished so far are kept")
    if options.out is not None:
        write(options.out, tables, folds, cells)


if __name__ == "__main__":
    main()
