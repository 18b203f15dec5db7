"""Reader of scikit-learn's tree ensembles, with their preprocessing.

Trees keep the estimator's own comparisons: tests on features become tests on raw values, equal to
the pipeline bit for bit. The estimator's order of summation is replayed.
"""

from typing import TYPE_CHECKING

from feta.absorb.evaluation import Evaluation
from feta.absorb.transformers import Features
from feta.absorb.tree_features import pipeline_features
from feta.absorb.tree_tests import raw_tests
from feta.errors import FetaError, NetworkError
from feta.io.raw_table import TableMaker
from feta.readers.sklearn.pipeline import split_pipeline
from feta.readers.sklearn.tree_agreement import check_trees
from feta.readers.sklearn.tree_ensembles import SourceEnsemble, read_ensemble
from feta.readers.sklearn.tree_inputs import TreeInputs, inputs_of
from feta.readers.sklearn.tree_nodes import all_splits, build_trees
from feta.scorer.forest.forest import Forest
from feta.space.feature_space import FeatureSpace

if TYPE_CHECKING:
    from sklearn.base import BaseEstimator


def read_sklearn_trees(
    estimator: "BaseEstimator", space: FeatureSpace, *, table: TableMaker | None = None
) -> Forest:
    """Read a fitted tree ensemble of scikit-learn, alone or at the end of a pipeline.

    Supported are decision trees, RandomForest, ExtraTrees, GradientBoosting, HistGradientBoosting
    and Bagging of trees. The scores of a classifier that averages class fractions are these means,
    one per class; of a boosted classifier with two classes, the one score of `classes_[1]`.

    A pipeline reads raw columns. A bare estimator reads the raw columns that it names, or else
    encoded people. `table` turns the space's rows into the input, if that is another one.

    Raises
    ------
    NetworkError
        If a step cannot be absorbed exactly, or if scores or decisions differ from the estimator's
        own on random people.
    """
    steps, last = split_pipeline(estimator)
    ensemble = read_ensemble(last)
    inputs = inputs_of(steps, last, space, table=table)
    try:
        forest = absorb_trees(ensemble, inputs)
    except FetaError:
        raise
    except (TypeError, ValueError, ArithmeticError, LookupError, AttributeError) as error:
        raise NetworkError(
            f"the pipeline cannot be evaluated ({type(error).__name__}: {error})"
        ) from error
    check_trees(forest, last, inputs)
    return forest


def absorb_trees(ensemble: SourceEnsemble, inputs: TreeInputs) -> Forest:
    """Return an ensemble whose tests on features are tests on raw values."""
    steps = inputs.preprocessing(ensemble.preprocessor)
    evaluation = Evaluation(inputs.space, steps, inputs.table)
    features = _features(ensemble, inputs)
    splits = all_splits(ensemble.trees, single=ensemble.single)
    if splits.feature.size and int(splits.feature.max()) >= len(features):
        raise NetworkError(
            "the estimator and its input have different numbers of features: "
            f"got a test of feature {int(splits.feature.max())}; expected {len(features)} features"
        )
    tests = raw_tests(splits, features, evaluation)
    return Forest(
        build_trees(ensemble.trees, tests),
        ensemble.base,
        ensemble.summation,
        inputs.space.width,
        denominator=ensemble.denominator,
        equality=ensemble.equality,
        link=ensemble.link,
    )


def _features(ensemble: SourceEnsemble, inputs: TreeInputs) -> Features:
    """Return what the features that the trees test depend on."""
    if inputs.steps is None and ensemble.preprocessor is None:
        return inputs.columns
    shown = inputs.walked(ensemble.preprocessor)
    return pipeline_features(Evaluation(inputs.space, shown, inputs.table), inputs.columns)
