"""Figures of a key in the measurements, including derived ones, and why a figure is missing."""

import math

from feta_paper.measurements import Measurements
from feta_paper.paper import COUNTERPART, Published, is_time, published
from feta_paper.protocol import FOLDS
from feta_paper.statistics import Place, SampleSummary, place, summarize

VARIANTS = ("raw", "sample")

# Arms that are fair by construction: their decision is a function of the other columns alone.
FAIR_ARMS = (
    "majority", "vote", "empirical_vote", "trained_vote", "trained_empirical_vote",
    "other_batch_vote", "default_vote", "span_vote", "chosen", "blind_fixed", "blind_fresh",
    "blind_full", "blind_logistic",
)  # fmt: skip


def fold_values(measured: Measurements, key: str) -> list[float]:
    """Return the figures of a key, one per fold; empty if it was not measured."""
    values = measured.figures.get(key) or measured.times.get(key)
    if values:
        return values
    arm, _, quantity = key.rpartition(".")
    match quantity:
        case "ratio" | "single_ratio":
            time = quantity.replace("ratio", "seconds")
            forward = measured.times.get(f"forward.{time}", [])
            return _divide(measured.times.get(f"{arm}.{time}", []), forward)
        case "uncertified":
            return [100 - certified for certified in fold_values(measured, f"{arm}.certified")]
        case "naive_total" | "vectorized_total" | "milp_total" | "compiled_total":
            seconds = fold_values(measured, f"{arm}.{quantity.replace('_total', '_seconds')}")
            # The size of a test fold does not depend on how many folds were run.
            return [per_person * measured.rows / FOLDS for per_person in seconds]
        case _:
            return []


def _divide(seconds: list[float], forward: list[float]) -> list[float]:
    """Divide fold by fold: a batch by a batch, one person by one person."""
    if len(seconds) != len(forward):
        return []
    return [a / b if b else math.nan for a, b in zip(seconds, forward, strict=True)]


def summary_of(measured: Measurements, key: str) -> SampleSummary | None:
    """Summarize the figures of a key over folds."""
    return summarize(fold_values(measured, key))


def why_missing(measured: Measurements, key: str) -> str:
    """Return why a key was not measured: the reason stored for it, its arm or its variant."""
    key = key.replace("_total", "_seconds").replace("uncertified", "certified")
    parts = key.removesuffix("ratio").split(".")
    names = [".".join(parts[:n]) for n in range(len(parts), 0, -1)]
    names.append(key.removesuffix("_seconds"))  # "counting.milp" covers both of its times
    if parts[0] in VARIANTS:
        names += [".".join(parts[1:n]) for n in range(len(parts), 1, -1)]
    return next((measured.missing[name] for name in names if name in measured.missing), "")


def zero_by_construction(key: str) -> bool:
    """Return whether a rate is 0 in every run: votes and constants have no counterexamples."""
    arm, _, quantity = key.rpartition(".")
    return arm.rpartition(".")[2] in FAIR_ARMS and quantity in {"flip_rate", "ce_rate"}


def other_dataset(measured: Measurements) -> bool:
    """Return whether the paper's figures are of another data set than ours."""
    return COUNTERPART.get(measured.dataset) != measured.dataset


def paper_figure(measured: Measurements, key: str) -> Published | None:
    """Return the paper's figure for a key, in any variant of ours."""
    variant, _, rest = key.partition(".")
    dataset = COUNTERPART.get(measured.dataset)
    return published(dataset, rest if variant in VARIANTS else key) if dataset else None


def place_of(measured: Measurements, key: str) -> Place | None:
    """Compare our mean with the paper's; None for another data set and for times."""
    ours, paper = summary_of(measured, key), paper_figure(measured, key)
    if ours is None or paper is None or other_dataset(measured) or is_time(key):
        return None
    return place(ours.mean, paper)
