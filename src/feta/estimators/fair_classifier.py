# ruff: noqa: N803 - X is scikit-learn's own name for the table
"""FairClassifier: a scikit-learn classifier that decides as most of a person's counterparts would be.

The sensitive columns are read by `fit` and `explain` only; `predict` never looks at them.
"""

from collections.abc import Collection
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Self

import numpy as np
import pandas as pd
from numpy.typing import ArrayLike, NDArray
from sklearn.base import BaseEstimator, ClassifierMixin, clone
from sklearn.frozen import FrozenEstimator
from sklearn.linear_model import LogisticRegression
from sklearn.neural_network import MLPClassifier
from sklearn.utils import check_array, check_consistent_length, column_or_1d
from sklearn.utils.multiclass import check_classification_targets, type_of_target
from sklearn.utils.validation import check_is_fitted, validate_data

from feta.api import tally, worst
from feta.arrays import Counts, Matrix, Vector
from feta.errors import DomainError, EngineError, SchemaError
from feta.model import Model
from feta.network.readers.sklearn import obstacle, read_sklearn
from feta.predict.fair_predictor import FairPredictor
from feta.space.attribute import Attribute, Categorical, Derived, Integer
from feta.space.feature_space import FeatureSpace

if TYPE_CHECKING:
    from sklearn.utils import Tags

    from feta.verdict.verdict import Verdict

Table = pd.DataFrame | NDArray[Any]
Labels = NDArray[Any]

# These take rows of numbers only, so they are given the space's own matrix; others the raw table.
TAKES_ROWS = (LogisticRegression, MLPClassifier)


