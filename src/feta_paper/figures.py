"""Figures: the paper's and ours as pictures, each with a caption that says what to see."""

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
    even,
    line,
    marker,
    path,
    picture,
    powers,
    spread_out,
    text,
    x_axis,
    y_axis,
)
from feta_paper.measurements import Measurements
from feta_paper.paper import COUNTERPART, NAMES
from feta_paper.quantities import found, is_another, papers
from feta_paper.trade_off import best, points, trade_off
from feta_paper.ways import SOME_COUNTERPARTS
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


@dataclass(frozen=True, slots=True)
class Figure:
    """A picture and what to see in it."""

    title: str
    drawings: tuple[Markup, ...]
    caption: str


def figures_of(measured: Measurements) -> list[Figure]:
    """Draw what was measured; a figure without measurements is left out."""
    made = (
        ce_rates(measured),
        ratios(measured),
        curves(measured),
        trade_off_figure(measured),
        costs(measured),
    )
    return [one for one in made if one is not None]


def papers_name(measured: Measurements) -> str:
    """Name the paper's figures in a picture."""
    name = NAMES.get(COUNTERPART.get(measured.dataset, ""), "")
    return f"paper, {name}" if is_another(measured) else "paper"


def ce_rates(measured: Measurements) -> Figure | None:
    """Draw the CE rate before and after training, ours over the paper's."""
    moments = {"nn_b.ce_rate": "before training", "trained.ce_rate": "after CE-Fair training"}
    if not any(found(measured, key) for key in moments):
        return None
    rows: list[tuple[str, str, float, float, str]] = []
    for key, moment in moments.items():
        own, paper = found(measured, key), papers(measured, key)
        if own:
            rows.append((moment, f"FETA, {measured.title}", own.mean, own.std, "ours"))
        if paper:
            rows.append((moment, papers_name(measured), paper.mean, paper.std or 0.0, "theirs"))
    highest = [mean + std for _, _, mean, std, _ in rows]
    scale = even([0, *highest], 8, WIDTH - 64, zero=True)
    parts, top, last = [], 0.0, ""
    for moment, who, mean, std, kind in rows:
        if moment != last:
            parts.append(text(8, top + 14, moment, kind="strong"))
            top, last = top + 20, moment
        middle = top + LINE + 10
        end = scale(mean)
        whisker = (scale(max(mean - std, 0)), middle, scale(mean + std), middle)
        parts += [
            text(8, top + 12, who),
            bar(8, top + LINE + 2, end - 8, 16, kind),
            line(whisker, "axis thick"),
        ]
        parts.append(text(whisker[2] + 6, middle + 4, f"{mean:.1f} %", kind="strong"))
        top += 42
    parts += x_axis(scale, top + 6, "people with a counterexample, %")
    caption = f"The bar is the mean over folds, the line one deviation either way. Plain: FETA on {measured.title}; hatched: the {papers_name(measured)}."
    return Figure("CE rate", (picture(top + 46, "CE rate before and after training", parts),), f"{caption} {_fall(measured)}".strip())  # fmt: skip


def _fall(measured: Measurements) -> str:
    before, after = found(measured, "nn_b.ce_rate"), found(measured, "trained.ce_rate")
    if not before or not after or not after.mean:
        return ""
    theirs = [papers(measured, key) for key in ("nn_b.ce_rate", "trained.ce_rate")]
    here = f"To see: training divides the rate by {before.mean / after.mean:.1f} here"
    return f"{here}, by {theirs[0].mean / theirs[1].mean:.1f} in the paper." if theirs[0] and theirs[1] else f"{here}."  # fmt: skip


def ratios(measured: Measurements) -> Figure | None:
    """Draw how many forward passes a fair decision costs, by powers of ten."""
    rows: list[tuple[str, float, str, str]] = []
    for key, who in (("vote.single_ratio", "FETA"), ("trained_vote.single_ratio", "FETA, after training"), ("vote.ratio", "FETA, batch against batch")):  # fmt: skip
        own = found(measured, key)
        if own and own.mean > 0:
            rows.append((who, own.mean, ratio(own), "circle"))
    paper = papers(measured, "vote.single_ratio")
    if not rows:
        return None
    if paper:
        rows.append((papers_name(measured), paper.mean, f"{paper.mean:,.0f} ×", "square"))
    scale = powers([1, *(one[1] for one in rows)], 14, WIDTH - 20)
    bottom = 26.0 + 40 * len(rows)
    one_pass = scale(1)
    side = "start" if one_pass < WIDTH / 2 else "end"
    parts = x_axis(scale, bottom, "times one forward pass (powers of ten)", top=20)
    parts += [line((one_pass, 16, one_pass, bottom), "axis thick"), text(one_pass, 12, "one forward pass", side)]  # fmt: skip
    for place, (who, mean, words, shape) in enumerate(rows):
        height, end = 50.0 + 40 * place, scale(mean)
        kind = "ours" if shape == "circle" else "hollow"
        parts += [line((one_pass, height, end, height), "axis"), marker(shape, end, height, kind)]
        label = f"{who}: {words}"
        at = max(14.0, min(one_pass + 4, end, WIDTH - len(label) * LETTER))
        parts += [bar(at - 2, height - 22, len(label) * LETTER, LINE, "ground"), text(at, height - 10, label)]  # fmt: skip
    caption = "Filled: FETA, on this machine; hollow: as the paper prints it, on its machine. The axis goes by powers of ten."
    if paper:
        first = rows[0]
        caption += f" To see: the paper pays {paper.mean:,.0f} forward passes for a fair decision{' on IPUMS Adult' if is_another(measured) else ''}, FETA {first[1]:.2g}, each for one person asked alone."
    return Figure("Time of a fair decision", (picture(bottom + 42, "Inference time as a ratio to one forward pass", parts),), caption)  # fmt: skip


