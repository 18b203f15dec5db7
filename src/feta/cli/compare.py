"""`feta compare`: models next to blind copies, votes and fair training, on the same people."""

import sys
import warnings
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

from rich.box import SIMPLE_HEAD
from rich.console import Console
from rich.table import Table
from rich.text import Text

from feta.auditing.read_labels import read_labels
from feta.cli.exit_code import ExitCode
from feta.cli.folder_lock import FolderLock
from feta.cli.load import load_model, origin_of
from feta.cli.notices import note_ignored, notice
from feta.cli.output_path import check_folder
from feta.cli.progress import progress_bar, show_progress
from feta.cli.signals import terminable, uninterrupted
from feta.comparing.blind_copy import Estimated
from feta.comparing.candidates import NamedModel
from feta.comparing.model_comparison import MAX_PEOPLE, Comparing, LabeledPeople, ModelComparison
from feta.errors import SchemaError
from feta.io.regular_file import atomic_write
from feta.io.sanitize import json_text, plain, shortened
from feta.metrics.proxy_measures import evenly
from feta.readers.check_reading import check_reading
from feta.readers.load import LoadedModel
from feta.readers.pickled import PICKLES
from feta.readers.source import SourceOptions, open_source
from feta.report.compared_figures import (
    MeasureGroup,
    comparison_json,
    measure_groups,
    remarks,
)
from feta.report.comparison_html import comparison_html
from feta.report.proxy_words import extrapolations

# Files that may hold an estimator, of which a blind copy can be fitted.
ESTIMATORS = {".skops", *PICKLES}

N_CLASSES = 2


@dataclass(frozen=True, slots=True)
class CompareOptions:
    """The options of `feta compare`."""

    models: tuple[Path, ...]
    schema: Path | None
    source: SourceOptions
    data: Path
    label: str
    out: Path | None
    epochs: int | None
    seed: int
    as_json: bool


def run_compare(options: CompareOptions) -> ExitCode:
    """Compare; an interruption keeps the candidates that are measured."""
    check_folder(options.out)
    loaded = [_load(options, path) for path in options.models]
    _check_same(options, loaded)
    people = _people(options, loaded[0])
    models = [_named(options, path, one) for path, one in zip(options.models, loaded, strict=True)]
    with FolderLock(options.out, work="comparison"), terminable():
        with show_progress("measuring proxies"):
            work = Comparing(models, people, epochs=options.epochs, seed=options.seed)
        with suppress(KeyboardInterrupt):
            _run(work)
        if not work.result.rows:
            raise KeyboardInterrupt
        with uninterrupted():
            _write(options, work.result)
    _show(options, work.result)
    return _exit_code(work.result)


def _run(work: Comparing) -> None:
    """Compare, and note each warning of a fit once, with the candidate."""
    names: list[str] = []  # of each warning so far
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        try:
            _show_work(work, lambda name: names.extend([name] * (len(caught) - len(names))))
        finally:
            texts = [" ".join(str(warning.message).split()) for warning in caught]
            for text, name in dict(zip(texts[::-1], names[::-1], strict=True)).items():
                notice(plain(shortened(f"{name}: {text}", 400)))


def _show_work(work: Comparing, measured: Callable[[str], None]) -> None:
    """Compare with a progress bar; report each candidate when it is measured."""
    name = work.models[0].name
    with progress_bar() as progress:
        task = progress.add_task("comparing", total=1.0)
        try:
            for following in work.run(lambda share: progress.update(task, completed=share)):
                measured(name)
                name = following
                progress.update(task, description=f"comparing {plain(name)}")
        finally:
            measured(name)


def _load(options: CompareOptions, path: Path) -> LoadedModel:
    schema = None if path.suffix.lower() == ".feta" else options.schema
    loaded = load_model(origin_of(path, None, "auto"), schema, options.source, options.data)
    for note in loaded.notes:
        notice(f"{path.name}: {note}")
    check_reading(loaded, watch=show_progress)
    return loaded


