"""Campaign of votes: a million fair decisions with each vote have one hash, however they are made.

    python -m campaigns.vote_invariance [--rows 1000000] [--seed 0]

It fits every vote of a random network to random people, and decides all 456 counterparts of others:
in batches of several sizes (the smallest for 5,000 rows), in random row order, with one thread and
with two, with and without AVX2 in the kernel, and in processes whose matrix products use the
instructions of other processors. The hash of the decisions must be the same, and all counterparts
of a person must get the same decision.
"""

import argparse
import hashlib
import json
import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path

import numpy as np
from threadpoolctl import threadpool_limits

from campaigns.ballot import AXES, draw_crowd, random_model, random_space
from feta import FairPredictor, Model, load_model, save_model
from feta.arrays import Answers, Matrix
from feta.engine.lattice import LatticeEngine
from feta.engine.registry import engines
from feta.space.sampling import draw_people

# Rows per call. Small batches are decided for a part only.
BATCHES = (1000, 100_000)
SMALL_BATCHES = (1, 13)
SMALL_ROWS = 5_000

# The lattice, the share of people whom the network approves, and people the votes are fitted to.
N_COUNTERPARTS = 456
RATE = 0.3
FITTED_TO = 3000

# Processors whose instructions OpenBLAS uses in the other processes; the first two have no AVX2.
CORES = ("Nehalem", "SandyBridge", "Haswell")


def votes(model: Model, people: Matrix) -> dict[str, FairPredictor]:
    """Return every vote, fitted to people."""
    return {
        "equal majority": FairPredictor(model),
        "majority": FairPredictor.fitted(model, people, "majority"),
        "mean score": FairPredictor.fitted(model, people, "mean_score"),
        "mean probability": FairPredictor.fitted(model, people),
        "mean probability, equal weights": FairPredictor.fitted(model, people, weights="equal"),
    }


def counterparts(model: Model, n_rows: int, seed: int) -> Matrix:
    """Return all counterparts of random people, at least `n_rows`."""
    n_people = -(-n_rows // model.relation.size)
    people = draw_people(model.space, np.random.default_rng(seed), n_people)
    blocks = [block for person in people for block in model.space.lattice.counterparts(person)]
    return np.concatenate(blocks)


def decided(predictor: FairPredictor, rows: Matrix, batch: int, seed: int) -> Answers:
    """Decide rows in batches and in random order."""
    order = np.random.default_rng(seed).permutation(len(rows))
    decisions = np.zeros(len(rows), dtype=bool)
    for start in range(0, len(rows), batch):
        chosen = order[start : start + batch]
        decisions[chosen] = predictor.decide(rows[chosen])
    return decisions


def hash_of(decisions: Answers) -> str:
    """Return a short hash of decisions."""
    return hashlib.sha256(decisions.tobytes()).hexdigest()[:16]


def ways(path: Path, rows: Matrix, batches: tuple[int, ...]) -> Iterator[tuple[str, Answers]]:
    """Decide all rows in each way; a model that is read again gets a new kernel."""
    engine = engines()[LatticeEngine.name]
    assert isinstance(engine, LatticeEngine)
    for simd in (True, False):
        engine.simd = simd
        predictor = FairPredictor.load(path)
        for threads in (1, 2) if simd else (1,):
            engine.threads = threads
            with threadpool_limits(threads):
                for number, batch in enumerate(batches):
                    name = f"simd {simd}, {threads} threads, batches of {batch}"
                    yield name, decided(predictor, rows, batch, number)
        for batch in SMALL_BATCHES:
            some = rows[:SMALL_ROWS]
            yield f"simd {simd}, batches of {batch}", decided(predictor, some, batch, batch)


def check(path: Path, rows: Matrix, n_counterparts: int) -> tuple[str, list[str]]:
    """Return the hash of a vote, and what is wrong with it."""
    first: Answers | None = None
    wrong = []
    for name, found in ways(path, rows, BATCHES):
        if first is None:
            first = found
            by_person = first.reshape(-1, n_counterparts)
            if (by_person != by_person[:, :1]).any():
                wrong.append("WRONG: counterparts get different decisions")
        if not np.array_equal(found, first[: len(found)]):
            wrong.append(f"WRONG: {name}")
    assert first is not None
    return hash_of(first), wrong


def elsewhere(folder: Path, core: str, n_rows: int, seed: int) -> dict[str, str]:
    """Return the hashes of another process, whose matrix products use other instructions."""
    command = [sys.executable, "-m", "campaigns.vote_invariance", "--hashes", str(folder)]
    command += ["--rows", str(n_rows), "--seed", str(seed)]
    environment = os.environ | {"OPENBLAS_CORETYPE": core}
    done = subprocess.run(command, env=environment, capture_output=True, text=True, check=True)
    hashes: dict[str, str] = json.loads(done.stdout)
    return hashes


def hashes_in(folder: Path, n_rows: int, seed: int) -> dict[str, str]:
    """Return the hash of each vote of a folder, with the engine `exhaustive` and as usual."""
    hashes = {}
    for path in sorted(folder.glob("*.feta")):
        rows = counterparts(load_model(path), n_rows, seed)
        usual = hash_of(FairPredictor.load(path).decide(rows))
        slow = hash_of(FairPredictor.load(path, "exhaustive").decide(rows))
        hashes[path.stem] = usual if usual == slow else f"{usual} but {slow}"
    return hashes


def main() -> int:
    """Run from the command line; exit 1 unless each vote has one hash."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--rows", type=int, default=10**6)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--hashes", type=Path, help="print the hashes of a folder of votes")
    options = parser.parse_args()
    if options.hashes is not None:
        print(json.dumps(hashes_in(options.hashes, options.rows, options.seed)))
        return 0
    started, wrong = time.perf_counter(), list[str]()
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        _write_votes(folder)
        paths = sorted(folder.glob("*.feta"))
        model = load_model(paths[0])
        rows = counterparts(model, options.rows, options.seed)
        for path in paths:
            found, problems = check(path, rows, model.relation.size)
            print(f"{path.stem}: {len(rows):,} decisions, hash {found}, {len(problems)} wrong",
                  *problems, flush=True)  # fmt: skip
            wrong += problems
        small = max(1, options.rows // 20)
        results = {core: elsewhere(folder, core, small, options.seed) for core in CORES}
    one = len({json.dumps(hashes) for hashes in results.values()}) == 1
    whole = not any("but" in text for hashes in results.values() for text in hashes.values())
    verdict = "one hash per vote" if one else results
    print(f"{small:,} decisions under {', '.join(CORES)}: {verdict}")
    print(f"{time.perf_counter() - started:.0f} s")
    return 0 if one and whole and not wrong else 1


def _write_votes(folder: Path) -> None:
    """Store every vote of a random network in a file."""
    rng = np.random.default_rng(0)
    space = random_space(AXES[N_COUNTERPARTS])
    model, people = random_model(rng, space, RATE), draw_crowd(rng, space, FITTED_TO)
    for name, predictor in votes(model, people).items():
        save_model(predictor, folder / f"{name}.feta")


if __name__ == "__main__":
    sys.exit(main())
