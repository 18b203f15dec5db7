"""The steps on each fold, their order, and their share of the work."""

from collections.abc import Callable
from dataclasses import dataclass, replace

from feta_paper import arms, rivals, timing
from feta_paper.fold import Fold
from feta_paper.protocol import Protocol
from feta_paper.step_result import StepResult


@dataclass(frozen=True)
class Step:
    """One kind of work; the weight estimates its seconds, for the progress bar only."""

    name: str
    work: Callable[[Fold], StepResult]
    needs: tuple[str, ...] = ()
    weight: float = 1.0
    alone: bool = False  # measures times, so nothing else may run
    once: bool = False  # only on the first fold
    raw: bool = False  # also on unscaled inputs


@dataclass(frozen=True)
class Unit:
    """One step on one fold; the variant "raw." has unscaled inputs."""

    step: Step
    fold_number: int
    variant: str = ""

    @property
    def name(self) -> str:
        """The step's name in the journal."""
        return f"{self.variant}{self.step.name}"

    @property
    def key(self) -> tuple[str, int]:
        """The key in the journal."""
        return self.name, self.fold_number

    @property
    def title(self) -> str:
        """The name in the progress bar."""
        return f"{self.name} on fold {self.fold_number + 1}"

    @property
    def weight(self) -> float:
        """The estimated seconds of the step."""
        return self.step.weight

    @property
    def alone(self) -> bool:
        """Whether nothing else may run."""
        return self.step.alone

    @property
    def needs(self) -> set[tuple[str, int]]:
        """The keys of the units that must be done before."""
        return {(f"{self.variant}{name}", self.fold_number) for name in self.step.needs}


STEPS = (
    Step("nn_b", arms.nn_b, weight=30, raw=True),
    Step("start", arms.best_start, weight=30),
    Step("blind_full", rivals.blind_full, weight=28, raw=True),
    Step("trained", arms.trained, ("nn_b",), weight=5, raw=True),
    Step("other_batch", arms.other_batch, ("nn_b",), weight=5),
    Step("default", arms.default_training, ("nn_b", "start"), weight=12),
    Step("span", arms.span_training, ("nn_b", "start"), weight=14),
    Step("blind_paper", rivals.blind_paper, ("nn_b",), raw=True),
    Step("blind_logistic", rivals.logistic),
    Step("lcifr", rivals.lcifr, weight=9),
    Step("lcifr_all", rivals.lcifr_all, weight=9),
    Step("lcifr_original", rivals.lcifr_original, weight=9),
    Step("chosen", arms.chosen, ("nn_b", "default", "span", "blind_full", "blind_logistic")),
    Step("votes", timing.time_votes, ("nn_b", "trained"), alone=True),
    Step("ways", timing.time_counting, ("nn_b",), weight=5, alone=True, once=True),
)


def units_of(protocol: Protocol, folds: int) -> list[Unit]:
    """List all units, each after those that it needs."""
    # If NN_b is the best epoch, it already is the start of FETA's training.
    skipped = set() if protocol.epoch == "last" else {"start"}
    skipped |= set() if protocol.numbers else {"lcifr_all"}
    steps = [_without(step, skipped) for step in STEPS if step.name not in skipped]
    units = []
    for step in steps:
        for number in range(1 if step.once else folds):
            units.append(Unit(step, number))
            if protocol.raw and step.raw:
                units.append(Unit(step, number, "raw."))
    return units


def _without(step: Step, names: set[str]) -> Step:
    return replace(step, needs=tuple(name for name in step.needs if name not in names))
