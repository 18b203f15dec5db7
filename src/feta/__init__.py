"""FETA: is there anybody whose decision would change if only their age, race or sex were different?

It verifies, enforces and explains the individual fairness of neural networks. Results are exact.
"""

import importlib.metadata
from importlib import import_module

from feta.api import spread, tally, verify, worst
from feta.auditing.audit import Audit, audit
from feta.engine.protocol import Budget
from feta.errors import (
    CertificateError,
    DatasetError,
    DomainError,
    EngineError,
    FetaError,
    MissingExtra,
    NetworkError,
    SchemaError,
    Undecided,
)
from feta.io.model_file import load_model, save_model
from feta.io.onnx_writer import write_onnx
from feta.io.schema import Schema, read_schema, write_schema
from feta.model import Model
from feta.predict.fair_predictor import FairPredictor
from feta.query import FairAt, WorstAt
from feta.readers.keras.read import read_keras
from feta.readers.onnx.read import read_onnx
from feta.readers.runtime import runtime_of
from feta.readers.sklearn.read import read_sklearn
from feta.readers.torch.read import read_torch
from feta.readers.weights import read_weights
from feta.rule import Argmax, OneVsRest, Threshold, Tolerance
from feta.scorer.network.network import Network
from feta.space.attribute import Categorical, Derived, Integer, Levels, Real
from feta.space.feature_space import FeatureSpace
from feta.space.vote_weights import VoteWeights
from feta.verdict.counterexample import Counterexample
from feta.verdict.spread import Spread
from feta.verdict.tally import Tally
from feta.verdict.verdict import Effort, Fair, Reason, Unfair, Unknown

__all__ = [
    "Argmax",
    "Audit",
    "Budget",
    "CEFairClassifier",
    "CEFairTrainer",
    "Categorical",
    "CertificateError",
    "Counterexample",
    "DatasetError",
    "Derived",
    "DomainError",
    "Effort",
    "EngineError",
    "Fair",
    "FairAt",
    "FairClassifier",
    "FairPredictor",
    "FairRegressor",
    "FeatureSpace",
    "FetaError",
    "Integer",
    "Levels",
    "MissingExtra",
    "Model",
    "Network",
    "NetworkError",
    "OneVsRest",
    "PlainTrainer",
    "Real",
    "Reason",
    "Schema",
    "SchemaError",
    "Spread",
    "Tally",
    "Threshold",
    "Tolerance",
    "TrainingRun",
    "Undecided",
    "Unfair",
    "Unknown",
    "VoteWeights",
    "WorstAt",
    "audit",
    "load_model",
    "read_keras",
    "read_onnx",
    "read_schema",
    "read_sklearn",
    "read_torch",
    "read_weights",
    "runtime_of",
    "save_model",
    "spread",
    "tally",
    "verify",
    "worst",
    "write_onnx",
    "write_schema",
]


try:
    __version__ = importlib.metadata.version("feta-fair")
except importlib.metadata.PackageNotFoundError:  # imported from a source folder, not installed
    __version__ = "0+unknown"


# Names that are imported on first use: scikit-learn and training are slow to import.
_LAZY = {
    "CEFairClassifier": "feta.estimators.ce_fair_classifier",
    "CEFairTrainer": "feta.train.ce_fair",
    "FairClassifier": "feta.estimators.fair_classifier",
    "FairRegressor": "feta.estimators.fair_regressor",
    "PlainTrainer": "feta.train.plain",
    "TrainingRun": "feta.train.run",
}


def __getattr__(name: str) -> object:
    """Import the scikit-learn interface and the trainers on first use."""
    if name in _LAZY:
        return getattr(import_module(_LAZY[name]), name)
    raise AttributeError(f"module 'feta' has no attribute {name!r}")
