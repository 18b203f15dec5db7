"""Arms: the trainings of the paper's tables and ours beside them, each on one fold."""

import warnings
from dataclasses import replace

import numpy as np

import feta
from feta.arrays import Flags, Matrix
from feta.errors import CertificateError
from feta.network.network import Network
from feta.predict.fair_predictor import FairPredictor
from feta.reproduce.bench import Bench
from feta.reproduce.look import Look, look_at, percent
from feta.reproduce.outcome import Figures, Outcome
from feta.rule import Threshold
from feta.space.vote_weights import VoteWeights
from feta.train.baselines import blind_logistic, majority
from feta.train.ce_fair import CEFairTrainer
from feta.train.chooser import SPAN, choose_fair
from feta.train.lcifr import LCIFRRun, LCIFRTrainer
from feta.train.plain import PlainRun, PlainTrainer
from feta.train.run import TrainingRun
from feta.train.task import Task
from feta.train.violation import violations

# LCIFR's authors certify the first thousand of a test part.
LOOKED_AT = 1000


def nn_b(bench: Bench) -> Outcome:
    """Train the network that all else starts from, over the grid; look at it and at its votes."""
    run = _plain(bench, _grid(bench))
    found = _tested(bench, run.network, "nn_b", "vote", real=True)
    most = bool(2 * bench.split.targets.sum() >= len(bench.split.targets))
    right = bench.labels == most
    figures: Figures = {"majority.accuracy": percent(right)}
    if bench.protocol.test_share < 1:
        figures["sample.majority.accuracy"] = percent(right[bench.sampled])
    figures |= _empirical(bench, run.network, "empirical_vote")
    words = {
        "nn_b": f"learning rate {run.learning_rate:g}, batch {run.batch_size}, epoch {run.epoch}"
    }
    numbers: Figures = {"nn_b.learning_rate": run.learning_rate, "nn_b.batch_size": run.batch_size}
    return Outcome(found | figures | numbers, settings=words, networks={"nn_b": run.network})


def best_start(bench: Bench) -> Outcome:
    """Train NN_b once more, chosen by its validation loss: what FETA's own arms start from."""
    run = _plain(bench, replace(_grid(bench), epoch="best"))
    words = {"start": f"epoch {run.epoch}, the least validation loss"}
    return Outcome(settings=words, networks={"start": run.network})


def trained(bench: Bench) -> Outcome:
    """Train on counterexamples as in the paper: NN_b's rates, ρ and batch of the appendix."""
    rate, size = _rates(bench)
    run, notes = _fair(
        bench,
        "nn_b",
        CEFairTrainer(
            bench.space,
            preset="paper",
            sample_fraction=bench.protocol.rho,
            keep=bench.protocol.keep,
            learning_rate=rate,
            batch_size=size,
            epochs=bench.protocol.fair_epochs,
            standardize=bench.standardize,
            seed=bench.seed,
        ),
    )
    figures = _tested(bench, run.network, "trained", "trained_vote", real=True)
    figures |= _empirical(bench, run.network, "trained_empirical_vote")
    return Outcome(
        figures,
        _curves(run, _first_loss(bench)),
        notes=notes,
        settings={"trained": f"epoch {run.chosen} of {len(run.epochs)}"},
        networks={"trained": run.network},
    )


def own_default(bench: Bench) -> Outcome:
    """Train on counterexamples with FETA's defaults."""
    return _own(bench, "default", span=None)


def own_span(bench: Bench) -> Outcome:
    """Train with a penalty on the span of counterparts' scores."""
    return _own(bench, "span", span=SPAN)


def _own(bench: Bench, arm: str, *, span: float | None) -> Outcome:
    start = "start" if bench.protocol.epoch == "last" else "nn_b"
    trainer = CEFairTrainer(
        bench.space,
        sample_fraction=bench.protocol.own_share,
        span_penalty=span,
        epochs=bench.protocol.own_epochs,
        standardize=bench.standardize,
        seed=bench.seed,
    )
    run, notes = _fair(bench, start, trainer)
    return Outcome(
        _tested(bench, run.network, arm, f"{arm}_vote"),
        notes=notes,
        settings={arm: f"epoch {run.chosen} of {len(run.epochs)}"},
        networks={arm: run.network},
    )


def blind_full(bench: Bench) -> Outcome:
    """Train a network that cannot read the sensitive columns, with all that NN_b is given."""
    run = _plain(bench, replace(_grid(bench), blind=True, epoch="best"))
    return Outcome(_right(bench, "blind_full", run.network), networks={"blind_full": run.network})


