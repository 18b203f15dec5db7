"""FairRegressor: a scikit-learn regressor that returns the median or mean of the counterparts."""

from collections.abc import Collection
from dataclasses import replace
from typing import TYPE_CHECKING, ClassVar, Literal

import numpy as np
from numpy.typing import ArrayLike
from sklearn.base import BaseEstimator, RegressorMixin, is_classifier
from sklearn.linear_model import LinearRegression
from sklearn.neural_network import MLPRegressor

from feta.arrays import Matrix, Vector
from feta.errors import NetworkError, SchemaError, unknown_choice
from feta.estimators.fair_estimator import COUNTING, FairEstimator, Targets
from feta.io.schema import Schema
from feta.model import Model
from feta.readers.callable.read import read_callable
from feta.rule import Rule, Tolerance
from feta.scorer.protocol import has_exact_scores
from feta.space.feature_space import FeatureSpace
from feta.space.vote_weights import VoteWeights
from feta.vote.settings import LEAST, WeightsName
from feta.vote.stored_votes import StoredVotes

if TYPE_CHECKING:
    from sklearn.utils import Tags

    from feta.io.raw_table import RawTable
    from feta.scorer.protocol import Scorer
    from feta.vote.mean_decision import VoteName


RegressionVote = Literal["median", "mean"]
VOTES: tuple[RegressionVote, ...] = ("median", "mean")


class FairRegressor(RegressorMixin, FairEstimator):  # type: ignore[misc]  # scikit-learn ships no types
    """A regressor whose scores cannot depend on the sensitive columns.

    Each person gets the lower median of the scores of their counterparts, or their mean: everyone
    who equals them in all other columns, with any values of the sensitive ones. The mean with
    empirical weights is the discrimination-free price of Lindholm, Richman, Tsanakas and Wüthrich.

    Parameters
    ----------
    estimator
        The regressor whose scores are made fair; `fit` clones and fits it. Pass a trained one as
        `sklearn.frozen.FrozenEstimator(trained)`: it is not fitted again, and `y` may be None. A
        bare MLPRegressor or LinearRegression gets `space.encode(X)`: numbers in raw units, one
        column per category. Any other estimator, such as a pipeline, gets the columns of the
        original table that the space has.
    space
        The people that can exist: a space, or a schema, whose tolerance is then `epsilon`. None
        infers the space in `fit` from X. That suits a first look, but `predict` may reject people
        outside its limits, so state the space for real use.
    sensitive
        Names of the sensitive columns; None keeps those that the space declares. The columns of
        an array, and numbered columns of a frame, are named "x0", "x1", and so on.
    epsilon
        The maximum difference of the scores of any two counterparts; beyond it, `explain` returns
        `Unfair`.
    engine
        The engine for the counterparts of an estimator that FETA can read.
    vote
        "median", the lower one, or "mean", rounded once to float64.
    weights
        The votes of each counterpart: "empirical", as often as its sensitive values occur among
        the people passed to `fit`; "equal" or None, one vote each; or `VoteWeights`.
    least
        The fewest people of a combination of sensitive values that empirical weights list; people
        of rarer ones count as the nearest listed one.

    Attributes
    ----------
    space_
        The space, given or inferred.
    estimator_
        The fitted estimator.
    model_
        FETA's model of it, or None if FETA cannot read it: then the answers are those of the
        estimator's own `predict`, always on the same table of all counterparts. Such scores are
        fair if `predict` is deterministic; verdicts about the estimator are counted as well,
        not proved.
    votes_
        The fitted votes.
    guarantee_
        Which of the two guarantees holds, in words; `fit` warns if it is the second.
    columns_
        The names of the columns that were passed to `fit`.
    n_counterparts_
        The number of counterparts of each person.
    n_features_in_, feature_names_in_
        As in all estimators of scikit-learn.

    Examples
    --------
    >>> import feta, pandas as pd
    >>> age = feta.Integer("age", 18, 90, sensitive=True)
    >>> space = feta.FeatureSpace((age, feta.Real("income", 0, 99)))
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
        "fair by construction: each score is chosen exactly, "
        "from the columns that are not sensitive"
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
        vote: RegressionVote = "median",
        weights: VoteWeights | WeightsName | None = None,
        least: int = LEAST,
    ) -> None:
        super().__init__(estimator, space, sensitive=sensitive, engine=engine, weights=weights)
        self.epsilon = epsilon
        self.vote = vote
        self.least = least

    def __sklearn_tags__(self) -> "Tags":
        tags = super().__sklearn_tags__()
        tags.regressor_tags.poor_score = True  # information in the sensitive columns is not used
        return tags

    def _targets(self, y: ArrayLike | None, n_people: int) -> Targets:
        numbers = super()._targets(y, n_people)
        try:
            return numbers if numbers.dtype.kind in "iuf" else numbers.astype(np.float64)
        except (TypeError, ValueError):
            first = numbers[0]
            raise SchemaError(f"invalid y: got {first!r}; expected numbers") from None

    def _check_kind(self, estimator: object) -> None:
        if self.vote not in VOTES:
            raise SchemaError(f"invalid vote: {unknown_choice(self.vote, VOTES)}")
        if is_classifier(estimator):
            name = type(estimator).__name__
            raise SchemaError(
                f"invalid estimator: got {name}; expected a regressor; use FairClassifier for "
                "classifiers"
            )

    def _combine(self, people: Matrix) -> Vector:
        combine = self._ballot.mean if self.vote == "mean" else self._ballot.median
        return np.array([combine(person) for person in people])

    def _fit_votes(self, people: Matrix) -> StoredVotes:
        vote: VoteName = "mean_score" if self.vote == "mean" else "majority"
        return replace(super()._fit_votes(people), vote=vote)

    def _counted_model(self, estimator: object, table: "RawTable | None") -> Model:
        scorer = read_callable(
            estimator, self.space_, table=table, answers="scores", options=COUNTING
        )
        return Model(self.space_, scorer, self._tolerance())

    def _model(self, scorer: "Scorer") -> Model:
        rule = self._tolerance()
        if not has_exact_scores(scorer):  # equal scores have no order, and so no median
            raise NetworkError(
                f"the scores are narrow intervals, which have no exact median: got "
                f"{scorer.description}; expected straight pieces; train it with activation='relu'"
            )
        return (
            Model(self.space_, scorer, rule) if self._schema is None else self._schema.model(scorer)
        )

    def _tolerance(self) -> Rule:
        """Return the tolerance: `epsilon`, or that of the schema."""
        if self._schema is None:
            return Tolerance(self.epsilon)
        rule = self._schema.rule
        if rule.tolerance is None:
            raise SchemaError(
                "invalid [decision] of the schema: got classes or a threshold; expected a "
                "tolerance; use FairClassifier for classes and thresholds"
            )
        if self.epsilon not in (0.0, rule.tolerance):
            raise SchemaError(
                f"two tolerances: got epsilon {self.epsilon} and {rule.tolerance} in the schema; "
                "expected one; omit epsilon"
            )
        return rule
