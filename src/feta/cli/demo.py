"""`feta demo`: training, audit and fair decisions on the bundled German credit data."""

import time
import warnings
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

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
from feta.cli.demo_files import ANONYMOUS, LABEL, MODEL, PEOPLE, write_demo_files
from feta.cli.output_path import check_folder
from feta.datasets.dataset import Dataset
from feta.io.sanitize import plain
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
class DemoResults:
    """What the demo measured."""

    model: Model
    people: Matrix
    test: Flags
    pairs: dict[int, Counterexample]  # by row
    alone: dict[str, dict[int, Counterexample]]  # by attribute, if it alone is enough
    n_fair: int
    n_unknown: int
    n_sensitive: int
    seconds: float


def run_demo(*, seed: int, out: Path | None = None) -> None:
    """Train a network, audit it, and show what fair decisions cost; write its files to `out`."""
    check_folder(out)
    console = Console()
    dataset = datasets.load("german")
    people = dataset.space.encode(dataset.frame)
    console.print(_title(dataset))
    test = np.random.default_rng(seed).permutation(len(people)) < TEST_SHARE * len(people)
    with console.status("training scikit-learn's MLPClassifier …"):
        model = train_model(dataset, people, ~test, seed)
    results = audit_everyone(model, people, test)
    console.print(_verdict(results))
    console.print(_pairs(dataset, results))
    console.print(_costs(dataset, results))
    if out is not None:
        write_demo_files(out, model, dataset)
        console.print(_written(out))
    console.print(_next_steps())


def train_model(dataset: Dataset, people: Matrix, train: Flags, seed: int) -> Model:
    """Train a network of three hidden layers of 16 on scaled numbers; return it as a model."""
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
    # scikit-learn computes in float64, and a probability of exactly one half is unfavorable.
    network = Network.from_layers(layers, source="float64", equality="below", sigmoid=True)
    return schema.model(network)


def audit_everyone(model: Model, people: Matrix, test: Flags) -> DemoResults:
    """Find the worst counterexample of every person, or prove that there is none."""
    pairs, n_fair, n_unknown, n_sensitive = {}, 0, 0, 0
    started = time.perf_counter()
    for row in _tracked(list(range(len(people))), "auditing everyone"):
        verdict = verify(WorstAt(model, people[row]))
        n_sensitive += verdict.runtime == "sensitive"
        match verdict:
            case Fair():
                n_fair += 1
            case Unfair(counterexample=counterexample):
                pairs[row] = counterexample
            case Unknown():
                n_unknown += 1
    seconds = time.perf_counter() - started
    alone = {
        attribute.name: _by_one_attribute(model, people, list(pairs), attribute.name)
        for attribute in model.space.sensitive
    }
    return DemoResults(model, people, test, pairs, alone, n_fair, n_unknown, n_sensitive, seconds)


def _by_one_attribute(
    model: Model, people: Matrix, rows: list[int], name: str
) -> dict[int, Counterexample]:
    """Find counterexamples that change only one attribute."""
    alone = model.with_sensitive([name])
    verdicts = {row: verify(WorstAt(alone, people[row])) for row in _tracked(rows, f"{name} alone")}
    return {
        row: verdict.counterexample
        for row, verdict in verdicts.items()
        if isinstance(verdict, Unfair)
    }


def _tracked(rows: list[int], description: str) -> Iterator[int]:
    columns = (
        TextColumn("{task.description}"),
        BarColumn(),
        MofNCompleteColumn(),
        TimeRemainingColumn(),
    )
    with Progress(*columns, console=Console(stderr=True), transient=True) as progress:
        yield from progress.track(rows, description=description)


def _title(dataset: Dataset) -> Panel:
    space = dataset.space
    sensitive = ", ".join(
        f"[bold]{attribute.name}[/] ({attribute.domain()})" for attribute in space.sensitive
    )
    text = (
        f"{dataset.title}: {len(dataset.frame):,} loan files, {len(space.attributes)} columns, "
        f"{space.width} network inputs\n"
        f"Sensitive: {sensitive}\n"
        f"Everybody has {space.lattice.size} counterparts: "
        "the same file with any of these values.\n\n"
        "[italic]Is there anybody whose decision would change if only these were different?[/]"
    )
    return Panel(text, title="FETA", subtitle=dataset.source, border_style="cyan")


def _verdict(results: DemoResults) -> Padding:
    n_people = len(results.people)
    rate = len(results.pairs) / n_people
    counted = n_people * results.model.relation.size
    lines = [
        f"[bold red]Yes: {len(results.pairs)} of {n_people:,} people[/] have a counterpart with "
        f"another decision ({rate:.1%}).",
        f"{results.n_fair} people are [green]proved[/] to get the same decision as all their "
        f"counterparts; {results.n_unknown} are undecided.",
        f"{counted:,} counterparts were decided exactly in {results.seconds:.1f} s; "
        f"scikit-learn's own rounding could change {results.n_sensitive} of the verdicts.",
    ]
    return Padding("\n".join(lines), (1, 1))


