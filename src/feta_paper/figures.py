"""The paper's figures and ours as charts, each with a caption that states the result."""

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from markupsafe import Markup

from feta.io.sanitize import joined
from feta_paper.charts import (
    LETTER,
    LINE,
    WIDTH,
    Scale,
    band,
    bar,
    chart,
    line,
    linear,
    logarithmic,
    marker,
    path,
    spread_out,
    text,
    x_axis,
    y_axis,
)
from feta_paper.measurements import Measurements
from feta_paper.paper import COUNTERPART, NAMES, Published
from feta_paper.quantities import other_dataset, paper_figure, summary_of
from feta_paper.timing import LOOP_COUNTERPARTS
from feta_paper.trade_off import best, points, trade_off
from feta_paper.wording import ratio

CURVES = {
    "loss": "loss",
    "average_violation": "average violation",
    "maximum_violation": "maximum violation",
    "ce_rate": "CE rate, %",
    "accuracy": "accuracy, %",
}
COSTS = {
    "naive": ("one by one", "square", "dotted"),
    "vectorized": ("vectorized", "triangle", "dashed"),
    "compiled": ("compiled search", "circle", "solid"),
}
RATIOS = {
    "vote.single_ratio": "FETA",
    "trained_vote.single_ratio": "FETA, after training",
    "vote.ratio": "FETA, batch against batch",
}


@dataclass(frozen=True, slots=True)
class Figure:
    """One or more charts with a caption."""

    title: str
    drawings: tuple[Markup, ...]
    caption: str


def figures_of(measured: Measurements) -> list[Figure]:
    """Draw all figures that have measurements."""
    figures = (
        ce_rates(measured),
        ratios(measured),
        curves(measured),
        trade_off_figure(measured),
        costs(measured),
    )
    return [figure for figure in figures if figure is not None]


def paper_name(measured: Measurements) -> str:
    """Return the name of the paper's figures in a chart."""
    name = NAMES.get(COUNTERPART.get(measured.dataset, ""), "")
    return f"paper, {name}" if other_dataset(measured) else "paper"


def ce_rates(measured: Measurements) -> Figure | None:
    """Draw the CE rate before and after training, ours and the paper's."""
    moments = {"nn_b.ce_rate": "before training", "trained.ce_rate": "after CE-Fair training"}
    if not any(summary_of(measured, key) for key in moments):
        return None
    rows: list[tuple[str, str, float, float, str]] = []
    for key, moment in moments.items():
        ours, paper = summary_of(measured, key), paper_figure(measured, key)
        if ours:
            rows.append((moment, f"FETA, {measured.title}", ours.mean, ours.std, "ours"))
        if paper:
            rows.append((moment, paper_name(measured), paper.mean, paper.std or 0.0, "theirs"))
    drawing = _rate_bars(rows)
    caption = (
        "The bar is the mean over folds, the line one deviation in each direction. "
        f"Solid: FETA on {measured.title}; hatched: the {paper_name(measured)}. {_fall(measured)}"
    )
    return Figure("CE rate", (drawing,), caption.strip())


def _rate_bars(rows: Sequence[tuple[str, str, float, float, str]]) -> Markup:
    """Draw one bar per row of (moment, name, mean, deviation, kind), grouped by moment."""
    scale = linear([0, *(mean + std for _, _, mean, std, _ in rows)], 8, WIDTH - 64, zero=True)
    parts, top, last = [], 0.0, ""
    for moment, name, mean, std, kind in rows:
        if moment != last:
            parts.append(text(8, top + 14, moment, kind="strong"))
            top, last = top + 20, moment
        middle = top + LINE + 10
        whisker = (scale(max(mean - std, 0)), middle, scale(mean + std), middle)
        parts += [
            text(8, top + 12, name),
            bar(8, top + LINE + 2, scale(mean) - 8, 16, kind),
            line(whisker, "axis thick"),
            text(whisker[2] + 6, middle + 4, f"{mean:.1f} %", kind="strong"),
        ]
        top += 42
    parts += x_axis(scale, top + 6, "people with a counterexample, %")
    return chart(top + 46, "CE rate before and after training", parts)


