"""Training of one stack, epoch by epoch; one member per split and learning rate."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from feta.arrays import Counts, Flags, Matrix, Vector
from feta.train.checkpoint_file import Checkpoint
from feta.train.ensemble_stack import Stack
from feta.train.import_torch import import_torch
from feta.train.split import Split, draw
from feta.train.task import Task

if TYPE_CHECKING:
    from torch import Tensor

    from feta.train.plain import PlainTrainer


@dataclass(frozen=True, slots=True, eq=False)
class Trial:
    """One learning rate and batch size on one split: its best (or last) epoch."""

    learning_rate: float
    batch_size: int
    epoch: int
    loss: float
    numbers: Vector


class Members:
    """All splits and learning rates with one batch size; mutable, discarded after the training."""

    def __init__(self, trainer: "PlainTrainer", splits: Sequence[Split], batch_size: int) -> None:
        torch = import_torch()
        self.trainer, self.batch_size, self.task = trainer, batch_size, Task(trainer.rule)
        self.n_people = [len(split.people) for split in splits]
        self.n_rates = len(trainer.learning_rates)
        columns = trainer.columns
        scaled = [(trainer.scaling(split), split) for split in splits]
        self.people = _padded([scale(split.people)[:, columns] for scale, split in scaled])
        self.targets = _padded([split.targets for split in splits])
        held = [_padded([scale(split.held)[:, columns] for scale, split in scaled])]
        held.append(_padded([split.held_targets for split in splits]))
        held.append(_padded([np.ones(len(split.held)) for split in splits]))
        self.held = [torch.tensor(np.repeat(part, self.n_rates, axis=0)) for part in held]
        seeds = [[trainer.seed, fold] for fold in range(len(splits))]
        starts = [trainer.shape.initial(np.random.default_rng(seed)) for seed in seeds]
        rates = list(trainer.learning_rates) * len(splits)
        members = list(np.repeat(starts, self.n_rates, axis=0))
        self.stack = Stack(trainer.shape, members, rates, weight_decay=trainer.weight_decay)
        self.random = [np.random.default_rng([*seed, 1]) for seed in seeds]
        self.best = self.stack.rows()
        self.losses, self.epochs = np.full(len(rates), np.inf), np.zeros(len(rates))

    def train(self, file: Checkpoint, report: Callable[[float], None]) -> list[list[Trial]]:
        """Train to the last epoch; return one list of trials per split."""
        for epoch in range(self._resume(file) + 1, self.trainer.epochs + 1):
            self._epoch()
            self._validate(epoch)
            if file.due(last=epoch == self.trainer.epochs):
                self._save(file, epoch)
            report(epoch / self.trainer.epochs)
        return [self._trials(fold) for fold in range(len(self.n_people))]

    def _save(self, file: Checkpoint, epoch: int) -> None:
        arrays = {"best": self.best, "losses": self.losses, "epochs": self.epochs}
        random = [rng.bit_generator.state for rng in self.random]
        file.save(self.stack.state() | arrays, {"epoch": epoch, "random": random})

    def _resume(self, file: Checkpoint) -> int:
        checkpoint = file.load()
        if checkpoint is None:
            return 0
        arrays, state = checkpoint
        self.stack.restore(arrays)
        self.best, self.losses, self.epochs = (
            arrays[name] for name in ("best", "losses", "epochs")
        )
        for rng, random in zip(self.random, state["random"], strict=True):
            rng.bit_generator.state = random
        return int(state["epoch"])

    def _epoch(self) -> None:
        torch = import_torch()
        orders, present = _joined([self._order(fold) for fold in range(len(self.n_people))])
        folds = np.arange(len(orders))[:, None]
        for start in range(0, orders.shape[1], self.batch_size):
            part = orders[:, start : start + self.batch_size]
            weights = present[:, start : start + self.batch_size]
            gathered = (self.people[folds, part], self.targets[folds, part], weights)
            people, targets, weight = (self._for_rates(torch.from_numpy(part)) for part in gathered)
            losses = self.task.losses(self.stack.scores(people), targets)
            self.stack.step(_mean(losses, weight))

    def _order(self, fold: int) -> Counts:
        trainer, rng = self.trainer, self.random[fold]
        rows = draw(self.n_people[fold], trainer.sample_fraction, trainer.subset, trainer.seed, rng)
        return rng.permutation(rows)

    def _for_rates(self, values: "Tensor") -> "Tensor":
        """Repeat the values of each split for all learning rates."""
        return values.repeat_interleave(self.n_rates, dim=0) if self.n_rates > 1 else values

    def _validate(self, epoch: int) -> None:
        """Compute the validation losses; store members that are the best so far, or the last."""
        with import_torch().no_grad():
            people, targets, weights = self.held
            losses = _mean(self.task.losses(self.stack.scores(people), targets), weights).numpy()
        losses = np.nan_to_num(losses, nan=np.inf)  # a member that diverged
        better: Flags = losses < self.losses
        if self.trainer.epoch == "last":
            better = np.ones_like(better)
        self.best[better] = self.stack.rows()[better]
        self.losses[better], self.epochs[better] = losses[better], epoch

    def _trials(self, fold: int) -> list[Trial]:
        return [
            Trial(
                rate,
                self.batch_size,
                int(self.epochs[member]),
                float(self.losses[member]),
                self.best[member],
            )
            for member, rate in enumerate(self.trainer.learning_rates, start=fold * self.n_rates)
        ]


def _mean(losses: "Tensor", weights: "Tensor") -> "Tensor":
    """Average each member's losses over the people with weight 1."""
    return (losses * weights).sum(-1) / weights.sum(-1)


def _padded(parts: list[Matrix]) -> Matrix:
    """Stack splits of different lengths, padded with zeros."""
    longest = max(map(len, parts))
    return np.stack(
        [np.concatenate([part, np.zeros((longest - len(part), *part.shape[1:]))]) for part in parts]
    )


def _joined(orders: list[Counts]) -> tuple[Counts, Matrix]:
    """Stack orders of different lengths; padding has weight 0."""
    padded = _padded([order.astype(np.float64) for order in orders]).astype(np.int64)
    return padded, _padded([np.ones(len(order)) for order in orders])