def _pairs(dataset: Dataset, results: DemoResults) -> Group:
    """Show people for whom one attribute alone is enough, attribute by attribute."""
    table = Table(box=SIMPLE_HEAD, title="Selected counterexamples", title_justify="left")
    for heading in ("row", "the same file, except", "", "decision", "score"):
        table.add_column(heading)
    for row, name, pair in _largest_gaps(results):
        before, after = (
            dataset.space.decode(person)[name] for person in (pair.person, pair.counterpart)
        )
        first, second = (results.model.outcomes[decision] for decision in pair.decisions)
        table.add_row(
            f"{row + 1}",  # as in an audit
            name,
            Text(f"{before} → {after}", style="bold"),
            f"{_colored(first, dataset)} → {_colored(second, dataset)}",
            f"{pair.scores[0]:+.2f} → {pair.scores[1]:+.2f}",
        )
    return Group(Padding(table, (0, 1)), Padding(_alone(results), (0, 1)))


def _colored(decision: str, dataset: Dataset) -> str:
    return f"[{'green' if decision == dataset.favorable else 'red'}]{decision}[/]"


def _largest_gaps(results: DemoResults) -> list[tuple[int, str, Counterexample]]:
    """Return, for each attribute alone, the people with the largest gap; nobody occurs twice."""
    shown: list[tuple[int, str, Counterexample]] = []
    n_each = SHOWN_PAIRS // len(results.alone)
    for name, pairs in results.alone.items():
        rows = sorted(set(pairs) - {row for row, _, _ in shown}, key=lambda row: -pairs[row].gap)
        shown += [(row, name, pairs[row]) for row in rows[:n_each]]
    return shown


def _alone(results: DemoResults) -> str:
    parts = ", ".join(f"{name} {len(pairs)}" for name, pairs in results.alone.items())
    return f"One attribute alone is enough for: {parts} of the {len(results.pairs)}."


def _costs(dataset: Dataset, results: DemoResults) -> Group:
    people, model = results.people, results.model
    predictor = FairPredictor(model)
    started = time.perf_counter()
    network_decisions = model.decide(people)
    network_seconds = time.perf_counter() - started
    names = [attribute.name for attribute in model.space.sensitive]
    ignored = dataset.space.encode(dataset.frame.drop(columns=names), sensitive="ignore")
    started = time.perf_counter()
    fair_decisions = predictor.decide(ignored)
    fair_seconds = time.perf_counter() - started
    accuracies = [
        accuracy(decisions[results.test], dataset.labels[results.test])
        for decisions in (network_decisions, fair_decisions)
    ]
    times = [seconds / len(people) * 1e6 for seconds in (network_seconds, fair_seconds)]
    rows = [
        (
            "people with a counterexample",
            f"{len(results.pairs) / len(people):.1%}",
            "none, by construction",
        ),
        ("accuracy on the 200 held-out files", *(f"{share:.1%}" for share in accuracies)),
        (
            "decisions that change (flip rate)",
            "",
            f"{flip_rate(network_decisions, fair_decisions):.1%}",
        ),
        ("time per person, in batch", *(f"{time_per_person:,.0f} µs" for time_per_person in times)),
        ("reads age, status, nationality", "yes", "never: the columns were deleted"),
    ]
    ties = int((tally(model, people).favorable * 2 == model.relation.size).sum())
    note = (
        f"{ties} people's counterparts are split exactly in half; "
        "a tie is favorable for all of them."
    )
    return Group(Padding(_cost_table(rows), (1, 1, 0, 1)), Padding(note, (0, 1)))


def _cost_table(rows: Sequence[tuple[str, ...]]) -> Table:
    table = Table(
        box=SIMPLE_HEAD,
        title="Fair decisions: the majority of the counterparts decides",
        title_justify="left",
    )
    for heading in ("", "the network", "FETA's fair decisions"):
        table.add_column(heading, justify="left" if not heading else "right")
    for row in rows:
        table.add_row(*row)
    return table


def _written(out: Path) -> Padding:
    folder = plain(out)
    lines = (
        f"Written to {folder}: {MODEL}, {PEOPLE}, {ANONYMOUS}. Try:",
        f"feta audit {folder}/{MODEL} --data {folder}/{PEOPLE} --label {LABEL} --out audit",
        f"feta predict {folder}/{MODEL} --data {folder}/{ANONYMOUS} --out decisions.csv",
    )
    return Padding(Text("\n".join(lines)), (1, 1))


def _next_steps() -> Panel:
    text = (
        "[bold]Your own model:[/] "
        "feta init model.onnx people.csv --sensitive age,sex writes a schema,\n"
        "feta audit finds the pairs, feta predict decides without reading age or sex.\n"
        "From Python: feta.verify, feta.FairPredictor, feta.FairClassifier; README.md has examples."
    )
    return Panel(text, title="What next", border_style="cyan")