def _fall(measured: Measurements) -> str:
    before, after = summary_of(measured, "nn_b.ce_rate"), summary_of(measured, "trained.ce_rate")
    if not before or not after or not after.mean:
        return ""
    here = f"Result: training divides the rate by {before.mean / after.mean:.1f} here"
    first = paper_figure(measured, "nn_b.ce_rate")
    last = paper_figure(measured, "trained.ce_rate")
    if not first or not last:
        return f"{here}."
    return f"{here}, by {first.mean / last.mean:.1f} in the paper."


def ratios(measured: Measurements) -> Figure | None:
    """Draw how many forward passes a fair decision costs, on a logarithmic axis."""
    rows: list[tuple[str, float, str, str]] = []
    for key, name in RATIOS.items():
        ours = summary_of(measured, key)
        if ours and ours.mean > 0:
            rows.append((name, ours.mean, ratio(ours), "circle"))
    if not rows:
        return None
    paper = paper_figure(measured, "vote.single_ratio")
    if paper:
        rows.append((paper_name(measured), paper.mean, f"{paper.mean:,.0f} ×", "square"))
    caption = (
        "Filled: FETA, on this machine; hollow: as the paper prints it, on its machine. "
        "The axis is logarithmic."
    )
    if paper:
        caption += _ratio_result(measured, paper, rows[0][1])
    return Figure("Time of a fair decision", (_ratio_chart(rows),), caption)


def _ratio_result(measured: Measurements, paper: Published, ours: float) -> str:
    where = " on IPUMS Adult" if other_dataset(measured) else ""
    return (
        f" Result: a fair decision costs {paper.mean:,.0f} forward passes in the paper{where}, "
        f"{ours:.2g} with FETA, each for one person at a time."
    )


def _ratio_chart(rows: Sequence[tuple[str, float, str, str]]) -> Markup:
    """Draw one point per row of (name, ratio, text, shape)."""
    scale = logarithmic([1, *(mean for _, mean, _, _ in rows)], 14, WIDTH - 20)
    bottom = 26.0 + 40 * len(rows)
    one_pass = scale(1)
    anchor = "start" if one_pass < WIDTH / 2 else "end"
    parts = x_axis(scale, bottom, "times one forward pass (powers of ten)", top=20)
    parts.append(line((one_pass, 16, one_pass, bottom), "axis thick"))
    parts.append(text(one_pass, 12, "one forward pass", anchor))
    for index, (name, mean, words, shape) in enumerate(rows):
        height, end = 50.0 + 40 * index, scale(mean)
        label = f"{name}: {words}"
        width = len(label) * LETTER
        left = max(14.0, min(one_pass + 4, end, WIDTH - width))
        parts += [
            line((one_pass, height, end, height), "axis"),
            marker(shape, end, height, "ours" if shape == "circle" else "hollow"),
            bar(left - 2, height - 22, width, LINE, "ground"),
            text(left, height - 10, label),
        ]
    return chart(bottom + 42, "Inference time as a ratio to one forward pass", parts)


def curves(measured: Measurements) -> Figure | None:
    """Draw the training: one panel per quantity, with the mean and one deviation over folds."""
    known = [folds for key, folds in measured.curves.items() if key.startswith("trained.")]
    drawings = [
        _curve(measured.curves[f"trained.{name}"], title)
        for name, title in CURVES.items()
        if _complete(measured.curves.get(f"trained.{name}", []))
    ]
    if not drawings:
        return None
    n_folds = len(known[0])
    caption = (
        f"The line is the mean over {n_folds} fold{'s' if n_folds > 1 else ''}, the band one "
        "deviation in each direction; epoch 0 is NN_b, before training. All figures are of "
        "training people, in each epoch of those drawn for it, so they are not the test figures "
        "of the tables. The numbers are the first and the last mean; the chosen epoch may be "
        "another. The paper shows loss and average violation (Figure 3) as charts without numbers, "
        "so they cannot be compared. It states that the loss oscillates while the violation "
        f"falls.{_violation(measured)}"
    )
    return Figure("CE-Fair training, epoch by epoch", tuple(drawings), caption)


def _violation(measured: Measurements) -> str:
    folds = measured.curves.get("trained.average_violation", [])
    if not _complete(folds):
        return ""
    first, last = (float(np.mean([fold[epoch] for fold in folds])) for epoch in (0, -1))
    verb = "falls" if last < first else "rises"
    return f" Result: here the average violation {verb} from {first:.3g} to {last:.3g}."


