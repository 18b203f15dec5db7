"""The result of one step on one fold."""

from dataclasses import dataclass, field

from feta.scorer.network.network import Network

# One figure of a fold, or a list that is not per fold.
Figures = dict[str, float | list[float]]


@dataclass(frozen=True)
class StepResult:
    """Figures, curves, times and texts by key; networks by name, stored for later steps."""

    figures: Figures = field(default_factory=dict)
    curves: dict[str, list[float]] = field(default_factory=dict)
    times: Figures = field(default_factory=dict)
    missing: dict[str, str] = field(default_factory=dict)
    notes: list[str] = field(default_factory=list)
    settings: dict[str, str] = field(default_factory=dict)
    networks: dict[str, Network] = field(default_factory=dict)
