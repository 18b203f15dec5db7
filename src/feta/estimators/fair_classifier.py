"""FairClassifier: a scikit-learn classifier that returns the majority of the counterparts."""

from typing import ClassVar

import numpy as np
from sklearn.linear_model import LogisticRegression
from sklearn.neural_network import MLPClassifier

from feta.errors import SchemaError
from feta.estimators.majority_classifier import MajorityClassifier
from feta.estimators.trained import inner


class FairClassifier(MajorityClassifier):
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
        are fair if `predict` is deterministic; verdicts about the estimator are counted as
        well, not proved.
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
    takes_rows: ClassVar[tuple[type, ...]] = (LogisticRegression, MLPClassifier)

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
