import importlib.metadata
import subprocess
import sys

import pytest

import feta

# Names that users may import; a name is removed only after a deprecation.
PUBLIC = [
    "Argmax",
    "Audit",
    "AuditBatches",
    "Budget",
    "CEFairClassifier",
    "CEFairTrainer",
    "Categorical",
    "CertificateError",
    "Changeable",
    "CheckResult",
    "Cluster",
    "Consequences",
    "Constrained",
    "Counterexample",
    "CountingOptions",
    "DatasetError",
    "Derived",
    "DomainError",
    "Effort",
    "EngineError",
    "Everybody",
    "Explanation",
    "Fair",
    "FairAt",
    "FairBatches",
    "FairClassifier",
    "FairEverywhere",
    "FairPredictor",
    "FairRegressor",
    "FeatureSpace",
    "FetaError",
    "Integer",
    "Levels",
    "MissingExtra",
    "Model",
    "ModelFailure",
    "Network",
    "NetworkError",
    "OneVsRest",
    "PlainTrainer",
    "Real",
    "Reason",
    "Schema",
    "SchemaError",
    "Similar",
    "Spread",
    "Tally",
    "Threshold",
    "Tolerance",
    "TrainingRun",
    "Undecided",
    "Unfair",
    "UnfairShare",
    "Unknown",
    "VoteWeights",
    "WorstAt",
    "audit",
    "check",
    "explain",
    "load_model",
    "prove",
    "read_callable",
    "read_catboost",
    "read_keras",
    "read_lightgbm",
    "read_model",
    "read_onnx",
    "read_schema",
    "read_scorecard",
    "read_sklearn",
    "read_statsmodels",
    "read_torch",
    "read_weights",
    "read_xgboost",
    "runtime_of",
    "save_model",
    "share_unfair",
    "spread",
    "tally",
    "verify",
    "worst",
    "write_onnx",
    "write_schema",
]


def test_public_names_are_listed_and_exist() -> None:
    assert feta.__all__ == PUBLIC
    for name in feta.__all__:
        assert getattr(feta, name).__name__ == name
    assert set(feta.__all__) <= set(dir(feta))


def test_version_is_that_of_the_distribution() -> None:
    assert feta.__version__ == importlib.metadata.version("feta-fair")


def test_an_unknown_name_is_refused() -> None:
    with pytest.raises(AttributeError, match="No feta attribute FairClasifier"):
        feta.FairClasifier  # type: ignore[attr-defined]  # noqa: B018 - the access raises


@pytest.mark.parametrize("use", ["feta", "feta.cli.entry"])
def test_importing_feta_imports_nothing_heavy(use: str) -> None:
    program = f"import sys, {use}; print(*sorted({{name.split('.')[0] for name in sys.modules}}))"
    done = subprocess.run(
        [sys.executable, "-c", program], capture_output=True, text=True, check=True
    )
    loaded = set(done.stdout.split())
    assert "feta" in loaded
    assert not loaded & {"torch", "sklearn", "pandas", "numpy", "matplotlib", "rich", "typer"}
