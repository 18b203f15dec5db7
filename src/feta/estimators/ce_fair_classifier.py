# ruff: noqa: N803 - X is scikit-learn's own name for the table
"""CEFairClassifier: a network trained on its counterexamples, as a scikit-learn classifier."""

from collections.abc import Collection
from typing import Literal, Self

import numpy as np
import pandas as pd
from numpy.typing import ArrayLike
from sklearn.utils.validation import check_is_fitted

from feta.arrays import Matrix
from feta.errors import SchemaError
from feta.estimators.fair_estimator import Targets
from feta.estimators.layout import People
from feta.estimators.majority_classifier import MajorityClassifier
from feta.io.schema import Schema
from feta.model import Model
from feta.rule import Argmax, Rule, Threshold
from feta.space.feature_space import FeatureSpace
from feta.space.vote_weights import VoteWeights
from feta.train.ce_fair import CEFairTrainer
from feta.train.plain import PlainTrainer
from feta.train.split import Split
from feta.train.task import Task
from feta.verdict.verdict import Verdict

NOT_ENFORCED = "decisions of the network itself: trained to be fair, but without a guarantee"


class CEFairClassifier(MajorityClassifier):
    """A network that is trained, and then trained on everybody's worst counterexample.

    Parameters
    ----------
    space
        The people that can exist. None infers it in `fit` from X.
    sensitive
        Names of the sensitive columns; None keeps those that the space declares.
    enforce
        Give each person the decision that most of their counterparts get: then no decision can
        depend on the sensitive columns, which `predict` does not read. False returns the
        decisions of the network itself.
    hidden
        The widths of the hidden layers, with ReLU in between.
    plain_epochs, learning_rates
        The first training: its epochs, and the learning rates tried; the best epoch is taken.
    epochs, sample_fraction, keep, span_penalty, learning_rate, batch_size
        The second training, as in `CEFairTrainer`; 0 epochs skip it.
    weights
        The votes of each counterpart, if decisions are enforced; None gives everyone one vote.
    engine
        The engine that counts the counterparts.
    random_state
        The seed: equal seeds and data give the same network on the same kind of processor.

    Attributes
    ----------
    model_, network_
        The trained model and its network, in raw units.
    run_
        The second training's curve: a `TrainingRun`, or None.
    classes_, space_, columns_, n_counterparts_, guarantee_, n_features_in_, feature_names_in_
        As in `FairClassifier`.

    Examples
    --------
    >>> import feta
    >>> age = feta.Integer("age", 18, 90, sensitive=True)
    >>> space = feta.FeatureSpace((age, feta.Real("income", 0, 99)))
    >>> X = pd.DataFrame({"age": [20, 60, 25, 70] * 5, "income": [10, 20, 70, 80] * 5})
    >>> fair = CEFairClassifier(space, hidden=(4,), plain_epochs=40, epochs=2, batch_size=4)
    >>> fair.fit(X, ["no", "no", "yes", "yes"] * 5).predict(X.drop(columns=["age"])[:4])
    array(['no', 'no', 'yes', 'yes'], dtype='<U3')
    """

    def __init__(
        self,
        space: FeatureSpace | None = None,
        *,
        sensitive: Collection[str] | None = None,
        enforce: bool = True,
        hidden: tuple[int, ...] = (16, 16, 16),
        plain_epochs: int = 100,
        learning_rates: tuple[float, ...] = (1e-2, 1e-3),
        epochs: int = 50,
        sample_fraction: float = 1.0,
        keep: Literal["all", "counterexamples"] | float = "all",
        span_penalty: float | None = None,
        learning_rate: float | None = None,
        batch_size: int = 128,
        weights: VoteWeights | None = None,
        engine: str = "auto",
        random_state: int = 0,
    ) -> None:
        self.space = space
        self.sensitive = sensitive
        self.enforce = enforce
        self.hidden = hidden
        self.plain_epochs = plain_epochs
        self.learning_rates = learning_rates
        self.epochs = epochs
        self.sample_fraction = sample_fraction
        self.keep = keep
        self.span_penalty = span_penalty
        self.learning_rate = learning_rate
        self.batch_size = batch_size
        self.weights = weights
        self.engine = engine
        self.random_state = random_state

    def fit(self, X: pd.DataFrame | ArrayLike, y: ArrayLike | None = None) -> Self:
        """Train a network, then train it on its counterexamples.

        Parameters
        ----------
        X
            The people, with their sensitive columns: a frame, or an array of numbers.
        y
            Each person's class.
        """
        frame = self._learn_columns(X)
        labels = self._targets(y, len(frame))
        if isinstance(self.space, Schema):
            raise SchemaError(
                "invalid space: got a Schema; expected a FeatureSpace, because CEFairClassifier "
                "learns its own decision at a probability of one half; pass schema.space, or use "
                "feta train"
            )
        self._learn_space(frame)
        self.classes_, targets = np.unique(labels, return_inverse=True)
        self._check_rule()
        self._train(self.space_.encode(frame), targets)
        return self

    def _train(self, people: Matrix, targets: Targets) -> None:
        if not isinstance(self.random_state, int | np.integer):
            raise SchemaError(
                f"invalid random_state: got {self.random_state!r}; expected an integer"
            )
        seed, names = int(self.random_state), tuple(str(label) for label in self.classes_)
        rule: Rule = Threshold(0.0) if len(names) == 2 else Argmax(names)  # noqa: PLR2004 - one score
        plain = PlainTrainer(
            self.space_,
            hidden=tuple(self.hidden),
            rule=rule,
            learning_rates=tuple(self.learning_rates),
            batch_sizes=(self.batch_size,),
            epochs=self.plain_epochs,
            seed=seed,
        )
        split = Split.of(self.space_, Task(rule), people, targets, validation=None, seed=seed)
        network, self.run_ = plain.train_folds([split])[0].network, None
        if self.epochs:
            fair = CEFairTrainer(
                self.space_,
                sample_fraction=self.sample_fraction,
                keep=self.keep,
                span_penalty=self.span_penalty,
                learning_rate=self.learning_rate,
                batch_size=self.batch_size,
                epochs=self.epochs,
                rule=rule,
                seed=seed,
            )
            validation = (split.held, split.held_targets)
            self.run_ = fair.train(network, split.people, split.targets, validation=validation)
            network = self.run_.network
        self.network_, self.model_ = network, self._model(network)
        self.votes_ = self._fit_votes(people)
        self.guarantee_ = self.promise if self.enforce else NOT_ENFORCED

    def predict(self, X: People) -> Targets:
        """Decide each person.

        Parameters
        ----------
        X
            The people; if decisions are enforced, the sensitive columns are not read.
        """
        check_is_fitted(self, "model_")
        if self.enforce:
            return super().predict(X)
        people = self.space_.encode(self._frame(X))
        assert self.model_ is not None  # set by _train
        return np.asarray(self.classes_[self.model_.decide(people).astype(np.int64)])

    def predict_proba(self, X: People) -> Matrix:
        """Return the share of votes of each class, or the probabilities of the network.

        Parameters
        ----------
        X
            The people, as for `predict`.
        """
        check_is_fitted(self, "model_")
        if self.enforce:
            return super().predict_proba(X)
        scores = self.network_(self.space_.encode(self._frame(X)))
        if scores.shape[1] == 1:
            scores = np.hstack([np.zeros_like(scores), scores])
        powers = np.exp(scores - scores.max(axis=1, keepdims=True))
        return np.asarray(powers / powers.sum(axis=1, keepdims=True))

    def _with_replay(self, model: Model, verdicts: list[Verdict]) -> list[Verdict]:
        """Return the verdicts as they are: the trained network has no other runtime."""
        del model
        return verdicts
