"""Wording: figures, times and places as the page prints them."""

import math

from feta_paper.statistics import Place, SampleSummary

# A word and a sign: the page is read in grey, and read aloud.
MARKS: dict[Place, str] = {"within": "✓ within", "above": "▲ above", "below": "▼ below"}

SCALES = ((1.0, "s"), (1e-3, "ms"), (1e-6, "µs"), (1e-9, "ns"))


def with_spread(summary: SampleSummary) -> str:
    """Give a rate in per cent: mean ± deviation; a third decimal for what would be 0.00."""
    small = 0 < abs(summary.mean) < 0.01  # noqa: PLR2004 - below it two decimals show nothing
    digits = 3 if small else 2
    if summary.n == 1:
        return f"{summary.mean:.{digits}f}"
    return f"{summary.mean:.{digits}f} ± {summary.std:.{digits}f}"


def time_with_spread(summary: SampleSummary) -> str:
    """Give a time in the unit that suits its mean."""
    scale, unit = next((one for one in SCALES if summary.mean >= one[0]), SCALES[-1])
    return f"{_three(summary.mean / scale, summary.std / scale, summary.n)} {unit}"


def ratio(summary: SampleSummary) -> str:
    """Give how many times as long."""
    return f"{_three(summary.mean, summary.std, summary.n)} ×"


def _three(mean: float, std: float, n: int) -> str:
    """Show about three digits of the mean, and the deviation to the same decimals."""
    size = math.floor(math.log10(abs(mean))) if mean else 0
    digits = min(max(2 - size, 0), 6)
    return f"{mean:,.{digits}f}" + (f" ± {std:,.{digits}f}" if n > 1 else "")


def signed(value: float) -> str:
    """Show a difference with its sign; the minus is a minus, not a hyphen."""
    return f"{value:+.2f}".replace("-", "−")
