"""FETA: is there anybody whose decision would change if only their age, race or sex were different?

It verifies, enforces and explains the individual fairness of neural networks, with exact answers.
"""

from feta.api import tally, verify, worst
from feta.audit.audit import Audit, audit
from feta.engine.protocol import Budget
from feta.errors import (
    CertificateError,
    DomainError,
    EngineError,
    FetaError,
    MissingExtra,
    NetworkError,
    SchemaError,
    Undecided,
)
from feta.model import Model
from feta.model_file import load_model, save_model
from feta.network.network import Network
from feta.network.readers.onnx import read_onnx
from feta.network.readers.torch import read_torch
from feta.network.readers.weights import read_weights
from feta.predict.fair_predictor import FairPredictor
from feta.query import FairAt, WorstAt
from feta.rule import Threshold
from feta.schema import Schema, read_schema, write_schema
from feta.space.attribute import Categorical, Derived, Integer, Levels, Real
from feta.space.feature_space import FeatureSpace
from feta.verdict.counterexample import Counterexample
from feta.verdict.tally import Tally
from feta.verdict.verdict import Effort, Fair, Reason, Unfair, Unknown

__all__ = [
    "Audit",
    "Budget",
    "Categorical",
    "CertificateError",
    "Counterexample",
    "Derived",
    "DomainError",
    "Effort",
    "EngineError",
    "Fair",
    "FairAt",
    "FairPredictor",
    "FeatureSpace",
    "FetaError",
    "Integer",
    "Levels",
    "MissingExtra",
    "Model",
    "Network",
    "NetworkError",
    "Real",
    "Reason",
    "Schema",
    "SchemaError",
    "Tally",
    "Threshold",
    "Undecided",
    "Unfair",
    "Unknown",
    "WorstAt",
    "audit",
    "load_model",
    "read_onnx",
    "read_schema",
    "read_torch",
    "read_weights",
    "save_model",
    "tally",
    "verify",
    "worst",
    "write_schema",
]
