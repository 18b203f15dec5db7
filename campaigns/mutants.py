"""Mutation tests of the trusted core: how many small faults do the tests notice?

    python -m campaigns.mutants [--parts checker rule exact bounds] [--mutants 150] [--out FILE]

cosmic-ray lists the mutants of each part. A random sample of them is applied, one at a time, to a
copy of the tree, and the tests of that part run. Annotations and decorators are left out: a mutant
there changes no behavior. A mutant that the tests notice is killed, also if they do not end.
"""

import argparse
import ast
import difflib
import json
import os
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import asdict, dataclass
from pathlib import Path
from queue import Queue

import numpy as np

ROOT = Path(__file__).resolve().parents[1]

# The modules of each part, and the tests that must notice its mutants.
PARTS: dict[str, tuple[tuple[str, ...], tuple[str, ...]]] = {
    "checker": (("checker/*.py",), ("tests/unit/checker",)),
    "rule": (("rule/*.py",), ("tests/unit/rule", "tests/contract/test_rules.py")),
    "exact": (
        ("dyadic.py", "scorer/exact_scores.py", "scorer/network/exact.py"),
        (
            "tests/unit/test_dyadic.py",
            "tests/unit/scorer/test_exact_scores.py",
            "tests/unit/scorer/network/test_exact.py",
            "tests/unit/scorer/network/test_evaluation.py",
        ),
    ),
    "bounds": (("bounds/*.py",), ("tests/unit/bounds",)),
}

# Imports FETA from the copy of the tree, whatever is installed.
PROGRAM = """
import sys
sys.meta_path[:] = [f for f in sys.meta_path if "ScikitBuild" not in type(f).__name__]
sys.path[:0] = ["src", "."]
import pytest
sys.exit(pytest.main(sys.argv[1:]))
"""

# A mutant may run this many times as long as the unchanged tree, and at least this long.
SLOWER = 6
MIN_SECONDS = 60.0


@dataclass(frozen=True)
class Mutant:
    """One change of one module."""

    module: str
    operator: str
    occurrence: int
    line: int


@dataclass(frozen=True)
class Outcome:
    """What the tests made of a mutant."""

    mutant: Mutant
    result: str  # "killed", "timeout" or "survived"
    change: str


