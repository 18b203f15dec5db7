"""The fair predictor: a person's counterparts vote, so it is individually fair by construction.

Its decision is a pure function of the model and the columns that are not sensitive (S4). It never
reads the sensitive columns, so no decision can depend on them.
"""

import warnings
from copy import copy
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Literal, Self

import numpy as np

from feta.arrays import Answers, Counts, Matrix, Vector
from feta.engine.aggregate import aggregate
from feta.engine.counterparts import assignments
from feta.engine.protocol import UNLIMITED, Budget
from feta.engine.registry import choose
from feta.errors import DomainError, EngineError, SchemaError, Undecided
from feta.io.model_file import load_votes
from feta.model import Model
from feta.predict.fit_votes import fit_votes
from feta.progress import Advance
from feta.query import CountOf, MeanOf
from feta.rule.comparator import UNDECIDED
from feta.scorer.protocol import doubt_at
from feta.space.vote_weights import VoteWeights
from feta.verdict.aggregate import Aggregate
from feta.verdict.means import Means
from feta.verdict.spread import Spread
from feta.verdict.tally import Tally
from feta.verdict.verdict import DOUBT_REASONS, Reason
from feta.vote.graded_ballot import GradedBallot
from feta.vote.mean_decision import MeanDecision, VoteName, majority_of_listed, mean_decision
from feta.vote.settings import (
    EMPIRICAL,
    KEEP,
    LEAST,
    MEAN_PROBABILITY,
    LevelName,
    VoteSettings,
    WeightsName,
)
from feta.vote.stored_votes import StoredVotes
from feta.wider_limits import groups, refusal, widest

# A model, and the rows of the people that it decides.
Part = tuple[Model, Counts]