def blind_paper(bench: Bench) -> Outcome:
    """Train blind networks as the paper has them: few people, few epochs, the last; fixed and fresh."""
    rate, size = _rates(bench)
    paper = replace(
        _grid(bench),
        blind=True,
        epoch="last",
        epochs=bench.protocol.fair_epochs,
        learning_rates=(rate,),
        batch_sizes=(size,),
        sample_fraction=bench.protocol.rho,
    )
    figures: Figures = {}
    for subset in ("fixed", "fresh"):
        trainer = replace(paper, subset=subset)
        network = trainer.train_folds([bench.split])[0].network
        figures |= _right(bench, f"blind_{subset}", network)
    return Outcome(figures)


def logistic(bench: Bench) -> Outcome:
    """Fit a logistic regression that cannot read the sensitive columns."""
    network = blind_logistic(bench.space, bench.split.people, bench.split.targets)
    return Outcome(_right(bench, "blind_logistic", network), networks={"blind_logistic": network})


def lcifr(bench: Bench) -> Outcome:
    """Train LCIFR with γ = 1, for the categorical attributes, as in the paper."""
    return _lcifr(bench, "lcifr", gamma=1.0, varied=None)


def lcifr_all(bench: Bench) -> Outcome:
    """Train LCIFR with γ = 1 for all sensitive attributes: the same lattice as everybody's."""
    everything = tuple(one.name for one in bench.space.sensitive)
    return _lcifr(bench, "lcifr_all", gamma=1.0, varied=everything)


def lcifr_original(bench: Bench) -> Outcome:
    """Train LCIFR with its authors' γ, for the categorical attributes."""
    return _lcifr(bench, "lcifr_original", gamma=bench.protocol.authors_gamma, varied=None)


def _lcifr(bench: Bench, arm: str, *, gamma: float, varied: tuple[str, ...] | None) -> Outcome:
    """Train, and judge over all counterparts and over those of the categories alone."""
    trainer = LCIFRTrainer(
        bench.space,
        attributes=varied,
        gamma=gamma,
        encoder=bench.protocol.encoder,
        epochs=bench.protocol.lcifr_epochs,
        seed=bench.seed,
    )
    people, targets = bench.split.people, bench.split.targets
    run = trainer.train(people, targets, validation=bench.validation, progress=bench.tell)
    few = LCIFRTrainer(bench.space).varied
    looks = {
        suffix: look_at(space, run.network, bench.test, bench.labels)
        for suffix, space in (("", bench.space), ("_categories", few))
    }
    figures: Figures = {f"{arm}.accuracy": percent(looks[""].own == bench.labels)}
    for suffix, look in looks.items():
        figures[f"{arm}.ce_rate{suffix}"] = percent(look.apart)
        figures |= _sampled(bench, arm, look, suffix)
    ours = arm != "lcifr_original"  # its authors certify over the categories
    figures[f"{arm}.certified"] = _certified(
        replace(run, space=bench.space if ours else few),
        looks["" if ours else "_categories"],
        bench.test[: bench.protocol.certified if ours else LOOKED_AT],
    )
    return Outcome(figures)


def _certified(run: LCIFRRun, look: Look, people: Matrix) -> float:
    """Give the share certified; a certificate for somebody with a counterexample would be a lie."""
    certified = run.certified(people)
    if (certified & look.apart[: len(people)]).any():
        raise CertificateError("LCIFR certified somebody who has a counterexample")
    return percent(certified)


def _sampled(bench: Bench, arm: str, look: Look, suffix: str) -> Figures:
    if bench.protocol.test_share >= 1:
        return {}
    some = look.of(bench.sampled)
    return {
        f"sample.{arm}.accuracy": percent(some.own == some.labels),
        f"sample.{arm}.ce_rate{suffix}": percent(some.apart),
    }


def chosen(bench: Bench) -> Outcome:
    """Choose the fair predictor that is right most often on validation people."""
    space = bench.space
    names = {
        "vote": "nn_b",
        "vote after CE-Fair": "default",
        "vote after span training": "span",
        "blind network": "blind_full",
        "blind regression": "blind_logistic",
    }
    networks = {told: bench.network(name) for told, name in names.items()}
    networks["majority"] = majority(space, bench.split.targets)
    candidates = {
        told: FairPredictor(feta.Model(space, network)) for told, network in networks.items()
    }
    weights = VoteWeights.from_people(space, bench.split.people)
    candidates["vote, empirical weights"] = replace(candidates["vote"], weights=weights)
    choice = choose_fair(candidates, *bench.validation)
    decided = np.asarray(choice.predictor.decide(bench.test), dtype=bool)
    return Outcome(
        {"chosen.accuracy": percent(decided == bench.labels)}, settings={"chosen": choice.reason}
    )


