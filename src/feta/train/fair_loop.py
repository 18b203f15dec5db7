"""The epochs of a fair training."""

from dataclasses import asdict
from typing import TYPE_CHECKING, Any

import numpy as np

from feta.arrays import Counts, Flags, Matrix, Vector
from feta.scorer.network.network import Network
from feta.train.checkpoint_file import Checkpoint
from feta.train.ensemble_stack import Shape, Stack
from feta.train.import_torch import import_torch
from feta.train.run import Epoch, Fairness, TrainingRun
from feta.train.selection import nearest_to_ideal
from feta.train.split import Split, draw
from feta.train.task import Task
from feta.train.violation import Violations, violations
from feta.train.worst_counterparts import worst_counterparts

if TYPE_CHECKING:
    from feta.train.ce_fair import CEFairTrainer
    from feta.train.plain import Progress


class FairLoop:
    """One network, its people, and the state of its training; discarded after the training."""

    def __init__(
        self, trainer: "CEFairTrainer", task: Task, network: Network, split: Split
    ) -> None:
        self.trainer, self.task, self.split = trainer, task, split
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
            self._run_epoch()
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
            "epochs": [asdict(epoch) for epoch in self.epochs],
        }
        file.save(self.stack.state() | {"best": self.best}, state)

    def _resume(self, file: Checkpoint) -> Fairness | None:
        checkpoint = file.load()
        if checkpoint is None:
            return None
        arrays, state = checkpoint
        self.stack.restore(arrays)
        self.best = arrays["best"]
        self.random.bit_generator.state = state["random"]
        self.epochs = [_read_epoch(epoch) for epoch in state["epochs"]]
        return Fairness(**state["start"])

    def _run_epoch(self) -> None:
        trainer, split = self.trainer, self.split
        used = draw(
            len(split.people), trainer.sample_fraction, trainer.subset, trainer.seed, self.random
        )
        order = self.random.permutation(used)
        losses: list[float] = []
        batches = []
        for start in range(0, len(order), trainer.batch_size):
            rows = order[start : start + trainer.batch_size]
            network = self._network(self.stack.rows()[0])
            if trainer.span_penalty is None:
                results, loss = self._counterexample_step(network, rows)
            else:
                results, loss = self._span_step(network, rows, trainer.span_penalty)
            if loss is not None:
                losses.append(loss)
            batches.append(results)
        joined = Violations(
            *(
                np.concatenate([getattr(results, name) for results in batches])
                for name in Violations.__slots__
            )
        )
        number = len(self.epochs) + 1
        fairness = self._fairness(joined, split.targets[order])
        self.epochs.append(
            Epoch(number, float(np.mean(losses or 0.0)), fairness, self._measure(used))
        )
        if self._nearest() == number - 1:
            self.best = self.stack.rows()[0]

    def _network(self, numbers: Vector) -> Network:
        """Return the network of these parameters in raw units, as the search needs it."""
        return self.shape.network(numbers, self.scaling.outside)

    def _counterexample_step(
        self, network: Network, rows: Counts
    ) -> tuple[Violations, float | None]:
        """Take a step on the mean loss of people and counterexamples; None without any."""
        torch, trainer, split = import_torch(), self.trainer, self.split
        numbers = trainer.sensitive_numbers
        results = violations(
            trainer.space,
            network,
            self.task,
            split.people[rows],
            numbers=numbers,
            engine=trainer.engine,
        )
        used = rows[results.differs | self._keep(len(rows))]
        labels = results.decisions if trainer.label == "decision" else split.targets[rows]
        targets = np.concatenate([split.targets[used], labels[results.differs]])
        if not len(targets):
            return results, None
        weights = np.ones(len(targets))
        weights[len(used) :] = trainer.ce_weight
        weights /= weights.sum()
        added = self.scaling(results.counterparts[results.differs])
        scores = self.stack.scores(
            torch.from_numpy(np.concatenate([self.people[used], added])[None])
        )
        losses = self.task.losses(scores, torch.from_numpy(targets))
        total = (losses * torch.from_numpy(weights)).sum(-1)
        self.stack.step(total)
        return results, float(total.detach())

    def _keep(self, n_people: int) -> Flags:
        share = self.trainer.kept_share
        if share in (0.0, 1.0):
            return np.full(n_people, share == 1.0)
        return self.random.random(n_people) < share

    def _span_step(
        self, network: Network, rows: Counts, penalty: float
    ) -> tuple[Violations, float]:
        """Take a step on the mean loss plus the penalty times everybody's span of scores.

        The gradient depends on the two extreme counterparts only (Danskin's theorem).
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
        joined = np.concatenate([self.people[rows], self.scaling(ends)])[None]
        scores, n_people = self.stack.scores(torch.from_numpy(joined)), len(rows)
        targets = torch.from_numpy(self.split.targets[rows])
        losses = self.task.losses(scores[:, :n_people], targets).mean(-1)
        highest, lowest = scores[:, n_people : 2 * n_people, 0], scores[:, 2 * n_people :, 0]
        losses = losses + penalty * (highest - lowest).mean(-1)
        self.stack.step(losses)
        return self._span_results(network, people, ends, values), float(losses.detach())

    def _span_results(
        self, network: Network, people: Matrix, ends: Matrix, values: Vector
    ) -> Violations:
        """Summarize a span step by the end that is farther from the person's score."""
        reference = network(people)[:, 0]
        n_people = len(reference)
        rises = values[:n_people] - reference >= reference - values[n_people:]
        ends_decided = self.task.decisions(values[:, None])
        decisions = self.task.decisions(reference[:, None])
        tolerance = self.task.rule.tolerance
        if tolerance is not None:
            spans = values[:n_people] - values[n_people:]
            differs = spans > tolerance
            rows = np.where(rises[:, None], ends[:n_people], ends[n_people:])
            return Violations(decisions, differs, rows, np.where(differs, spans, 0.0))
        changed = ends_decided.reshape(2, n_people) != decisions
        differs, rises = changed.any(axis=0), np.where(changed.any(axis=0), changed[0], rises)
        chosen = np.where(rises, values[:n_people], values[n_people:])
        rows = np.where(rises[:, None], ends[:n_people], ends[n_people:])
        return Violations(
            decisions, differs, rows, np.where(differs, np.abs(chosen - reference), 0.0)
        )

    def _measure(self, used: Counts) -> Fairness:
        """Measure fairness on the selection people, over integer values."""
        split, network = self.split, self._network(self.stack.rows()[0])
        if self.trainer.select_on == "validation":
            people, targets = split.held, split.held_targets
        else:
            people, targets = split.people[used], split.targets[used]
        results = violations(
            self.trainer.space,
            network,
            self.task,
            people,
            numbers="integer",
            engine=self.trainer.engine,
            nearly=True,
        )
        return self._fairness(results, targets)

    def _fairness(self, results: Violations, targets: Vector) -> Fairness:
        accuracy = self.task.accuracy(results.decisions, targets)
        return Fairness.of(results, accuracy, scores=self.task.rule.tolerance is not None)

    def _nearest(self) -> int:
        return nearest_to_ideal(
            [(epoch.chosen_by.accuracy, epoch.chosen_by.ce_rate) for epoch in self.epochs]
        )


def _read_epoch(content: dict[str, Any]) -> Epoch:
    met, chosen_by = Fairness(**content["met"]), Fairness(**content["chosen_by"])
    return Epoch(content["number"], content["loss"], met, chosen_by)
