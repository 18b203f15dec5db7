# ruff: noqa: N803 - X is scikit-learn's own name for the table
"""FairRegressor: a scikit-learn regressor that gives the median of what a person's counterparts get."""

from collections.abc import Collection
from typing import TYPE_CHECKING, ClassVar

import numpy as np
from numpy.typing import ArrayLike
from sklearn.base import BaseEstimator, RegressorMixin, is_classifier
from sklearn.linear_model import LinearRegression
from sklearn.neural_network import MLPRegressor
from sklearn.utils.validation import check_is_fitted

from feta.arrays import Vector
from feta.errors import SchemaError
from feta.estimators.fair_estimator import FairEstimator, Targets
from feta.estimators.layout import People
from feta.io.schema import Schema
from feta.model import Model
from feta.predict.fair_predictor import FairPredictor
from feta.rule import Tolerance
from feta.space.feature_space import FeatureSpace
from feta.space.vote_weights import VoteWeights

if TYPE_CHECKING:
    from sklearn.utils import Tags

    from feta.scorer.network.network import Network


class FairRegressor(RegressorMixin, FairEstimator):  # type: ignore[misc]  # scikit-learn ships no types
    """A regressor whose scores cannot depend on the sensitive columns.

    Each person gets the lower median of what their counterparts get: everyone who equals them in all
    other columns, with any values of the sensitive ones.

    Parameters
    ----------
    estimator
        The regressor whose scores are made fair; `fit` clones and fits it. A trained one comes as
        `sklearn.frozen.FrozenEstimator(trained)` and is not fitted again; `y` may then be None. A
        bare MLPRegressor or LinearRegression is given `space.encode(X)`: numbers in their own units,
        one column a category. Any other estimator, such as a pipeline, is given the table as it came,
        in those columns that the space has.
    space
        Who can exist: a space, or a whole schema, whose tolerance is then `epsilon`. None guesses it
        in `fit` from what X holds: good for a first look, but people outside those limits are
        refused by `predict`, so state the space for real use.
    sensitive
        Names of the sensitive columns; with a space given, None keeps those it declares. The
        columns of an array are called "x0", "x1", and so on, and so are those of a frame that
        are numbered, not named.
    epsilon
        How far apart the scores of any two counterparts may be before `explain` calls the estimator unfair.
    engine
        What asks about the counterparts of an estimator that FETA can read.
    weights
        The votes that each counterpart has; None gives everyone one vote.

    Attributes
    ----------
    space_
        The space, given or guessed.
    estimator_
        The fitted estimator.
    model_
        What FETA read of it, or None where it cannot: then the median is of the estimator's own
        `predict`, always on the same table of all counterparts. Such scores are fair as long as
        `predict` is deterministic, and come without verdicts.
    guarantee_
        Which of the two holds, in words; `fit` warns of the second.
    columns_
        The names of the columns that `fit` was given.
    n_counterparts_
        How many counterparts each person has.
    n_features_in_, feature_names_in_
        As everywhere in scikit-learn.

    Examples
    --------
    >>> import feta, pandas as pd
    >>> space = feta.FeatureSpace((feta.Integer("age", 18, 90, sensitive=True), feta.Real("income", 0, 99)))
    >>> X = pd.DataFrame({"age": [20, 60, 25, 70], "income": [10, 20, 70, 80]})
    >>> fair = FairRegressor(LinearRegression(), space, epsilon=50.0).fit(X, [120, 260, 725, 870])
    >>> fair.predict(X.drop(columns=["age"])).round().tolist()
    [154.0, 254.0, 754.0, 854.0]
    >>> type(fair.explain(X)[0]).__name__
    'Unfair'
    """

    kind: ClassVar[str] = "regressor"
    example: ClassVar[str] = "LinearRegression()"
    promise: ClassVar[str] = (
        "fair by construction: each score is chosen exactly, from the columns that are not sensitive"
    )
    takes_rows: ClassVar[tuple[type, ...]] = (LinearRegression, MLPRegressor)

    def __init__(
        self,
        estimator: BaseEstimator | None = None,
        space: FeatureSpace | Schema | None = None,
        *,
        sensitive: Collection[str] | None = None,
        epsilon: float = 0.0,
        engine: str = "auto",
        weights: VoteWeights | None = None,
    ) -> None:
        self.estimator = estimator
        self.space = space
        self.sensitive = sensitive
        self.epsilon = epsilon
        self.engine = engine
        self.weights = weights

    def predict(self, X: People) -> Vector:
        """Give each person the lower median of what their counterparts get.

        Parameters
        ----------
        X
            The people: a frame, an array, a dict or a list of dicts. The sensitive columns are never
            read: they may hold anything, and a frame or dict may lack them.
        """
        check_is_fitted(self, "model_")
        people = self._people(X)
        if self.model_ is not None:
            return FairPredictor(self.model_, self.engine, weights=self.weights).decide(people)
        first, inverse = self._distinct(people)
        return np.array([self._ballot.median(person) for person in first])[inverse]

    def __sklearn_tags__(self) -> "Tags":
        tags = super().__sklearn_tags__()
        tags.regressor_tags.poor_score = True  # what only sensitive columns tell is left unsaid
        return tags

    def _targets(self, y: ArrayLike | None, n_people: int) -> Targets:
        numbers = super()._targets(y, n_people)
        try:
            return numbers if numbers.dtype.kind in "iuf" else numbers.astype(np.float64)
        except (TypeError, ValueError):
            first = numbers[0]
            raise SchemaError(f"y must hold numbers, got {first!r}") from None

    def _check_kind(self, estimator: object) -> None:
        if is_classifier(estimator):
            name = type(estimator).__name__
            message = (
                f"the estimator must be a regressor, got {name}; FairClassifier takes classifiers"
            )
            raise SchemaError(message)

    def _model(self, network: "Network") -> Model:
        if self._schema is None:
            return Model(self.space_, network, Tolerance(self.epsilon))
        rule = self._schema.rule
        if not isinstance(rule, Tolerance):
            message = "FairRegressor needs a tolerance in the schema's [decision], got classes or a threshold; FairClassifier takes those"
            raise SchemaError(message)
        if self.epsilon not in (0.0, rule.epsilon):
            message = f"epsilon must be left out where the schema has a tolerance, got {self.epsilon} and {rule.epsilon}"
            raise SchemaError(message)
        return self._schema.model(network)
