"""`feta engines`: the engines, the solvers and the optional packages."""

import json
import sys
from collections.abc import Mapping
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
from feta.scorer.native import MISSING

# Packages that read models and tables: the extra that installs each, and its purpose.
EXTRAS: dict[str, tuple[str | None, str]] = {
    "distributed": ("dask", "audits and decides on a Dask cluster (--on)"),
    "h5py": ("keras", "reads Keras files"),
    "onnxruntime": ("onnxruntime", "replays counterexamples in the model's own runtime"),
    "pyarrow": ("parquet", "reads Parquet tables"),
    "scikit-learn": (None, "reads estimators and pipelines; part of every installation"),
    "skops": ("skops", "reads .skops files"),
    "torch": ("torch", "reads torch modules; trains"),
}

# Modules that have another name than their package.
MODULES = {"scikit-learn": "sklearn"}


def run_engines(*, as_json: bool) -> ExitCode:
    """List engines, solvers and optional packages, without importing them."""
    descriptions = {name: engine.about for name, engine in engines().items()}
    solvers = {
        name: engine.backend for name, engine in engines().items() if isinstance(engine, MilpEngine)
    }
    installed = {
        package: find_spec(MODULES.get(package, package)) is not None for package in EXTRAS
    }
    if as_json:
        content = {
            "engines": descriptions,
            "kernel": {"installed": LatticeEngine.available()},
            "solvers": {name: _solver_json(backend) for name, backend in solvers.items()},
            "packages": installed,
        }
        sys.stdout.write(json.dumps(content, indent=2) + "\n")
        return ExitCode.DONE
    console = Console()
    console.print(_engine_table(descriptions))
    console.print(_solver_table(solvers))
    console.print(_package_table(installed))
    if not LatticeEngine.available():
        console.print(MISSING, soft_wrap=True, markup=False, highlight=False)
    return ExitCode.DONE


def _solver_json(backend: Backend) -> dict[str, object]:
    return {
        "solver": backend.name,
        "package": backend.package,
        "version": _version(backend),
        "limits": backend.limits,
    }


def _engine_table(descriptions: Mapping[str, str]) -> Table:
    table = _table("engine", "what it proves")
    for name, description in descriptions.items():
        table.add_row(name, description)
    return table


def _solver_table(solvers: Mapping[str, Backend]) -> Table:
    table = _table("engine", "solver", "installed", "license limits")
    for name, backend in solvers.items():
        number = _version(backend)
        installed = (
            f"{backend.package} {number}" if number else _missing(backend.package, backend.extra)
        )
        table.add_row(name, backend.name, installed, backend.limits)
    return table


def _package_table(installed: Mapping[str, bool]) -> Table:
    table = _table("package", "installed", "purpose")
    for package, (extra, purpose) in EXTRAS.items():
        table.add_row(package, "yes" if installed[package] else _missing(package, extra), purpose)
    return table


def _table(*headings: str) -> Table:
    table = Table(box=SIMPLE_HEAD)
    for heading in headings:
        table.add_column(heading)
    return table


def _version(backend: Backend) -> str | None:
    """Return a solver's version from the package's metadata; None if it is not installed."""
    return version(backend.package) if find_spec(backend.package) is not None else None


def _missing(package: str, extra: str | None) -> str:
    if extra is None:
        return f"no: pip install {package}"
    return f"no: pip install 'feta-fair\\[{extra}]'"  # rich reads a bare bracket as markup
