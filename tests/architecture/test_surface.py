import importlib.metadata
import inspect
import subprocess
import sys

import pytest

import feta

LAZY = {  # scikit-learn and training are slow to import
    "CEFairClassifier",
    "CEFairTrainer",
    "FairClassifier",
    "FairRegressor",
    "PlainTrainer",
    "TrainingRun",
}


def test_the_public_names_are_sorted_and_exist() -> None:
    assert feta.__all__ == sorted(feta.__all__)
    assert len(set(feta.__all__)) == len(feta.__all__)
    assert all(hasattr(feta, name) for name in feta.__all__)


def test_the_public_names_are_all_there_is() -> None:
    public = [
        name
        for name in dir(feta)
        if not name.startswith("_")
        and not inspect.ismodule(getattr(feta, name))
        and name != "import_module"
    ]
    assert set(public) | LAZY == set(feta.__all__)


def test_the_version_is_the_distribution_s() -> None:
    assert feta.__version__ == importlib.metadata.version("feta-fair")


def test_what_is_imported_lazily_is_there_and_nothing_else() -> None:
    for name in LAZY:
        assert getattr(feta, name).__name__ == name
    with pytest.raises(AttributeError, match="module 'feta' has no attribute 'FairClasifier'"):
        feta.FairClasifier  # noqa: B018 - asking for it is the test


def test_importing_feta_imports_nothing_heavy() -> None:
    program = "import sys, feta; print(*sorted({name.split('.')[0] for name in sys.modules}))"
    done = subprocess.run(
        [sys.executable, "-c", program], capture_output=True, text=True, check=True
    )
    loaded = set(done.stdout.split())
    assert "feta" in loaded
    assert not loaded & {"torch", "sklearn", "pandas", "matplotlib", "rich", "typer"}
