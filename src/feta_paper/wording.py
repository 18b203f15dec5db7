"""Formats of figures, times and comparisons on the page."""

import math

from feta_paper.statistics import Place, SampleSummary

# A word and a symbol: the page must be readable without colors and by a screen reader.
MARKS: dict[Place, str] = {"within": "✓ within", "above": "▲ above", "below": "▼ below"}

SCALES = ((1.0, "s"), (1e-3, "ms"), (1e-6, "µs"), (1e-9, "ns"))


def with_spread(summary: SampleSummary) -> str:
    """Format a rate in percent: mean ± deviation, with a third decimal if it would be 0.00."""
    small = 0 < abs(summary.mean) < 0.01  # noqa: PLR2004 - two decimals would be 0.00
    digits = 3 if small else 2
    if summary.n == 1:
        return f"{summary.mean:.{digits}f}"
    return f"{summary.mean:.{digits}f} ± {summary.std:.{digits}f}"


def time_with_spread(summary: SampleSummary) -> str:
    """Format a time in the unit that suits its mean."""
    scale, unit = next((row for row in SCALES if summary.mean >= row[0]), SCALES[-1])
    return f"{_three_digits(summary.mean / scale, summary.std / scale, summary.n)} {unit}"


def ratio(summary: SampleSummary) -> str:
    """Format a ratio of times."""
    return f"{_three_digits(summary.mean, summary.std, summary.n)} ×"


def _three_digits(mean: float, std: float, n: int) -> str:
    """Format the mean with about three digits, and the deviation with the same decimals."""
    size = math.floor(math.log10(abs(mean))) if mean else 0
    digits = min(max(2 - size, 0), 6)
    return f"{mean:,.{digits}f}" + (f" ± {std:,.{digits}f}" if n > 1 else "")


def signed(value: float) -> str:
    """Format a difference with its sign; a negative one has a minus sign, not a hyphen."""
    return f"{value:+.2f}".replace("-", "−")
