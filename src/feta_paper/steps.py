"""Steps: what is done on each fold, what each needs first, and how much of the work it is."""

from collections.abc import Callable
from dataclasses import dataclass, replace

from feta_paper import arms, rivals, timing
from feta_paper.fold import Bench
from feta_paper.outcome import StepResult
from feta_paper.protocol import Protocol


@dataclass(frozen=True)
class Step:
    """One kind of work; the weight is a guess at its seconds, for the progress bar only."""

    name: str
    work: Callable[[Bench], StepResult]
    needs: tuple[str, ...] = ()
    weight: float = 1.0
    alone: bool = False  # times are taken with nothing beside
    once: bool = False  # on the first fold only
    raw: bool = False  # is done on unscaled inputs, too


@dataclass(frozen=True)
class Unit:
    """One step on one fold; variant "raw." is the same on unscaled inputs."""

    step: Step
    fold: int
    variant: str = ""

    @property
    def name(self) -> str:
        """A name for the journal."""
        return f"{self.variant}{self.step.name}"

    @property
    def key(self) -> tuple[str, int]:
        """What the journal knows it by."""
        return self.name, self.fold

    @property
    def needs(self) -> set[tuple[str, int]]:
        """What must be done first."""
        return {(f"{self.variant}{name}", self.fold) for name in self.step.needs}


STEPS = (
    Step("nn_b", arms.nn_b, weight=30, raw=True),
    Step("start", arms.best_start, weight=30),
    Step("blind_full", rivals.blind_full, weight=28, raw=True),
    Step("trained", arms.trained, ("nn_b",), weight=5, raw=True),
    Step("other_batch", arms.other_batch, ("nn_b",), weight=5),
    Step("default", arms.own_default, ("nn_b", "start"), weight=12),
    Step("span", arms.own_span, ("nn_b", "start"), weight=14),
    Step("blind_paper", rivals.blind_paper, ("nn_b",), raw=True),
    Step("blind_logistic", rivals.logistic),
    Step("lcifr", rivals.lcifr, weight=9),
    Step("lcifr_all", rivals.lcifr_all, weight=9),
    Step("lcifr_original", rivals.lcifr_original, weight=9),
    Step("chosen", arms.chosen, ("nn_b", "default", "span", "blind_full", "blind_logistic")),
    Step("votes", timing.votes, ("nn_b", "trained"), alone=True),
    Step("ways", timing.ways, ("nn_b",), weight=5, alone=True, once=True),
)


def units_of(protocol: Protocol, folds: int) -> list[Unit]:
    """List all there is to do, what is needed first in front."""
    left_out = set() if protocol.epoch == "last" else {"start"}  # else NN_b is the best already
    left_out |= set() if protocol.numbers else {"lcifr_all"}
    steps = [_without(one, left_out) for one in STEPS if one.name not in left_out]
    units = []
    for step in steps:
        for fold in range(1 if step.once else folds):
            units.append(Unit(step, fold))
            if protocol.raw and step.raw:
                units.append(Unit(step, fold, "raw."))
    return units


def _without(step: Step, names: set[str]) -> Step:
    return replace(step, needs=tuple(name for name in step.needs if name not in names))
