# ruff: noqa: N803 - X is scikit-learn's own name for the table
"""FairClassifier: a scikit-learn classifier that returns the majority of the counterparts."""

from collections.abc import Collection
from typing import TYPE_CHECKING, ClassVar

import numpy as np
from numpy.typing import ArrayLike
from sklearn.base import BaseEstimator, ClassifierMixin
from sklearn.linear_model import LogisticRegression
from sklearn.neural_network import MLPClassifier
from sklearn.utils.multiclass import check_classification_targets
from sklearn.utils.validation import check_is_fitted

from feta.arrays import Counts, Matrix
from feta.engine.protocol import UNLIMITED
from feta.engine.registry import choose
from feta.errors import SchemaError
from feta.estimators.fair_estimator import FairEstimator, Targets, inner
from feta.estimators.layout import People
from feta.io.schema import Schema
from feta.model import Model
from feta.predict.fair_predictor import FairPredictor
from feta.rule import Argmax, OneVsRest, Threshold, Tolerance
from feta.space.feature_space import FeatureSpace
from feta.space.vote_weights import VoteWeights
from feta.wider_limits import groups

if TYPE_CHECKING:
    from sklearn.utils import Tags

    from feta.scorer.network.network import Network


class FairClassifier(ClassifierMixin, FairEstimator):  # type: ignore[misc]  # scikit-learn ships no types
    """A classifier whose decisions cannot depend on the sensitive columns.

    Each person gets the decision that most of their counterparts get: everyone who equals them in
    all other columns, with any values of the sensitive ones. On an exact tie, it is the second of
    two classes, or the one that a schema declares favorable, or the first of several classes.

    Parameters
    ----------
    estimator
        The classifier whose decisions are made fair; `fit` clones and fits it. Pass a trained one
        as `sklearn.frozen.FrozenEstimator(trained)`: it is not fitted again, and `y` may be None.
        A bare MLPClassifier or LogisticRegression gets `space.encode(X)`: numbers in raw units,
        one column per category. Any other estimator, such as a pipeline, gets the columns of the
        original table that the space has.
    space
        The people that can exist: a space, or a schema, whose [decision] with its threshold is
        used as well. With a space, decisions are those of the estimator's `predict`: two classes
        are separated at a probability of one half. None infers the space in `fit` from X. That
        suits a first look, but `predict` may reject people outside its limits, so state the space
        for real use.
    sensitive
        Names of the sensitive columns; None keeps those that the space declares. The columns of
        an array, and numbered columns of a frame, are named "x0", "x1", and so on.
    engine
        The engine that counts the counterparts of an estimator that FETA can read.
    weights
        The votes of each counterpart; None gives everyone one vote.

    Attributes
    ----------
    classes_
        The classes, in the order of `predict_proba`.
    space_
        The space, given or inferred.
    estimator_
        The fitted estimator.
    model_
        FETA's model of it, or None if FETA cannot read it: then votes are counted with the
        estimator's own `predict`, always on the same table of all counterparts. Such decisions
        are fair if `predict` is deterministic; there are no verdicts about the estimator.
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
    >>> fair = FairClassifier(LogisticRegression(), space).fit(X, ["no", "no", "yes", "yes"])
    >>> fair.predict(X.drop(columns=["age"]))
    array(['no', 'no', 'yes', 'yes'], dtype='<U3')
    >>> fair.guarantee_.partition(":")[0]
    'fair by construction'
    """

    kind: ClassVar[str] = "classifier"
    example: ClassVar[str] = "LogisticRegression()"
    promise: ClassVar[str] = (
        "fair by construction: each decision is counted exactly, "
        "from the columns that are not sensitive"
    )
    takes_rows: ClassVar[tuple[type, ...]] = (LogisticRegression, MLPClassifier)

    def __init__(
        self,
        estimator: BaseEstimator | None = None,
        space: FeatureSpace | Schema | None = None,
        *,
        sensitive: Collection[str] | None = None,
        engine: str = "auto",
        weights: VoteWeights | None = None,
    ) -> None:
        self.estimator = estimator
        self.space = space
        self.sensitive = sensitive
        self.engine = engine
        self.weights = weights

    def predict(self, X: People) -> Targets:
        """Return the decision that most counterparts of each person get.

        Parameters
        ----------
        X
            The people: a frame, an array, a dict or a list of dicts. The sensitive columns are
            not read: they may contain anything, and may be missing in a frame or dict.
        """
        check_is_fitted(self, "model_")
        people = self._people(X)
        if self.model_ is None:
            winners = _winners(self._counts(people)[:, self._class_order])
        else:
            winners = FairPredictor(self.model_, self.engine, weights=self.weights).decide(people)
        return np.asarray(self.classes_[self._class_order][winners.astype(np.int64)])

    def predict_proba(self, X: People) -> Matrix:
        """Return the share of the counterparts' votes of each class, (people, classes).

        Parameters
        ----------
        X
            The people, as for `predict`, which returns the class with the largest share.
        """
        check_is_fitted(self, "model_")
        n_votes = self.n_counterparts_ if self.weights is None else self.weights.total
        return np.asarray(self._counts(self._people(X)) / n_votes)

    def __sklearn_tags__(self) -> "Tags":
        tags = super().__sklearn_tags__()
        tags.classifier_tags.poor_score = True  # information in the sensitive columns is not used
        return tags

    def _targets(self, y: ArrayLike | None, n_people: int) -> Targets:
        labels = super()._targets(y, n_people)
        check_classification_targets(labels)
        classes = np.unique(labels)
        if len(classes) < 2:  # noqa: PLR2004 - a choice
            raise SchemaError(
                f"invalid y: got 1 class, {classes[0]!r}; expected two classes or more"
            )
        return labels

    def _check_fitted(self) -> None:
        classes = getattr(self.estimator_, "classes_", ())
        if np.ndim(classes) != 1 or len(classes) < 2:  # noqa: PLR2004 - a choice
            name = type(inner(self.estimator_)).__name__
            raise SchemaError(
                f"invalid estimator: got {name} with the classes {classes!r}; expected a "
                "classifier of two or more classes"
            )
        self.classes_ = np.asarray(classes)
        self._check_rule()

    def _check_rule(self) -> None:
        """Reject a schema's decision that does not apply; store the order of the classes."""
        # Indices of the classes; of two classes, the favorable one is last.
        self._class_order = np.arange(len(self.classes_))
        if self._schema is None:
            return
        rule = self._schema.rule
        if isinstance(rule, OneVsRest | Tolerance):
            option = "one_vs_rest" if isinstance(rule, OneVsRest) else "a tolerance"
            raise SchemaError(
                f"invalid [decision] of the schema: got {option}; expected none, because "
                "FairClassifier decides between all classes; remove it, or use "
                "feta.FairPredictor(schema.model(network))"
            )
        self._schema.check_classes([str(label) for label in self.classes_])
        if isinstance(rule, Threshold) and rule.favors == "below":
            self._class_order = self._class_order[::-1]

    def _check_votes(self) -> None:
        rule = None if self._schema is None else self._schema.rule
        if isinstance(rule, Threshold) and (rule.value, rule.equality) != (0.0, None):
            raise SchemaError(
                "the schema's threshold does not apply: predict separates the classes at one "
                f"half, and FETA cannot read the estimator: {self._obstacle}; remove threshold "
                "and equality from [decision]"
            )

    def _model(self, network: "Network") -> Model:
        if self._schema is not None:
            return self._schema.model(network)
        names = tuple(str(label) for label in self.classes_)
        if len(names) == 2:  # noqa: PLR2004 - one score decides
            return Model(self.space_, network, outcomes=names)
        return Model(self.space_, network, Argmax(names))

    def _counts(self, people: Matrix) -> Counts:
        """Count each person's counterparts by class."""
        first, inverse = self._distinct(people)
        if self.model_ is None:
            counts = [self._ballot.count(person, self.classes_) for person in first]
            return np.array(counts, dtype=np.int64).reshape(-1, len(self.classes_))[inverse]
        by_class = np.empty((len(first), len(self.classes_)), dtype=np.int64)
        for model, rows in groups(self.model_, first):
            tally = choose(model, self.engine).tally(
                model, first[rows], UNLIMITED, until="all", weights=self.weights
            )
            by_class[np.ix_(rows, self._class_order)] = tally.by_class
        return by_class[inverse]


def _winners(counts: Counts) -> Counts:
    """Return the class with most votes: on a tie the second of two, or the first of several."""
    if counts.shape[1] == 2:  # noqa: PLR2004 - the favorable one
        return (counts[:, 1] >= counts[:, 0]).astype(np.int64)
    return np.argmax(counts, axis=1)