def curves(measured: Measurements) -> Figure | None:
    """Draw the training: a panel a quantity, the mean over folds with a band of one deviation."""
    known = [folds for key, folds in measured.curves.items() if key.startswith("trained.")]
    drawn = [
        _curve(measured.curves[f"trained.{name}"], title)
        for name, title in CURVES.items()
        if _complete(measured.curves.get(f"trained.{name}", []))
    ]
    if not drawn:
        return None
    folds = len(known[0])
    caption = f"The line is the mean over {folds} fold{'s' if folds > 1 else ''}, the band one deviation either way; epoch 0 is NN_b, before training. All are of people who are trained on, in each epoch those drawn for it, so they are not the test figures of the tables; the numbers are the first and the last mean, and the epoch that was chosen may be another. The paper shows loss and average violation (Figure 3) as pictures without numbers, so there is nothing to hold them against; it says that the loss oscillates while the violation falls.{_violation(measured)}"
    return Figure("CE-Fair training, epoch by epoch", tuple(drawn), caption)


def _violation(measured: Measurements) -> str:
    folds = measured.curves.get("trained.average_violation", [])
    if not _complete(folds):
        return ""
    first, last = (float(np.mean([fold[place] for fold in folds])) for place in (0, -1))
    return f" To see: here the average violation {'falls' if last < first else 'rises'} from {first:.3g} to {last:.3g}."


def _complete(folds: Sequence[Sequence[float]]) -> bool:
    """Say whether a curve has two epochs, and numbers in all of them."""
    return bool(folds) and min(map(len, folds)) > 1 and all(math.isfinite(one) for fold in folds for one in fold)  # fmt: skip


def _curve(folds: Sequence[Sequence[float]], title: str) -> Markup:
    """Draw one quantity."""
    length = min(map(len, folds))
    values = np.array([fold[:length] for fold in folds])
    mean, std = values.mean(axis=0), values.std(axis=0)
    y = even([*(mean - std), *(mean + std)], 150, 40)
    x = Scale(0, length - 1, 52, WIDTH - 14)
    along = [x(epoch) for epoch in range(length)]
    parts = [text(8, 14, title, kind="strong"), *y_axis(y, 52, WIDTH - 14)]
    parts.append(band(along, [y(one) for one in mean - std], [y(one) for one in mean + std]))
    parts.append(path([(a, y(b)) for a, b in zip(along, mean, strict=True)], "curve solid"))
    near = math.ceil(
        length / 8
    )  # epochs a label is as wide as: it stands above the band over all of them
    for place, over, anchor in ((0, slice(near), "start"), (-1, slice(-near, None), "end")):
        height = y((mean + std)[over].max()) - 5
        parts.append(text(along[place], height, f"{mean[place]:.3g}", anchor, "strong"))
    return picture(190, f"{title} by epoch", [*parts, *x_axis(x, 152, "epoch")])


def trade_off_figure(measured: Measurements) -> Figure | None:
    """Draw accuracy against CE rate, all arms."""
    drawn = trade_off(measured)
    if drawn is None:
        return None
    caption = f"Up is more accurate, left is fairer. At the left edge is what treats nobody apart, named beside it. The dashed line joins what nothing else beats in both: {joined(f'“{one.name}”' for one in best(points(measured)))}."
    if not is_another(measured):
        caption += " Hollow marks are the paper's figures for the same approach, joined to ours by a dotted line."
    return Figure("Accuracy against CE rate", (drawn,), caption)


def costs(measured: Measurements) -> Figure | None:
    """Draw the time a person takes against the number of counterparts, both by powers of ten."""
    sizes = measured.figures.get("cost.sizes", [])
    series = {
        name: [(a, b) for a, b in zip(sizes, measured.times.get(f"cost.{name}_seconds", []), strict=False) if a > 0 and b > 0]
        for name in COSTS
    }  # fmt: skip
    series = {name: points for name, points in series.items() if points}
    if not series:
        return None
    every = [point for points in series.values() for point in points]
    x = powers([a for a, _ in every], 50, WIDTH - 108)
    y = powers([b for _, b in every], 214, 24)
    parts = [text(8, 12, "seconds a person", kind="strong"), *y_axis(y, 50, WIDTH - 108)]
    ends = [(x(points[-1][0]), y(points[-1][1])) for points in series.values()]
    heights = spread_out([end[1] for end in ends], 30, 214)
    for (name, line_of), end, height in zip(series.items(), ends, heights, strict=True):
        words, shape, style = COSTS[name]
        parts.append(path([(x(a), y(b)) for a, b in line_of], f"curve {style}"))
        parts += [marker(shape, x(a), y(b), "ours", size=4) for a, b in line_of]
        parts.append(text(end[0] + 9, height + 4, words, kind="halo strong"))
    parts += x_axis(x, 216, "counterparts a person has")
    caption = f"Both axes go by powers of ten. To see: how steeply the time rises with the lattice; enumeration rises with every counterpart. One by one is timed on {SOME_COUNTERPARTS} counterparts at most, and extrapolated."
    own, naive = series.get("compiled"), series.get("naive")
    if own and naive and own[-1][0] == naive[-1][0]:
        caption += f" At {own[-1][0]:,.0f} counterparts the compiled search takes 1/{naive[-1][1] / own[-1][1]:,.0f} of the time one by one takes."
    return Figure("Cost against the size of the lattice", (picture(256, "Time a person against counterparts", parts),), caption)  # fmt: skip
