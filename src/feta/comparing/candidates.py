"""The candidates of a comparison: they are fitted one after the other, on request."""

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import partial
from math import ceil
from typing import TYPE_CHECKING

import numpy as np

from feta.arrays import Flags, Matrix
from feta.comparing.blind_copy import Estimated, fit_blind
from feta.comparing.candidate import (
    Candidate,
    CountedModel,
    of_function,
    of_majority,
    of_model,
    of_votes,
)
from feta.metrics.favorable_score import sigmoid
from feta.model import Model
from feta.predict.fair_predictor import FairPredictor
from feta.progress import Advance
from feta.rule import Threshold
from feta.scorer.protocol import has_scores
from feta.train.ce_fair import CEFairTrainer
from feta.train.plain import PlainTrainer
from feta.vote.mean_decision import VoteName
from feta.vote.probability import PROBABILITY_LINKS

if TYPE_CHECKING:
    from feta.scorer.network.network import Network

# With more counterparts, an epoch of CE-Fair training uses a tenth of the people.
MANY_COUNTERPARTS = 10_000

# Steps of Adam and epochs of a network that is trained here, unless the user states the epochs.
STEPS, MIN_EPOCHS = 2000, 50
BATCH_SIZE = 128

# Training on counterexamples continues a trained network, so it needs fewer epochs.
FAIR_EPOCHS = 0.4


@dataclass(frozen=True, slots=True, eq=False)
class NamedModel:
    """A model to compare, and the estimator from which it was read, if it has one."""

    name: str
    model: Model
    estimated: Estimated | None = None


@dataclass(frozen=True, slots=True, eq=False)
class FitPeople:
    """The people to whom candidates are fitted, and the settings of the fits."""

    people: Matrix
    labels: Flags
    epochs: int
    seed: int

    @staticmethod
    def enough_epochs(n_people: int) -> int:
        """Return the epochs in which a network makes enough steps."""
        return max(MIN_EPOCHS, ceil(STEPS * BATCH_SIZE / n_people))


@dataclass(frozen=True, slots=True, eq=False)
class PlannedCandidate:
    """A candidate that is not fitted yet."""

    name: str
    make: Callable[[Advance], Candidate]


def planned(models: list[NamedModel], fit: FitPeople) -> Iterator[PlannedCandidate]:
    """Yield the candidates: those of each model, then networks that are trained here."""
    for named in models:
        yield from _of_one_model(named, fit)
    yield from _networks(models[0].model, fit)


def _of_one_model(named: NamedModel, fit: FitPeople) -> Iterator[PlannedCandidate]:
    name, counted = named.name, CountedModel(named.model)
    as_it_is = of_model(name, "the model as it is", counted, counted.score)
    yield PlannedCandidate(name, lambda _: as_it_is)
    if named.estimated is not None:
        yield PlannedCandidate(f"{name}, blind", partial(_blind_copy, named, counted, fit))
    yield PlannedCandidate(f"{name}, majority", lambda _: of_majority(f"{name}, majority", counted))
    votes = _FittedVotes(named.model, fit)
    yield PlannedCandidate(
        f"{name}, fitted vote", lambda _: of_votes(f"{name}, fitted vote", votes(), counted)
    )
    if hasattr(FairPredictor, "distil"):
        yield PlannedCandidate(f"{name}, distilled", partial(_distilled, name, votes))


class _FittedVotes:
    """The recommended vote of a model, fitted once."""

    def __init__(self, model: Model, fit: FitPeople) -> None:
        self.model, self.fit = model, fit
        self._fitted: FairPredictor | None = None

    def __call__(self) -> FairPredictor:
        if self._fitted is None:
            vote = _vote_of(self.model)
            self._fitted = FairPredictor.fitted(self.model, self.fit.people, vote)
        return self._fitted


def _vote_of(model: Model) -> VoteName:
    """Return the mean probability, or what the model has instead."""
    if not has_scores(model.scorer):
        return "majority"
    return "mean_probability" if model.scorer.link in PROBABILITY_LINKS else "mean_score"


