"""Mutation tests of `feta_check`: how many small faults do its tests notice?

    python -m campaigns.checker_mutants [--mutants 300] [--seed 1] [--jobs 1] [--out outcomes.jsonl]

cosmic-ray lists the mutants. Each one of a random sample is written to a copy of the package, and
forks of this process, in which everything else is already imported, test it: first certificates
whose claims the oracles have judged, those of `tests/certificates/test_random_models.py` and lies
about them; then the unit tests that are about its file; then all other tests of certificates,
without Node. The first step that fails kills it. A mutant that takes too much processor time is
killed, too. With `--out`, an interrupted run is resumed. `--only` repeats some mutants, by their
numbers.
"""

import argparse
import contextlib
import importlib
import json
import os
import resource
import shutil
import sys
import tempfile
import time
from collections.abc import Callable
from dataclasses import asdict
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from campaigns.mutants import ROOT, Mutant, Outcome, changed_lines, mutants_of, show

PACKAGE = ROOT / "src" / "feta_check"
FOLDER = ROOT / "tests" / "certificates"

# The tests of each file, which run before the others, and those that run for these files only: the
# random models are among the certificates.
TESTS: dict[str, tuple[str, ...]] = {
    "certificate.py": ("test_files", "test_limits"),
    "claims.py": ("test_claims", "test_ties"),
    "command.py": ("test_files", "test_receipts", "test_limits"),
    "forest.py": ("test_damaged_forests",),
    "means.py": ("test_claims",),
    "model.py": ("test_unknown", "test_files"),
    "model_file.py": ("test_files", "test_damaged_networks", "test_limits"),
    "network.py": ("test_ties", "test_damaged_networks", "test_segments", "test_claims"),
    "people.py": ("test_claims",),
    "reading.py": ("test_files", "test_claims", "test_limits"),
    "receipts.py": ("test_receipts",),
    "rules.py": ("test_ties", "test_damaged_networks", "test_claims"),
    "signatures.py": ("test_signatures", "test_ed25519"),
}
SEPARATE = ("test_canonical", "test_ed25519", "test_limits", "test_random_models")

# Modules that tests need, with everything that they import; those of the package are forgotten.
LOADED = ("campaigns.certificates", "campaigns.certificate_mutants", "feta.readers.sklearn", "json")
FORGOTTEN = ("feta_check", "campaigns.certificate", "tests.certificates")

# A step of a mutant may take so many times as long as that of the unchanged package, and so many
# seconds at least, in processor time.
SLOWER, MIN_SECONDS, MAX_SECONDS = 3, 6.0, 300.0

# Seeds of the certificates that are checked.
SEEDS = range(40)


