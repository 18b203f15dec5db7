"""`feta engines`: which engines there are, and what each can prove."""

import json
import sys
from importlib.util import find_spec

from rich.box import SIMPLE_HEAD
from rich.console import Console
from rich.table import Table

from feta.cli.exit_code import ExitCode
from feta.engine.registry import engines

# Packages that add something, by extra.
EXTRAS = {
    "onnxruntime": ("onnxruntime", "replays counterexamples in the model's own runtime"),
    "pyarrow": ("parquet", "reads Parquet tables"),
    "torch": ("torch", "reads torch modules"),
}


def run_engines(*, as_json: bool) -> ExitCode:
    """List engines and optional packages; nothing is imported to find out."""
    found = {name: engine.about for name, engine in engines().items()}
    installed = {package: find_spec(package) is not None for package in EXTRAS}
    if as_json:
        sys.stdout.write(json.dumps({"engines": found, "packages": installed}, indent=2) + "\n")
        return ExitCode.DONE
    table = Table(box=SIMPLE_HEAD)
    for heading in ("engine", "what it proves"):
        table.add_column(heading)
    for name, about in found.items():
        table.add_row(name, about)
    packages = Table(box=SIMPLE_HEAD)
    for heading in ("package", "installed", "what for"):
        packages.add_column(heading)
    for package, (extra, purpose) in EXTRAS.items():
        here = "yes" if installed[package] else f"no: pip install 'feta-fair[{extra}]'"
        packages.add_row(package, here.replace("[", "\\["), purpose)
    console = Console()
    console.print(table)
    console.print(packages)
    return ExitCode.DONE