def _grid(bench: Bench) -> PlainTrainer:
    protocol = bench.protocol
    return PlainTrainer(
        bench.space,
        learning_rates=protocol.learning_rates,
        batch_sizes=protocol.batch_sizes,
        epochs=protocol.epochs,
        epoch=protocol.epoch,
        standardize=bench.standardize,
        seed=bench.seed,
    )


def _rates(bench: Bench) -> tuple[float, int]:
    """Give the learning rate and the batch size that the grid chose for NN_b on this fold."""
    return bench.known["nn_b.learning_rate"], int(bench.known["nn_b.batch_size"])


def _plain(bench: Bench, trainer: PlainTrainer) -> PlainRun:
    kept, tell = bench.checkpoint, bench.tell
    return trainer.train_folds([bench.split], checkpoint=kept, progress=tell)[0]


def _fair(bench: Bench, start: str, trainer: CEFairTrainer) -> tuple[TrainingRun, list[str]]:
    """Train further; what the trainer warns of becomes notes."""
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        run = trainer.train(
            bench.network(start),
            bench.split.people,
            bench.split.targets,
            validation=bench.validation,
            checkpoint=bench.checkpoint,
            progress=bench.tell,
        )
    return run, [str(one.message) for one in caught]


def _tested(bench: Bench, network: Network, arm: str, vote: str, *, real: bool = False) -> Figures:
    look = look_at(bench.space, network, bench.test, bench.labels, real=real)
    figures: Figures = dict(look.figures(arm, vote))
    if arm == "nn_b":
        figures |= look.printed("printed")
    if arm == "trained":
        figures |= look.printed("printed_trained")
    if bench.protocol.test_share < 1:
        some = look.of(bench.sampled).figures(arm, vote)
        figures |= {f"sample.{key}": figure for key, figure in some.items()}
    return figures


def _right(bench: Bench, arm: str, network: Network) -> Figures:
    decided = np.asarray(feta.Model(bench.space, network).decide(bench.test), dtype=bool)
    return _accuracies(bench, arm, decided)


def _empirical(bench: Bench, network: Network, arm: str) -> Figures:
    weights = VoteWeights.from_people(bench.space, bench.split.people)
    predictor = FairPredictor(feta.Model(bench.space, network), weights=weights)
    return _accuracies(bench, arm, np.asarray(predictor.decide(bench.test), dtype=bool))


def _accuracies(bench: Bench, arm: str, decided: Flags) -> Figures:
    right = decided == bench.labels
    figures: Figures = {f"{arm}.accuracy": percent(right)}
    if bench.protocol.test_share < 1:
        figures[f"sample.{arm}.accuracy"] = percent(right[bench.sampled])
    return figures


def _first_loss(bench: Bench) -> float:
    """Give the loss that training starts from: of NN_b on the people kept and their counterexamples."""
    network, split = bench.network("nn_b"), bench.split
    task = Task(Threshold(0.0))
    found = violations(bench.space, network, task, split.people, numbers="real")
    kept = np.ones(len(split.people), bool) if bench.protocol.keep == "all" else found.apart
    people = np.concatenate([split.people[kept], found.counterparts[found.apart]])
    targets = np.concatenate([split.targets[kept], split.targets[found.apart]])
    scores = network(people)[:, 0]
    losses = np.logaddexp(0.0, scores) - targets * scores
    return float(losses.mean()) if len(losses) else 0.0


def _curves(run: TrainingRun, first_loss: float) -> dict[str, list[float]]:
    """Follow the people of each epoch; the network given comes first."""
    points = [run.start, *(one.chosen_by for one in run.epochs)]
    return {
        "trained.loss": [first_loss, *(one.loss for one in run.epochs)],
        "trained.accuracy": [100 * one.accuracy for one in points],
        "trained.ce_rate": [100 * one.ce_rate for one in points],
        "trained.average_violation": [one.mean_violation for one in points],
        "trained.maximum_violation": [one.max_violation for one in points],
    }
