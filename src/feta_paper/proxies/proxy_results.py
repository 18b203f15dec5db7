"""The content of `results.json`: every figure of every unit, and means with intervals."""

import json
import math
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import numpy as np

from feta.io.regular_file import atomic_write
from feta_paper.journal import RunJournal
from feta_paper.proxies.proxy_run import ProxyRun
from feta_paper.proxies.settings import ProxySettings

FORMAT, VERSION = "feta-proxies", 1

# Half of what a 95 % interval leaves out is above it.
UPPER = 0.975


@dataclass(frozen=True, slots=True)
class MeanInterval:
    """A mean over draws, and the radius of its 95 % interval by Student's t; NaN for one draw."""

    mean: float
    radius: float
    n: int

    @classmethod
    def of(cls, values: Sequence[float]) -> "MeanInterval":
        """Summarize at least one value."""
        from scipy.stats import t  # noqa: PLC0415 - slow to import

        n = len(values)
        if n == 1:
            return cls(float(values[0]), math.nan, 1)
        error = float(np.std(values, ddof=1)) / math.sqrt(n)
        return cls(float(np.mean(values)), float(t.ppf(UPPER, n - 1)) * error, n)


@dataclass(frozen=True, eq=False)
class ProxyResults:
    """The figures of a finished run, by unit."""

    settings: ProxySettings
    figures: dict[str, dict[int, dict[str, float]]]  # name -> number -> figure -> value
    processor_seconds: float
    versions: dict[str, str]

    @classmethod
    def of(cls, run: ProxyRun, journal: RunJournal, versions: dict[str, str]) -> "ProxyResults":
        """Collect all results; every unit must be done."""
        done = journal.done()
        figures: dict[str, dict[int, dict[str, float]]] = {}
        seconds = 0.0
        for unit in run.units:
            result, _ = done[unit.key]
            figures.setdefault(unit.name, {})[unit.number] = result["figures"]
            seconds += result["processor_seconds"]
        return cls(run.settings, figures, seconds, versions)

    def mean(self, name: str, figure: str) -> MeanInterval | None:
        """Return the mean over the draws that have a figure; None if none has it."""
        draws = self.figures.get(name, {}).values()
        values = [figures[figure] for figures in draws if figure in figures]
        return MeanInterval.of(values) if values else None

    def difference(self, name: str, figure: str, other: str) -> MeanInterval | None:
        """Return the mean difference of two figures over the draws that have both."""
        draws = self.figures.get(name, {}).values()
        values = [one[figure] - one[other] for one in draws if figure in one and other in one]
        return MeanInterval.of(values) if values else None

    def write(self, path: Path) -> None:
        """Write as JSON, atomically."""
        content: dict[str, Any] = {
            "format": FORMAT,
            "version": VERSION,
            "digest": self.settings.digest,
            "settings": asdict(self.settings),
            "versions": self.versions,
            "processor_seconds": self.processor_seconds,
            "figures": self.figures,
        }
        with atomic_write(path) as part:
            text = json.dumps(content, indent=1, sort_keys=True)
            part.write_text(text + "\n", encoding="utf-8")
