# ruff: noqa: N803 - X is scikit-learn's own name for the table
"""FairClassifier: a scikit-learn classifier that decides as most of a person's counterparts would be."""

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

    Each person is decided as most of their counterparts are: everyone who equals them in all other
    columns, with any values of the sensitive ones. On an exact tie the second of two classes is
    taken, or the one that a schema calls favorable, and the first of several.

    Parameters
    ----------
    estimator
        The classifier whose decisions are made fair; `fit` clones and fits it. A trained one comes
        as `sklearn.frozen.FrozenEstimator(trained)` and is not fitted again; `y` may then be None.
        A bare MLPClassifier or LogisticRegression is given `space.encode(X)`: numbers in their own
        units, one column a category. Any other estimator, such as a pipeline, is given the table as it
        came, in those columns that the space has.
    space
        Who can exist: a space, or a whole schema, whose [decision] is then taken over, with its
        threshold. A bare space decides as the estimator's own `predict`: two classes part at a
        probability of one half. None guesses it in `fit` from what X holds: good for a first look,
        but people outside those limits are refused by `predict`, so state the space for real use.
    sensitive
        Names of the sensitive columns; with a space given, None keeps those it declares. The
        columns of an array are called "x0", "x1", and so on, and so are those of a frame that
        are numbered, not named.
    engine
        What counts the counterparts of an estimator that FETA can read.
    weights
        The votes that each counterpart has; None gives everyone one vote.

    Attributes
    ----------
    classes_
        The classes, in the order of `predict_proba`.
    space_
        The space, given or guessed.
    estimator_
        The fitted estimator.
    model_
        What FETA read of it, or None where it cannot: then the votes are taken by the estimator's
        own `predict`, always on the same table of all counterparts. Such decisions are fair as long
        as `predict` is deterministic, and come without verdicts.
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
    >>> fair = FairClassifier(LogisticRegression(), space).fit(X, ["no", "no", "yes", "yes"])
    >>> fair.predict(X.drop(columns=["age"]))
    array(['no', 'no', 'yes', 'yes'], dtype='<U3')
    >>> fair.guarantee_
    'fair by construction: each decision is counted exactly, from the columns that are not sensitive'
    """

    kind: ClassVar[str] = "classifier"
    example: ClassVar[str] = "LogisticRegression()"
    promise: ClassVar[str] = (
        "fair by construction: each decision is counted exactly, from the columns that are not sensitive"
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
        """Decide each person as most of their counterparts are decided.

        Parameters
        ----------
        X
            The people: a frame, an array, a dict or a list of dicts. The sensitive columns are never
            read: they may hold anything, and a frame or dict may lack them.
        """
        check_is_fitted(self, "model_")
        people = self._people(X)
        if self.model_ is None:
            winners = _winners(self._counts(people)[:, self._places])
        else:
            winners = FairPredictor(self.model_, self.engine, weights=self.weights).decide(people)
        return np.asarray(self.classes_[self._places][winners.astype(np.int64)])

    def predict_proba(self, X: People) -> Matrix:
        """Give each class's share of the counterparts' votes, (people, classes).

        Parameters
        ----------
        X
            The people, as for `predict`, which takes the largest share.
        """
        check_is_fitted(self, "model_")
        n_votes = self.n_counterparts_ if self.weights is None else self.weights.total
        return np.asarray(self._counts(self._people(X)) / n_votes)

    def __sklearn_tags__(self) -> "Tags":
        tags = super().__sklearn_tags__()
        tags.classifier_tags.poor_score = True  # what only sensitive columns tell is left unsaid
        return tags

    def _targets(self, y: ArrayLike | None, n_people: int) -> Targets:
        labels = super()._targets(y, n_people)
        check_classification_targets(labels)
        classes = np.unique(labels)
        if len(classes) < 2:  # noqa: PLR2004 - a choice
            raise SchemaError(f"y must hold two classes or more, got 1 class: {classes[0]!r}")
        return labels

    def _check_fitted(self) -> None:
        classes = getattr(self.estimator_, "classes_", ())
        if np.ndim(classes) != 1 or len(classes) < 2:  # noqa: PLR2004 - a choice
            name = type(inner(self.estimator_)).__name__
            message = f"the estimator must be a classifier of two or more classes, got {name} with the classes {classes!r}"
            raise SchemaError(message)
        self.classes_ = np.asarray(classes)
        self._check_rule()

    def _check_rule(self) -> None:
        """Refuse a schema's decision that the estimator cannot take over; note which class it favors."""
        self._places = np.arange(
            len(self.classes_)
        )  # of the classes, the favorable one of two last
        if self._schema is None:
            return
        rule = self._schema.rule
        if isinstance(rule, OneVsRest | Tolerance):
            told = "one_vs_rest" if isinstance(rule, OneVsRest) else "a tolerance"
            message = f"FairClassifier decides between all classes, but the schema's [decision] has {told}; take it out, or use feta.FairPredictor(schema.model(network))"
            raise SchemaError(message)
        self._schema.check_classes([str(one) for one in self.classes_])
        if isinstance(rule, Threshold) and rule.favors == "below":
            self._places = self._places[::-1]

    def _check_votes(self) -> None:
        rule = None if self._schema is None else self._schema.rule
        if isinstance(rule, Threshold) and (rule.value, rule.equality) != (0.0, None):
            message = f"the schema's threshold needs an estimator that FETA can read, since predict parts the classes at one half: {self._obstacle}; or leave threshold and equality out of [decision]"
            raise SchemaError(message)

    def _model(self, network: "Network") -> Model:
        if self._schema is not None:
            return self._schema.model(network)
        names = tuple(str(one) for one in self.classes_)
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
            counted = choose(model, self.engine).tally(
                model, first[rows], UNLIMITED, until="all", weights=self.weights
            )
            by_class[np.ix_(rows, self._places)] = counted.by_class
        return by_class[inverse]


def _winners(counts: Counts) -> Counts:
    """Tell the class with most votes: on a tie the second of two, and the first of several."""
    if counts.shape[1] == 2:  # noqa: PLR2004 - the favorable one
        return (counts[:, 1] >= counts[:, 0]).astype(np.int64)
    return np.argmax(counts, axis=1)
