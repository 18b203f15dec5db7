"""Quantities: a key's figures out of the measurements, derived ones too, and why one is missing."""

import math

from feta_paper.measurements import Measurements
from feta_paper.paper import COUNTERPART, Published, is_clock, published
from feta_paper.protocol import FOLDS
from feta_paper.statistics import Place, SampleSummary, place, summarize

VARIANTS = ("raw", "sample")

# Arms whose decision is a function of the other columns alone.
NEVER_APART = (
    "majority", "vote", "empirical_vote", "trained_vote", "trained_empirical_vote", "other_batch_vote", "default_vote", "span_vote",
    "chosen", "blind_fixed", "blind_fresh", "blind_full", "blind_logistic",
)  # fmt: skip


def figures(measured: Measurements, key: str) -> list[float]:
    """Give a key's figures, a fold each; empty if it was not measured."""
    known = measured.figures.get(key) or measured.times.get(key)
    if known:
        return known
    arm, _, quantity = key.rpartition(".")
    match quantity:
        case "ratio" | "single_ratio":
            clock = quantity.replace("ratio", "seconds")
            return _over(measured.times.get(f"{arm}.{clock}", []), measured.times.get(f"forward.{clock}", []))  # fmt: skip
        case "uncertified":
            return [100 - one for one in figures(measured, f"{arm}.certified")]
        case "naive_total" | "vectorized_total" | "milp_total" | "compiled_total":
            each = figures(measured, f"{arm}.{quantity.replace('_total', '_seconds')}")
            return [one * measured.rows / FOLDS for one in each]  # however many folds were run
        case _:
            return []


def _over(seconds: list[float], forward: list[float]) -> list[float]:
    """Divide fold by fold: a batch by a batch, one person by one person."""
    if len(seconds) != len(forward):
        return []
    return [a / b if b else math.nan for a, b in zip(seconds, forward, strict=True)]


def found(measured: Measurements, key: str) -> SampleSummary | None:
    """Summarize a key's figures over folds."""
    return summarize(figures(measured, key))


def why_missing(measured: Measurements, key: str) -> str:
    """Say why a key was not measured: the reason given for it, its arm or its variant."""
    key = key.replace("_total", "_seconds").replace("uncertified", "certified")
    parts = key.removesuffix("ratio").split(".")
    tries = [".".join(parts[:n]) for n in range(len(parts), 0, -1)]
    tries.append(key.removesuffix("_seconds"))  # "counting.milp" is both of its clocks
    if parts[0] in VARIANTS:
        tries += [".".join(parts[1:n]) for n in range(len(parts), 1, -1)]
    return next((measured.missing[one] for one in tries if one in measured.missing), "")


def by_construction(key: str) -> bool:
    """Say whether a rate is 0 whatever the run: a vote, and a constant, treat nobody apart."""
    arm, _, quantity = key.rpartition(".")
    return arm.rpartition(".")[2] in NEVER_APART and quantity in {"flip_rate", "ce_rate"}


def is_another(measured: Measurements) -> bool:
    """Say whether the paper's figures are of another data set than ours."""
    return COUNTERPART.get(measured.dataset) != measured.dataset


def papers(measured: Measurements, key: str) -> Published | None:
    """Give the paper's figure beside a key, whatever the variant it was measured in."""
    variant, _, rest = key.partition(".")
    dataset = COUNTERPART.get(measured.dataset)
    return published(dataset, rest if variant in VARIANTS else key) if dataset else None


def placed(measured: Measurements, key: str) -> Place | None:
    """Say where our mean lies beside the paper's; never across data sets, never for clocks."""
    ours, paper = found(measured, key), papers(measured, key)
    if ours is None or paper is None or is_another(measured) or is_clock(key):
        return None
    return place(ours.mean, paper)
