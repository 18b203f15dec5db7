"""Demo: the whole story on the bundled German credit data, as one terminal page."""

import time
import warnings
from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
from rich.box import SIMPLE_HEAD
from rich.console import Console, Group
from rich.padding import Padding
from rich.panel import Panel
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeRemainingColumn
from rich.table import Table
from rich.text import Text

from feta import datasets
from feta.api import tally, verify
from feta.arrays import Flags, Matrix
from feta.datasets.dataset import Dataset
from feta.io.schema import Schema
from feta.io.schema_file import Decision, SchemaFile
from feta.metrics.rates import accuracy, flip_rate
from feta.model import Model
from feta.predict.fair_predictor import FairPredictor
from feta.query import WorstAt
from feta.scorer.network.network import Network
from feta.space.attribute import Categorical
from feta.verdict.counterexample import Counterexample
from feta.verdict.verdict import Fair, Unfair, Unknown

HIDDEN = (16, 16, 16)  # the paper's architecture
TEST_SHARE = 0.2
SHOWN_PAIRS = 6


@dataclass(frozen=True, eq=False)
class Story:
    """What the demo measured."""

    model: Model
    people: Matrix
    test: Flags
    pairs: dict[int, Counterexample]  # by row
    alone: dict[str, dict[int, Counterexample]]  # by attribute, where it alone is enough
    n_fair: int
    n_unknown: int
    n_sensitive: int
    seconds: float


def run_demo(*, seed: int) -> None:
    """Train, audit, show, enforce."""
    console = Console()
    dataset = datasets.load("german")
    people = dataset.space.encode(dataset.frame)
    console.print(_title(dataset))
    test = np.random.default_rng(seed).permutation(len(people)) < TEST_SHARE * len(people)
    with console.status("training scikit-learn's MLPClassifier …"):
        model = train_model(dataset, people, ~test, seed)
    story = audit_everyone(model, people, test)
    console.print(_verdict(story))
    console.print(_pairs(dataset, story))
    console.print(_costs(dataset, story))
    console.print(_next())


def train_model(dataset: Dataset, people: Matrix, train: Flags, seed: int) -> Model:
    """Train a network of three hidden layers of 16 on scaled numbers, and take its weights over."""
    from sklearn.exceptions import ConvergenceWarning
    from sklearn.neural_network import MLPClassifier

    centers, scales = {}, {}
    for attribute in dataset.space.attributes:
        if not isinstance(attribute, Categorical):
            column = people[train, dataset.space.columns_of(attribute)]
            centers[attribute.name], scales[attribute.name] = (
                float(column.mean()),
                float(column.std()),
            )
    decision = Decision(dataset.favorable, dataset.unfavorable, probability=0.5)
    schema = Schema(SchemaFile(dataset.space, centers, scales, {}, decision))
    scaled = (people - np.array(schema.centers)) / np.array(schema.scales)
    classifier = MLPClassifier(HIDDEN, alpha=1e-3, max_iter=60, random_state=seed)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)  # sixty epochs are enough here
        classifier.fit(scaled[train], dataset.labels[train])
    layers = [(w.T, b) for w, b in zip(classifier.coefs_, classifier.intercepts_, strict=True)]
    # scikit-learn computes in float64 and takes probabilities above one half only.
    return schema.model(Network.from_layers(layers, source="float64", equality="below"))


def audit_everyone(model: Model, people: Matrix, test: Flags) -> Story:
    """Ask for every person whether they are decided alike, and for the farthest counterpart."""
    pairs, n_fair, n_unknown, n_sensitive = {}, 0, 0, 0
    started = time.perf_counter()
    for row in _tracked(list(range(len(people))), "auditing everyone"):
        verdict = verify(WorstAt(model, people[row]))
        n_sensitive += verdict.runtime == "sensitive"
        match verdict:
            case Fair():
                n_fair += 1
            case Unfair(counterexample=found):
                pairs[row] = found
            case Unknown():
                n_unknown += 1
    seconds = time.perf_counter() - started
    alone = {
        attribute.name: _single(model, people, list(pairs), attribute.name)
        for attribute in model.space.sensitive
    }
    return Story(model, people, test, pairs, alone, n_fair, n_unknown, n_sensitive, seconds)


def _single(model: Model, people: Matrix, rows: list[int], name: str) -> dict[int, Counterexample]:
    """Find the people for whom one attribute alone is enough."""
    alone = model.with_sensitive([name])
    verdicts = {row: verify(WorstAt(alone, people[row])) for row in _tracked(rows, f"{name} alone")}
    return {row: one.counterexample for row, one in verdicts.items() if isinstance(one, Unfair)}


def _tracked(rows: list[int], what: str) -> Iterator[int]:
    columns = (
        TextColumn("{task.description}"),
        BarColumn(),
        MofNCompleteColumn(),
        TimeRemainingColumn(),
    )
    with Progress(*columns, console=Console(stderr=True), transient=True) as progress:
        yield from progress.track(rows, description=what)


