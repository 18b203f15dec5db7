"""Mutation tests of `feta_check`: how many small faults do its tests notice?

    python -m campaigns.checker_mutants [--mutants 300] [--seed 1]

cosmic-ray lists the mutants. Each one of a random sample is written to a copy of the package. Then
a fork of this process, in which everything else is already imported, checks certificates whose
claims the oracles have judged: those of `tests/certificates/test_random_models.py`. If the mutant
gives another result than the package, or stops, it is killed. If not, the tests run, without Node,
and must fail. A mutant that takes too much processor time is killed, too. `--only` repeats some
mutants, by their numbers, with the tests only.
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
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from campaigns.mutants import ROOT, Mutant, Outcome, changed_lines, mutants_of, show

PACKAGE = ROOT / "src" / "feta_check"
TESTS = (
    "test_files",
    "test_claims",
    "test_damaged_forests",
    "test_ties",
    "test_unknown",
    "test_segments",
    "test_random_models",
)

# Modules that tests need, and that do not import the package.
LOADED = ("feta", "feta.readers.sklearn", "tests.forest_cases", "tests.oracle", "tests.strategies")

# Seconds of processor time of one run; the unchanged package needs less than a third.
SECONDS = 90


# Seeds of the certificates that are checked before the tests run.
SEEDS = range(40)


def main() -> None:
    """Run the sample and print the share and the survivors."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--mutants", type=int, default=300)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--only", type=int, nargs="+", help="numbers of mutants")
    parser.add_argument("--no-tests", action="store_true", help="check certificates only")
    options = parser.parse_args()
    for name in LOADED:
        importlib.import_module(name)
    everything = [mutant for path in sorted(PACKAGE.glob("*.py")) for mutant in mutants_of(path)]
    rng, started = np.random.default_rng(options.seed), time.monotonic()
    size = min(options.mutants, len(everything))
    chosen = [everything[index] for index in rng.choice(len(everything), size, replace=False)]
    with tempfile.TemporaryDirectory(prefix="mutants_") as name:
        root = Path(name)
        folder = root / "mutant" / "feta_check"
        shutil.copytree(PACKAGE, folder, ignore=shutil.ignore_patterns("__pycache__"))
        steps: list[Callable[[], int]] = [lambda: check_corpus(root)]
        steps += [] if options.no_tests else [run_tests]
        if any(
            in_fork(folder, step) != "survived" for step in [lambda: write_corpus(root), *steps]
        ):
            raise SystemExit("the package fails without a mutant")
        outcomes = []
        for number in options.only or range(size):
            mutant = chosen[number]
            outcomes.append(test(mutant, folder, steps))
            line = f"{number} {mutant.module}:{mutant.line} {outcomes[-1].result}"
            print(line, file=sys.stderr, flush=True)
            if outcomes[-1].result == "survived":
                print(f"{line} {mutant.operator}\n{outcomes[-1].change}", flush=True)
    show("feta_check", outcomes, len(everything), time.monotonic() - started)


def test(mutant: Mutant, folder: Path, steps: list[Callable[[], int]]) -> Outcome:
    """Write a mutant, check and test it, and undo it."""
    from cosmic_ray.mutating import mutate_code  # noqa: PLC0415 - only this campaign needs it
    from cosmic_ray.plugins import get_operator  # noqa: PLC0415

    path = folder / Path(mutant.module).name
    original = path.read_text(encoding="utf-8")
    mutated = mutate_code(original, get_operator(mutant.operator)(), mutant.occurrence)
    assert mutated is not None, mutant
    path.write_text(mutated, encoding="utf-8")
    try:
        results = (in_fork(folder, step) for step in steps)
        result = next((result for result in results if result != "survived"), "survived")
        return Outcome(mutant, result, changed_lines(original, mutated))
    finally:
        path.write_text(original, encoding="utf-8")


def in_fork(folder: Path, step: Callable[[], int]) -> str:
    """Do a step in a fork, with the package in a folder; return what it made of it."""
    child = os.fork()
    if child == 0:
        code = 3
        with contextlib.suppress(BaseException):
            resource.setrlimit(resource.RLIMIT_CPU, (SECONDS, SECONDS))
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


def run_tests() -> int:
    """Run the tests of this process's package."""
    tests = [str(ROOT / "tests" / "certificates" / f"{name}.py") for name in TESTS]
    options = ["-q", "-x", "-p", "no:cacheprovider", "-p", "no:xdist"]
    options += ["-W", "ignore::pytest.PytestAssertRewriteWarning"]  # modules are imported already
    return int(pytest.main([*options, *tests]))


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
        random_models.sealed_case(root / f"other{seed}", seed + 1000)
        for kind, mutate in MUTATIONS.items():
            for path, content in before.items():
                path.write_bytes(content)
            lie = Sealed.read(folder, sealed.truth)  # type: ignore[arg-type]  # it has a truth
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
