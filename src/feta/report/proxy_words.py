"""Proxies in plain words."""

from collections.abc import Iterator

from feta.metrics.estimate import Estimate
from feta.metrics.overlap import Overlap
from feta.metrics.proxy_measures import REGRESSION, ProxyMeasures
from feta.metrics.reinference import Reinference

# From this share of people on, a vote is called extrapolated.
MANY = 0.05

INTERVALS = (
    "Intervals of 95 % are from influence functions over the measured people, for shares "
    "Wilson's. They do not cover the estimate of P(group | other columns), an additive logistic "
    "regression that is fitted to other people."
)

# Measured on Law School: −0.47 for a vote that re-infers nothing, against a regression that fits
# the labels better.
OTHER_KIND = (
    "The slope is a rough indication only: where the regression fits the labels better or worse "
    "than the model, that difference can move it by one half. feta compare measures each score "
    "against one of its own kind."
)


def proxy_lines(measures: ProxyMeasures) -> Iterator[str]:
    """Yield sentences about what the other columns reveal, and what the model makes of it."""
    for overlap in measures.overlaps:
        yield _overlap_words(overlap)
    yield from extrapolations(measures.overlaps)
    if measures.reinference is None:
        yield f"Re-inference: not measured: {measures.reference}."
    else:
        yield from _reinference_words(measures.reinference, measures.reference)
        if measures.reference == REGRESSION:
            yield OTHER_KIND
        yield f"Measured on {measures.n_people:,} people. {INTERVALS}"


def extrapolations(overlaps: tuple[Overlap, ...]) -> Iterator[str]:
    """Yield one warning per attribute for which the vote of counterparts extrapolates."""
    for overlap in overlaps:
        if overlap.outside.value >= MANY:
            yield (
                f"Warning: for {percent(overlap.outside)} of people, a vote over "
                f"{overlap.attribute} extrapolates: nearly nobody of another group has similar "
                "other columns, so no data show how such a person would be scored."
            )


def _overlap_words(overlap: Overlap) -> str:
    return (
        f"Overlap: the other columns reveal {overlap.attribute} for {percent(overlap.outside)} of "
        "people (a group has an estimated probability below 1 % or above 99 %)."
    )


def _reinference_words(measured: Reinference, reference: str) -> Iterator[str]:
    if measured.slope is None:
        yield (
            f"Re-inference slope: none; the other columns reveal nothing that changes {reference}."
        )
    else:
        yield (
            f"Re-inference slope: {plain_number(measured.slope)}, against {reference}. 0 is a "
            "score that is averaged over the sensitive values; 1 is a score that contains all that "
            "a guess from the other columns adds."
        )
    if measured.discrimination is not None:
        yield (
            f"Proxy discrimination (Lindholm et al.): {percent(measured.discrimination)} of the "
            "variance of the score is explained by no fixed mean over the sensitive values."
        )


def percent(estimate: Estimate) -> str:
    """Return a share with its interval, in percent."""
    low, high = estimate.interval
    return f"{100 * estimate.value:.1f} % [{100 * low:.1f}, {100 * high:.1f}]"


def plain_number(estimate: Estimate) -> str:
    """Return a figure with its interval."""
    low, high = estimate.interval
    return f"{estimate.value:.2f} [{low:.2f}, {high:.2f}]"
