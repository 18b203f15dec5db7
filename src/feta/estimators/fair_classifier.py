# ruff: noqa: N803 - X is scikit-learn's own name for the table
"""FairClassifier: a scikit-learn classifier that decides by a vote of the counterparts."""

import warnings
from collections.abc import Collection
from typing import Any, ClassVar

import numpy as np
from sklearn.base import BaseEstimator
from sklearn.linear_model import LogisticRegression
from sklearn.neural_network import MLPClassifier

from feta.arrays import Matrix
from feta.errors import FetaError, SchemaError
from feta.estimators.fair_estimator import COUNTING
from feta.estimators.layout import People
from feta.estimators.majority_classifier import MajorityClassifier
from feta.estimators.recommended import LEVEL, VOTE, WEIGHTS, defaults_in, marked, restore
from feta.estimators.trained import inner
from feta.io.schema import Schema
from feta.model import Model
from feta.predict.fit_votes import fit_votes, fitted_weights
from feta.readers.callable.read import read_callable
from feta.rule import Argmax
from feta.scorer.protocol import has_scores
from feta.space.feature_space import FeatureSpace
from feta.space.vote_weights import VoteWeights
from feta.vote.mean_decision import VoteName
from feta.vote.settings import LEAST, LevelName, Recommended, VoteSettings, WeightsName
from feta.vote.stored_votes import StoredVotes