def _distilled(name: str, votes: _FittedVotes, _: Advance) -> Candidate:
    predictor, fit = votes(), votes.fit
    distil: Callable[..., Model] = getattr(predictor, "distil")  # noqa: B009 - checked before
    model = CountedModel(distil(fit.people, seed=fit.seed))
    about = "one network that imitates the fitted vote and reads no sensitive column"
    # Its scores are distances from the cut-off: no other score is of that kind.
    return of_model(f"{name}, distilled", about, model, None)


def _blind_copy(named: NamedModel, counted: CountedModel, fit: FitPeople, _: Advance) -> Candidate:
    assert named.estimated is not None
    copy = fit_blind(named.estimated, named.model.space, fit.people, fit.labels)
    return of_function(
        f"{named.name}, blind",
        "the same estimator, fitted without the sensitive columns",
        copy,
        level=favorable_probability(named.model),
        aware=counted.score,
    )


def _networks(model: Model, fit: FitPeople) -> Iterator[PlannedCandidate]:
    trained = _TrainedNetworks(model, fit)
    yield PlannedCandidate("network", trained.plain)
    yield PlannedCandidate("network, blind", trained.blind)
    yield PlannedCandidate("network, CE-Fair", trained.fair)


class _TrainedNetworks:
    """Networks trained here, all with the same shape; the plain one reads all columns."""

    def __init__(self, model: Model, fit: FitPeople) -> None:
        self.model, self.fit = model, fit
        self.rule = Threshold.at_probability(favorable_probability(model))
        self._plain: tuple[CountedModel, Network] | None = None

    def plain(self, advance: Advance) -> Candidate:
        """Train with all columns."""
        model, _ = self._trained(advance)
        return of_model("network", "a network trained on all columns", model, model.score)

    def blind(self, advance: Advance) -> Candidate:
        """Train without the sensitive columns."""
        network = self._trainer(blind=True).train(
            self.fit.people, self.fit.labels, progress=advance
        )
        about = "a network trained without the sensitive columns"
        aware, _ = self._trained(advance)
        return of_model("network, blind", about, self._model(network.network), aware.score)

    def fair(self, advance: Advance) -> Candidate:
        """Continue the training of the plain network on its counterexamples."""
        aware, network = self._trained(advance)
        many = self.model.relation.size > MANY_COUNTERPARTS
        trainer = CEFairTrainer(
            self.model.space,
            sample_fraction=0.1 if many else 1.0,
            epochs=max(1, round(FAIR_EPOCHS * self.fit.epochs)),
            rule=self.rule,
            seed=self.fit.seed,
        )
        run = trainer.train(network, self.fit.people, self.fit.labels, progress=advance)
        about = "that network, trained on its counterexamples"
        return of_model("network, CE-Fair", about, self._model(run.network), aware.score)

    def _trained(self, advance: Advance) -> "tuple[CountedModel, Network]":
        if self._plain is None:
            run = self._trainer(blind=False).train(
                self.fit.people, self.fit.labels, progress=advance
            )
            self._plain = self._model(run.network), run.network
        return self._plain

    def _trainer(self, *, blind: bool) -> PlainTrainer:
        return PlainTrainer(
            self.model.space,
            rule=self.rule,
            blind=blind,
            learning_rates=(1e-2, 1e-3),
            batch_sizes=(BATCH_SIZE,),
            epochs=self.fit.epochs,
            seed=self.fit.seed,
        )

    def _model(self, network: "Network") -> CountedModel:
        names = self.model.outcomes
        return CountedModel(
            Model(self.model.space, network.with_link("logit"), self.rule, outcomes=names)
        )


def favorable_probability(model: Model) -> float:
    """Return the probability from which on a person is favorable; ½ if the model has none."""
    threshold = model.rule.threshold
    assert threshold is not None  # the comparison refuses other rules
    match model.scorer.link:
        case "logit":
            above = float(sigmoid(np.array([threshold]))[0])
        case "share" if 0 < threshold < 1:
            above = threshold
        case _:
            above = 0.5
    return 1 - above if model.rule.favors == "below" else above
