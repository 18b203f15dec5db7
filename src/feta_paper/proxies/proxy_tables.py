"""The tables of `feta reproduce proxies` in Markdown."""

import math
from collections.abc import Iterator, Sequence

from feta_paper.proxies.arms import BLIND, SCALED, TITLES
from feta_paper.proxies.proxy_results import MeanInterval, ProxyResults
from feta_paper.proxies.proxy_run import planted_name, real_name
from feta_paper.proxies.settings import NetworkTraining, RealPeople

ABSENT = "–"

INTRODUCTION = """\
Intervals are 95 % intervals of the mean over draws, by Student's t. On real data the draws are
folds. Folds of one seed share training people, so these intervals are too narrow."""

PLANTED = """\
The columns that are not sensitive are those of real people. The group, the proxy and the labels
are drawn: these columns and the group decide, and the proxy correlates with the group and has no
effect. The share of the planted discrimination in what is predicted for other people, in percent: 0
is none, 100 is all. The best prediction without the group contains the squared correlation."""

REAL = """\
"Minus blind" is the paired difference in accuracy on recorded labels, in points. "Gap" is the
approval rate of the group minus that of everybody else, in points, where every arm approves as many
test people as the blind network. "Slope" is 1 if an arm contains all that a guess of the sensitive
columns adds to the plain network's mean, and 0 if it contains nothing of it."""


def proxy_markdown(results: ProxyResults) -> str:
    """Write all tables."""
    return "\n\n".join(_parts(results)) + "\n"


def _parts(results: ProxyResults) -> Iterator[str]:
    settings = results.settings
    yield "# What proxies carry"
    if settings.quick:
        yield "A quick run. Its figures only show that every step runs."
    hours = results.processor_seconds / 3600
    yield f"{INTRODUCTION} Settings: {settings.digest}. Processor time: {hours:.2f} hours."
    yield f"## Semi-synthetic people: columns of {settings.merits.dataset.capitalize()}"
    yield PLANTED
    for training in settings.trainings:
        yield f"### Training: {_about(training)}"
        yield _planted_table(results, training, "relearned")
        yield "By decisions instead of probabilities:"
        yield _planted_table(results, training, "relearned_by_decisions")
        yield "Agreement with the decisions of the true fair probability, in percent:"
        yield _planted_table(results, training, "agreement")
        yield "Accuracy on the labels, which contain the discrimination, minus blind, in points:"
        yield _planted_table(results, training, "accuracy", minus=BLIND)
        yield "Share of favorable decisions, in percent:"
        yield _planted_table(results, training, "favorable")
    yield "## Real people"
    yield REAL
    for people in settings.real:
        yield f"### {_about_people(people, settings.folds)}"
        yield _real_table(results, people)


def _about(training: NetworkTraining) -> str:
    extra = f", weight decay {training.weight_decay:g}" if training.weight_decay else ""
    if training.sensitive_scale != 1:
        extra += f", sensitive columns scaled by {training.sensitive_scale:g}"
    return f"{training.name} ({training.epochs} epochs{extra})"


def _about_people(people: RealPeople, folds: int) -> str:
    n = len(people.seeds)
    seeds = f"{n} seed{'s' * (n > 1)} of {folds} folds"
    return f"{people.name.capitalize()}: {people.attribute} {' or '.join(people.members)}; {seeds}"


def _planted_table(
    results: ProxyResults, training: NetworkTraining, figure: str, *, minus: str = ""
) -> str:
    """Write one row per arm and one column per correlation; `minus` is an arm to compare with."""
    correlations = results.settings.correlations
    rows = []
    for arm, title in TITLES.items():
        if arm in (SCALED, minus):  # scaled columns are a training of their own here
            continue
        names = [planted_name(training.name, correlation) for correlation in correlations]
        means = [
            results.difference(name, f"{arm}.{figure}", f"{minus}.{figure}")
            if minus
            else results.mean(name, f"{arm}.{figure}")
            for name in names
        ]
        if any(means):
            rows.append([title, *(_percent(mean, 2 if minus else 0) for mean in means)])
    return _table(["", *(f"correlation {number:g}" for number in correlations)], rows)


def _real_table(results: ProxyResults, people: RealPeople) -> str:
    name, rows = real_name(people.name), []
    for arm, title in TITLES.items():
        minus = results.difference(name, f"{arm}.accuracy", f"{BLIND}.accuracy")
        accuracy = results.mean(name, f"{arm}.accuracy")
        if accuracy is None:
            continue
        rows.append(
            [
                title,
                str(accuracy.n),
                _percent(accuracy, 2),
                ABSENT if arm == BLIND else _percent(minus, 2),
                _percent(results.mean(name, f"{arm}.favorable"), 1),
                _percent(results.mean(name, f"{arm}.gap"), 1),
                _number(results.mean(name, f"{arm}.slope")),
            ]
        )
    head = ["", "folds", "accuracy", "minus blind", "approved", "gap", "slope"]
    return _table(head, rows)


def _percent(mean: MeanInterval | None, digits: int = 0) -> str:
    if mean is None:
        return ABSENT
    return _with_radius(100 * mean.mean, 100 * mean.radius, digits)


def _number(mean: MeanInterval | None) -> str:
    return ABSENT if mean is None else _with_radius(mean.mean, mean.radius, 2)


def _with_radius(mean: float, radius: float, digits: int) -> str:
    """Write a mean and its radius; a single draw has none."""
    text = f"{mean:z.{digits}f}".replace("-", "−")
    return text if math.isnan(radius) else f"{text} ± {radius:.{digits}f}"


def _table(head: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    lines = [head, ["---"] * len(head), *rows]
    return "\n".join(f"| {' | '.join(line)} |" for line in lines)
