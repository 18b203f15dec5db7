"""Judge: networks put to a test fold, the full one and the paper's share of it."""

import numpy as np

import feta
from feta.arrays import Flags
from feta.errors import CertificateError
from feta.predict.fair_predictor import FairPredictor
from feta.scorer.network.network import Network
from feta.space.vote_weights import VoteWeights
from feta_paper.evaluate import Look, look_at, percent
from feta_paper.fold import Bench
from feta_paper.outcome import Figures


def judged(bench: Bench, network: Network, arm: str, vote: str, *, real: bool = False) -> Figures:
    """Give all rates of a network and of its vote; `real` with a real-valued age besides."""
    look = look_at(bench.space, network, bench.test, bench.labels, real=real)
    _check_fair(bench, network, look)
    figures: Figures = dict(look.figures(arm, vote))
    if arm == "nn_b":
        figures |= look.printed("printed")
    if arm == "trained":
        figures |= look.printed("printed_trained")
    if bench.protocol.test_share < 1:
        some = look.of(bench.sampled).figures(arm, vote)
        figures |= {f"sample.{key}": figure for key, figure in some.items()}
    return figures


def _check_fair(bench: Bench, network: Network, look: Look) -> None:
    """Decide everybody as somebody else of the lattice: flip and CE rate of the vote must be 0."""
    lattice = bench.space.lattice
    drawn = np.random.default_rng([bench.seed, 8]).integers(0, lattice.size, len(bench.test))
    others = lattice.moved(bench.test, drawn)
    decided = FairPredictor(feta.Model(bench.space, network)).decide(others)
    if not np.array_equal(decided, look.vote):
        raise CertificateError("a fair decision hangs on a sensitive attribute")


def right(bench: Bench, arm: str, network: Network) -> Figures:
    """Give how often a network is right."""
    decided = np.asarray(feta.Model(bench.space, network).decide(bench.test), dtype=bool)
    return accuracies(bench, arm, decided)


def empirical(bench: Bench, network: Network, arm: str) -> Figures:
    """Give how often the vote is right where training people's sensitive values are the votes."""
    weights = VoteWeights.from_people(bench.space, bench.split.people)
    predictor = FairPredictor(feta.Model(bench.space, network), weights=weights)
    return accuracies(bench, arm, np.asarray(predictor.decide(bench.test), dtype=bool))


def accuracies(bench: Bench, arm: str, decided: Flags) -> Figures:
    """Give how often decisions are right."""
    correct = decided == bench.labels
    figures: Figures = {f"{arm}.accuracy": percent(correct)}
    if bench.protocol.test_share < 1:
        figures[f"sample.{arm}.accuracy"] = percent(correct[bench.sampled])
    return figures