class FairClassifier(ClassifierMixin, BaseEstimator):  # type: ignore[misc]  # scikit-learn ships no types
    """A classifier of two classes whose decisions cannot depend on the sensitive columns.

    Each person is decided as most of their counterparts are: everyone who equals them in all other
    columns, with any values of the sensitive ones. On an exact tie the second class is taken.

    Parameters
    ----------
    estimator
        The classifier whose decisions are made fair; `fit` clones and fits it. A trained one comes
        as `sklearn.frozen.FrozenEstimator(trained)` and is not fitted again; `y` may then be None.
        A bare MLPClassifier or LogisticRegression is given `space.encode(X)`: numbers in their own
        units, one column a category. Any other estimator is given the table as it came, in those
        columns that the space has.
    space
        Who can exist. None guesses it in `fit` from what X holds: good for a first look, but
        people outside those limits are refused by `predict`, so state the space for real use.
    sensitive
        Names of the sensitive columns; with a space given, None keeps those it declares. The
        columns of an array are called "x0", "x1", and so on, and so are those of a frame that
        are numbered, not named.
    engine
        What counts the counterparts of an estimator that FETA can read.

    Attributes
    ----------
    classes_
        The two classes; a tie goes to the second.
    space_
        The space, given or guessed.
    estimator_
        The fitted estimator.
    model_
        What FETA read of it, or None where it cannot: then the votes are taken by the estimator's
        own `predict`, always on the same table of all counterparts. Such decisions are fair as long
        as `predict` is deterministic, and come without verdicts.
    guarantee_
        Which of the two holds, in words.
    columns_
        The names of the columns that `fit` was given.
    n_counterparts_
        How many votes decide each person.
    n_features_in_, feature_names_in_
        As everywhere in scikit-learn.

    Examples
    --------
    >>> import feta
    >>> space = feta.FeatureSpace((feta.Integer("age", 18, 90, sensitive=True), feta.Real("income", 0, 99)))
    >>> X = pd.DataFrame({"age": [20, 60, 25, 70], "income": [10, 20, 70, 80]})
    >>> fair = FairClassifier(LogisticRegression(), space).fit(X, ["no", "no", "yes", "yes"])
    >>> fair.predict(X.drop(columns=["age"]))
    array(['no', 'no', 'yes', 'yes'], dtype='<U3')
    >>> fair.guarantee_
    'fair by construction: each decision is counted exactly, from the columns that are not sensitive'
    """

    def __init__(
        self,
        estimator: BaseEstimator | None = None,
        space: FeatureSpace | None = None,
        *,
        sensitive: Collection[str] | None = None,
        engine: str = "auto",
    ) -> None:
        self.estimator = estimator
        self.space = space
        self.sensitive = sensitive
        self.engine = engine

    def fit(self, X: pd.DataFrame | ArrayLike, y: ArrayLike | None = None) -> Self:
        """Fit the estimator, and read it if FETA can.

        Parameters
        ----------
        X
            The people, with their sensitive columns: a frame, or an array of numbers.
        y
            Their classes, of which there must be two.

        Raises
        ------
        SchemaError
            Where estimator, space or classes cannot be used.
        DomainError
            Where a person is outside the space.
        """
        if self.estimator is None:
            message = "estimator must be a classifier, got None; for example FairClassifier(LogisticRegression(), space)"
            raise SchemaError(message)
        frame = self._learn_columns(X)
        labels = None if isinstance(self.estimator, FrozenEstimator) else _labels(y, len(frame))
        self.space_ = self._choose_space(frame)
        self.n_counterparts_ = self.space_.lattice.size  # uncountably many are refused here
        people = self.space_.encode(frame)
        layout = _Layout.of(self.space_, frame, as_frame=isinstance(X, pd.DataFrame))
        self._learn(people, layout, labels)
        return self

    def predict(self, X: pd.DataFrame | ArrayLike) -> Labels:
        """Decide each person as most of their counterparts are decided.

        Parameters
        ----------
        X
            The people. The sensitive columns are never read: they may hold anything, and a frame
            may lack them.
        """
        check_is_fitted(self, "model_")
        people = self._people(X)
        if self.model_ is None:
            counts = self._counts(people)
            favorable = counts[:, 1] >= counts[:, 0]
        else:
            favorable = FairPredictor(self.model_, self.engine).decide(people)
        return np.asarray(self.classes_[favorable.astype(np.int64)])

    def predict_proba(self, X: pd.DataFrame | ArrayLike) -> Matrix:
        """Give each class's share of the counterparts' votes, (people, 2).

        Parameters
        ----------
        X
            The people, as for `predict`. Where both shares are 0.5, `predict` takes the second.
        """
        check_is_fitted(self, "model_")
        return np.asarray(self._counts(self._people(X)) / self.n_counterparts_)

    def explain(self, X: pd.DataFrame | ArrayLike) -> list["Verdict"]:
        """Say of each person whether the estimator itself is fair to them, with the evidence.

        Parameters
        ----------
        X
            The people, here with their sensitive columns.

        Returns
        -------
        list
            `Fair`, or `Unfair` with the counterpart farthest on the other side, one a person.

        Raises
        ------
        EngineError
            Where FETA cannot read the estimator: its votes are counted, but nothing is proved.
        """
        check_is_fitted(self, "model_")
        if self.model_ is None:
            reason = obstacle(_inner(self.estimator_))
            raise EngineError(f"explain needs an estimator that FETA can read: {reason}")
        people = self.space_.encode(self._frame(X))
        return [worst(self.model_, person, engine=self.engine) for person in people]

    def __sklearn_tags__(self) -> "Tags":
        tags = super().__sklearn_tags__()
        tags.classifier_tags.multi_class = False
        return tags

    def _learn_columns(self, X: pd.DataFrame | ArrayLike) -> pd.DataFrame:
        """Take the table that `fit` is given, and remember what its columns are called."""
        if isinstance(X, pd.DataFrame):
            validate_data(self, X, skip_check_array=True)
            frame = _named(X)
        else:
            array = validate_data(self, X)
            frame = pd.DataFrame(array, columns=[f"x{n}" for n in range(array.shape[1])])
        self.columns_ = tuple(frame.columns)
        return frame

    def _choose_space(self, frame: pd.DataFrame) -> FeatureSpace:
        if isinstance(self.sensitive, str):
            message = f"sensitive must be a list of column names, got {self.sensitive!r}; write [{self.sensitive!r}]"
            raise SchemaError(message)
        if self.space is None and self.sensitive is None:
            message = "a space or the names of the sensitive columns must be given, got neither; write FairClassifier(estimator, sensitive=[...])"
            raise SchemaError(message)
        if self.space is None:
            assert self.sensitive is not None
            return FeatureSpace.from_frame(frame, sensitive=self.sensitive)
        if not isinstance(self.space, FeatureSpace):
            raise SchemaError(f"space must be a FeatureSpace, got {type(self.space).__name__}")
        if self.sensitive is None:
            return self.space
        return self.space.with_sensitive(self.sensitive)

    def _learn(self, people: Matrix, layout: "_Layout", labels: Labels | None) -> None:
        inner = _inner(self.estimator)
        takes_rows = isinstance(inner, TAKES_ROWS)
        if takes_rows:
            _check_order(self.space_, inner)
        table = people if takes_rows else layout.table(people)
        self.estimator_ = clone(self.estimator).fit(table, labels)
        self.classes_ = _two_classes(self.estimator_)
        reason = obstacle(_inner(self.estimator_))
        self.model_ = self._read() if reason is None else None
        self._ballot = _Ballot(
            self.space_, self.estimator_, self.classes_, None if takes_rows else layout
        )
        self.guarantee_ = _guarantee(reason, type(inner).__name__)

    def _read(self) -> Model:
        network = read_sklearn(_inner(self.estimator_))
        return Model(self.space_, network, outcomes=tuple(str(one) for one in self.classes_))

    def _frame(self, X: pd.DataFrame | ArrayLike) -> pd.DataFrame:
        """Take a table with all its columns."""
        if isinstance(X, pd.DataFrame):
            return _named(X)
        return pd.DataFrame(validate_data(self, X, reset=False), columns=self.columns_)

    def _people(self, X: pd.DataFrame | ArrayLike) -> Matrix:
        """Encode people without a look at their sensitive columns."""
        space = self.space_
        shared = {a.name for a in space.attributes if not space.is_sensitive(a)}
        if isinstance(X, pd.DataFrame):
            frame = _named(X)
            frame = frame.loc[:, [name in shared for name in frame.columns]]
        else:
            cells = validate_data(self, X, reset=False, dtype=None, ensure_all_finite=False)
            places = [n for n, name in enumerate(self.columns_) if name in shared]
            numbers = check_array(cells[:, places], ensure_min_features=0, input_name="X")
            frame = pd.DataFrame(numbers, columns=[self.columns_[n] for n in places])
        if not shared:  # a table without columns would lose its rows
            return np.full((len(frame), space.width), np.nan)
        return space.encode(frame, sensitive="ignore")

    def _counts(self, people: Matrix) -> Counts:
        """Count each person's counterparts by class; equal non-sensitive parts are counted once."""
        shared = people[:, ~self.space_.sensitive_columns] + 0.0
        _, first, inverse = np.unique(shared, axis=0, return_index=True, return_inverse=True)
        if self.model_ is None:
            return self._ballot.count(people[first])[inverse]
        return tally(self.model_, people[first], engine=self.engine).by_class[inverse]


