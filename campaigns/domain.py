"""Campaign of questions about everybody: proved shares, claimed boxes, confidence sequences.

    python -m campaigns.domain [--cases 1000] [--points 100000] [--runs 2000] [--draws 1000]

Random small networks, a third of them at a tie or one float64 away, are asked about uniform people,
the frequencies of a table, and people who meet a condition. After every step the proved shares
must bracket the shares that the oracle enumerates in fractions. Points are drawn in boxes that are
claimed fair or unfair, half of their coordinates on edges, and decided by the exact engines. Both
engines are asked: bounds over boxes, and half-spaces where the model is a network with a threshold,
compiled and readable. Runs
of draws with known shares count how often a confidence sequence ever misses the truth.
"""

import argparse
import sys
import time
from collections import Counter
from math import sqrt
from pathlib import Path

import numpy as np

from campaigns.result import finish
from feta.arrays import Flags
from feta.cells.cells import Cells
from feta.everybody.boxes import Boxes
from feta.everybody.decide import treated
from feta.everybody.half_spaces import bounds, native
from feta.everybody.half_spaces.bounds import Boxes as BoundedBoxes
from feta.everybody.half_spaces.examine import LEAST_BINS, Method
from feta.everybody.half_spaces.prover import HalfSpaces
from feta.everybody.half_spaces.search import ReferenceSearch, Search
from feta.everybody.half_spaces.tree import EACH, LISTED, boxes_of
from feta.everybody.population import uniform
from feta.everybody.sequence import interval_of
from feta.everybody.where import Where
from feta.io.model_file import load_model
from feta.model import Model
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


class Readable(HalfSpaces):
    """Half-spaces with the readable search."""

    def _search(self, index: int) -> Search:
        part, problem = self.parts[index], self.problems[index]
        return ReferenceSearch(
            problem, lambda low, high: self._decide(part, low, high), few=self._few
        )


def bracket_half_spaces(seed: int) -> Counter[str]:
    """Compare proved shares of half-spaces with enumeration after every step."""
    case = small_case(seed)
    counts: Counter[str] = Counter()
    kinds = [HalfSpaces, *([Readable] if seed % 10 == 0 else [])]
    for kind in kinds:
        for few in (1, 16):
            proof = kind.of(case.model, case.population, few=few)
            if isinstance(proof, str):
                return Counter({f"half-spaces refused: {proof[:40]}": 1})
            for _ in range(STEPS):
                if proof.done:
                    break
                proof.step(0.0)
                if proof.fair > case.fair or proof.unfair > case.unfair:
                    counts[f"WRONG shares of half-spaces (seed {seed}, {case.words})"] += 1
                    break
            state = "decided completely" if proof.done else "with undecided boxes"
            counts[f"{kind.__name__}: runs {state}"] += 1
    counts["networks asked by half-spaces"] += 1
    return counts


def points_of_half_spaces(
    proof: HalfSpaces, rng: np.random.Generator, *, per_box: int, most_boxes: int
) -> Counter[str]:
    """Draw points in the leaves that half-spaces claim, edges included, and decide them."""
    counts: Counter[str] = Counter()
    for index, search in enumerate(proof.searches):
        assert isinstance(search, native.NativeSearch)
        part, problem, tree = proof.parts[index], proof.problems[index], search.tree()
        claims: dict[bool, list[tuple[np.ndarray, np.ndarray]]] = {True: [], False: []}
        for node, lower, upper in boxes_of(problem, tree):
            code = int(tree.codes[node])
            if tree.axes[node] >= 0 or code == LISTED or (lower > upper).any():
                continue
            if len(claims[True]) >= most_boxes:
                break
            method = Method(bool(code & EACH), code % EACH + LEAST_BINS)
            fair, unfair = search.examine(lower, upper, method)
            if max(fair, unfair) == 1:
                claims[fair == 1].append((lower, upper))
        for fairly, boxes in claims.items():
            if not boxes:
                continue
            lower = np.repeat(np.stack([box[0] for box in boxes]), per_box, axis=0)
            upper = np.repeat(np.stack([box[1] for box in boxes]), per_box, axis=0)
            share = rng.random(lower.shape)
            ends = rng.integers(0, 2, lower.shape).astype(np.float64)
            share = np.where(rng.random(lower.shape) < 1 / 3, ends, share)
            real = np.array([axis.real for axis in problem.axes], dtype=bool)
            chosen = np.clip(lower * (1 - share) + (upper + ~real) * share, lower, upper)
            coordinates = np.tile([axis.ends[0] for axis in part.axes], (len(chosen), 1))
            coordinates[:, list(part.shared)] = np.where(real, chosen, np.floor(chosen))
            found = treated(proof.model, part.at(coordinates))
            wrong = found.unfair if fairly else found.fair
            name = "fair" if fairly else "unfair"
            counts[f"points where half-spaces claim {name}"] += len(chosen)
            if wrong.any():
                counts[f"WRONG claim of half-spaces: {name}"] += int(wrong.sum())
    return counts