def main() -> None:
    """Run the sample and print the share and the survivors."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--mutants", type=int, default=300)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--only", type=int, nargs="+", help="numbers of mutants")
    parser.add_argument(
        "--out", type=Path, help="write outcomes, and resume from those in the file"
    )
    parser.add_argument("--jobs", type=int, default=1)
    options = parser.parse_args()
    for name in LOADED:
        importlib.import_module(name)
    for name in [name for name in sys.modules if name.startswith(FORGOTTEN)]:
        del sys.modules[name]
    everything = [mutant for path in sorted(PACKAGE.glob("*.py")) for mutant in mutants_of(path)]
    rng, started = np.random.default_rng(options.seed), time.monotonic()
    size = min(options.mutants, len(everything))
    chosen = [everything[index] for index in rng.choice(len(everything), size, replace=False)]
    numbers = options.only or range(size)
    with tempfile.TemporaryDirectory(prefix="mutants_") as name:
        root = Path(name)
        path = options.out or root / "outcomes.jsonl"
        known = {} if options.only else read_outcomes(path)
        open_numbers = [number for number in numbers if str(chosen[number]) not in known]
        limits = unchanged(copy_of_the_package(root / "unchanged"), root)
        print(f"limits of the steps: {limits} s of processor time", file=sys.stderr, flush=True)
        workers = []
        for job in range(options.jobs):
            folder = copy_of_the_package(root / str(job))
            workers.append(os.fork())
            if workers[-1] == 0:
                for number in open_numbers[job :: options.jobs]:
                    outcome = test(chosen[number], folder, root, limits)
                    write_outcome(path, outcome)
                    seconds, mutant = time.monotonic() - started, outcome.mutant
                    words = f"{seconds:.0f} s: {number} {mutant.module}:{mutant.line}"
                    print(f"{words} {outcome.result}", file=sys.stderr, flush=True)
                os._exit(0)
        for worker in workers:
            os.waitpid(worker, 0)
        outcomes = read_outcomes(path)
        results = [outcomes[str(chosen[number])] for number in numbers]
    show("feta_check", results, len(everything), time.monotonic() - started)


def copy_of_the_package(root: Path) -> Path:
    """Copy the package, where mutants are written."""
    folder = root / "feta_check"
    shutil.copytree(PACKAGE, folder, ignore=shutil.ignore_patterns("__pycache__"))
    return folder


def unchanged(folder: Path, root: Path) -> list[float]:
    """Test the unchanged package; return limits of the processor time of each step."""
    limits = []
    for step in (lambda: write_corpus(root), *steps_of("", root)):
        before = resource.getrusage(resource.RUSAGE_CHILDREN).ru_utime
        if in_fork(folder, step, MAX_SECONDS) != "survived":
            raise SystemExit("the package fails without a mutant")
        spent = resource.getrusage(resource.RUSAGE_CHILDREN).ru_utime - before
        limits.append(max(MIN_SECONDS, SLOWER * spent))
    return [limits[1], limits[3], limits[3]]


def read_outcomes(path: Path) -> dict[str, Outcome]:
    """Read the outcomes of an interrupted run."""
    if not path.exists():
        return {}
    entries = [json.loads(line) for line in path.read_text(encoding="utf-8").splitlines()]
    found = [Outcome(**entry | {"mutant": Mutant(**entry["mutant"])}) for entry in entries]
    return {str(outcome.mutant): outcome for outcome in found}


def write_outcome(path: Path, outcome: Outcome) -> None:
    """Add an outcome to the file."""
    with path.open("a", encoding="utf-8") as stream:
        stream.write(json.dumps(asdict(outcome)) + "\n")


def steps_of(module: str, root: Path) -> list[Callable[[], int]]:
    """Return the steps that test a mutant, the fastest first."""
    first = TESTS.get(module, ())
    everything = sorted(path.stem for path in FOLDER.glob("test_*.py"))
    rest = tuple(name for name in everything if name not in (*first, *SEPARATE))
    return [lambda: check_corpus(root), lambda: run_tests(first), lambda: run_tests(rest)]


def test(mutant: Mutant, folder: Path, root: Path, limits: list[float]) -> Outcome:
    """Write a mutant, test it, and undo it."""
    from cosmic_ray.mutating import mutate_code  # noqa: PLC0415 - only this campaign needs it
    from cosmic_ray.plugins import get_operator  # noqa: PLC0415

    path = folder / Path(mutant.module).name
    original = path.read_text(encoding="utf-8")
    mutated = mutate_code(original, get_operator(mutant.operator)(), mutant.occurrence)
    assert mutated is not None, mutant
    path.write_text(mutated, encoding="utf-8")
    try:
        steps = zip(steps_of(path.name, root), limits, strict=True)
        results = (in_fork(folder, step, seconds) for step, seconds in steps)
        result = next((result for result in results if result != "survived"), "survived")
        return Outcome(mutant, result, changed_lines(original, mutated))
    finally:
        path.write_text(original, encoding="utf-8")


def in_fork(folder: Path, step: Callable[[], int], seconds: float) -> str:
    """Do a step in a fork, with the package in a folder; return what it made of it."""
    child = os.fork()
    if child == 0:
        code = 3
        with contextlib.suppress(BaseException):
            resource.setrlimit(resource.RLIMIT_CPU, (int(seconds), int(seconds)))
            resource.setrlimit(resource.RLIMIT_AS, (2**32, 2**32))
            finders = [f for f in sys.meta_path if "ScikitBuild" not in type(f).__name__]
            sys.meta_path[:] = finders
            sys.path.insert(0, str(folder.parent))
            sys.dont_write_bytecode = True
            os.environ["PATH"] = ""  # no Node: the second checker must not help
            silent = os.open(os.devnull, os.O_WRONLY)
            os.dup2(silent, 1)
            os.dup2(silent, 2)
            code = step()
        os._exit(code)
    _, status = os.waitpid(child, 0)
    if os.WIFSIGNALED(status):
        return "timeout"
    return "survived" if os.WEXITSTATUS(status) == 0 else "killed"


def run_tests(names: tuple[str, ...]) -> int:
    """Run tests of this process's package."""
    if not names:
        return 0
    options = ["-q", "-x", "--assert=plain", "-p", "no:cacheprovider", "-p", "no:xdist"]
    return int(pytest.main([*options, *(str(FOLDER / f"{name}.py") for name in names)]))


