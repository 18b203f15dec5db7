"""Evaluation of a network on a test fold, in full and on the paper's sample of it."""

from dataclasses import dataclass

import numpy as np

import feta
from feta.arrays import Counts, Flags, Matrix
from feta.errors import CertificateError
from feta.predict.fair_predictor import FairPredictor
from feta.rule import Threshold
from feta.scorer.network.network import Network
from feta.space.attribute import Integer
from feta.space.feature_space import FeatureSpace
from feta.space.vote_weights import VoteWeights
from feta.train.task import Task
from feta.train.violation import violations
from feta_paper.fold import Fold
from feta_paper.step_result import Figures


@dataclass(frozen=True, eq=False)
class FoldEvaluation:
    """Decisions and counts, one entry per person."""

    labels: Flags
    decisions: Flags  # of the network
    favorable: Counts  # counterparts with a favorable decision
    counterparts: int
    unfair_real: Flags | None = None  # who has a counterexample if age is a real number

    @property
    def vote(self) -> Flags:
        """The fair decisions; a tie is favorable."""
        return np.asarray(2 * self.favorable >= self.counterparts)

    @property
    def unfair(self) -> Flags:
        """The people who have a counterexample."""
        return np.asarray((self.favorable > 0) & (self.favorable < self.counterparts))

    def restricted_to(self, rows: Flags) -> "FoldEvaluation":
        """Return the evaluation of some of the people."""
        real = None if self.unfair_real is None else self.unfair_real[rows]
        return FoldEvaluation(
            self.labels[rows], self.decisions[rows], self.favorable[rows], self.counterparts, real
        )

    def figures(self, arm: str, vote: str) -> Figures:
        """Return the rates of the network and of its vote, in percent."""
        rates: Figures = {
            f"{arm}.accuracy": percent(self.decisions == self.labels),
            f"{arm}.flip_rate": percent(self.decisions != self.vote),
            f"{arm}.ce_rate": percent(self.unfair),
            f"{vote}.accuracy": percent(self.vote == self.labels),
        }
        if self.unfair_real is not None:
            rates[f"{arm}.ce_rate_real"] = percent(self.unfair_real)
        return rates

    def printed(self, arm: str) -> Figures:
        """Count the people to whom Algorithm 1 as printed is unfair, and those with a tie.

        It flips a decision if at least half of the counterparts, rounded up, get another one. On an
        even split it flips both sides, so their decisions still differ.
        """
        half = -(-self.counterparts // 2)
        unfavorable = self.counterparts - self.favorable
        if_favorable = unfavorable < half  # result for people whose decision is favorable
        if_unfavorable = self.favorable >= half  # result for the others
        differs = self.unfair & (if_favorable != if_unfavorable)
        return {
            f"{arm}.treated_apart": float(differs.sum()),
            f"{arm}.tied": float((2 * self.favorable == self.counterparts).sum()),
        }


def evaluate(
    space: FeatureSpace, network: Network, people: Matrix, labels: Flags, *, real: bool = False
) -> FoldEvaluation:
    """Decide and count; `real` also searches all real values of an integer attribute, if any."""
    model = feta.Model(space, network)
    counts = feta.tally(model, people)
    unfair_real = None
    if real and any(isinstance(attribute, Integer) for attribute in space.sensitive):
        task = Task(Threshold(0.0))
        unfair_real = violations(space, network, task, people, numbers="real").differs
    decisions = np.asarray(model.decide(people), dtype=bool)
    favorable = np.asarray(counts.favorable)
    return FoldEvaluation(labels, decisions, favorable, space.lattice.size, unfair_real)


def percent(flags: Flags) -> float:
    """Return the share of true flags, in percent."""
    return 100.0 * float(np.mean(flags))


def network_figures(
    fold: Fold, network: Network, arm: str, vote: str, *, real: bool = False
) -> Figures:
    """Return all rates of a network and of its vote; `real` adds the CE rate with a real age."""
    evaluation = evaluate(fold.space, network, fold.test, fold.labels, real=real)
    _check_vote(fold, network, evaluation)
    figures: Figures = dict(evaluation.figures(arm, vote))
    if arm == "nn_b":
        figures |= evaluation.printed("printed")
    if arm == "trained":
        figures |= evaluation.printed("printed_trained")
    if fold.protocol.test_share < 1:
        sample = evaluation.restricted_to(fold.sampled).figures(arm, vote)
        figures |= {f"sample.{key}": figure for key, figure in sample.items()}
    return figures


def _check_vote(fold: Fold, network: Network, evaluation: FoldEvaluation) -> None:
    """Check with random sensitive values that flip and CE rate of the vote are 0."""
    lattice = fold.space.lattice
    ids = np.random.default_rng([fold.seed, 8]).integers(0, lattice.size, len(fold.test))
    counterparts = lattice.moved(fold.test, ids)
    decisions = FairPredictor(feta.Model(fold.space, network)).decide(counterparts)
    if not np.array_equal(decisions, evaluation.vote):
        raise CertificateError("a fair decision depends on a sensitive attribute")


def network_accuracy(fold: Fold, arm: str, network: Network) -> Figures:
    """Return the accuracy of a network."""
    decisions = np.asarray(feta.Model(fold.space, network).decide(fold.test), dtype=bool)
    return _accuracy(fold, arm, decisions)


def empirical_accuracy(fold: Fold, network: Network, arm: str) -> Figures:
    """Return the accuracy of the vote weighted by the sensitive values of the training people."""
    weights = VoteWeights.from_people(fold.space, fold.split.people)
    predictor = FairPredictor(feta.Model(fold.space, network), weights=weights)
    return _accuracy(fold, arm, np.asarray(predictor.decide(fold.test), dtype=bool))


def _accuracy(fold: Fold, arm: str, decisions: Flags) -> Figures:
    correct = decisions == fold.labels
    figures: Figures = {f"{arm}.accuracy": percent(correct)}
    if fold.protocol.test_share < 1:
        figures[f"sample.{arm}.accuracy"] = percent(correct[fold.sampled])
    return figures
