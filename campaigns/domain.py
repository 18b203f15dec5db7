"""Campaign of questions about everybody: proved shares, claimed boxes, confidence sequences.

    python -m campaigns.domain [--cases 1000] [--points 100000] [--runs 2000] [--draws 1000]

Random small networks, a third of them at a tie or one float64 away, are asked about uniform people,
the frequencies of a table, and people who meet a condition. After every step the proved shares
must bracket the shares that the oracle enumerates in fractions. Points are drawn in boxes that are
claimed fair or unfair, half of their coordinates on edges, and decided by the exact engines. Runs
of draws with known shares count how often a confidence sequence ever misses the truth.
"""

import argparse
import sys
import time
from collections import Counter
from math import sqrt

import numpy as np

from campaigns.result import finish
from feta.arrays import Flags
from feta.cells.cells import Cells
from feta.everybody.boxes import Boxes
from feta.everybody.decide import treated
from feta.everybody.population import uniform
from feta.everybody.sequence import interval_of
from feta.everybody.where import Where
from feta.rule import Tolerance
from tests.everybody_cases import small_case
from tests.strategies import EDGES, random_case

ALPHA = 0.05
STEPS = 300


def bracket(seed: int) -> Counter[str]:
    """Compare proved shares with enumeration after every step."""
    case = small_case(seed)
    counts: Counter[str] = Counter(cases=1)
    for few in (1, 16):
        boxes = Boxes.of(case.model, case.population, few=few)
        if isinstance(boxes, str):
            counts["refused: " + boxes[:40]] += 1
            continue
        for _ in range(STEPS):
            if boxes.done:
                break
            boxes.step()
            if boxes.fair > case.fair or boxes.unfair > case.unfair:
                counts[f"WRONG shares (seed {seed}, {case.words})"] += 1
                break
        counts["runs decided completely" if boxes.done else "runs with undecided boxes"] += 1
    return counts


class Claiming(Boxes):
    """Boxes that keep what they claim."""

    def _fair(self, index: int, cells: Cells) -> Flags:
        fair = super()._fair(index, cells)
        self.claims.append((index, cells[np.flatnonzero(fair)], True))
        return fair

    def _unfair(self, index: int, cells: Cells) -> Flags:
        unfair = super()._unfair(index, cells)
        self.claims.append((index, cells[np.flatnonzero(unfair)], False))
        return unfair

    @property
    def claims(self) -> list[tuple[int, Cells, bool]]:
        """The boxes that are claimed, and whether as fair."""
        return self.__dict__.setdefault("_claims", [])


def points(seed: int, *, per_box: int = 16) -> Counter[str]:
    """Draw points in claimed boxes, with real-valued columns, and decide them."""
    rng = np.random.default_rng([seed, 1])
    edge = EDGES[rng.integers(len(EDGES))]
    case = random_case(rng, edge, plain=False)
    counts: Counter[str] = Counter()
    if isinstance(case.model.rule, Tolerance):
        return counts
    boxes = Claiming.of(case.model, uniform(case.model.space, Where()), few=1)
    if isinstance(boxes, str):
        return counts
    for _ in range(4):
        boxes.step()
    for index, cells, fair in boxes.__dict__.get("_claims", []):
        if not len(cells):
            continue
        part = boxes.parts[index]
        lower = np.repeat(cells.lower, per_box, axis=0)
        upper = np.repeat(cells.upper, per_box, axis=0)
        inside = rng.random(lower.shape)
        ends = rng.integers(0, 2, lower.shape).astype(np.float64)
        share = np.where(rng.random(lower.shape) < 0.5, ends, inside)
        real = np.array([axis.real for axis in part.axes])
        chosen = np.clip(lower * (1 - share) + upper * share, lower, upper)
        found = treated(case.model, part.at(np.where(real, chosen, np.floor(chosen))))
        wrong = found.unfair if fair else found.fair
        name = "fair" if fair else "unfair"
        counts[f"points in boxes claimed {name}"] += len(lower)
        if wrong.any():
            counts[f"WRONG claim of {name} (seed {seed})"] += int(wrong.sum())
    return counts


def sequences(n_runs: int, n_draws: int) -> Counter[str]:
    """Count the runs whose interval misses the truth after any draw."""
    rng = np.random.default_rng(0)
    shares = (0.001, 0.01, 0.1, 0.5, 0.97)
    misses = 0
    for run in range(n_runs):
        share = shares[run % len(shares)]
        drawn = rng.random(n_draws) < share
        counts = np.cumsum(drawn)
        for n, k in enumerate(counts.tolist(), start=1):
            interval = interval_of(n, k, k, alpha=ALPHA)
            if not interval.low <= share <= interval.high:
                misses += 1
                break
    limit = ALPHA + 3 * sqrt(ALPHA * (1 - ALPHA) / max(n_runs, 1))
    print(f"sequences: {misses} of {n_runs} runs miss (limit {limit:.4f})", flush=True)
    counted: Counter[str] = Counter({"runs of draws": n_runs, "runs that ever miss": misses})
    if misses > limit * n_runs:
        counted["WRONG sequences"] += 1
    return counted


def main() -> int:
    """Run the campaign."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--cases", type=int, default=1000)
    parser.add_argument("--points", type=int, default=100_000)
    parser.add_argument("--runs", type=int, default=2000)
    parser.add_argument("--draws", type=int, default=1000)
    parser.add_argument("--start", type=int, default=0)
    options = parser.parse_args()
    started = time.perf_counter()
    counts = sequences(options.runs, options.draws)
    for seed in range(options.start, options.start + options.cases):
        counts += bracket(seed)
        if seed % 100 == 0:
            print(f"case {seed}, {time.perf_counter() - started:.0f} s", flush=True)
    seed = options.start
    while sum(n for name, n in counts.items() if name.startswith("points")) < options.points:
        counts += points(seed)
        seed += 1
    return finish(counts, started)


if __name__ == "__main__":
    sys.exit(main())
