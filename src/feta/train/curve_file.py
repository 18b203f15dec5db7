"""The curve of a training as a chart (SVG) and as JSON."""

import json
from pathlib import Path
from typing import Any

from feta.errors import MissingExtra
from feta.io.regular_file import atomic_write
from feta.train.run import TrainingRun


def write_curve(run: TrainingRun, path: str | Path) -> None:
    """Write the curve atomically: `.json` as plain values, any other suffix as SVG."""
    target = Path(path)
    with atomic_write(target) as part:
        if target.suffix.lower() == ".json":
            part.write_text(json.dumps(run.as_json(), indent=1) + "\n", encoding="utf-8")
        else:
            _draw(run, part)


def import_matplotlib() -> Any:  # noqa: ANN401 - a module
    """Import matplotlib where a chart needs it."""
    try:
        import matplotlib.figure  # noqa: PLC0415 - an extra, and slow to import
    except ImportError:
        raise MissingExtra("matplotlib", "torch") from None
    return matplotlib


def _draw(run: TrainingRun, path: Path) -> None:
    matplotlib = import_matplotlib()
    figure = matplotlib.figure.Figure(figsize=(9, 3.6), layout="constrained")
    over_time, trade_off = figure.subplots(1, 2)
    numbers = [0, *(epoch.number for epoch in run.epochs)]
    points = [run.start, *(epoch.chosen_by for epoch in run.epochs)]
    accuracies = [100 * point.accuracy for point in points]
    rates = [100 * point.ce_rate for point in points]
    over_time.plot(numbers, accuracies, label="accuracy")
    over_time.plot(numbers, rates, label="people with a counterexample")
    over_time.axvline(run.chosen, color="0.6", linestyle=":", label="chosen")
    over_time.set(xlabel="epoch", ylabel=f"per cent of {run.select_on} people", ylim=(0, 100))
    over_time.xaxis.get_major_locator().set_params(integer=True)
    over_time.legend(frameon=False)
    trade_off.plot(rates[1:], accuracies[1:], ".", color="0.7", label="epochs")
    front = sorted(run.pareto, key=lambda number: rates[number])
    trade_off.plot(
        [rates[n] for n in front], [accuracies[n] for n in front], "-", label="none better in both"
    )
    trade_off.plot(rates[0], accuracies[0], "s", label="before")
    trade_off.plot(rates[run.chosen], accuracies[run.chosen], "*", markersize=12, label="chosen")
    trade_off.set(xlabel="people with a counterexample, per cent", ylabel="accuracy, per cent")
    trade_off.legend(frameon=False)
    # A fixed salt and no date, so that the same run writes the same file.
    with matplotlib.rc_context({"svg.hashsalt": "feta"}):
        figure.savefig(path, format="svg", metadata={"Date": None})
