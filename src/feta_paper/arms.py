"""The paper's training, FETA's training, and the selection among all of them."""

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
from feta_paper.evaluate import empirical_accuracy, network_accuracy, network_figures, percent
from feta_paper.fold import Fold
from feta_paper.step_result import Figures, StepResult
from feta_paper.training import plain_trainer, selected_rates, train_fair, train_plain


def nn_b(fold: Fold) -> StepResult:
    """Train NN_b over the grid; evaluate it and its votes."""
    run = train_plain(fold, plain_trainer(fold))
    rates = network_figures(fold, run.network, "nn_b", "vote", real=True)
    figures = network_accuracy(fold, "majority", majority(fold.space, fold.split.targets))
    figures |= empirical_accuracy(fold, run.network, "empirical_vote")
    settings = {
        "nn_b": f"learning rate {run.learning_rate:g}, batch {run.batch_size}, epoch {run.epoch}"
    }
    grid: Figures = {"nn_b.learning_rate": run.learning_rate, "nn_b.batch_size": run.batch_size}
    return StepResult(rates | figures | grid, settings=settings, networks={"nn_b": run.network})


def best_start(fold: Fold) -> StepResult:
    """Train NN_b with the epoch of least validation loss, the start of FETA's training."""
    run = train_plain(fold, replace(plain_trainer(fold), epoch="best"))
    settings = {"start": f"epoch {run.epoch}, the least validation loss"}
    return StepResult(settings=settings, networks={"start": run.network})


def trained(fold: Fold) -> StepResult:
    """Train on counterexamples as in the paper: NN_b's rates, ρ and batch of the appendix."""
    run, notes = train_fair(fold, "nn_b", _paper_trainer(fold))
    figures = network_figures(fold, run.network, "trained", "trained_vote", real=True)
    figures |= empirical_accuracy(fold, run.network, "trained_empirical_vote")
    return StepResult(
        figures,
        _curves(run, _first_loss(fold)),
        notes=notes,
        settings={"trained": f"epoch {run.chosen} of {len(run.epochs)}"},
        networks={"trained": run.network},
    )


def other_batch(fold: Fold) -> StepResult:
    """Train likewise with the kind of batch that the paper did not choose on this data set."""
    trainer = replace(_paper_trainer(fold), keep=fold.protocol.other_keep)
    run, notes = train_fair(fold, "nn_b", trainer)
    return _result(fold, "other_batch", run, notes)


def _paper_trainer(fold: Fold) -> CEFairTrainer:
    learning_rate, batch_size = selected_rates(fold)
    return CEFairTrainer(
        fold.space,
        preset="paper",
        sample_fraction=fold.protocol.rho,
        keep=fold.protocol.keep,
        learning_rate=learning_rate,
        batch_size=batch_size,
        epochs=fold.protocol.fair_epochs,
        standardize=fold.standardize,
        seed=fold.seed,
    )


def default_training(fold: Fold) -> StepResult:
    """Train on counterexamples with FETA's defaults."""
    return _feta_training(fold, "default", span=None)


def span_training(fold: Fold) -> StepResult:
    """Train with a penalty on the span of the counterparts' scores."""
    return _feta_training(fold, "span", span=SPAN)


def _feta_training(fold: Fold, arm: str, *, span: float | None) -> StepResult:
    start = "start" if fold.protocol.epoch == "last" else "nn_b"
    trainer = CEFairTrainer(
        fold.space,
        sample_fraction=fold.protocol.own_share,
        span_penalty=span,
        epochs=fold.protocol.own_epochs,
        standardize=fold.standardize,
        seed=fold.seed,
    )
    run, notes = train_fair(fold, start, trainer)
    return _result(fold, arm, run, notes)


def _result(fold: Fold, arm: str, run: TrainingRun, notes: list[str]) -> StepResult:
    return StepResult(
        network_figures(fold, run.network, arm, f"{arm}_vote"),
        notes=notes,
        settings={arm: f"epoch {run.chosen} of {len(run.epochs)}"},
        networks={arm: run.network},
    )


def chosen(fold: Fold) -> StepResult:
    """Select the fair predictor with the highest accuracy on validation people."""
    space = fold.space
    names = {
        "vote": "nn_b",
        "vote after CE-Fair": "default",
        "vote after span training": "span",
        "blind network": "blind_full",
        "blind regression": "blind_logistic",
    }
    networks = {title: fold.network(name) for title, name in names.items()}
    networks["majority"] = majority(space, fold.split.targets)
    candidates = {
        title: FairPredictor(feta.Model(space, network)) for title, network in networks.items()
    }
    weights = VoteWeights.from_people(space, fold.split.people)
    candidates["vote, empirical weights"] = replace(candidates["vote"], weights=weights)
    choice = choose_fair(candidates, *fold.validation)
    decisions = np.asarray(choice.predictor.decide(fold.test), dtype=bool)
    return StepResult(
        {"chosen.accuracy": percent(decisions == fold.labels)}, settings={"chosen": choice.reason}
    )


def _first_loss(fold: Fold) -> float:
    """Return the loss of NN_b on the people of a batch and their counterexamples."""
    network, split = fold.network("nn_b"), fold.split
    task = Task(Threshold(0.0))
    found = violations(fold.space, network, task, split.people, numbers="real")
    selected = np.ones(len(split.people), bool) if fold.protocol.keep == "all" else found.differs
    people = np.concatenate([split.people[selected], found.counterparts[found.differs]])
    targets = np.concatenate([split.targets[selected], split.targets[found.differs]])
    scores = network(people)[:, 0]
    losses = np.logaddexp(0.0, scores) - targets * scores
    return float(losses.mean()) if len(losses) else 0.0


def _curves(run: TrainingRun, first_loss: float) -> dict[str, list[float]]:
    """Return the figures of each epoch on its people; the initial network comes first."""
    points = [run.start, *(epoch.chosen_by for epoch in run.epochs)]
    return {
        "trained.loss": [first_loss, *(epoch.loss for epoch in run.epochs)],
        "trained.accuracy": [100 * point.accuracy for point in points],
        "trained.ce_rate": [100 * point.ce_rate for point in points],
        "trained.average_violation": [point.mean_violation for point in points],
        "trained.maximum_violation": [point.max_violation for point in points],
    }
