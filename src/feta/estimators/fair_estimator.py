# ruff: noqa: N803 - X is scikit-learn's own name for the table
"""The common part of all fair estimators.

Only `fit` and `explain` read the sensitive columns; `predict` does not.
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
from feta.arrays import Counts, Matrix, Vector
from feta.errors import EngineError, FetaError, NetworkError, SchemaError
from feta.estimators.ballot import Ballot
from feta.estimators.layout import People, is_records, named
from feta.estimators.trained import conditional_guarantee, inner, trained_columns
from feta.io.raw_table import RawTable, with_markers
from feta.io.schema import Schema
from feta.model import Model
from feta.predict.fair_predictor import FairPredictor
from feta.predict.fit_votes import fitted_weights
from feta.readers.callable.runtime import counted_runtime
from feta.readers.read_model import read_exactly
from feta.readers.runtime import replays, runtime_of
from feta.readers.sklearn.column_names import check_columns
from feta.readers.sklearn.pipeline import encoder_markers
from feta.readers.sklearn.read import obstacle_inside_wrapper
from feta.scorer.counted.options import CountingOptions
from feta.space.feature_space import FeatureSpace
from feta.space.lattice import BLOCK
from feta.space.vote_weights import VoteWeights
from feta.verdict.verdict import Unfair
from feta.vote.settings import LEAST, WEIGHTS, VoteSettings, WeightsName
from feta.vote.stored_votes import StoredVotes
from feta.wider_limits import models_for

if TYPE_CHECKING:
    from feta.scorer.protocol import Scorer
    from feta.space.limits import Decided
    from feta.verdict.verdict import Verdict

# Appended to the guarantee for a pipeline with steps of unknown code.
SAMPLED = (
    "; its preprocessing was sampled, not proved, so verdicts about the estimator hold as far as "
    "the samples show"
)

# Maximum rows of the table on which a trained estimator is evaluated twice.
COMPARED_ROWS = 10_000

# The same batches in every process. There is no time limit: the estimator was fitted here.
COUNTING = CountingOptions(batch=BLOCK, timeout=None)

# Classes or numbers.
Targets = NDArray[Any]


class FairEstimator(BaseEstimator, ABC):  # type: ignore[misc]  # scikit-learn ships no types
    """An estimator that fits another one, reads it if FETA can, and encodes people.

    Subclasses define the accepted estimators, and how the counterparts' answers are combined.
    """

    kind: ClassVar[str]  # the kind of estimator
    example: ClassVar[str]  # an estimator of this kind, as code
    promise: ClassVar[str]  # the guarantee if FETA can read the estimator
    takes_rows: ClassVar[tuple[type, ...]]  # these get encoded rows, others the raw table

    _ballot: Ballot  # counts votes if FETA cannot read the estimator
    _obstacle: str  # why FETA cannot read the estimator
    _counted: Model | None  # evaluates such an estimator; None until a verdict is asked for

    def __init__(
        self,
        estimator: BaseEstimator | None = None,
        space: FeatureSpace | Schema | None = None,
        *,
        sensitive: Collection[str] | None = None,
        engine: str = "auto",
        weights: VoteWeights | WeightsName | None = None,
    ) -> None:
        self.estimator = estimator
        self.space = space
        self.sensitive = sensitive
        self.engine = engine
        self.weights = weights

    def fit(self, X: pd.DataFrame | ArrayLike, y: ArrayLike | None = None) -> Self:
        """Fit the estimator, and read it if FETA can.

        Parameters
        ----------
        X
            The people, with their sensitive columns: a frame, or an array of numbers. They may be
            outside the limits of columns that are neither sensitive nor strict. Votes by means
            are fitted to those of them whom the model can decide; a warning counts the others.
        y
            The target of each person: a class, or for regression a number.

        Raises
        ------
        SchemaError
            If estimator, space, weights or y are invalid.
        DomainError
            If a person is outside the space.
        """
        if self.estimator is None:
            raise SchemaError(
                f"invalid estimator: got None; expected a {self.kind}; for example "
                f"{type(self).__name__}({self.example}, space)"
            )
        self._check_kind(inner(self.estimator))
        frame = self._learn_columns(X)
        frozen = isinstance(self.estimator, FrozenEstimator)
        targets = None if frozen else self._targets(y, len(frame))
        takes_rows = isinstance(inner(self.estimator), self.takes_rows)
        # A pipeline gets empty cells unchanged, and may handle them.
        self._learn_space(frame, missing_cells=not takes_rows)
        people = self.space_.encode(frame, limits="open")
        as_frame = isinstance(X, pd.DataFrame)
        names_matter = as_frame and not takes_rows
        trained = trained_columns(self.estimator, self.space_) if names_matter else None
        table = RawTable.like(self.space_, frame, as_frame=as_frame, names=trained)
        if frozen:  # its encoders may know a None that this frame lacks
            known = encoder_markers(inner(self.estimator))
            table = replace(table, formats=with_markers(table.formats, known))
        if frozen and not takes_rows:
            self._check_table(frame, people, table)
        self._learn(people, table, targets)
        return self

    def _check_table(self, frame: pd.DataFrame, people: Matrix, table: RawTable) -> None:
        """Raise if the trained estimator decides the frame differently after encoding it."""
        if not set(table.names) <= set(frame.columns):  # the estimator drops columns
            return
        rows = list(range(0, len(frame), max(1, len(frame) // COMPARED_ROWS)))
        original = frame.iloc[rows][list(table.names)]
        trained = inner(self.estimator)
        expected = np.asarray(trained.predict(original if table.as_frame else original.to_numpy()))
        answers = np.asarray(trained.predict(table(people[rows])))
        if not np.array_equal(expected, answers):
            row = rows[int(np.argmax(expected.ravel() != answers.ravel()))]
            raise SchemaError(
                f"the space does not fit the table: got a different decision for row {row} after "
                "it was encoded and decoded by the space; expected the same; compare the types of "
                "the columns and the values of the space with the table on which the estimator was "
                "trained"
            )

    def predict(self, X: People) -> Targets:
        """Return the fair answer for each person, which their counterparts get as well.

        `vote` states how the answers of their counterparts are combined.

        Parameters
        ----------
        X
            The people: a frame, an array, a dict or a list of dicts. The sensitive columns are
            not read: they may contain anything, and may be missing in a frame or dict.
        """
        check_is_fitted(self, "model_")
        people = self._people(X)
        if self._voter is not None:
            return self._answers(self._predictor(self._voter).decide(people))
        first, inverse = self._distinct(people)
        return self._answers(self._combine(first))[inverse]

    def explain(self, X: People) -> list["Verdict"]:
        """Return whether the estimator itself is fair to each person, with the evidence.

        Parameters
        ----------
        X
            The people, with their sensitive columns.

        Returns
        -------
        list
            One verdict per person: `Fair`, or `Unfair` with the worst counterexample. `replayed`
            is whether the two differ in the estimator itself. If FETA cannot read the estimator,
            it evaluates every counterpart, repeatedly: the verdicts are counted, not proved.

        Raises
        ------
        EngineError
            If FETA can neither read the estimator nor count its answers.
        """
        check_is_fitted(self, "model_")
        model = self.model_ or self._count()
        engine = "auto" if self.model_ is None else self.engine
        people = self.space_.encode(self._frame(X), limits="open")
        verdicts = [
            worst(wider, people[row], engine=engine)
            for row, wider in enumerate(models_for(model, people))
        ]
        return self._with_replay(model, verdicts)

    def _count(self) -> Model:
        """Return a model that evaluates the estimator; it is made once, on request."""
        if self._counted is None:
            try:
                self._counted = self._counted_model(inner(self.estimator_), self._ballot.table)
            except FetaError as error:
                raise EngineError(
                    "explain needs an estimator that FETA can read or evaluate: "
                    f"{self._obstacle}; it cannot be evaluated: {error}"
                ) from None
        return self._counted

    def _with_replay(self, model: Model, verdicts: list["Verdict"]) -> list["Verdict"]:
        """Replay every pair in the estimator itself."""
        pairs = [verdict.counterexample for verdict in verdicts if isinstance(verdict, Unfair)]
        if not pairs:
            return verdicts
        replay = (
            counted_runtime(model)
            if self.model_ is None
            else runtime_of(inner(self.estimator_), model, table=self._ballot.table)
        )
        same = iter(replays(replay, model, pairs))
        return [
            replace(verdict, replayed=next(same)) if isinstance(verdict, Unfair) else verdict
            for verdict in verdicts
        ]

    def _targets(self, y: ArrayLike | None, n_people: int) -> Targets:
        """Return the checked targets, one per person."""
        if y is None:
            raise SchemaError("fit requires y to be passed, but the target y is None")
        cells = check_array(y, ensure_2d=False, dtype=None, input_name="y")
        targets = column_or_1d(cells, warn=True)
        check_consistent_length(np.empty(n_people), targets)
        return np.asarray(targets)

    def _check_kind(self, estimator: object) -> None:
        """Raise if an estimator is of the wrong kind, before it is fitted."""

    def _check_fitted(self) -> None:
        """Raise if the fitted estimator is of the wrong kind; store its attributes."""

    def _check_votes(self) -> None:
        """Raise if votes counted with `predict` would contradict the schema."""

    @abstractmethod
    def _combine(self, people: Matrix) -> Vector | Counts:
        """Combine the answers of the estimator's own `predict` for each person's counterparts."""
        ...

    def _answers(self, decisions: Vector | Counts) -> Targets:
        """Return decisions in the terms of the targets."""
        return decisions

    @abstractmethod
    def _model(self, scorer: "Scorer") -> Model:
        """Return the model of space, scorer and rule."""
        ...

    @abstractmethod
    def _counted_model(self, estimator: object, table: RawTable | None) -> Model:
        """Return a model that evaluates the estimator; raise if its answers cannot be counted."""
        ...

    @property
    def _schema(self) -> Schema | None:
        """The schema that was passed, over the chosen space; None if there is none."""
        if not isinstance(self.space, Schema):
            return None
        if self.space.scaled:
            raise SchemaError(
                "invalid schema: got one with center or scale; expected none, because "
                f"{type(self).__name__} passes columns in raw units to the estimator; scale in a "
                "pipeline, or use feta.FairPredictor(schema.model(network))"
            )
        return Schema(replace(self.space.file, space=self.space_))

    def _learn_columns(self, X: pd.DataFrame | ArrayLike) -> pd.DataFrame:
        """Return the table passed to `fit` as a frame, and store the names of its columns."""
        if isinstance(X, pd.DataFrame):
            validate_data(self, X, skip_check_array=True)
            frame = named(X)
        else:
            array = validate_data(self, X)
            frame = pd.DataFrame(array, columns=[f"x{n}" for n in range(array.shape[1])])
        self.columns_ = tuple(frame.columns)
        return frame

    def _learn_space(self, frame: pd.DataFrame, *, missing_cells: bool = False) -> None:
        """Store the space and the number of counterparts; check the weights of their votes."""
        self.space_ = self._choose_space(frame, missing_cells=missing_cells)
        self.n_counterparts_ = self.space_.lattice.size  # raises if they are uncountable
        self._check_weights()

    def _choose_space(self, frame: pd.DataFrame, *, missing_cells: bool) -> FeatureSpace:
        if isinstance(self.sensitive, str):
            raise SchemaError(
                f"invalid sensitive: got {self.sensitive!r}; expected a list of column names; "
                f"write [{self.sensitive!r}]"
            )
        if self.space is None and self.sensitive is None:
            raise SchemaError(
                "no sensitive columns: got neither a space nor their names; expected one of them; "
                "pass sensitive=[...]"
            )
        if self.space is None:
            assert self.sensitive is not None
            return FeatureSpace.from_frame(frame, sensitive=self.sensitive, missing=missing_cells)
        space: object = self.space.space if isinstance(self.space, Schema) else self.space
        if not isinstance(space, FeatureSpace):
            raise SchemaError(
                f"invalid space: got {type(space).__name__}; expected a FeatureSpace or a Schema"
            )
        return space if self.sensitive is None else space.with_sensitive(self.sensitive)

    def _check_weights(self) -> None:
        if self.weights is None or (isinstance(self.weights, str) and self.weights in WEIGHTS):
            return
        if not isinstance(self.weights, VoteWeights):
            raise SchemaError(
                f"invalid weights: got {type(self.weights).__name__}; expected VoteWeights; use "
                "feta.VoteWeights.of(space, votes)"
            )
        self.weights.check(self.space_)

    @property
    def _voter(self) -> Model | None:
        """The model whose counterparts vote; None if votes are counted with `predict`."""
        return self.model_

    def _predictor(self, model: Model) -> FairPredictor:
        engine = self.engine if model is self.model_ else "auto"  # another one is evaluated
        return FairPredictor.voting(model, self.votes_, engine)

    def _fit_votes(self, people: Matrix) -> StoredVotes:
        """Return the votes; empirical weights are those of the people passed to `fit`."""
        settings = VoteSettings("majority", self.weights, None, getattr(self, "least", LEAST))
        return StoredVotes(weights=fitted_weights(self.space_, people, settings))

    def _learn(self, people: Matrix, raw: RawTable, targets: Targets | None) -> None:
        bare = inner(self.estimator)
        takes_rows = isinstance(bare, self.takes_rows)
        table = people if takes_rows else raw(people)
        self.estimator_ = clone(self.estimator).fit(table, targets)
        if takes_rows:  # a frozen estimator may be trained on others
            check_columns(self.space_, inner(self.estimator_))
        self._check_fitted()
        self._counted = None
        self._ballot = Ballot(self.space_, self.estimator_, None if takes_rows else raw)
        try:
            read = inner(self.estimator_)
            raw_table = None if takes_rows else raw
            with warnings.catch_warnings():  # the space was chosen for this table
                warnings.simplefilter("ignore", UnseenValueWarning)
                inside = self._inside(people)
                scorer = read_exactly(read, self.space_, people=inside, table=raw_table)
            self.model_: Model | None = self._model(scorer)
            self.guarantee_ = self.promise + (SAMPLED if scorer.provenance == "sampled" else "")
        except NetworkError as error:
            self.model_ = None
            self._obstacle = obstacle_inside_wrapper(error)
            self._check_votes()
            self.guarantee_ = conditional_guarantee(self._obstacle, bare)
            warnings.warn(f"the weaker guarantee holds: {self.guarantee_}", stacklevel=3)
        self.votes_: StoredVotes = self._fit_votes(people)
        self._ballot = replace(self._ballot, weights=self.votes_.weights)

    def _inside(self, people: Matrix) -> Matrix:
        """Return the people inside all limits, where the reading can be compared."""
        flags = np.ones(len(people), dtype=bool)
        for _, outside in self.space_.open_limits.outside(people):
            flags &= ~outside
        return people[flags]

    def _frame(self, X: People) -> pd.DataFrame:
        """Return people as a frame with all its columns."""
        if isinstance(X, pd.DataFrame):
            return named(X)
        if is_records(X):
            return pd.DataFrame([X] if isinstance(X, Mapping) else X)
        return pd.DataFrame(validate_data(self, X, reset=False), columns=self.columns_)

    def _people(self, X: People) -> Matrix:
        """Encode people without their sensitive columns; warn about those outside limits."""
        people = self._encoded(X)
        how: Decided = "counted" if self.model_ is None else self.model_.scorer.provenance
        outside = self.space_.open_limits.outside(people)
        notices = [limit.words(int(flags.sum()), how) for limit, flags in outside]
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
        if not shared:  # a frame without columns would lose its rows
            return np.full((len(frame), space.width), np.nan)
        return space.encode(frame, sensitive="ignore", limits="open")

    def _distinct(self, people: Matrix) -> tuple[Matrix, Counts]:
        """Deduplicate people who agree on all shared columns: they have the same counterparts."""
        shared = people[:, ~self.space_.sensitive_columns] + 0.0
        _, first, inverse = np.unique(shared, axis=0, return_index=True, return_inverse=True)
        return people[first], inverse.ravel()
