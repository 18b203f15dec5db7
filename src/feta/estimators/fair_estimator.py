# ruff: noqa: N803 - X is scikit-learn's own name for the table
"""FairEstimator: what FairClassifier and FairRegressor have in common.

The sensitive columns are read by `fit` and `explain` only; `predict` never looks at them.
"""

import warnings
from abc import ABC, abstractmethod
from collections.abc import Collection, Mapping
from dataclasses import replace
from typing import TYPE_CHECKING, Any, ClassVar, Self

import numpy as np
import pandas as pd
from numpy.typing import ArrayLike, NDArray
from sklearn.base import BaseEstimator, clone
from sklearn.frozen import FrozenEstimator
from sklearn.utils import check_array, check_consistent_length, column_or_1d
from sklearn.utils.validation import check_is_fitted, validate_data

from feta.absorb.absorb import UnseenValueWarning
from feta.api import worst
from feta.arrays import Counts, Matrix
from feta.errors import EngineError, NetworkError, SchemaError, missing
from feta.estimators.ballot import Ballot
from feta.estimators.layout import People, is_records, named
from feta.io.raw_table import RawTable, with_markers
from feta.io.schema import Schema
from feta.model import Model
from feta.readers.runtime import replays, runtime_of
from feta.readers.sklearn.pipeline import (
    check_order,
    encoder_markers,
    read_columns,
    split_pipeline,
)
from feta.readers.sklearn.read import read_sklearn
from feta.space.feature_space import FeatureSpace
from feta.space.vote_weights import VoteWeights
from feta.verdict.verdict import Unfair
from feta.wider_limits import models_for

if TYPE_CHECKING:
    from feta.scorer.network.network import Network
    from feta.space.limits import Decided
    from feta.verdict.verdict import Verdict

# What a promise says of a pipeline with steps whose code FETA does not know.
SAMPLED = "; its preprocessing was sampled, not proved, so that verdicts about the estimator hold as far as sampling tells"

# Rows of the table given to `fit` that a trained estimator is asked about twice.
COMPARED_ROWS = 10_000

# Classes or numbers, as scikit-learn passes them around.
Targets = NDArray[Any]


