"""Public names and the modules that define them; `feta` imports them on first use."""

from .api import (
    UnfairShare as UnfairShare,
    share_unfair as share_unfair,
    spread as spread,
    tally as tally,
    verify as verify,
    worst as worst,
)
from .auditing.audit import Audit as Audit, audit as audit
from .auditing.recheck import CheckResult as CheckResult, check as check
from .distributed.audit_batches import AuditBatches as AuditBatches
from .distributed.cluster import Cluster as Cluster
from .distributed.fair_batches import FairBatches as FairBatches
from .engine.protocol import Budget as Budget
from .errors import (
    CertificateError as CertificateError,
    DatasetError as DatasetError,
    DomainError as DomainError,
    EngineError as EngineError,
    FetaError as FetaError,
    MissingExtra as MissingExtra,
    ModelFailure as ModelFailure,
    NetworkError as NetworkError,
    SchemaError as SchemaError,
    Undecided as Undecided,
)
from .estimators.ce_fair_classifier import CEFairClassifier as CEFairClassifier
from .estimators.fair_classifier import FairClassifier as FairClassifier
from .estimators.fair_regressor import FairRegressor as FairRegressor
from .everybody.prove import prove as prove
from .everybody.result import Everybody as Everybody
from .io.model_file import load_model as load_model, save_model as save_model
from .io.onnx_writer import write_onnx as write_onnx
from .io.schema import Schema as Schema, read_schema as read_schema, write_schema as write_schema
from .model import Model as Model
from .predict.fair_predictor import FairPredictor as FairPredictor
from .query import FairAt as FairAt, FairEverywhere as FairEverywhere, WorstAt as WorstAt
from .readers.callable.read import read_callable as read_callable
from .readers.catboost.read import read_catboost as read_catboost
from .readers.keras.read import read_keras as read_keras
from .readers.lightgbm.read import read_lightgbm as read_lightgbm
from .readers.onnx.read import read_onnx as read_onnx
from .readers.read_model import read_model as read_model
from .readers.runtime import runtime_of as runtime_of
from .readers.scorecard.read import read_scorecard as read_scorecard
from .readers.sklearn.read import read_sklearn as read_sklearn
from .readers.statsmodels.read import read_statsmodels as read_statsmodels
from .readers.torch.read import read_torch as read_torch
from .readers.weights import read_weights as read_weights
from .readers.xgboost.read import read_xgboost as read_xgboost
from .reasons.changeable import Changeable as Changeable
from .reasons.explain import explain as explain
from .reasons.explanation import Explanation as Explanation
from .relation.consequences import Consequences as Consequences
from .relation.constrained import Constrained as Constrained
from .relation.similar import Similar as Similar
from .rule import (
    Argmax as Argmax,
    OneVsRest as OneVsRest,
    Threshold as Threshold,
    Tolerance as Tolerance,
)
from .scorer.counted.options import CountingOptions as CountingOptions
from .scorer.network.network import Network as Network
from .space.attribute import (
    Categorical as Categorical,
    Derived as Derived,
    Integer as Integer,
    Levels as Levels,
    Real as Real,
)
from .space.feature_space import FeatureSpace as FeatureSpace
from .space.vote_weights import VoteWeights as VoteWeights
from .train.ce_fair import CEFairTrainer as CEFairTrainer
from .train.plain import PlainTrainer as PlainTrainer
from .train.run import TrainingRun as TrainingRun
from .verdict.counterexample import Counterexample as Counterexample
from .verdict.spread import Spread as Spread
from .verdict.tally import Tally as Tally
from .verdict.verdict import (
    Effort as Effort,
    Fair as Fair,
    Reason as Reason,
    Unfair as Unfair,
    Unknown as Unknown,
)

__all__: list[str]
__version__: str