@dataclass(frozen=True, slots=True)
class _Layout:
    """How a table looked in `fit`: which columns of the space, in what order and of what types."""

    space: FeatureSpace
    dtypes: tuple[tuple[str, Any], ...]  # name and pandas' type of each column
    as_frame: bool

    @classmethod
    def of(cls, space: FeatureSpace, frame: pd.DataFrame, *, as_frame: bool) -> Self:
        """Look at the table that `fit` was given."""
        known = {attribute.name: attribute for attribute in space.attributes}
        dtypes = tuple(
            (name, _wide_enough(frame[name].dtype, known[name]))
            for name in frame.columns
            if name in known
        )
        return cls(space, dtypes, as_frame)

    def table(self, people: Matrix) -> Table:
        """Turn rows back into such a table."""
        columns = {name: self._column(name, dtype, people) for name, dtype in self.dtypes}
        frame = pd.DataFrame(columns)
        return frame if self.as_frame else frame.to_numpy()

    def _column(self, name: str, dtype: Any, people: Matrix) -> "pd.Series[Any]":  # noqa: ANN401 - a type of pandas or numpy
        attribute = self.space.attribute(name)
        values = _values(attribute, people[:, self.space.columns_of(attribute)])
        column = pd.Series(values).astype(dtype)
        if column.dtype.kind in "iub" and (column.to_numpy() != values).any():
            lost = values[np.argmax(column.to_numpy() != values)].item()
            message = f"{name!r} must be able to hold {lost!r}, got the type {dtype} in the table given to fit; give it a wider type there"
            raise DomainError(message, column=name)
        return column


