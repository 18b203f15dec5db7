"""Members: one stack's training, epoch by epoch; a member for each split and learning rate."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from feta.arrays import Counts, Flags, Matrix, Vector
from feta.train.checkpoint_file import Checkpoint
from feta.train.ensemble_stack import Stack, import_torch
from feta.train.split import Split
from feta.train.subset import draw
from feta.train.task import Task

if TYPE_CHECKING:
    from torch import Tensor

    from feta.train.plain import PlainTrainer


@dataclass(frozen=True, slots=True, eq=False)
class Tried:
    """One learning rate and batch size on one split: its best (or last) epoch."""

    learning_rate: float
    batch_size: int
    epoch: int
    loss: float
    numbers: Vector


class Members:
    """All splits and learning rates with one batch size; mutable, and gone when they are trained."""

    def __init__(self, trainer: "PlainTrainer", splits: Sequence[Split], batch_size: int) -> None:
        torch = import_torch()
        self.trainer, self.batch_size, self.task = trainer, batch_size, Task(trainer.rule)
        self.n_people = [len(one.people) for one in splits]
        self.n_rates = len(trainer.learning_rates)
        scale = [trainer.scaling(one) for one in splits]
        read = trainer.columns
        pairs = list(zip(scale, splits, strict=True))
        self.people = _padded([s(one.people)[:, read] for s, one in pairs])
        self.targets = _padded([one.targets for one in splits])
        held = [_padded([s(one.held)[:, read] for s, one in pairs])]
        held.append(_padded([one.held_targets for one in splits]))
        held.append(_padded([np.ones(len(one.held)) for one in splits]))
        self.held = [torch.tensor(np.repeat(one, self.n_rates, axis=0)) for one in held]
        seeds = [[trainer.seed, fold] for fold in range(len(splits))]
        starts = [trainer.shape.initial(np.random.default_rng(seed)) for seed in seeds]
        rates = list(trainer.learning_rates) * len(splits)
        self.stack = Stack(trainer.shape, list(np.repeat(starts, self.n_rates, axis=0)), rates)
        self.random = [np.random.default_rng([*seed, 1]) for seed in seeds]
        self.best = self.stack.rows()
        self.losses, self.epochs = np.full(len(rates), np.inf), np.zeros(len(rates))

    def train(self, file: Checkpoint, tell: Callable[[float], None]) -> list[list[Tried]]:
        """Train to the last epoch, and give what was found, a list a split."""
        for epoch in range(self._resume(file) + 1, self.trainer.epochs + 1):
            self._epoch()
            self._look(epoch)
            if file.due(last=epoch == self.trainer.epochs):
                self._save(file, epoch)
            tell(epoch / self.trainer.epochs)
        return [self._tried(fold) for fold in range(len(self.n_people))]

    def _save(self, file: Checkpoint, epoch: int) -> None:
        found = {"best": self.best, "losses": self.losses, "epochs": self.epochs}
        random = [one.bit_generator.state for one in self.random]
        file.save(self.stack.state() | found, {"epoch": epoch, "random": random})

    def _resume(self, file: Checkpoint) -> int:
        found = file.load()
        if found is None:
            return 0
        arrays, state = found
        self.stack.restore(arrays)
        self.best, self.losses, self.epochs = (arrays[n] for n in ("best", "losses", "epochs"))
        for one, random in zip(self.random, state["random"], strict=True):
            one.bit_generator.state = random
        return int(state["epoch"])

    def _epoch(self) -> None:
        torch = import_torch()
        orders, there = _joined([self._order(fold) for fold in range(len(self.n_people))])
        folds = np.arange(len(orders))[:, None]
        for start in range(0, orders.shape[1], self.batch_size):
            part = orders[:, start : start + self.batch_size]
            weights = there[:, start : start + self.batch_size]
            gathered = (self.people[folds, part], self.targets[folds, part], weights)
            each = [self._for_rates(torch.from_numpy(one)) for one in gathered]
            self.stack.step(_mean(self.task.losses(self.stack.scores(each[0]), each[1]), each[2]))

    def _order(self, fold: int) -> Counts:
        trainer, rng = self.trainer, self.random[fold]
        rows = draw(self.n_people[fold], trainer.sample_fraction, trainer.subset, trainer.seed, rng)
        return rng.permutation(rows)

    def _for_rates(self, one: "Tensor") -> "Tensor":
        return one.repeat_interleave(self.n_rates, dim=0) if self.n_rates > 1 else one

    def _look(self, epoch: int) -> None:
        """Score the people held out; keep members that are the best so far, or the last."""
        with import_torch().no_grad():
            people, targets, weights = self.held
            losses = _mean(self.task.losses(self.stack.scores(people), targets), weights).numpy()
        losses = np.nan_to_num(losses, nan=np.inf)  # a member that grew beyond all bounds
        better: Flags = losses < self.losses
        if self.trainer.epoch == "last":
            better = np.ones_like(better)
        self.best[better] = self.stack.rows()[better]
        self.losses[better], self.epochs[better] = losses[better], epoch

    def _tried(self, fold: int) -> list[Tried]:
        return [
            Tried(
                rate,
                self.batch_size,
                int(self.epochs[one]),
                float(self.losses[one]),
                self.best[one],
            )
            for one, rate in enumerate(self.trainer.learning_rates, start=fold * self.n_rates)
        ]


def _mean(losses: "Tensor", weights: "Tensor") -> "Tensor":
    """Average each member's losses over the people that are there."""
    return (losses * weights).sum(-1) / weights.sum(-1)


def _padded(parts: list[Matrix]) -> Matrix:
    """Stack splits of unequal length, filled up with zeros."""
    longest = max(map(len, parts))
    return np.stack(
        [np.concatenate([one, np.zeros((longest - len(one), *one.shape[1:]))]) for one in parts]
    )


def _joined(orders: list[Counts]) -> tuple[Counts, Matrix]:
    """Stack orders of unequal length; what was filled up has weight 0."""
    filled = _padded([one.astype(np.float64) for one in orders]).astype(np.int64)
    return filled, _padded([np.ones(len(one)) for one in orders])
