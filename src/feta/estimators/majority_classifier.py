# ruff: noqa: N803 - X is scikit-learn's own name for the table
"""The common part of classifiers that return the majority of the counterparts."""

from typing import TYPE_CHECKING, ClassVar

import numpy as np
from numpy.typing import ArrayLike
from sklearn.base import ClassifierMixin
from sklearn.utils.multiclass import check_classification_targets
from sklearn.utils.validation import check_is_fitted

from feta.arrays import Counts, Matrix, Vector
from feta.engine.protocol import UNLIMITED
from feta.engine.registry import choose
from feta.errors import SchemaError
from feta.estimators.fair_estimator import COUNTING, FairEstimator, Targets
from feta.estimators.layout import People
from feta.model import Model
from feta.query import CountOf
from feta.readers.callable.read import read_callable
from feta.readers.callable.schema_model import counted_model
from feta.rule import Argmax
from feta.wider_limits import groups

if TYPE_CHECKING:
    from sklearn.utils import Tags

    from feta.io.raw_table import RawTable
    from feta.scorer.protocol import Scorer


class MajorityClassifier(ClassifierMixin, FairEstimator):  # type: ignore[misc]  # scikit-learn ships no types
    """A classifier whose counterparts vote; without a vote by means, as the majority decides.

    Subclasses define where the classes and the model come from.
    """

    promise: ClassVar[str] = (
        "fair by construction: each decision is counted exactly, "
        "from the columns that are not sensitive"
    )

    def predict_proba(self, X: People) -> Matrix:
        """Return the share of the counterparts' votes of each class, (people, classes).

        Parameters
        ----------
        X
            The people, as for `predict`, which returns the class with the largest share.
        """
        check_is_fitted(self, "model_")
        weights = self.votes_.weights
        n_votes = self.n_counterparts_ if weights is None else weights.total
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

    def _check_rule(self) -> None:
        """Reject a schema's decision that does not apply; store the order of the classes."""
        # Indices of the classes; of two classes, the favorable one is last.
        self._class_order = np.arange(len(self.classes_))
        if self._schema is None:
            return
        rule = self._schema.rule
        if rule.merges_classes or rule.tolerance is not None:
            option = "one_vs_rest" if rule.merges_classes else "a tolerance"
            raise SchemaError(
                f"invalid [decision] of the schema: got {option}; expected none, because "
                "FairClassifier decides between all classes; remove it, or use "
                "feta.FairPredictor(schema.model(network))"
            )
        self._schema.check_classes(self.classes_)
        if rule.favors == "below":
            self._class_order = self._class_order[::-1]

    def _model(self, scorer: "Scorer") -> Model:
        if self._schema is not None:
            return self._schema.model(scorer)
        names = tuple(str(label) for label in self.classes_)
        if len(names) == 2:  # noqa: PLR2004 - one score decides
            return Model(self.space_, scorer, outcomes=names)
        return Model(self.space_, scorer, Argmax(names))

    def _counted_model(self, estimator: object, table: "RawTable | None") -> Model:
        if self._schema is not None:
            return counted_model(estimator, self._schema, table=table, options=COUNTING)
        scorer = read_callable(estimator, self.space_, table=table, options=COUNTING)
        names = tuple(str(label) for label in self.classes_)
        if len(names) == 2:  # noqa: PLR2004 - one score decides
            return Model(self.space_, scorer, outcomes=names)
        return Model(self.space_, scorer, Argmax(names))

    def _combine(self, people: Matrix) -> Counts:
        return _winners(self._count_votes(people)[:, self._class_order])

    def _answers(self, decisions: Vector | Counts) -> Targets:
        return np.asarray(self.classes_[self._class_order][decisions.astype(np.int64)])

    def _count_votes(self, people: Matrix) -> Counts:
        """Count the answers of the estimator's own `predict` by class."""
        counts = [self._ballot.count(person, self.classes_) for person in people]
        return np.array(counts, dtype=np.int64).reshape(-1, len(self.classes_))

    def _counts(self, people: Matrix) -> Counts:
        """Count each person's counterparts by class."""
        first, inverse = self._distinct(people)
        if self.model_ is None:
            return self._count_votes(first)[inverse]
        by_class = np.empty((len(first), len(self.classes_)), dtype=np.int64)
        for model, rows in groups(self.model_, first):
            tally = choose(CountOf(model), self.engine).tally(
                model, first[rows], UNLIMITED, until="all", weights=self.votes_.weights
            )
            by_class[np.ix_(rows, self._class_order)] = tally.by_class
        return by_class[inverse]


def _winners(counts: Counts) -> Counts:
    """Return the class with most votes: on a tie the second of two, or the first of several."""
    if counts.shape[1] == 2:  # noqa: PLR2004 - the favorable one
        return (counts[:, 1] >= counts[:, 0]).astype(np.int64)
    return np.argmax(counts, axis=1)