def points_of_case(seed: int) -> Counter[str]:
    """Draw points in the boxes of a random network with real-valued columns."""
    rng = np.random.default_rng([seed, 2])
    case = random_case(rng, EDGES[rng.integers(len(EDGES))], plain=False)
    if isinstance(case.model.rule, Tolerance):
        return Counter()
    proof = HalfSpaces.of(case.model, uniform(case.model.space, Where()), few=1)
    if isinstance(proof, str):
        return Counter()
    for _ in range(8):
        proof.step(0.0)
    return points_of_half_spaces(proof, rng, per_box=128, most_boxes=64)


def points_of_model(
    path: str, seconds: float, *, n_points: int, per_box: int = 1000
) -> Counter[str]:
    """Draw points in boxes of a stored model, and decide those on a claimed side of a form.

    Every point on such a side is claimed to be fair. Boxes that are not decided as a whole are
    drawn by their undecided shares; a third of all coordinates are on edges.
    """
    model = load_model(path)
    assert isinstance(model, Model)
    proof = HalfSpaces.of(model, uniform(model.space, Where()))
    assert isinstance(proof, HalfSpaces)
    proof.step()
    proof.step(seconds)
    rng, counts = np.random.default_rng(0), Counter[str]()
    part, problem, search = proof.parts[0], proof.problems[0], proof.searches[0]
    name = Path(path).stem
    while counts[f"points in half-spaces claimed fair, {name}"] < n_points:
        lower, upper = search.draw(rng, 64)
        known = bounds.bound(problem, BoundedBoxes.joint(problem, lower, upper))
        for box in range(len(lower)):
            share = rng.random((4 * per_box, len(part.shared)))
            ends = rng.integers(0, 2, share.shape).astype(np.float64)
            share = np.where(rng.random(share.shape) < 1 / 3, ends, share)
            low, high = lower[box], upper[box]
            real = np.array([axis.real for axis in problem.axes])
            chosen = np.clip(low * (1 - share) + (high + ~real) * share, low, high)
            chosen = np.where(real, chosen, np.floor(chosen))
            first = np.zeros((len(chosen), len(problem.constant)))
            for index, axis in enumerate(problem.axes):
                rows = chosen[:, index]
                if axis.table is not None:
                    first += axis.table[rows.astype(np.int64)]
                else:
                    first += (rows + axis.start)[:, None] * axis.slope
            sensitive = problem.combinations
            above = first @ known.below.weights[box] + known.below.constant[box]
            above += (sensitive @ known.below.weights[box]).min()
            below = first @ known.above.weights[box] + known.above.constant[box]
            below += (sensitive @ known.above.weights[box]).max()
            claimed = np.flatnonzero((above > 0) | (below < 0))
            coordinates = np.tile([axis.ends[0] for axis in part.axes], (len(claimed), 1))
            coordinates[:, list(part.shared)] = chosen[claimed]
            found = treated(model, part.at(coordinates))
            counts[f"points in half-spaces claimed fair, {name}"] += len(claimed)
            if found.unfair.any():
                counts[f"WRONG half-space, {name}"] += int(found.unfair.sum())
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
    parser.add_argument("--half-spaces", type=int, default=1000, help="networks, half-spaces only")
    parser.add_argument("--model-points", type=int, default=10**6)
    parser.add_argument("--models", nargs="*", default=[], help="stored models to draw points in")
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
    for seed in range(options.start, options.start + options.half_spaces):
        counts += bracket_half_spaces(seed)
        counts += points_of_case(seed) if seed % 10 == 0 else Counter()
        if seed % 500 == 0:
            wrong = sum(n for name, n in counts.items() if name.startswith("WRONG"))
            asked = counts["networks asked by half-spaces"]
            points_drawn = sum(n for name, n in counts.items() if name.startswith("points"))
            seconds = time.perf_counter() - started
            print(f"{asked} networks, {points_drawn} points, {wrong} wrong, {seconds:.0f} s")
            sys.stdout.flush()
    for path in options.models:
        counts += points_of_model(path, 3.0, n_points=options.model_points)
    return finish(counts, started)


if __name__ == "__main__":
    sys.exit(main())