def _title(dataset: Dataset) -> Panel:
    space = dataset.space
    sensitive = ", ".join(
        f"[bold]{attribute.name}[/] ({attribute.domain()})" for attribute in space.sensitive
    )
    text = (
        f"{dataset.title}: {len(dataset.frame):,} loan files, {len(space.attributes)} columns, "
        f"{space.width} network inputs\n"
        f"Sensitive: {sensitive}\n"
        f"Everybody has {space.lattice.size} counterparts: the same file with any of these values.\n\n"
        "[italic]Is there anybody whose decision would change if only these were different?[/]"
    )
    return Panel(text, title="FETA", subtitle=dataset.source, border_style="cyan")


def _verdict(story: Story) -> Padding:
    n_people = len(story.people)
    counted = n_people * story.model.space.lattice.size
    lines = [
        f"[bold red]Yes: {len(story.pairs)} of {n_people:,} people[/] have a counterpart decided "
        f"the other way (CE rate {len(story.pairs) / n_people:.1%}).",
        f"{story.n_fair} people are [green]proved[/] to be decided alike, whoever they were; "
        f"{story.n_unknown} are undecided.",
        f"{counted:,} counterparts settled without rounding doubts in {story.seconds:.1f} s; "
        f"scikit-learn's own rounding could tip {story.n_sensitive} of the answers.",
    ]
    return Padding("\n".join(lines), (1, 1))


def _pairs(dataset: Dataset, story: Story) -> Group:
    """Show people for whom one attribute alone is enough, each attribute in turn."""
    table = Table(box=SIMPLE_HEAD, title="The clearest pairs", title_justify="left")
    for heading in ("file", "the same file, but for", "", "decision", "score"):
        table.add_column(heading)
    for row, name, found in _clearest(story):
        before, after = (
            dataset.space.decode(one)[name] for one in (found.person, found.counterpart)
        )
        first, second = (story.model.outcomes[decision] for decision in found.decisions)
        table.add_row(
            f"{row}",
            name,
            Text(f"{before} → {after}", style="bold"),
            f"{_colored(first, dataset)} → {_colored(second, dataset)}",
            f"{found.scores[0]:+.2f} → {found.scores[1]:+.2f}",
        )
    return Group(Padding(table, (0, 1)), Padding(_alone(story), (0, 1)))


def _colored(decision: str, dataset: Dataset) -> str:
    return f"[{'green' if decision == dataset.favorable else 'red'}]{decision}[/]"


def _clearest(story: Story) -> list[tuple[int, str, Counterexample]]:
    """Take, for each attribute alone, the people with the widest gap; nobody is shown twice."""
    shown: list[tuple[int, str, Counterexample]] = []
    for name, found in story.alone.items():
        rows = sorted(set(found) - {row for row, _, _ in shown}, key=lambda row: -found[row].gap)
        each = SHOWN_PAIRS // len(story.alone)
        shown += [(row, name, found[row]) for row in rows[:each]]
    return shown


def _alone(story: Story) -> str:
    parts = ", ".join(f"{name} {len(found)}" for name, found in story.alone.items())
    return f"One attribute alone is enough for: {parts} of the {len(story.pairs)}."


def _costs(dataset: Dataset, story: Story) -> Group:
    people, model = story.people, story.model
    predictor = FairPredictor(model)
    started = time.perf_counter()
    own = model.decide(people)
    own_seconds = time.perf_counter() - started
    ignored = dataset.space.encode(
        dataset.frame.drop(columns=_sensitive(model)), sensitive="ignore"
    )
    started = time.perf_counter()
    fair = predictor.decide(ignored)
    fair_seconds = time.perf_counter() - started
    ties = int((tally(model, people).favorable * 2 == model.space.lattice.size).sum())
    table = Table(
        box=SIMPLE_HEAD,
        title="Fair decisions: the majority of the counterparts decides",
        title_justify="left",
    )
    for heading in ("", "the network", "FETA's fair decisions"):
        table.add_column(heading, justify="left" if not heading else "right")
    rows = [
        (
            "people with a counterexample",
            f"{len(story.pairs) / len(people):.1%}",
            "none, by construction",
        ),
        (
            "accuracy on the 200 held-out files",
            *(
                f"{accuracy(one[story.test], dataset.labels[story.test]):.1%}"
                for one in (own, fair)
            ),
        ),
        ("decisions that change (flip rate)", "", f"{flip_rate(own, fair):.1%}"),
        (
            "time per person, in batch",
            *(f"{seconds / len(people) * 1e6:,.0f} µs" for seconds in (own_seconds, fair_seconds)),
        ),
        ("reads age, status, nationality", "yes", "never: the columns were deleted"),
    ]
    for row in rows:
        table.add_row(*row)
    note = f"{ties} people's counterparts are split exactly in half; a tie is favorable, for both halves alike."
    return Group(Padding(table, (1, 1, 0, 1)), Padding(note, (0, 1)))


def _sensitive(model: Model) -> list[str]:
    return [attribute.name for attribute in model.space.sensitive]


def _next() -> Panel:
    text = (
        "[bold]Your own model:[/] feta init model.onnx people.csv --sensitive age,sex writes a schema,\n"
        "feta audit finds the pairs, feta predict decides without reading age or sex.\n"
        "From Python: feta.verify, feta.FairPredictor, feta.FairClassifier; README.md has examples."
    )
    return Panel(text, title="What next", border_style="cyan")