def _check_same(options: CompareOptions, loaded: list[LoadedModel]) -> None:
    """Reject models that decide different people, or different things."""
    if options.schema is not None and all(path.suffix == ".feta" for path in options.models):
        raise SchemaError(f"{options.models[0]} contains its schema; remove --schema")
    if len(set(options.models)) < len(options.models):
        raise SchemaError("a model is named twice: expected different models")
    first = loaded[0].model
    for path, other in zip(options.models[1:], loaded[1:], strict=True):
        same = other.model.space.fingerprint == first.space.fingerprint
        if not same or other.model.outcomes != first.outcomes:
            raise SchemaError(
                f"{path} and {options.models[0]} have different columns or decisions: expected the "
                "same schema for all models"
            )


def _people(options: CompareOptions, loaded: LoadedModel) -> LabeledPeople:
    origin = options.models[0] if options.schema is None else options.schema
    people, labels, ignored = read_labels(
        loaded.model, options.data, origin, options.label, loaded.options
    )
    note_ignored(ignored)
    if len(people) > MAX_PEOPLE:
        notice(f"{MAX_PEOPLE:,} of {len(people):,} people are compared, evenly chosen")
        rows = evenly(len(people), MAX_PEOPLE)
        people, labels = people[rows], labels[rows]
    return LabeledPeople.split(people, labels, options.seed)


def _named(options: CompareOptions, path: Path, loaded: LoadedModel) -> NamedModel:
    """Return a model with its estimator, if the file holds one of two classes."""
    if path.suffix.lower() not in ESTIMATORS or loaded.runtime is None:
        return NamedModel(path.name, loaded.model)
    estimator = open_source(path, options.source).estimator
    if len(getattr(estimator, "classes_", ())) != N_CLASSES:
        return NamedModel(path.name, loaded.model)
    favorable = 0 if loaded.model.rule.favors == "below" else 1
    estimated = Estimated(estimator, loaded.runtime.table, favorable)
    return NamedModel(path.name, loaded.model, estimated)


def _write(options: CompareOptions, comparison: ModelComparison) -> None:
    if options.out is None:
        return
    contents = {
        "comparison.json": json_text(comparison_json(comparison), indent=2),
        "comparison.html": comparison_html(comparison),
    }
    for name, content in contents.items():
        with atomic_write(options.out / name) as part:
            part.write_text(content, encoding="utf-8")


def _show(options: CompareOptions, comparison: ModelComparison) -> None:
    if options.as_json:
        sys.stdout.write(json_text(comparison_json(comparison), indent=2))
        return
    console = Console()
    for group in measure_groups(comparison):
        console.print(Text(f"{plain(group.title)}\n", style="bold"))
        console.print(_table(comparison, group), Text())
    for line in remarks(comparison):
        console.print(Text(plain(line)))
    for line in extrapolations(comparison.overlaps):
        console.print(Text(plain(line), style="bold yellow"))
    if options.out is not None:
        console.print(Text(f"Written to {plain(options.out)}: comparison.html, comparison.json"))


def _table(comparison: ModelComparison, group: MeasureGroup) -> Table:
    """Return the table of some measures: below each figure, the difference to the first row."""
    columns = group.measures
    table = Table(box=SIMPLE_HEAD, show_edge=False, pad_edge=False, padding=(0, 1, 0, 0))
    table.add_column(overflow="fold")
    for column in columns:
        table.add_column(Text(plain(column.heading)), no_wrap=True)
    for row in comparison.rows:
        cells = [
            Text("\n".join(filter(None, (c.text(row), c.difference(row, comparison.baseline)))))
            for c in columns
        ]
        table.add_row(Text(plain(row.name), style="bold"), *cells)
    return table


def _exit_code(comparison: ModelComparison) -> ExitCode:
    if not comparison.finished:
        return ExitCode.INTERRUPTED
    undecided = any(left.undecided for left in comparison.left_out)
    return ExitCode.UNDECIDED if undecided else ExitCode.DONE
