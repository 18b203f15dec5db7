"""Features that trees test: which raw column each of them depends on, and how.

A tree compares one feature with a threshold. Such a test becomes a test on raw values if the
feature depends on one column. A column with infinitely many values must enter monotonically, in
floating point too: every known step that only shifts, scales, copies or fills numbers does so,
because each of its operations is correctly rounded.
"""

from feta.absorb.absorb import check_seen
from feta.absorb.evaluation import Evaluation
from feta.absorb.feature import Feature, all_columns, nonlinear, quoted, raw_feature, root_column
from feta.absorb.transformers import Data, Features, Transformer
from feta.absorb.walk import Walk
from feta.errors import NetworkError
from feta.space.attribute import Categorical, Derived
from feta.space.feature_space import FeatureSpace

# Steps whose outputs rise with each of their inputs, bit for bit, or ignore it.
MONOTONE = frozenset(
    (
        "FunctionTransformer",  # only the identity is linear
        "GenericUnivariateSelect",
        "IterativeImputer",
        "KNNImputer",
        "MaxAbsScaler",
        "MinMaxScaler",
        "MissingIndicator",
        "PolynomialFeatures",  # only copied columns are linear
        "RFE",
        "RFECV",
        "RobustScaler",
        "SelectFdr",
        "SelectFpr",
        "SelectFromModel",
        "SelectFwe",
        "SelectKBest",
        "SelectPercentile",
        "SequentialFeatureSelector",
        "SimpleImputer",
        "StandardScaler",
        "VarianceThreshold",
    )
)

# The end of messages about steps that cannot be absorbed.
ADVICE = "remove the step, and fit again"


class TreeWalk(Walk):
    """A walk that accepts only features of one column each."""

    def _visit_leaf(
        self, step: Transformer, features: Features, table: Data, where: str
    ) -> Features:
        outputs = super()._visit_leaf(step, features, table, where)
        if self.unknown_steps:
            raise NetworkError(
                f"{where} runs code that FETA does not know: got features that may depend on "
                f"{quoted(all_columns(features))}; expected a known step of scikit-learn; {ADVICE}"
            )
        for feature in outputs:
            if len(feature.columns) > 1:
                raise NetworkError(
                    f"{where} mixes columns: got a feature of {quoted(feature.columns)}; "
                    f"expected features of one column each, before trees; {ADVICE}"
                )
        if type(step).__name__ in MONOTONE:
            return outputs
        return [
            nonlinear(self.space, feature, where) if feature.linear else feature
            for feature in outputs
        ]


def pipeline_features(evaluation: Evaluation, inputs: Features) -> Features:
    """Return what each feature of a fitted pipeline depends on; `inputs` describes its table.

    Raises
    ------
    NetworkError
        If a step mixes columns or is unknown, or an encoder never saw a sensitive value.
    """
    probes = evaluation.probes()
    evaluation.features(probes)  # names a rejected value and its column; a single step cannot
    walk = TreeWalk(evaluation.space)
    table = evaluation.table(probes)
    features = walk.visit(evaluation.preprocessing, inputs, table, "preprocessing")
    check_seen(evaluation.unseen(walk.encoder_inputs), evaluation.space)
    return features


def table_features(space: FeatureSpace, names: tuple[str, ...]) -> Features:
    """Return the features of a table of raw columns."""
    return [raw_feature(space, name) for name in names]


def encoded_features(space: FeatureSpace) -> Features:
    """Return the features of encoded people, one per column of a space."""
    features: Features = []
    for attribute in space.attributes:
        root = frozenset([root_column(space, attribute.name)])
        tabular = isinstance(attribute, Categorical | Derived)
        feature = Feature(tabular=root) if tabular else Feature(linear=root)
        features += [feature] * attribute.width
    assert len(features) == space.width
    return features
