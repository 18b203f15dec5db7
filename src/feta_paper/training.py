"""Training on one fold, with checkpoints, so that a killed run loses about a second."""

import warnings

from feta.train.ce_fair import CEFairTrainer
from feta.train.plain import PlainRun, PlainTrainer
from feta.train.run import TrainingRun
from feta_paper.fold import Fold


def plain_trainer(fold: Fold) -> PlainTrainer:
    """Return the trainer of NN_b: a grid over learning rates and batch sizes."""
    protocol = fold.protocol
    return PlainTrainer(
        fold.space,
        learning_rates=protocol.learning_rates,
        batch_sizes=protocol.batch_sizes,
        epochs=protocol.epochs,
        epoch=protocol.epoch,
        standardize=fold.standardize,
        seed=fold.seed,
    )


def selected_rates(fold: Fold) -> tuple[float, int]:
    """Return the learning rate and batch size that the grid selected for NN_b on this fold."""
    return fold.known["nn_b.learning_rate"], int(fold.known["nn_b.batch_size"])


def train_plain(fold: Fold, trainer: PlainTrainer) -> PlainRun:
    """Train from scratch."""
    runs = trainer.train_folds([fold.split], checkpoint=fold.checkpoint, progress=fold.progress)
    return runs[0]


def train_fair(fold: Fold, start: str, trainer: CEFairTrainer) -> tuple[TrainingRun, list[str]]:
    """Continue training from the network `start`; return the trainer's warnings as notes."""
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        run = trainer.train(
            fold.network(start),
            fold.split.people,
            fold.split.targets,
            validation=fold.validation,
            checkpoint=fold.checkpoint,
            progress=fold.progress,
        )
    return run, [str(warning.message) for warning in caught]
