"""Mutation tests of `feta_check`: how many small faults do its tests notice?

    python -m campaigns.checker_mutants [--mutants 300] [--seed 1]

cosmic-ray lists the mutants. Each one of a random sample is written to a copy of the package. Then
a fork of this process, in which everything else is already imported, runs tests, without Node. A
mutant is killed if a test fails, or if the tests take too much processor time.
"""

import argparse
import contextlib
import importlib
import os
import resource
import shutil
import sys
import tempfile
import time
from pathlib import Path

import numpy as np
import pytest

from campaigns.mutants import ROOT, Mutant, Outcome, changed_lines, mutants_of, show

PACKAGE = ROOT / "src" / "feta_check"
TESTS = ("test_ties", "test_random_models", "test_segments", "test_claims", "test_files")

# Modules that tests need, and that do not import the package.
LOADED = ("feta", "feta.readers.sklearn", "tests.forest_cases", "tests.oracle", "tests.strategies")

# Seconds of processor time of one run; the unchanged package needs less than a third.
SECONDS = 90


def main() -> None:
    """Run the sample and print the share and the survivors."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--mutants", type=int, default=300)
    parser.add_argument("--seed", type=int, default=1)
    options = parser.parse_args()
    for name in LOADED:
        importlib.import_module(name)
    everything = [mutant for path in sorted(PACKAGE.glob("*.py")) for mutant in mutants_of(path)]
    rng, started = np.random.default_rng(options.seed), time.monotonic()
    size = min(options.mutants, len(everything))
    chosen = [everything[index] for index in rng.choice(len(everything), size, replace=False)]
    with tempfile.TemporaryDirectory(prefix="mutants_") as name:
        folder = Path(name) / "feta_check"
        shutil.copytree(PACKAGE, folder, ignore=shutil.ignore_patterns("__pycache__"))
        if run_tests(folder) != "survived":
            raise SystemExit("the tests fail without a mutant")
        outcomes = []
        for mutant in chosen:
            outcomes.append(test(mutant, folder))
            print(f"{len(outcomes)} {outcomes[-1].result}", file=sys.stderr, flush=True)
    show("feta_check", outcomes, len(everything), time.monotonic() - started)


def test(mutant: Mutant, folder: Path) -> Outcome:
    """Write a mutant, run the tests, and undo it."""
    from cosmic_ray.mutating import mutate_code  # noqa: PLC0415 - only this campaign needs it
    from cosmic_ray.plugins import get_operator  # noqa: PLC0415

    path = folder / Path(mutant.module).name
    original = path.read_text(encoding="utf-8")
    mutated = mutate_code(original, get_operator(mutant.operator)(), mutant.occurrence)
    assert mutated is not None, mutant
    path.write_text(mutated, encoding="utf-8")
    try:
        return Outcome(mutant, run_tests(folder), changed_lines(original, mutated))
    finally:
        path.write_text(original, encoding="utf-8")


def run_tests(folder: Path) -> str:
    """Run the tests in a fork, with the package in a folder; return what they made of it."""
    child = os.fork()
    if child == 0:
        code = 3
        with contextlib.suppress(BaseException):
            code = int(_test_here(folder))
        os._exit(code)
    _, status = os.waitpid(child, 0)
    if os.WIFSIGNALED(status):
        return "timeout"
    return "survived" if os.WEXITSTATUS(status) == 0 else "killed"


def _test_here(folder: Path) -> int:
    resource.setrlimit(resource.RLIMIT_CPU, (SECONDS, SECONDS))
    resource.setrlimit(resource.RLIMIT_AS, (2**32, 2**32))
    sys.meta_path[:] = [f for f in sys.meta_path if "ScikitBuild" not in type(f).__name__]
    sys.path.insert(0, str(folder.parent))
    sys.dont_write_bytecode = True
    os.environ["PATH"] = ""  # no Node: the second checker must not help
    silent = os.open(os.devnull, os.O_WRONLY)
    os.dup2(silent, 1)
    os.dup2(silent, 2)
    tests = [str(ROOT / "tests" / "certificates" / f"{name}.py") for name in TESTS]
    options = ["-q", "-x", "-p", "no:cacheprovider", "-p", "no:xdist"]
    options += ["-W", "ignore::pytest.PytestAssertRewriteWarning"]  # modules are imported already
    return int(pytest.main([*options, *tests]))


if __name__ == "__main__":
    main()