def _complete(folds: Sequence[Sequence[float]]) -> bool:
    """Return whether a curve has at least two epochs, and finite numbers in all of them."""
    if not folds or min(map(len, folds)) <= 1:
        return False
    return all(math.isfinite(value) for fold in folds for value in fold)


def _curve(folds: Sequence[Sequence[float]], title: str) -> Markup:
    """Draw one quantity."""
    length = min(map(len, folds))
    values = np.array([fold[:length] for fold in folds])
    mean, std = values.mean(axis=0), values.std(axis=0)
    y = linear([*(mean - std), *(mean + std)], 150, 40)
    x = Scale(0, length - 1, 52, WIDTH - 14)
    along = [x(epoch) for epoch in range(length)]
    parts = [text(8, 14, title, kind="strong"), *y_axis(y, 52, WIDTH - 14)]
    parts.append(band(along, [y(low) for low in mean - std], [y(high) for high in mean + std]))
    parts.append(path([(a, y(b)) for a, b in zip(along, mean, strict=True)], "curve solid"))
    # A label is as wide as this many epochs, and must be above the band over all of them.
    near = math.ceil(length / 8)
    for epoch, over, anchor in ((0, slice(near), "start"), (-1, slice(-near, None), "end")):
        height = y((mean + std)[over].max()) - 5
        parts.append(text(along[epoch], height, f"{mean[epoch]:.3g}", anchor, "strong"))
    return chart(190, f"{title} by epoch", [*parts, *x_axis(x, 152, "epoch")])


def trade_off_figure(measured: Measurements) -> Figure | None:
    """Draw accuracy against CE rate for all arms."""
    drawing = trade_off(measured)
    if drawing is None:
        return None
    undominated = joined(f"“{point.name}”" for point in best(points(measured)))
    caption = (
        "Up is more accurate, left is fairer. At the left edge are the approaches without "
        "counterexamples, with their names. The dashed line joins the approaches that no other "
        f"one beats in both: {undominated}."
    )
    if not other_dataset(measured):
        caption += (
            " Hollow marks are the paper's figures for the same approach, "
            "joined to ours by a dotted line."
        )
    return Figure("Accuracy against CE rate", (drawing,), caption)


def costs(measured: Measurements) -> Figure | None:
    """Draw the time per person against the number of counterparts, both logarithmic."""
    sizes = measured.figures.get("cost.sizes", [])
    series = {}
    for way in COSTS:
        pairs = zip(sizes, measured.times.get(f"cost.{way}_seconds", []), strict=False)
        positive = [(size, seconds) for size, seconds in pairs if size > 0 and seconds > 0]
        if positive:
            series[way] = positive
    if not series:
        return None
    caption = (
        "Both axes are logarithmic. Result: the slope shows how the time grows with the lattice; "
        "enumeration grows with every counterpart. The time one by one is measured on at most "
        f"{LOOP_COUNTERPARTS} counterparts and extrapolated."
    )
    compiled, loop = series.get("compiled"), series.get("naive")
    if compiled and loop and compiled[-1][0] == loop[-1][0]:
        caption += (
            f" At {compiled[-1][0]:,.0f} counterparts the compiled search takes "
            f"1/{loop[-1][1] / compiled[-1][1]:,.0f} of the time one by one."
        )
    return Figure("Cost against the size of the lattice", (_cost_chart(series),), caption)


def _cost_chart(series: dict[str, list[tuple[float, float]]]) -> Markup:
    every = [point for line_points in series.values() for point in line_points]
    x = logarithmic([size for size, _ in every], 50, WIDTH - 108)
    y = logarithmic([seconds for _, seconds in every], 214, 24)
    parts = [text(8, 12, "seconds per person", kind="strong"), *y_axis(y, 50, WIDTH - 108)]
    lines = {
        way: [(x(size), y(seconds)) for size, seconds in line_points]
        for way, line_points in series.items()
    }
    heights = spread_out([line_points[-1][1] for line_points in lines.values()], 30, 214)
    for (way, line_points), height in zip(lines.items(), heights, strict=True):
        name, shape, style = COSTS[way]
        parts.append(path(line_points, f"curve {style}"))
        parts += [marker(shape, a, b, "ours", size=4) for a, b in line_points]
        parts.append(text(line_points[-1][0] + 9, height + 4, name, kind="halo strong"))
    parts += x_axis(x, 216, "counterparts per person")
    return chart(256, "Time per person against counterparts", parts)
