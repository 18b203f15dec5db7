"""The units of the run: each trains and measures all arms on one draw of people."""

import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import cached_property, partial
from pathlib import Path

from feta_paper.journal import Key
from feta_paper.proxies.planted_arms import measure_planted
from feta_paper.proxies.real import measure_real
from feta_paper.proxies.settings import ProxySettings
from feta_paper.run import UnitResult, one_thread

# Estimated seconds per epoch of plain training, and of everything else, on semi-synthetic people.
EPOCH_SECONDS, REST_SECONDS = 0.05, 10.0


@dataclass(frozen=True)
class ProxyUnit:
    """One draw of people; units of the same name are averaged."""

    name: str
    number: int  # the seed, or the seed and the fold
    weight: float  # estimated seconds
    measure: Callable[[], dict[str, float]]
    needs: frozenset[Key] = frozenset()
    alone: bool = False

    @property
    def key(self) -> Key:
        """The key in the journal."""
        return self.name, self.number

    @property
    def title(self) -> str:
        """The name in the progress bar."""
        return f"{self.name} {self.number}"


@dataclass(frozen=True)
class ProxyRun:
    """The settings and the folder of a run."""

    settings: ProxySettings
    folder: Path

    @cached_property
    def units(self) -> list[ProxyUnit]:
        """All units; none needs another."""
        return [*_planted_units(self.settings), *_real_units(self.settings)]

    def tidy(self) -> None:
        """Do nothing: no unit leaves files."""

    def carry_out(
        self, index: int, known: Mapping[str, float], progress: Callable[[float], None]
    ) -> UnitResult:
        """Run one unit."""
        del known, progress  # units are independent and short
        started, used = time.perf_counter(), time.process_time()
        with one_thread():
            figures = self.units[index].measure()
        result = {"figures": figures, "processor_seconds": time.process_time() - used}
        return result, time.perf_counter() - started


def planted_name(training: str, correlation: float) -> str:
    """Return the name of the units on semi-synthetic people."""
    return f"planted.{training}.{correlation:g}"


def real_name(people: str) -> str:
    """Return the name of the units on a data set."""
    return f"real.{people}"


def _planted_units(settings: ProxySettings) -> list[ProxyUnit]:
    return [
        ProxyUnit(
            planted_name(training.name, correlation),
            seed,
            REST_SECONDS + 2 * EPOCH_SECONDS * training.epochs,
            partial(measure_planted, settings, training, correlation, seed),
        )
        for seed in settings.seeds
        for training in settings.trainings
        for correlation in settings.correlations
    ]


def _real_units(settings: ProxySettings) -> list[ProxyUnit]:
    return [
        ProxyUnit(
            real_name(people.name),
            seed * settings.folds + fold,
            people.weight,
            partial(measure_real, settings, people, seed, fold),
        )
        for people in settings.real
        for seed in people.seeds
        for fold in range(settings.folds)
    ]