@dataclass(frozen=True, slots=True, eq=False)
class _Ballot:
    """Votes taken by an estimator's own `predict`.

    A person's counterparts are always put to it in the same blocks, alone: so nothing but the
    person's non-sensitive part can sway the count, whatever `predict` does with a batch.
    """

    space: FeatureSpace
    estimator: Any
    classes: Labels
    layout: _Layout | None  # None: it takes rows of numbers

    def count(self, people: Matrix) -> Counts:
        """Count the votes for each class, one row a person."""
        return np.array([self._count(person) for person in people], dtype=np.int64).reshape(-1, 2)

    def _count(self, person: Vector) -> Counts:
        return np.sum(
            [self._votes(block) for block in self.space.lattice.counterparts(person)], axis=0
        )

    def _votes(self, block: Matrix) -> Counts:
        answers = np.asarray(self.estimator.predict(self._table(block)))
        votes = np.array([np.sum(answers == one) for one in self.classes], dtype=np.int64)
        if answers.shape != (len(block),) or votes.sum() != len(block):
            message = f"predict must answer {self.classes[0]!r} or {self.classes[1]!r} for each of {len(block)} rows, got {answers.size} answers, the first {answers.ravel()[:3].tolist()}"
            raise EngineError(message)
        return votes

    def _table(self, block: Matrix) -> Table:
        if self.layout is not None:
            return self.layout.table(block)
        names = getattr(self.estimator, "feature_names_in_", None)
        return block if names is None else pd.DataFrame(block, columns=names)


def _values(attribute: Attribute, codes: Matrix) -> NDArray[Any]:
    """Turn columns back into raw values."""
    match attribute:
        case Categorical():
            return np.array(attribute.values, dtype=object)[np.argmax(codes, axis=1)]
        case Derived():
            labels = [label for label, _, _ in attribute.bands]
            return np.array(labels, dtype=object)[np.argmax(codes, axis=1)]
        case Integer():
            return codes[:, 0].astype(np.int64)
        case _:
            return codes[:, 0]


def _wide_enough(dtype: Any, attribute: Attribute) -> Any:  # noqa: ANN401 - a type of pandas or numpy
    """Add the categories that `fit` did not see: pandas would take their values for missing."""
    if not isinstance(dtype, pd.CategoricalDtype):
        return dtype
    match attribute:
        case Categorical():
            values: list[object] = list(attribute.values)
        case Derived():
            values = [label for label, _, _ in attribute.bands]
        case _:  # numbers, of which there may be too many to list
            return dtype.categories.dtype
    seen = list(dtype.categories)
    unseen = [value for value in values if value not in seen]
    return pd.CategoricalDtype([*seen, *unseen], dtype.ordered)


def _named(frame: pd.DataFrame) -> pd.DataFrame:
    """Call columns by texts, as a space does; numbered ones as those of an array."""
    given: list[object] = list(frame.columns)
    names = [f"x{name}" if isinstance(name, int) else str(name) for name in given]
    return frame.set_axis(names, axis=1)


def _inner(estimator: Any) -> Any:  # noqa: ANN401 - scikit-learn ships no types
    return estimator.estimator if isinstance(estimator, FrozenEstimator) else estimator


def _labels(y: ArrayLike | None, n_people: int) -> Labels:
    if y is None:
        raise SchemaError("fit requires y to be passed, but the target y is None")
    labels = column_or_1d(check_array(y, ensure_2d=False, dtype=None, input_name="y"), warn=True)
    check_consistent_length(np.empty(n_people), labels)
    check_classification_targets(labels)
    classes = np.unique(labels)
    if type_of_target(labels) != "binary":  # the first words are scikit-learn's own
        message = f"Only binary classification is supported. y must hold two classes, got {len(classes)}; fit one class against the rest"
        raise SchemaError(message)
    if len(classes) < 2:  # noqa: PLR2004 - a decision is one of two
        raise SchemaError(f"y must hold two classes, got 1 class: {classes[0]!r}")
    return np.asarray(labels)


def _two_classes(estimator: Any) -> Labels:  # noqa: ANN401 - scikit-learn ships no types
    classes = getattr(estimator, "classes_", ())
    if np.shape(classes) != (2,):
        message = f"the estimator must be a classifier of two classes, got {type(_inner(estimator)).__name__} with the classes {classes!r}"
        raise SchemaError(message)
    return np.asarray(classes)


def _check_order(space: FeatureSpace, estimator: Any) -> None:  # noqa: ANN401 - scikit-learn ships no types
    """Refuse a trained estimator whose columns, where they have names, are in another order."""
    names = list(getattr(estimator, "feature_names_in_", []))
    for attribute in space.attributes:
        place = space.columns_of(attribute).start
        if attribute.name in names and names.index(attribute.name) != place:
            message = f"{attribute.name!r} must be column {names.index(attribute.name)} of the space, as in the estimator's training, got column {place}; put the attributes in that order"
            raise SchemaError(message)


def _guarantee(reason: str | None, name: str) -> str:
    if reason is None:
        return "fair by construction: each decision is counted exactly, from the columns that are not sensitive"
    return f"fair as long as the predict of {name} is deterministic, for it takes the votes; there are no verdicts, since FETA cannot read the estimator: {reason}"
