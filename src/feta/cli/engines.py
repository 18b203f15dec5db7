"""`feta engines`: which engines there are, and what each can prove."""

import json
import sys
from importlib.metadata import version
from importlib.util import find_spec

from rich.box import SIMPLE_HEAD
from rich.console import Console
from rich.table import Table

from feta.cli.exit_code import ExitCode
from feta.engine.lattice import LatticeEngine
from feta.engine.milp.backends.protocol import Backend
from feta.engine.milp.engine import MilpEngine
from feta.engine.registry import engines
from feta.scorer.network.native_kernel import MISSING

# Packages that add something, by extra.
EXTRAS = {
    "onnxruntime": ("onnxruntime", "replays counterexamples in the model's own runtime"),
    "pyarrow": ("parquet", "reads Parquet tables"),
    "torch": ("torch", "reads torch modules"),
}


def _version(backend: Backend) -> str | None:
    """Read a solver's version from the package's metadata; None if it is not installed."""
    return version(backend.package) if find_spec(backend.package) is not None else None


def _missing(extra: str | None) -> str:
    return f"no: pip install 'feta-fair\\[{extra}]'"  # rich takes a bare bracket for markup


def run_engines(*, as_json: bool) -> ExitCode:
    """List engines and optional packages; nothing is imported to find out."""
    found = {name: engine.about for name, engine in engines().items()}
    solvers = {name: one for name, one in engines().items() if isinstance(one, MilpEngine)}
    installed = {package: find_spec(package) is not None for package in EXTRAS}
    if as_json:
        told = {
            name: {
                "solver": one.backend.name,
                "package": one.backend.package,
                "version": _version(one.backend),
                "limits": one.backend.limits,
            }
            for name, one in solvers.items()
        }
        kernel = {"installed": LatticeEngine.available()}
        answer = {"engines": found, "kernel": kernel, "solvers": told, "packages": installed}
        sys.stdout.write(json.dumps(answer, indent=2) + "\n")
        return ExitCode.DONE
    table = Table(box=SIMPLE_HEAD)
    for heading in ("engine", "what it proves"):
        table.add_column(heading)
    for name, about in found.items():
        table.add_row(name, about)
    listed = Table(box=SIMPLE_HEAD)
    for heading in ("engine", "solver", "installed", "licence's limits"):
        listed.add_column(heading)
    for name, one in solvers.items():
        backend, number = one.backend, _version(one.backend)
        here = f"{backend.package} {number}" if number else _missing(backend.extra)
        listed.add_row(name, backend.name, here, backend.limits)
    packages = Table(box=SIMPLE_HEAD)
    for heading in ("package", "installed", "what for"):
        packages.add_column(heading)
    for package, (extra, purpose) in EXTRAS.items():
        packages.add_row(package, "yes" if installed[package] else _missing(extra), purpose)
    console = Console()
    console.print(table)
    console.print(listed)
    console.print(packages)
    if not LatticeEngine.available():
        console.print(MISSING, soft_wrap=True, markup=False, highlight=False)
    return ExitCode.DONE