class FairEstimator(BaseEstimator, ABC):  # type: ignore[misc]  # scikit-learn ships no types
    """Fits an estimator, reads it if FETA can, and puts people into rows without a look too much.

    Its two kinds say which estimators they take, and what they make of the counterparts' answers.
    """

    kind: ClassVar[str]  # what the estimator must be
    example: ClassVar[str]  # one such
    promise: ClassVar[str]  # what is promised where FETA can read it
    takes_rows: ClassVar[tuple[type, ...]]  # these take rows of numbers only; others the raw table

    estimator: BaseEstimator | None
    space: FeatureSpace | Schema | None
    sensitive: Collection[str] | None
    engine: str
    weights: VoteWeights | None

    def fit(self, X: pd.DataFrame | ArrayLike, y: ArrayLike | None = None) -> Self:
        """Fit the estimator, and read it if FETA can.

        Parameters
        ----------
        X
            The people, with their sensitive columns: a frame, or an array of numbers.
        y
            What is to be learned about each: a class, or for regression a number.

        Raises
        ------
        SchemaError
            Where estimator, space, weights or y cannot be used.
        DomainError
            Where a person is outside the space.
        """
        if self.estimator is None:
            message = f"estimator must be a {self.kind}, got None; for example {type(self).__name__}({self.example}, space)"
            raise SchemaError(message)
        self._check_kind(inner(self.estimator))
        frame = self._learn_columns(X)
        frozen = isinstance(self.estimator, FrozenEstimator)
        targets = None if frozen else self._targets(y, len(frame))
        takes_rows = isinstance(inner(self.estimator), self.takes_rows)
        # A pipeline sees empty cells as they came, and may know what to do with them.
        self.space_ = self._choose_space(frame, missing_cells=not takes_rows)
        self.n_counterparts_ = self.space_.lattice.size  # uncountably many are refused here
        self._check_weights()
        people = self.space_.encode(frame)
        as_frame = isinstance(X, pd.DataFrame)
        names_matter = as_frame and not takes_rows
        trained = _trained_columns(self.estimator, self.space_) if names_matter else None
        table = RawTable.like(self.space_, frame, as_frame=as_frame, names=trained)
        if frozen:  # its encoders may know a None that this frame does not hold
            known = encoder_markers(inner(self.estimator))
            table = replace(table, formats=with_markers(table.formats, known))
        if frozen and not takes_rows:
            self._check_table(frame, people, table)
        self._learn(people, table, targets)
        return self

    def _check_table(self, frame: pd.DataFrame, people: Matrix, table: RawTable) -> None:
        """Refuse a frame that the trained estimator decides otherwise when FETA writes it again."""
        if not set(table.names) <= set(frame.columns):  # columns that the estimator drops
            return
        rows = list(range(0, len(frame), max(1, len(frame) // COMPARED_ROWS)))
        given = frame.iloc[rows][list(table.names)]
        trained = inner(self.estimator)
        own = np.asarray(trained.predict(given if table.as_frame else given.to_numpy()))
        again = np.asarray(trained.predict(table(people[rows])))
        if not np.array_equal(own, again):
            row = rows[int(np.argmax(own.ravel() != again.ravel()))]
            message = f"the estimator decides row {row} of the table otherwise if FETA writes the row again from the space; check the types of the columns, and the values of the space, against the table that the estimator was trained on"
            raise SchemaError(message)

    def explain(self, X: People) -> list["Verdict"]:
        """Say of each person whether the estimator itself is fair to them, with the evidence.

        Parameters
        ----------
        X
            The people, here with their sensitive columns.

        Returns
        -------
        list
            `Fair`, or `Unfair` with the counterpart farthest on the other side, one a person; the
            estimator itself is asked about the two, and `replayed` is what it says.

        Raises
        ------
        EngineError
            Where FETA cannot read the estimator: its votes are counted, but nothing is proved.
        """
        check_is_fitted(self, "model_")
        if self.model_ is None:
            raise EngineError(f"explain needs an estimator that FETA can read: {self._obstacle}")
        people = self.space_.encode(self._frame(X), limits="open")
        verdicts = [
            worst(model, people[row], engine=self.engine)
            for row, model in enumerate(models_for(self.model_, people))
        ]
        return self._with_replay(self.model_, verdicts)

    def _with_replay(self, model: Model, verdicts: list["Verdict"]) -> list["Verdict"]:
        """Let the estimator itself decide about every pair."""
        pairs = [one.counterexample for one in verdicts if isinstance(one, Unfair)]
        if not pairs:
            return verdicts
        replay = runtime_of(inner(self.estimator_), model, table=self._ballot.table)
        same = iter(replays(replay, model, pairs))
        return [
            replace(one, replayed=next(same)) if isinstance(one, Unfair) else one
            for one in verdicts
        ]

    def _targets(self, y: ArrayLike | None, n_people: int) -> Targets:
        """Check what `fit` is to learn, one a person."""
        if y is None:
            raise SchemaError("fit requires y to be passed, but the target y is None")
        cells = check_array(y, ensure_2d=False, dtype=None, input_name="y")
        targets = column_or_1d(cells, warn=True)
        check_consistent_length(np.empty(n_people), targets)
        return np.asarray(targets)

    def _check_kind(self, estimator: object) -> None:
        """Raise where an estimator is of the wrong kind before it is fitted."""

    def _check_fitted(self) -> None:
        """Raise where it turns out to be of the wrong kind; take what is to be known of it."""

    def _check_votes(self) -> None:
        """Raise where votes taken by `predict` would not be what the schema says."""

    @abstractmethod
    def _model(self, network: "Network") -> Model:
        """Put space, network and rule together."""
        ...

    @property
    def _schema(self) -> Schema | None:
        """The schema whose decision is to be taken, over the space chosen; None if none was given."""
        if not isinstance(self.space, Schema):
            return None
        if self.space.scaled:
            message = f"{type(self).__name__} gives the estimator columns in their own units, but the schema has center or scale; put the scaling into a pipeline, or use feta.FairPredictor(schema.model(network))"
            raise SchemaError(message)
        return Schema(replace(self.space.file, space=self.space_))

    def _learn_columns(self, X: pd.DataFrame | ArrayLike) -> pd.DataFrame:
        """Take the table that `fit` is given, and remember what its columns are called."""
        if isinstance(X, pd.DataFrame):
            validate_data(self, X, skip_check_array=True)
            frame = named(X)
        else:
            array = validate_data(self, X)
            frame = pd.DataFrame(array, columns=[f"x{n}" for n in range(array.shape[1])])
        self.columns_ = tuple(frame.columns)
        return frame

    def _choose_space(self, frame: pd.DataFrame, *, missing_cells: bool = False) -> FeatureSpace:
        if isinstance(self.sensitive, str):
            message = f"sensitive must be a list of column names, got {self.sensitive!r}; write [{self.sensitive!r}]"
            raise SchemaError(message)
        if self.space is None and self.sensitive is None:
            message = f"a space or the names of the sensitive columns must be given, got neither; write {type(self).__name__}(estimator, sensitive=[...])"
            raise SchemaError(message)
        if self.space is None:
            assert self.sensitive is not None
            return FeatureSpace.from_frame(frame, sensitive=self.sensitive, missing=missing_cells)
        space: object = self.space.space if isinstance(self.space, Schema) else self.space
        if not isinstance(space, FeatureSpace):
            message = f"space must be a FeatureSpace or a Schema, got {type(space).__name__}"
            raise SchemaError(message)
        return space if self.sensitive is None else space.with_sensitive(self.sensitive)

    def _check_weights(self) -> None:
        if self.weights is None:
            return
        if not isinstance(self.weights, VoteWeights):
            raise SchemaError(
                f"weights must be VoteWeights, got {type(self.weights).__name__}; feta.VoteWeights.of(space, votes) makes them"
            )
        self.weights.check(self.space_)

    def _learn(self, people: Matrix, raw: RawTable, targets: Targets | None) -> None:
        bare = inner(self.estimator)
        takes_rows = isinstance(bare, self.takes_rows)
        if takes_rows:
            check_order(self.space_, bare)
        table = people if takes_rows else raw(people)
        self.estimator_ = clone(self.estimator).fit(table, targets)
        self._check_fitted()
        self._ballot = Ballot(
            self.space_, self.estimator_, None if takes_rows else raw, self.weights
        )
        try:
            read = inner(self.estimator_)
            made = None if takes_rows else raw
            with warnings.catch_warnings():  # the space was chosen knowing the data
                warnings.simplefilter("ignore", UnseenValueWarning)
                network = read_sklearn(read, self.space_, people=people, table=made)
            self.model_: Model | None = self._model(network)
            self.guarantee_ = self.promise + (SAMPLED if network.provenance == "sampled" else "")
        except NetworkError as error:
            self.model_ = None
            self._obstacle = str(error)
            self._check_votes()
            self.guarantee_ = _proviso(self._obstacle, bare)
            warnings.warn(f"the weaker guarantee holds: {self.guarantee_}", stacklevel=3)

    def _frame(self, X: People) -> pd.DataFrame:
        """Take a table with all its columns."""
        if isinstance(X, pd.DataFrame):
            return named(X)
        if is_records(X):
            return pd.DataFrame([X] if isinstance(X, Mapping) else X)
        return pd.DataFrame(validate_data(self, X, reset=False), columns=self.columns_)

    def _people(self, X: People) -> Matrix:
        """Encode people without a look at their sensitive columns; warn of those outside limits."""
        people = self._encoded(X)
        how: Decided = "counted" if self.model_ is None else self.model_.network.provenance
        found = self.space_.open_limits.outside(people)
        notices = [one.words(int(flags.sum()), how) for one, flags in found]
        if notices:
            warnings.warn("; ".join(notices), stacklevel=3)
        return people

    def _encoded(self, X: People) -> Matrix:
        space = self.space_
        if is_records(X):
            return space.encode(X, sensitive="ignore", limits="open")
        shared = {a.name for a in space.attributes if not space.is_sensitive(a)}
        if isinstance(X, pd.DataFrame):
            frame = named(X)
            frame = frame.loc[:, [name in shared for name in frame.columns]]
        else:
            cells = validate_data(self, X, reset=False, dtype=None, ensure_all_finite=False)
            indices = [n for n, name in enumerate(self.columns_) if name in shared]
            numbers = check_array(cells[:, indices], ensure_min_features=0, input_name="X")
            frame = pd.DataFrame(numbers, columns=[self.columns_[n] for n in indices])
        if not shared:  # a table without columns would lose its rows
            return np.full((len(frame), space.width), np.nan)
        return space.encode(frame, sensitive="ignore", limits="open")

    def _distinct(self, people: Matrix) -> tuple[Matrix, Counts]:
        """Equal non-sensitive parts have the same counterparts; they are asked about once."""
        shared = people[:, ~self.space_.sensitive_columns] + 0.0
        _, first, inverse = np.unique(shared, axis=0, return_index=True, return_inverse=True)
        return people[first], inverse.ravel()


def inner(estimator: Any) -> Any:  # noqa: ANN401 - scikit-learn ships no types
    """Take a trained estimator out of its frozen clothing."""
    return estimator.estimator if isinstance(estimator, FrozenEstimator) else estimator


def _trained_columns(estimator: Any, space: FeatureSpace) -> list[str] | None:  # noqa: ANN401 - scikit-learn ships no types
    """Name the columns that a trained estimator takes, in its order; None where it names none."""
    bare = inner(estimator)
    given = getattr(bare, "feature_names_in_", None) if bare is not estimator else None
    if given is None:
        return None
    names = [str(name) for name in given]
    known = {attribute.name for attribute in space.attributes}
    needed = names if split_pipeline(bare)[0] is None else read_columns(bare)
    for name in needed or ():
        if name not in known:
            told = missing(name, sorted(known)).replace("the table must", "the space must")
            raise SchemaError(f"the estimator reads {name!r}: {told}")
    return names


def _proviso(reason: str, estimator: object) -> str:
    name = type(estimator).__name__
    return f"fair as long as the predict of {name} is deterministic, for it takes the votes; there are no verdicts, since FETA cannot read the estimator: {reason}"
