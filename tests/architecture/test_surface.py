import importlib.metadata
import inspect
import subprocess
import sys

import pytest

import feta

LAZY = {  # imported on first use, because scikit-learn and torch are slow to import
    "CEFairClassifier",
    "CEFairTrainer",
    "FairClassifier",
    "FairRegressor",
    "PlainTrainer",
    "TrainingRun",
}


def test_public_names_are_sorted_and_exist() -> None:
    assert feta.__all__ == sorted(feta.__all__)
    assert len(set(feta.__all__)) == len(feta.__all__)
    assert all(hasattr(feta, name) for name in feta.__all__)


def test_public_names_are_complete() -> None:
    public = [
        name
        for name in dir(feta)
        if not name.startswith("_")
        and not inspect.ismodule(getattr(feta, name))
        and name != "import_module"
    ]
    assert set(public) | LAZY == set(feta.__all__)


def test_version_is_that_of_the_distribution() -> None:
    assert feta.__version__ == importlib.metadata.version("feta-fair")


def test_lazy_names_exist_and_unknown_names_are_refused() -> None:
    for name in LAZY:
        assert getattr(feta, name).__name__ == name
    with pytest.raises(AttributeError, match="module 'feta' has no attribute 'FairClasifier'"):
        feta.FairClasifier  # noqa: B018 - the access raises


def test_importing_feta_imports_nothing_heavy() -> None:
    program = "import sys, feta; print(*sorted({name.split('.')[0] for name in sys.modules}))"
    done = subprocess.run(
        [sys.executable, "-c", program], capture_output=True, text=True, check=True
    )
    loaded = set(done.stdout.split())
    assert "feta" in loaded
    assert not loaded & {"torch", "sklearn", "pandas", "matplotlib", "rich", "typer"}
