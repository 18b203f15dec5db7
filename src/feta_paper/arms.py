"""Arms: the trainings of the paper's tables, FETA's own beside them, and the choice among all."""

from dataclasses import replace

import numpy as np

import feta
from feta.predict.fair_predictor import FairPredictor
from feta.rule import Threshold
from feta.space.vote_weights import VoteWeights
from feta.train.baselines import majority
from feta.train.ce_fair import CEFairTrainer
from feta.train.chooser import SPAN, choose_fair
from feta.train.run import TrainingRun
from feta.train.task import Task
from feta.train.violation import violations
from feta_paper.evaluate import percent
from feta_paper.fold import Bench
from feta_paper.judge import empirical, judged, right
from feta_paper.outcome import Figures, StepResult
from feta_paper.training import grid, rates, train_fair, train_plain


def nn_b(bench: Bench) -> StepResult:
    """Train the network that all else starts from, over the grid; look at it and at its votes."""
    run = train_plain(bench, grid(bench))
    found = judged(bench, run.network, "nn_b", "vote", real=True)
    figures = right(bench, "majority", majority(bench.space, bench.split.targets))
    figures |= empirical(bench, run.network, "empirical_vote")
    words = {
        "nn_b": f"learning rate {run.learning_rate:g}, batch {run.batch_size}, epoch {run.epoch}"
    }
    numbers: Figures = {"nn_b.learning_rate": run.learning_rate, "nn_b.batch_size": run.batch_size}
    return StepResult(found | figures | numbers, settings=words, networks={"nn_b": run.network})


def best_start(bench: Bench) -> StepResult:
    """Train NN_b once more, chosen by its validation loss: what FETA's own arms start from."""
    run = train_plain(bench, replace(grid(bench), epoch="best"))
    words = {"start": f"epoch {run.epoch}, the least validation loss"}
    return StepResult(settings=words, networks={"start": run.network})


def trained(bench: Bench) -> StepResult:
    """Train on counterexamples as in the paper: NN_b's rates, ρ and batch of the appendix."""
    run, notes = train_fair(bench, "nn_b", _paper(bench))
    figures = judged(bench, run.network, "trained", "trained_vote", real=True)
    figures |= empirical(bench, run.network, "trained_empirical_vote")
    return StepResult(
        figures,
        _curves(run, _first_loss(bench)),
        notes=notes,
        settings={"trained": f"epoch {run.chosen} of {len(run.epochs)}"},
        networks={"trained": run.network},
    )


def other_batch(bench: Bench) -> StepResult:
    """Train the same with the kind of batch that the paper did not choose on this data set."""
    trainer = replace(_paper(bench), keep=bench.protocol.other_keep)
    run, notes = train_fair(bench, "nn_b", trainer)
    return _looked_at(bench, "other_batch", run, notes)


def _paper(bench: Bench) -> CEFairTrainer:
    rate, size = rates(bench)
    return CEFairTrainer(
        bench.space,
        preset="paper",
        sample_fraction=bench.protocol.rho,
        keep=bench.protocol.keep,
        learning_rate=rate,
        batch_size=size,
        epochs=bench.protocol.fair_epochs,
        standardize=bench.standardize,
        seed=bench.seed,
    )


def own_default(bench: Bench) -> StepResult:
    """Train on counterexamples with FETA's defaults."""
    return _own(bench, "default", span=None)


def own_span(bench: Bench) -> StepResult:
    """Train with a penalty on the span of counterparts' scores."""
    return _own(bench, "span", span=SPAN)


def _own(bench: Bench, arm: str, *, span: float | None) -> StepResult:
    start = "start" if bench.protocol.epoch == "last" else "nn_b"
    trainer = CEFairTrainer(
        bench.space,
        sample_fraction=bench.protocol.own_share,
        span_penalty=span,
        epochs=bench.protocol.own_epochs,
        standardize=bench.standardize,
        seed=bench.seed,
    )
    run, notes = train_fair(bench, start, trainer)
    return _looked_at(bench, arm, run, notes)


def _looked_at(bench: Bench, arm: str, run: TrainingRun, notes: list[str]) -> StepResult:
    return StepResult(
        judged(bench, run.network, arm, f"{arm}_vote"),
        notes=notes,
        settings={arm: f"epoch {run.chosen} of {len(run.epochs)}"},
        networks={arm: run.network},
    )


def chosen(bench: Bench) -> StepResult:
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
    return StepResult(
        {"chosen.accuracy": percent(decided == bench.labels)}, settings={"chosen": choice.reason}
    )


def _first_loss(bench: Bench) -> float:
    """Give the loss that training starts from: of NN_b on the people kept and their counterexamples."""
    network, split = bench.network("nn_b"), bench.split
    task = Task(Threshold(0.0))
    found = violations(bench.space, network, task, split.people, numbers="real")
    kept = np.ones(len(split.people), bool) if bench.protocol.keep == "all" else found.differs
    people = np.concatenate([split.people[kept], found.counterparts[found.differs]])
    targets = np.concatenate([split.targets[kept], split.targets[found.differs]])
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
