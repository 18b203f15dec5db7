"""The checker reaches nothing that it checks, not even indirectly."""

import subprocess
import sys

FORBIDDEN = (
    "feta.engine",
    "feta.bounds",
    "feta.io",
    "feta.scorer.network",
    "scipy",
    "highspy",
    "gurobipy",
    "pyscipopt",
    "torch",
)


def test_importing_the_checker_imports_nothing_that_it_checks() -> None:
    """`lint-imports` reads the source; this sees imports that are made at run time, too."""
    code = "import sys, feta.checker.admit; print(*sys.modules)"
    run = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    modules = run.stdout.split()
    assert "feta.checker.prove" in modules
    assert [name for name in modules if name.startswith(FORBIDDEN)] == []
