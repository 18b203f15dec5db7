"""Training: a fold's trainings, kept on their way in a file, so that a kill costs a second."""

import warnings

from feta.train.ce_fair import CEFairTrainer
from feta.train.plain import PlainRun, PlainTrainer
from feta.train.run import TrainingRun
from feta_paper.fold import Bench


def grid(bench: Bench) -> PlainTrainer:
    """Give the trainer of NN_b."""
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


def rates(bench: Bench) -> tuple[float, int]:
    """Give the learning rate and the batch size that the grid chose for NN_b on this fold."""
    return bench.known["nn_b.learning_rate"], int(bench.known["nn_b.batch_size"])


def train_plain(bench: Bench, trainer: PlainTrainer) -> PlainRun:
    """Train on a fold, from scratch."""
    kept, tell = bench.checkpoint, bench.tell
    return trainer.train_folds([bench.split], checkpoint=kept, progress=tell)[0]


def train_fair(bench: Bench, start: str, trainer: CEFairTrainer) -> tuple[TrainingRun, list[str]]:
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