def main() -> None:
    """Run the sample of each part and print the shares."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--parts", nargs="*", choices=PARTS, default=list(PARTS))
    parser.add_argument("--mutants", type=int, default=150, help="mutants per part")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--jobs", type=int, default=os.cpu_count() or 1)
    parser.add_argument("--out", type=Path, help="write all outcomes as JSON")
    options = parser.parse_args()
    results: dict[str, list[Outcome]] = {}
    for part in options.parts:
        started = time.monotonic()
        everything = list(mutants(part))
        rng = np.random.default_rng(options.seed)
        size = min(options.mutants, len(everything))
        chosen = [everything[index] for index in rng.choice(len(everything), size, replace=False)]
        results[part] = run(part, chosen, jobs=options.jobs)
        show(part, results[part], len(everything), time.monotonic() - started)
        if options.out is not None:
            content = {name: [asdict(o) for o in outcomes] for name, outcomes in results.items()}
            options.out.write_text(json.dumps(content, indent=1), encoding="utf-8")


def show(part: str, outcomes: Sequence[Outcome], total: int, seconds: float) -> None:
    """Print the share of killed mutants, and each survivor."""
    survivors = [outcome for outcome in outcomes if outcome.result == "survived"]
    killed = len(outcomes) - len(survivors)
    print(
        f"{part}: {killed} of {len(outcomes)} mutants killed ({killed / len(outcomes):.1%}), "
        f"drawn from {total}; {seconds:.0f} s",
        flush=True,
    )
    for outcome in survivors:
        print(f"  {outcome.mutant.module}:{outcome.mutant.line}\n{outcome.change}", flush=True)


def mutants(part: str) -> Iterator[Mutant]:
    """List all mutants of a part that can change behavior."""
    for pattern in PARTS[part][0]:
        for path in sorted((ROOT / "src/feta").glob(pattern)):
            yield from mutants_of(path)


def mutants_of(path: Path) -> Iterator[Mutant]:
    """List all mutants of a module that can change behavior."""
    from cosmic_ray.ast import ast_nodes, get_ast  # noqa: PLC0415 - only this campaign needs it
    from cosmic_ray.plugins import get_operator, operator_names  # noqa: PLC0415

    nodes = list(ast_nodes(get_ast(path.read_text(encoding="utf-8"))))
    ignored = ignored_spans(path)
    for name, operator in {name: get_operator(name) for name in operator_names()}.items():
        if operator.arguments():  # it would need a configuration
            continue
        places = [place for node in nodes for place in operator().mutation_positions(node)]
        for occurrence, (start, _) in enumerate(places):
            if not any(low <= start < high for low, high in ignored):
                yield Mutant(str(path.relative_to(ROOT)), name, occurrence, start[0])


def ignored_spans(path: Path) -> list[tuple[tuple[int, int], tuple[int, int]]]:
    """Return the spans of annotations, decorators and imports, as (line, column)."""
    spans: list[ast.AST] = []
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        match node:
            case ast.FunctionDef(decorator_list=decorators, returns=returns):
                spans += [*decorators, *([returns] if returns else [])]
            case ast.ClassDef(decorator_list=decorators):
                spans += decorators
            case ast.AnnAssign(annotation=annotation) | ast.arg(annotation=ast.AST() as annotation):
                spans.append(annotation)
            case ast.Import() | ast.ImportFrom():
                spans.append(node)
    return [
        ((n.lineno, n.col_offset), (n.end_lineno, n.end_col_offset))  # type: ignore[attr-defined]
        for n in spans
    ]


def run(part: str, chosen: Sequence[Mutant], *, jobs: int) -> list[Outcome]:
    """Test mutants in copies of the tree, several at the same time."""
    with tempfile.TemporaryDirectory(prefix="mutants_") as name:
        copies: Queue[Path] = Queue()
        for number in range(jobs):
            copies.put(copy_of_the_tree(Path(name) / str(number)))
        first = copies.get()
        started = time.monotonic()
        if run_tests(part, first, seconds=3600.0) != "survived":
            raise SystemExit(f"the tests of {part} fail without a mutant")
        limit = max(MIN_SECONDS, SLOWER * jobs * (time.monotonic() - started))
        copies.put(first)

        def test(mutant: Mutant) -> Outcome:
            tree = copies.get()
            try:
                return test_mutant(part, mutant, tree, seconds=limit)
            finally:
                copies.put(tree)

        with ThreadPoolExecutor(jobs) as pool:
            return list(pool.map(test, chosen))


def copy_of_the_tree(folder: Path) -> Path:
    """Copy what the tests need."""
    for name in ("src", "tests", "campaigns"):
        shutil.copytree(ROOT / name, folder / name, ignore=shutil.ignore_patterns("__pycache__"))
    for name in ("pyproject.toml", "conftest.py"):
        shutil.copy(ROOT / name, folder / name)
    import feta._native  # noqa: PLC0415

    shutil.copy(feta._native.__file__, folder / "src/feta")  # noqa: SLF001 - the compiled module
    return folder


def test_mutant(part: str, mutant: Mutant, tree: Path, *, seconds: float) -> Outcome:
    """Apply a mutant to a copy of the tree, run the tests, and undo it."""
    from cosmic_ray.mutating import mutate_code  # noqa: PLC0415
    from cosmic_ray.plugins import get_operator  # noqa: PLC0415

    path = tree / mutant.module
    original = path.read_text(encoding="utf-8")
    operator = get_operator(mutant.operator)()
    mutated = mutate_code(original, operator, mutant.occurrence)
    if mutated is None:
        raise RuntimeError(f"no such mutant: {mutant}")
    path.write_text(mutated, encoding="utf-8")
    try:
        result = run_tests(part, tree, seconds=seconds)
    finally:
        path.write_text(original, encoding="utf-8")
    return Outcome(mutant, result, changed_lines(original, mutated))


def changed_lines(original: str, mutated: str) -> str:
    """Return the lines that differ."""
    lines = difflib.unified_diff(original.splitlines(), mutated.splitlines(), n=0, lineterm="")
    return "\n".join(f"  {line}" for line in list(lines)[3:])


def run_tests(part: str, tree: Path, *, seconds: float) -> str:
    """Run the tests of a part; return what they made of the tree."""
    options = ["-q", "-x", "-p", "no:cacheprovider", "-p", "no:xdist", "--no-header"]
    tests = [name for name in PARTS[part][1] if (tree / name).exists()]
    command = [sys.executable, "-c", PROGRAM, *options, *tests]
    variables = {**os.environ, "OMP_NUM_THREADS": "1", "OPENBLAS_NUM_THREADS": "1"}
    variables |= {"PYTHONDONTWRITEBYTECODE": "1", "HYPOTHESIS_STORAGE_DIRECTORY": str(tree / ".h")}
    try:
        done = subprocess.run(
            command, cwd=tree, env=variables, capture_output=True, timeout=seconds, check=False
        )
    except subprocess.TimeoutExpired:
        return "timeout"
    return "survived" if done.returncode == 0 else "killed"


if __name__ == "__main__":
    main()