def write_corpus(root: Path) -> int:
    """Write certificates, valid ones and lies, and the results that the oracles confirm."""
    from campaigns.certificate_mutants import MUTATIONS, Sealed  # noqa: PLC0415 - in the fork only
    from tests.certificates import test_random_models as random_models  # noqa: PLC0415

    cases: list[tuple[str, int, Any]] = []

    def add(sealed: Sealed, limit: int) -> None:
        target = root / f"case{len(cases)}"
        shutil.copytree(sealed.folder, target)
        results = checked(target, limit)
        for row, result in (results or {}).items():
            assert result != "proved" or sealed.holds(row)
        cases.append((target.name, limit, results))

    for seed in SEEDS:
        folder = root / f"seed{seed}"
        rng, _, sealed = random_models.sealed_case(folder, seed)
        if seed % 2:
            sealed.grow_trees(rng)
        sealed.write("valid")
        add(sealed, 2**20)
        assert cases[-1][2] == dict.fromkeys(sealed.rows, "proved")
        add(sealed, 2)
        before = {path: path.read_bytes() for path in folder.iterdir()}
        assert sealed.truth is not None
        bounded, count = Sealed.read(folder, sealed.truth), int(np.prod(sealed.truth.sizes))
        for claim in random_models.fair_claims(bounded):
            claim |= {"verdict": "fair", "fair_decision": None, "proof": {"counterparts": count}}
        bounded.write("bounds")
        add(bounded, int(rng.integers(0, 4)))
        random_models.sealed_case(root / f"other{seed}", seed + 1000)
        for kind, mutate in MUTATIONS.items():
            for path, content in before.items():
                path.write_bytes(content)
            lie = Sealed.read(folder, sealed.truth)
            mutate(rng, lie, root / f"other{seed}")
            lie.write(kind)
            add(lie, 2**20)
    (root / "cases.json").write_text(json.dumps(cases))
    return 0


def check_corpus(root: Path) -> int:
    """Return whether the package gives other results, which the tests would notice."""
    for name, limit, expected in json.loads((root / "cases.json").read_bytes()):
        found = checked(root / name, limit)
        if not found or not expected:  # unreadable or unknown: nothing may be proved
            if "proved" in (found or expected or {}).values():
                return 1
        elif {str(row): result for row, result in found.items()} != expected:
            return 1
    return 0


def checked(folder: Path, limit: int) -> Any:  # noqa: ANN401 - results, as in campaigns.certificates
    """Check a folder; lists have at most `limit` counterparts."""
    from campaigns.certificates import check  # noqa: PLC0415 - in the fork only
    from feta_check import claims  # noqa: PLC0415

    claims.MAX_COUNTERPARTS = limit
    return check(folder)


if __name__ == "__main__":
    main()