@dataclass(frozen=True, slots=True)
class FairPredictor:
    """A predictor that lets the counterparts vote; without further arguments, as in the paper.

    `FairPredictor(model)` is the paper's equal majority: every counterpart has one vote, the
    decision is the one that most get, and an exact tie is favorable. Several classes: the class
    that most counterparts get, the first on a tie. Regression: the lower median of their scores.
    It changes how many people are approved; `fitted`, which chooses weights and level from other
    people, is recommended instead.

    With `weights`, each counterpart has its number of votes. `vote="mean_score"` and
    `vote="mean_probability"` decide by the mean over the counterparts: favorable if it reaches the
    level, and without one, the model's own threshold. Several classes: the class with the largest
    mean, the first on a tie. Regression: `vote="mean_score"` returns the mean itself, rounded
    once.
    """

    model: Model
    engine: str = "auto"
    budget: Budget = UNLIMITED
    weights: VoteWeights | None = None
    vote: VoteName = field(default="majority", kw_only=True)
    level: float | None = field(default=None, kw_only=True)  # the cut-off on a mean
    ballot: GradedBallot | None = field(default=None, kw_only=True)  # of a mean probability
    fitted_on: str = field(default="", kw_only=True)  # a sha256 of the people fitted to
    _mean: MeanDecision | None = field(default=None, init=False, repr=False)
    _listed: MeanDecision | None = field(default=None, init=False, repr=False)  # a majority

    def __post_init__(self) -> None:
        if not self.model.relation.has_key:
            raise SchemaError(
                f"no fair decision exists: got the relation {type(self.model.relation).__name__}: "
                f"{' '.join(self.model.relation.sentences).rstrip('.')}; expected a relation with "
                "a key, in which counterparts of counterparts are counterparts, such as the "
                "default one or constraints"
            )
        _check_fitted(self.weights, self.level)
        if self.weights is not None:
            self.weights.check(self.model.space)
        mean = mean_decision(self.model, self.vote, self.level, self.ballot)
        object.__setattr__(self, "_mean", mean)
        if mean is None:
            object.__setattr__(self, "_listed", majority_of_listed(self.model, self.weights))

    @classmethod
    def fitted(
        cls,
        model: Model,
        people: Matrix,
        vote: VoteName = MEAN_PROBABILITY,
        weights: VoteWeights | WeightsName | None = EMPIRICAL,
        level: float | LevelName | None = KEEP,
        *,
        engine: str = "auto",
        least: int = LEAST,
    ) -> Self:
        """Return a predictor whose weights and level are fitted to people, once.

        Defaults adapt to the model, with a warning: scores without probabilities take the mean
        score, labels the weighted majority, and several classes no level. What is asked for
        explicitly and does not fit is refused.

        Parameters
        ----------
        model
            The model that scores the counterparts.
        people
            Encoded people with their sensitive columns, other than those to be decided; their
            order has no influence. They may be outside the limits of columns that are not
            sensitive (`space.encode(table, limits="open")`). A warning counts those whom the
            model cannot decide there; the votes are fitted to the others.
        vote
            What counterparts contribute; "majority" has no level.
        weights
            "empirical": each assignment has one vote per person who has it. "equal" or None: one
            vote each.
        level
            "keep": the level at which the share of favorable decisions is nearest to the model's
            own. "threshold" or None: the model's threshold.
        engine
            The engine that decides.
        least
            The fewest people of a stored assignment; those of rarer ones count as the nearest
            stored one. 1 stores exact weights, which may reveal single people.
        """
        settings = VoteSettings(vote, weights, level, least).adapted(model)
        fitted = fit_votes(model, np.asarray(people, dtype=np.float64), settings)
        for text in (*settings.notices, *fitted.notices):
            warnings.warn(text, stacklevel=2)
        return cls.voting(model, fitted.votes, engine)

    @classmethod
    def load(cls, path: str | Path, engine: str = "auto") -> Self:
        """Return the predictor of a `.feta` file that `save_model` wrote, with its votes."""
        return cls.voting(*load_votes(path), engine)

    @classmethod
    def voting(
        cls, model: Model, votes: StoredVotes, engine: str = "auto", budget: Budget = UNLIMITED
    ) -> Self:
        """Return the predictor of a model with stored votes."""
        return cls(
            model,
            engine,
            budget,
            votes.weights,
            vote=votes.vote,
            level=votes.level,
            ballot=votes.ballot,
            fitted_on=votes.fitted_on,
        )

    @property
    def stored_votes(self) -> StoredVotes:
        """Everything of the vote that a file stores."""
        return StoredVotes(self.vote, self.level, self.weights, self.ballot, self.fitted_on)

    def decide(self, people: Matrix) -> Answers:
        """Decide each person; raise `Undecided` if some cannot be decided, never guess.

        Parameters
        ----------
        people
            Rows encoded by `space.encode(table, sensitive=predictor.sensitive)`: without the
            sensitive columns, unless the relation (`Consequences`) needs them.

        Returns
        -------
        array
            True for favorable; several classes: the class indices; regression: the scores.
        """
        answers = self._decide_compiled(people)
        if answers is not None:
            return answers
        parts = groups(self.model, self._checked(people))
        if any(model is not self.model for model, _ in parts):
            return self._decide_parts(np.asarray(people, dtype=np.float64), parts)
        aggregate = self._aggregate(people)
        undecided = np.flatnonzero(~aggregate.decided)
        if undecided.size:
            reason = self._reason(np.asarray(people, dtype=np.float64)[undecided[0]])
            raise Undecided(tuple(undecided.tolist()), reason)
        return aggregate.outcomes

    def _decide_parts(self, people: Matrix, parts: list[Part]) -> Answers:
        """Decide people inside and outside the limits separately."""
        answers: dict[int, object] = {}
        undecided: list[int] = []
        reason = ""
        for model, rows in parts:
            try:
                decided = self._over(model).decide(people[rows])
                answers.update(zip(rows.tolist(), decided, strict=True))
            except Undecided as error:
                undecided += rows[list(error.rows)].tolist()
                reason = reason or error.reason
        if undecided:
            raise Undecided(tuple(sorted(undecided)), reason)
        return np.array([answers[row] for row in range(len(people))])

    def _over(self, model: Model) -> "FairPredictor":
        """Return the same predictor for a model with wider limits.

        The weights are not checked against that model's space: they belong to the declared one,
        and the counterparts are the same.
        """
        predictor = copy(self)
        object.__setattr__(predictor, "model", model)
        return predictor

    def admit(self, people: Matrix) -> None:
        """Raise `OutsideLimits` unless everybody outside the limits can be decided.

        The rows must be readable, as `space.encode(..., limits="open")` returns them.
        """
        for model, rows in groups(self.model, people):
            if model is self.model:
                continue
            try:
                choose(self._query(model), self.engine)
            except EngineError as error:
                row = int(rows[0])
                column = widest(self.model, people, row)
                raise refusal(self.model, people, row, column=column, reason=str(error)) from None

    def _query(self, model: Model) -> CountOf | MeanOf:
        """Return what is asked about people: counts, or means."""
        return CountOf(model) if self._mean is None else MeanOf(model)

    def _decide_compiled(self, people: Matrix) -> Answers | None:
        """Decide in compiled code alone, the fastest way; return None if it does not apply."""
        if self.budget is not UNLIMITED:
            return None
        if type(people) is not np.ndarray or people.dtype != np.float64:
            return None
        if self.model.relation.reads_sensitive:  # compiled code does not check these columns
            return None
        mean = self._mean or self._listed
        if mean is not None:
            return self._decide_means(people, mean)
        if self.weights is not None:
            return None
        engine = choose(CountOf(self.model), self.engine)
        return engine.majority(self.model, people)

    def _decide_means(self, people: Matrix, mean: MeanDecision) -> Answers | None:
        """Decide by means in compiled code, and exactly where that leaves people undecided."""
        engine = choose(self._query(self.model), self.engine)
        decisions = engine.mean_decisions(self.model, people, mean, weights=self.weights)
        if decisions is None:
            return None
        favorable = decisions == 1
        rest = np.flatnonzero(decisions == UNDECIDED)
        if rest.size:
            exact = self._aggregate(people[rest])
            if not exact.decided.all():
                return None
            favorable[rest] = exact.outcomes
        return np.asarray(favorable)

    def _reason(self, person: Vector) -> str:
        """Return why a person remains undecided under this budget."""
        relation = self.model.relation
        if not relation.complete and not relation.count(person):
            return Reason.NO_COUNTERPART
        if (
            not relation.complete
            and not assignments(self.model, person[None, :], self.weights).size
        ):
            return Reason.NO_VOTES
        doubt = doubt_at(self.model.restricted, person)
        if doubt is not None:
            return f"{DOUBT_REASONS[doubt.kind]}; {doubt.message}"
        if self.budget == UNLIMITED:  # a solver misses witnesses; intervals contain ties
            solvable = self.model.restricted.bounds_cells
            return Reason.NOT_WITNESSED if solvable else Reason.NOT_SEPARABLE
        return Reason.OUT_OF_TIME if self.budget.seconds is not None else Reason.OUT_OF_NODES

    def votes(self, people: Matrix) -> Tally:
        """Count until each majority is certain; `decided` is False for rows out of time."""
        if self._mean is not None:
            raise EngineError(
                f"votes are for a majority: got the vote {self.vote!r}; expected 'majority'; use "
                "means"
            )
        if self.model.rule.tolerance is not None:
            raise EngineError(
                "votes are for decisions: got a regression model; expected a threshold or classes; "
                "use medians"
            )
        tally = self._aggregate(people)
        assert isinstance(tally, Tally)
        return tally

    def medians(self, people: Matrix) -> Spread:
        """Find the median score of each person's counterparts; regression only."""
        if self._mean is not None:
            raise EngineError(
                f"medians are for a regression without a mean: got the vote {self.vote!r}; "
                "expected 'majority'; use means"
            )
        if self.model.rule.tolerance is None:
            raise EngineError(
                "medians are for regression: got a model with decisions; expected a Tolerance; "
                "use votes"
            )
        spread = self._aggregate(people)
        assert isinstance(spread, Spread)
        return spread

    def means(self, people: Matrix) -> Means:
        """Decide by the mean of each person's counterparts; a vote by means only."""
        if self._mean is None:
            raise EngineError(
                f"means are for a vote by means: got the vote {self.vote!r}; expected "
                "'mean_score' or 'mean_probability'; use votes or medians"
            )
        means = self._aggregate(people)
        assert isinstance(means, Means)
        return means

    def distil(
        self,
        people: Matrix,
        *,
        hidden: tuple[int, ...] = (32, 32),
        epochs: int | None = None,
        seed: int = 0,
        progress: Advance | None = None,
    ) -> Model:
        """Train one network that imitates these decisions; its sensitive slopes are exactly 0.

        It needs one forward pass per person and no counterparts. `feta.train.distil.distil` has
        more options, and returns how often the network agrees with this predictor.

        Parameters
        ----------
        people
            Encoded people, a fifth of whom are held out; sensitive columns are not read.
        hidden
            The widths of the hidden layers.
        epochs
            The most epochs; None chooses them by the number of people.
        seed
            Equal seeds and people give the same network on the same kind of processor.
        progress
            Called with the share of the training that is done.
        """
        from feta.train.distil import distil  # noqa: PLC0415 - a layer above; needs torch

        result = distil(self, people, hidden=hidden, epochs=epochs, seed=seed, progress=progress)
        return result.model

    def _aggregate(self, people: Matrix) -> Aggregate:
        """Ask about each key once; people outside the limits are asked over wider limits."""
        first, inverse = self._distinct(people)
        parts = groups(self.model, first)
        aggregates = [
            aggregate(
                model,
                first[rows],
                self._share(len(rows), len(first)),
                engine=self.engine,
                weights=self.weights,
                mean=self._mean,
            )
            for model, rows in parts
        ]
        joined = aggregates[0]
        for more in aggregates[1:]:
            joined = joined.followed_by(more)
        return joined.rows(_indices_in_parts(parts)[inverse])

    def _share(self, n_people: int, n_all: int) -> Budget:
        """Return the budget with the time in proportion to the number of people."""
        seconds = self.budget.seconds
        if seconds is None or n_people == n_all:
            return self.budget
        return replace(self.budget, seconds=seconds * n_people / n_all)

    def _distinct(self, people: Matrix) -> tuple[Matrix, Counts]:
        """Deduplicate people with the same key: they have the same counterparts."""
        people = self._checked(people)
        seen: dict[bytes, int] = {}
        indices = [seen.setdefault(key, len(seen)) for key in self.model.relation.keys(people)]
        inverse = np.array(indices, dtype=np.int64)
        first = np.unique(inverse, return_index=True)[1]  # numbered in order of appearance
        return people[first], inverse

    def _checked(self, people: Matrix) -> Matrix:
        """Return valid rows of the space; shared columns may be outside their limits."""
        rows: object = people
        if not isinstance(rows, np.ndarray | list):
            raise DomainError(
                f"people are not encoded: got {type(people).__name__}; expected an array of rows; "
                "use space.encode(table, sensitive='ignore')"
            )
        people = np.asarray(people, dtype=np.float64)
        self.model.space.check(people, sensitive=self.sensitive, limits="open")
        return people

    @property
    def sensitive(self) -> Literal["check", "ignore"]:
        """How people are encoded: "check" if the relation recovers noise from sensitive columns."""
        return "check" if self.model.relation.reads_sensitive else "ignore"


def _check_fitted(weights: object, level: object) -> None:
    """Raise for settings that only people can turn into numbers."""
    if weights is not None and not isinstance(weights, VoteWeights):
        raise SchemaError(
            f"weights without people: got weights={weights!r}; expected VoteWeights, or None for "
            "one vote each; use FairPredictor.fitted(model, people)"
        )
    if isinstance(level, str):
        raise SchemaError(
            f"a level without people: got level={level!r}; expected a number, or None for the "
            "model's threshold; use FairPredictor.fitted(model, people)"
        )


def _indices_in_parts(parts: list[Part]) -> Counts:
    """Return the index of each person in the concatenation of all parts."""
    return np.argsort(np.concatenate([rows for _, rows in parts]))
