"""The arms: ways to decide people, all trained on the same people."""

import warnings
from collections.abc import Iterator
from dataclasses import dataclass, replace

from feta.arrays import Matrix
from feta.comparing.candidate import Candidate, CountedModel, of_majority, of_model, of_votes
from feta.model import Model
from feta.predict.fair_predictor import FairPredictor
from feta.rule import Threshold
from feta.scorer.network.network import Network
from feta.space.feature_space import FeatureSpace
from feta.train.ce_fair import CEFairTrainer
from feta.train.plain import PlainTrainer
from feta.train.split import Split
from feta_paper.proxies.settings import FairTraining, NetworkTraining

BLIND, PLAIN, MAJORITY, SOFT = "blind", "plain", "majority", "soft"
SCALED, CE_FAIR, SPAN, DISTILLED = "scaled", "ce_fair", "span", "distilled"

# In the order of the tables.
TITLES = {
    BLIND: "blind network",
    PLAIN: "plain network, no vote",
    MAJORITY: "plain, equal majority",
    SOFT: "plain, soft vote",
    SCALED: "plain with scaled sensitive columns, soft vote",
    DISTILLED: "distilled from the soft vote",
    CE_FAIR: "CE-Fair training, soft vote",
    SPAN: "span penalty, soft vote",
}

# Arms whose scores are probabilities of the favorable label.
WITH_PROBABILITIES = (BLIND, PLAIN, SOFT, SCALED, CE_FAIR, SPAN)

RULE = Threshold(0.0)


@dataclass(frozen=True, eq=False)
class ArmTraining:
    """The people to train on, and the settings."""

    space: FeatureSpace
    split: Split
    training: NetworkTraining
    fair: FairTraining | None  # None: without CE-Fair and span training
    scale: float | None  # None: without a separate arm of scaled columns
    distil_epochs: int | None
    least: int  # of the vote weights
    seed: int

    def arms(self) -> Iterator[Candidate]:
        """Train one arm after the other; the plain network comes first."""
        network = self._network(self._trainer())
        plain = CountedModel(self._model(network))
        yield of_model(PLAIN, "", plain, plain.score)
        blind = CountedModel(self._model(self._network(replace(self._trainer(), blind=True))))
        yield of_model(BLIND, "", blind, plain.score)
        yield of_majority(MAJORITY, plain)
        votes = self._votes(plain.model)
        yield of_votes(SOFT, votes, plain)
        yield self._distilled(votes)
        if self.scale is not None:
            trainer = replace(self._trainer(), sensitive_scale=self.scale)
            yield self._voting(SCALED, self._network(trainer), plain)
        if self.fair is not None:
            yield self._voting(CE_FAIR, self._fair(network, None), plain)
            yield self._voting(SPAN, self._fair(network, self.fair.span_penalty), plain)

    @property
    def people(self) -> Matrix:
        """The people to whom votes are fitted."""
        return self.split.people

    def _trainer(self) -> PlainTrainer:
        training = self.training
        return PlainTrainer(
            self.space,
            hidden=training.hidden,
            learning_rates=training.learning_rates,
            batch_sizes=(training.batch_size,),
            epochs=training.epochs,
            weight_decay=training.weight_decay,
            sensitive_scale=training.sensitive_scale,
            seed=self.seed,
        )

    def _network(self, trainer: PlainTrainer) -> Network:
        return trainer.train_folds([self.split])[0].network

    def _model(self, network: Network) -> Model:
        return Model(self.space, network.with_link("logit"), RULE)

    def _votes(self, model: Model) -> FairPredictor:
        """Return the recommended vote: mean probability, empirical weights, kept level."""
        return FairPredictor.fitted(model, self.people, least=self.least)

    def _voting(self, name: str, network: Network, plain: CountedModel) -> Candidate:
        """Return the vote over a network, to be measured against the plain network."""
        model = self._model(network)
        return replace(of_votes(name, self._votes(model), CountedModel(model)), aware=plain.score)

    def _fair(self, network: Network, span: float | None) -> Network:
        assert self.fair is not None  # arms() asks before
        trainer = CEFairTrainer(
            self.space,
            sample_fraction=self.fair.sample_fraction,
            span_penalty=span,
            epochs=self.fair.epochs,
            rule=RULE,
            seed=self.seed,
        )
        split = self.split
        with warnings.catch_warnings():  # of a CE rate that did not fall: a result, not a fault
            warnings.simplefilter("ignore")
            run = trainer.train(
                network,
                split.people,
                split.targets,
                validation=(split.held, split.held_targets),
            )
        return run.network

    def _distilled(self, votes: FairPredictor) -> Candidate:
        with warnings.catch_warnings():  # of a low agreement: a result, not a fault
            warnings.simplefilter("ignore")
            model = votes.distil(self.people, epochs=self.distil_epochs, seed=self.seed)
        return of_model(DISTILLED, "", CountedModel(model), None)
