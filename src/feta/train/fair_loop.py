"""FairLoop: the epochs of a fair training; mutable, and gone when the training is done."""

from dataclasses import asdict
from typing import TYPE_CHECKING, Any

import numpy as np

from feta.arrays import Counts, Flags, Matrix, Vector
from feta.rule import Tolerance
from feta.scorer.network.network import Network
from feta.train.checkpoint_file import Checkpoint
from feta.train.ensemble_stack import Shape, Stack, import_torch
from feta.train.run import Epoch, Fairness, TrainingRun
from feta.train.selection import nearest_to_ideal
from feta.train.split import Split
from feta.train.subset import draw
from feta.train.task import Task
from feta.train.violation import Violations, violations
from feta.train.worst_counterparts import worst_counterparts

if TYPE_CHECKING:
    from feta.train.ce_fair import CEFairTrainer
    from feta.train.plain import Progress


class FairLoop:
    """One network, its people, and where its training stands."""

    def __init__(
        self, trainer: "CEFairTrainer", task: Task, network: Network, split: Split
    ) -> None:
        self.trainer, self.task, self.split, self.given = trainer, task, split, network
        self.scaling = trainer.scaling(split.people)
        self.shape = Shape.of(network)
        start = self.shape.flat(self.scaling.inside(network))
        self.stack = Stack(self.shape, [start], [trainer.rate])
        self.people = self.scaling(split.people)
        self.random = np.random.default_rng([trainer.seed, 2])
        self.epochs: list[Epoch] = []
        self.best = start

    def run(self, file: Checkpoint, progress: "Progress | None") -> TrainingRun:
        """Train to the last epoch and choose the one nearest to the ideal."""
        trainer = self.trainer
        start = self._resume(file) or self._measure(np.arange(len(self.split.people)))
        while len(self.epochs) < trainer.epochs:
            self._epoch()
            if file.due(last=len(self.epochs) == trainer.epochs):
                self._save(file, start)
            if progress is not None:
                progress(len(self.epochs) / trainer.epochs)
        network = self._network(self.best)
        return TrainingRun(
            network, tuple(self.epochs), self._nearest() + 1, start, trainer.select_on
        )

    def _save(self, file: Checkpoint, start: Fairness) -> None:
        state = {
            "random": self.random.bit_generator.state,
            "start": asdict(start),
            "epochs": [asdict(one) for one in self.epochs],
        }
        file.save(self.stack.state() | {"best": self.best}, state)

    def _resume(self, file: Checkpoint) -> Fairness | None:
        found = file.load()
        if found is None:
            return None
        arrays, state = found
        self.stack.restore(arrays)
        self.best = arrays["best"]
        self.random.bit_generator.state = state["random"]
        self.epochs = [_epoch(one) for one in state["epochs"]]
        return Fairness(**state["start"])

    def _epoch(self) -> None:
        trainer, split = self.trainer, self.split
        used = draw(
            len(split.people), trainer.sample_fraction, trainer.subset, trainer.seed, self.random
        )
        order = self.random.permutation(used)
        losses: list[float] = []
        met = []
        for start in range(0, len(order), trainer.batch_size):
            rows = order[start : start + trainer.batch_size]
            network = self._network(self.stack.rows()[0])
            if trainer.span_penalty is None:
                found, loss = self._counterexample_step(network, rows)
            else:
                found, loss = self._span_step(network, rows, trainer.span_penalty)
            if loss is not None:
                losses.append(loss)
            met.append(found)
        joined = Violations(
            *(np.concatenate([getattr(one, name) for one in met]) for name in Violations.__slots__)
        )
        number = len(self.epochs) + 1
        fairness = self._fairness(joined, split.targets[order])
        self.epochs.append(
            Epoch(number, float(np.mean(losses or 0.0)), fairness, self._measure(used))
        )
        if self._nearest() == number - 1:
            self.best = self.stack.rows()[0]

    def _network(self, numbers: Vector) -> Network:
        """Make the network of these numbers, in people's own units: it is what is searched."""
        return self.shape.network(numbers, self.scaling.outside)

    def _counterexample_step(
        self, network: Network, rows: Counts
    ) -> tuple[Violations, float | None]:
        """Step down the mean loss over the people kept and the counterexamples; None without any."""
        torch, trainer, split = import_torch(), self.trainer, self.split
        numbers = trainer.sensitive_numbers
        found = violations(
            trainer.space,
            network,
            self.task,
            split.people[rows],
            numbers=numbers,
            engine=trainer.engine,
        )
        kept = rows[found.apart | self._kept(len(rows))]
        labels = found.decisions if trainer.label == "decision" else split.targets[rows]
        targets = np.concatenate([split.targets[kept], labels[found.apart]])
        if not len(targets):
            return found, None
        weights = np.ones(len(targets))
        weights[len(kept) :] = trainer.ce_weight
        weights /= weights.sum()
        added = self.scaling(found.counterparts[found.apart])
        scores = self.stack.scores(
            torch.from_numpy(np.concatenate([self.people[kept], added])[None])
        )
        losses = self.task.losses(scores, torch.from_numpy(targets))
        total = (losses * torch.from_numpy(weights)).sum(-1)
        self.stack.step(total)
        return found, float(total.detach())

    def _kept(self, n_people: int) -> Flags:
        share = self.trainer.kept_share
        if share in (0.0, 1.0):
            return np.full(n_people, share == 1.0)
        return self.random.random(n_people) < share

    def _span_step(
        self, network: Network, rows: Counts, penalty: float
    ) -> tuple[Violations, float]:
        """Step down the mean loss plus the penalty times everybody's span of scores.

        Its slope goes through the two counterparts only, since they are the extremes (Danskin).
        """
        torch, trainer = import_torch(), self.trainer
        people = self.split.people[rows]
        up = np.ones(len(rows), dtype=bool)
        twice, numbers = np.concatenate([people, people]), trainer.sensitive_numbers
        ends, values = worst_counterparts(
            trainer.space,
            network,
            twice,
            np.concatenate([up, ~up]),
            numbers=numbers,
            engine=trainer.engine,
        )
        whole = np.concatenate([self.people[rows], self.scaling(ends)])[None]
        scores, n_people = self.stack.scores(torch.from_numpy(whole)), len(rows)
        targets = torch.from_numpy(self.split.targets[rows])
        losses = self.task.losses(scores[:, :n_people], targets).mean(-1)
        highest, lowest = scores[:, n_people : 2 * n_people, 0], scores[:, 2 * n_people :, 0]
        losses = losses + penalty * (highest - lowest).mean(-1)
        self.stack.step(losses)
        return self._ends(network, people, ends, values), float(losses.detach())

    def _ends(self, network: Network, people: Matrix, ends: Matrix, values: Vector) -> Violations:
        """Summarize a span step: of the two ends, the one farther from the person's own score."""
        own = network(people)[:, 0]
        n_people = len(own)
        rises = values[:n_people] - own >= own - values[n_people:]
        decided = self.task.decisions(values[:, None])
        mine = self.task.decisions(own[:, None])
        if isinstance(self.task.rule, Tolerance):
            spans = values[:n_people] - values[n_people:]
            apart = spans > self.task.rule.epsilon
            rows = np.where(rises[:, None], ends[:n_people], ends[n_people:])
            return Violations(mine, apart, rows, np.where(apart, spans, 0.0))
        changed = decided.reshape(2, n_people) != mine
        apart, rises = changed.any(axis=0), np.where(changed.any(axis=0), changed[0], rises)
        chosen = np.where(rises, values[:n_people], values[n_people:])
        rows = np.where(rises[:, None], ends[:n_people], ends[n_people:])
        return Violations(mine, apart, rows, np.where(apart, np.abs(chosen - own), 0.0))

    def _measure(self, used: Counts) -> Fairness:
        """Look at the people that the epoch is chosen by, over whole numbers."""
        split, network = self.split, self._network(self.stack.rows()[0])
        if self.trainer.select_on == "validation":
            people, targets = split.held, split.held_targets
        else:
            people, targets = split.people[used], split.targets[used]
        found = violations(
            self.trainer.space,
            network,
            self.task,
            people,
            numbers="integer",
            engine=self.trainer.engine,
            nearly=True,
        )
        return self._fairness(found, targets)

    def _fairness(self, found: Violations, targets: Vector) -> Fairness:
        accuracy = self.task.accuracy(found.decisions, targets)
        return Fairness.of(found, accuracy, scores=isinstance(self.task.rule, Tolerance))

    def _nearest(self) -> int:
        return nearest_to_ideal(
            [(one.chosen_by.accuracy, one.chosen_by.ce_rate) for one in self.epochs]
        )


def _epoch(told: dict[str, Any]) -> Epoch:
    met, chosen_by = Fairness(**told["met"]), Fairness(**told["chosen_by"])
    return Epoch(told["number"], told["loss"], met, chosen_by)