class FairClassifier(MajorityClassifier):
    """A classifier whose decisions cannot depend on the sensitive columns.

    A person's counterparts decide together: everyone who equals the person in all other columns,
    with any values of the sensitive ones. By default the mean of their probabilities decides, where
    each combination of sensitive values counts as often as it occurs among the people passed to
    `fit`. Two classes are separated at the level that keeps the share of favorable decisions among
    these people; the favorable class is the second one, or that of a schema.

    The defaults adapt to the estimator, with a warning: scores without probabilities take the mean
    score, labels the weighted majority, and several classes the largest mean without a level. A
    vote or level that was set and does not fit is refused.

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
    vote
        "mean_probability", "mean_score", or "majority": the decision that most counterparts get,
        on an exact tie the favorable one, or the first of several classes.
    weights
        The votes of each counterpart: "empirical", as often as its sensitive values occur among
        the people passed to `fit`; "equal" or None, one vote each; or `VoteWeights`.
    level
        "keep", a number that the mean must reach, or None: the threshold of the estimator.
    least
        The fewest people of a combination of sensitive values that the weights list; people of
        rarer ones count as the nearest listed one. 1 keeps exact weights, which a stored
        estimator may reveal.

    `vote="majority", weights=None, level=None` is the paper's predictor.

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
        are fair if `predict` is deterministic; verdicts about the estimator are counted as
        well, not proved.
    votes_
        The fitted votes: vote, weights, ballot and level.
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
    >>> X = pd.DataFrame({"age": [20, 60, 20, 60] * 5, "income": [10, 20, 70, 80] * 5})
    >>> fair = FairClassifier(LogisticRegression(), space).fit(X, ["no", "no", "yes", "yes"] * 5)
    >>> fair.predict(X.drop(columns=["age"])[:4])
    array(['no', 'no', 'yes', 'yes'], dtype='<U3')
    >>> fair.guarantee_.partition(":")[0]
    'fair by construction'
    """

    kind: ClassVar[str] = "classifier"
    example: ClassVar[str] = "LogisticRegression()"
    takes_rows: ClassVar[tuple[type, ...]] = (LogisticRegression, MLPClassifier)

    def __init__(
        self,
        estimator: BaseEstimator | None = None,
        space: FeatureSpace | Schema | None = None,
        *,
        sensitive: Collection[str] | None = None,
        engine: str = "auto",
        vote: VoteName = VOTE,
        weights: VoteWeights | WeightsName | None = WEIGHTS,
        level: float | LevelName | None = LEVEL,
        least: int = LEAST,
    ) -> None:
        super().__init__(estimator, space, sensitive=sensitive, engine=engine, weights=weights)
        self.vote = vote
        self.level = level
        self.least = least

    def __getstate__(self) -> dict[str, Any]:
        state: dict[str, Any] = super().__getstate__()
        return state | {"_defaults": defaults_in(state)}

    def __setstate__(self, state: dict[str, Any]) -> None:
        restore(state, state.pop("_defaults", []))
        super().__setstate__(state)

    def predict_proba(self, X: People) -> Matrix:
        """Return the mean probability of each class, or the share of votes, (people, classes).

        Parameters
        ----------
        X
            The people, as for `predict`. Of two classes, `predict` compares the mean probability
            of the second one with `votes_.level`, not with one half. A vote by other means than
            probabilities has no probabilities: then the shares of votes are returned.
        """
        if getattr(self, "votes_", None) is None or self.votes_.vote != "mean_probability":
            return super().predict_proba(X)
        assert self._voter is not None  # a mean has scores
        means = np.asarray(self._predictor(self._voter).means(self._people(X)).means)
        return np.stack([1 - means, means], axis=1) if means.ndim == 1 else means

    @property
    def _settings(self) -> VoteSettings:
        """The parameters; a schema's [votes] replaces the defaults."""
        names = ("vote", "weights", "level")
        own = {name: marked(name, getattr(self, name)) for name in names} | {"least": self.least}
        stated = None if self._schema is None else self._schema.file.votes
        if stated is not None:
            for name in names:
                if isinstance(own[name], Recommended):
                    own[name] = getattr(stated, name)
            own["least"] = stated.least if self.least == LEAST else self.least
        return VoteSettings(**own)

    @property
    def _voter(self) -> Model | None:
        return self._mean_model or self.model_

    def _fit_votes(self, people: Matrix) -> StoredVotes:
        """Fit weights and level to the people passed to `fit`; defaults adapt with a warning."""
        self._mean_model: Model | None = None
        settings = self._settings
        if self.model_ is None and settings.vote != "majority":
            self._mean_model = self._evaluated(settings)
        if self._voter is None:
            return self._majority(people, settings)
        settings = settings.adapted(self._voter)
        fitted = fit_votes(self._voter, people, settings)
        for text in (*settings.notices, *fitted.notices):
            warnings.warn(text, stacklevel=5)
        return fitted.votes

    def _majority(self, people: Matrix, settings: VoteSettings) -> StoredVotes:
        """Return the weighted majority of the estimator's own labels."""
        if settings.vote != "majority":
            text = "the vote is the weighted majority: the estimator returns labels only"
            if not isinstance(settings.vote, Recommended):
                raise SchemaError(
                    f"the vote {settings.vote!r} does not fit the estimator: got labels only; "
                    "expected scores; use vote='majority'"
                )
            warnings.warn(text, stacklevel=6)
        if settings.level is not None and not isinstance(settings.level, Recommended):
            raise SchemaError(
                f"a majority has no level: got {settings.level!r}; expected None; use "
                "vote='mean_score' or vote='mean_probability'"
            )
        return StoredVotes(weights=fitted_weights(self.space_, people, settings))

    def _evaluated(self, settings: VoteSettings) -> Model | None:
        """Return a model that evaluates an estimator which FETA cannot read; None for labels."""
        try:
            model = self._probabilities() if settings.vote == "mean_probability" else None
            model = self._count() if model is None else model
        except FetaError:
            return None
        return model if has_scores(model.scorer) else None

    def _probabilities(self) -> Model | None:
        """Return a model of the estimator's `predict_proba`; None if that does not decide."""
        estimator = inner(self.estimator_)
        if self._schema is not None or not hasattr(estimator, "predict_proba"):
            return None
        try:
            scorer = read_callable(
                estimator,
                self.space_,
                table=self._ballot.table,
                function="predict_proba",
                options=COUNTING,
            )
        except FetaError:
            return None
        names = tuple(str(label) for label in self.classes_)
        if len(names) == 2:  # noqa: PLR2004 - one score decides
            return Model(self.space_, scorer, outcomes=names)
        return Model(self.space_, scorer, Argmax(names))

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

    def _check_votes(self) -> None:
        if self._schema is None or self._schema.rule.threshold is None:
            return
        if (self._schema.rule.threshold, self._schema.decision.equality) != (0.0, None):
            raise SchemaError(
                "the schema's threshold does not apply: predict separates the classes at one "
                f"half, and FETA cannot read the estimator: {self._obstacle}; remove threshold "
                "and equality from [decision]"
            )
