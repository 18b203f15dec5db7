"""`feta doctor`: whether a model can be audited, and how long it takes."""

import sys
import time
from dataclasses import dataclass
from functools import partial
from pathlib import Path

import numpy as np
from rich.console import Console
from rich.text import Text

from feta.arrays import Matrix
from feta.auditing.auditor import Auditor
from feta.auditing.read_labels import read_label_cell
from feta.cli.exit_code import ExitCode
from feta.cli.progress import progress_bar, show_progress
from feta.engine.lattice import LatticeEngine
from feta.engine.protocol import Budget
from feta.engine.registry import choose
from feta.errors import SchemaError
from feta.io.sanitize import json_text, listed, plain
from feta.io.toml_text import toml
from feta.metrics.proxies import NOTABLE, Proxy, proxies
from feta.metrics.proxy_measures import ProxyMeasures, measure_proxies
from feta.model import Model
from feta.query import CountOf
from feta.readers.booster_files import missing_note
from feta.readers.check_reading import admit, compare_drawn, compare_table, draw_from_schema
from feta.readers.comparison import Comparison
from feta.readers.load import LoadedModel
from feta.readers.load_function import ModelOrigin
from feta.relation.constrained import violations
from feta.relation.learning import suggestions
from feta.report.proxy_words import proxy_lines
from feta.report.words import NOT_COMPARED, counted_words, duration, never_read, outcome_class_words
from feta.scorer.native import MISSING
from feta.space.attribute import Derived

# People used to measure proxies: enough for the figure, few enough to be fast.
MAX_PEOPLE = 20_000

# People audited to estimate the time of an audit, and the time limit for that, in seconds.
TIMED_PEOPLE = 32
TIMED_SECONDS = 5.0

SHOWN_PROXIES = 8


@dataclass(frozen=True, slots=True, eq=False)
class Examination:
    """What was measured about a model."""

    comparison: Comparison | None
    seconds_per_person: float | None
    proxies: list[Proxy]
    measures: ProxyMeasures | None
    n_rows: int
    n_bad_rows: int
    data: Path | None
    constraints: list[str]  # violations, or suggestions if there are none in the schema


def run_doctor(
    loaded: LoadedModel,
    origin: ModelOrigin,
    data: Path | None,
    label: str | None = None,
    *,
    as_json: bool,
) -> ExitCode:
    """Examine a loaded model; a model that cannot be loaded was reported before."""
    model = loaded.model
    if label is not None and data is None:
        raise SchemaError("--label names a column of a table: got no --data; expected both")
    people, labels, n_rows, n_bad_rows = (
        (draw_from_schema(loaded), None, 0, 0) if data is None else _people(loaded, label)
    )
    comparison = _compare(loaded)
    seconds = _seconds_per_person(model, people)
    strong = [] if data is None else proxies(model.space, people)
    strong = [proxy for proxy in strong if proxy.strength >= NOTABLE]
    measures = None
    if data is not None:
        with show_progress("measuring proxies"):
            measures = measure_proxies(model, people, labels)
    examination = Examination(
        comparison,
        seconds,
        strong,
        measures,
        n_rows,
        n_bad_rows,
        data,
        _constraints(model, people, data),
    )
    notes = [*loaded.notes, *filter(None, [missing_note(origin.path) if origin.path else ""])]
    if as_json:
        content = _content(model, examination) | {"notes": notes}
        sys.stdout.write(json_text(content, indent=2))
    else:
        _show(loaded, origin.name, examination, notes)
    trusted = not (comparison and comparison.surprising)
    return ExitCode.DONE if trusted and model.space.finite else ExitCode.BAD_INPUT


def _compare(loaded: LoadedModel) -> Comparison | None:
    """Compare with the model itself, on the table if there is one, otherwise on random people."""
    drawn = compare_drawn(loaded)
    if drawn is None or loaded.table is None or drawn.surprising:
        return drawn
    return compare_table(loaded, loaded.table, ignore_sensitive=False, watch=show_progress)


def _people(loaded: LoadedModel, label: str | None) -> tuple[Matrix, list[float] | None, int, int]:
    """Return the people who fit the schema, their labels, and the numbers of rows and bad rows."""
    model, table = loaded.model, loaded.table
    assert table is not None
    names = [a.name for a in model.space.attributes if not isinstance(a, Derived)]
    names += [] if label is None else [label]
    table.require(names)
    parts, n_rows, n_bad_rows = [np.zeros((0, model.space.width))], 0, 0
    labels: list[float] = []
    with progress_bar() as progress:
        task = progress.add_task(f"reading {plain(table.path.name)}", total=1.0)
        for chunk in table.chunks(set(names), typed=loaded.formats):
            people, good = chunk.encode_good(model.space, admit=partial(admit, loaded))
            n_rows, n_bad_rows = n_rows + len(chunk), n_bad_rows + len(chunk) - len(good)
            if sum(map(len, parts)) < MAX_PEOPLE:
                parts.append(people)
                if label is not None:
                    labels += [float(read_label_cell(model, chunk, label, row)) for row in good]
            progress.update(task, completed=chunk.progress)
    people = np.concatenate(parts)[:MAX_PEOPLE]
    return people, None if label is None else labels[:MAX_PEOPLE], n_rows, n_bad_rows


def _constraints(model: Model, people: Matrix, data: Path | None) -> list[str]:
    """Count who violates the constraints, or suggest some."""
    if data is None or not len(people):
        return []
    violated = violations(model.relation, people)
    if violated:
        return [
            f"Constraint {words!r}: {count:,} of {len(people):,} people violate it."
            for words, count in violated
        ]
    if not model.relation.complete or not model.relation.finite:
        return []
    entries = suggestions(model.space, people)
    if not entries:
        return ["Constraints: no combination is missing that would be frequent by chance."]
    lines = [f"    {key} = {toml(value)}" for entry in entries for key, value in entry.items()]
    return [
        "Constraints that nobody in the table violates, although many would by chance; add those "
        "that are true of everybody as [[constraints]] to the schema, so that implausible "
        "counterparts are not compared:\n" + "\n".join(lines)
    ]


def _seconds_per_person(model: Model, people: Matrix) -> float | None:
    """Measure the mean time per person on a few people; None if it cannot be measured."""
    if not model.relation.finite or not len(people):
        return None
    auditor = Auditor(model, budget=Budget(seconds=TIMED_SECONDS / TIMED_PEOPLE))
    started = time.perf_counter()
    auditor.audit(people[:TIMED_PEOPLE])
    return (time.perf_counter() - started) / len(people[:TIMED_PEOPLE])


def _show(loaded: LoadedModel, name: str, examination: Examination, notes: list[str]) -> None:
    model = loaded.model
    console = Console(soft_wrap=True)
    if model.space.finite and model.relation.has_key:
        console.print(Text(f"{plain(name)} can be audited.", style="bold green"))
    elif model.space.finite:
        message = (
            f"{plain(name)} can be audited, but the relation of the schema has no fair decisions."
        )
        console.print(Text(message, style="bold yellow"))
    else:
        message = (
            f"{plain(name)} can be verified in Python, person by person, but not audited: "
            "declare its real-valued sensitive attributes as integer, or add a step."
        )
        console.print(Text(message, style="bold yellow"))
    n_rows, n_bad_rows = examination.n_rows, examination.n_bad_rows
    lines = [_shape_line(model), _provenance_line(model)]
    lines += [words] if (words := outcome_class_words(loaded.outcome_classes)) else []
    lines += [f"Note: {note}." for note in notes]
    lines += _unread_lines(model)
    lines.append(_lattice_line(model, examination.seconds_per_person, n_rows))
    if not LatticeEngine.available():
        lines.append(MISSING)
    lines.append(_comparison_line(examination.comparison))
    lines.append(_proxy_line(examination.proxies, examination.data))
    lines += list(model.relation.sentences)
    lines += examination.constraints
    if examination.measures is not None:
        lines += proxy_lines(examination.measures)
    if n_bad_rows:
        lines.append(
            f"{n_bad_rows:,} of {n_rows:,} rows do not fit the schema; "
            "feta audit names the first; --skip-bad-rows skips them."
        )
    for line in lines:
        console.print(Text("  - " + "\n".join(map(plain, line.split("\n")))))


def _shape_line(model: Model) -> str:
    scorer = model.scorer
    if scorer.provenance == "counted":
        return f"{scorer.description}."
    return f"{scorer.description}; its source computes in {scorer.source}."


def _provenance_line(model: Model) -> str:
    if model.scorer.provenance == "counted":
        return counted_words(model)
    if model.scorer.provenance == "sampled":
        return (
            "Preprocessing: sampled, not proved. A step of unknown code was evaluated column by "
            "column and on random people; verdicts are valid as far as that sample shows."
        )
    return "Every number is read from the model's own structure: verdicts are proofs about it."


def _unread_lines(model: Model) -> list[str]:
    lines = []
    names = never_read(model)
    if names:
        effect = (
            "so every decision is fair in this sense, trivially"
            if len(names) == len(model.space.sensitive)
            else "so no decision can depend on them directly"
        )
        lines.append(
            f"Never read, though sensitive: {listed(list(names))}; {effect}. "
            "Measure proxies instead (--data)."
        )
    others = [
        attribute.name
        for attribute in model.space.attributes
        if not model.scorer.reads(attribute, model.space)
        and attribute.name not in names
        and not isinstance(attribute, Derived)
    ]
    if others:
        lines.append(f"Never read: {listed(others)}.")
    return lines


def _lattice_line(model: Model, seconds: float | None, n_rows: int) -> str:
    relation = model.relation
    names = " x ".join(plain(axis.attribute.name) for axis in relation.axes)
    if not relation.has_key:
        return f"Sensitive: {names}; counterparts are not counted."
    if not relation.finite:
        return f"Sensitive: {names}; uncountably many counterparts."
    engine = choose(CountOf(model), "auto").name
    what = "counterparts per person"
    if not relation.complete:
        what = f"combinations, {relation.adjective} or not"
    text = f"Sensitive: {names}; {relation.size:,} {what}; engine {engine}"
    if seconds is None:
        return text + "."
    text += f", about {duration(seconds)} per person"
    return text + (f", {duration(seconds * n_rows)} for {n_rows:,} rows." if n_rows else ".")


def _comparison_line(comparison: Comparison | None) -> str:
    if comparison is None:
        return NOT_COMPARED
    if comparison.surprising:
        return f"WRONG: {comparison.contradiction()}"
    if not comparison.rows:
        return "Nothing to compare: all decisions are those of the model itself."
    return comparison.sentence()


def _proxy_line(strong: list[Proxy], data: Path | None) -> str:
    if data is None:
        return "Proxies: not measured; add people with --data."
    if not strong:
        return (
            "Proxies: no column predicts a sensitive one well "
            f"(Cramér's V below {NOTABLE} everywhere)."
        )
    shown = [
        f"{proxy.column} predicts {proxy.sensitive} (V = {proxy.strength:.2f})"
        for proxy in strong[:SHOWN_PROXIES]
    ]
    n_more = len(strong) - SHOWN_PROXIES
    more = f", and {n_more} more" if n_more > 0 else ""
    return (
        f"Possible proxies, Cramér's V from 0 to 1: {'; '.join(shown)}{more}. "
        "Fairness towards counterparts says nothing about them."
    )


def _content(model: Model, examination: Examination) -> dict[str, object]:
    """Return the content of the JSON output; its keys are public."""
    comparison, finite = examination.comparison, model.relation.finite
    return {
        "auditable": finite,
        "reading": model.scorer.provenance,
        "counterparts": model.relation.size if finite else None,
        "engine": choose(CountOf(model), "auto").name if finite else None,
        "kernel": LatticeEngine.available(),
        "seconds_a_person": examination.seconds_per_person,
        "sensitive_never_read": list(never_read(model)),
        "never_read": [
            attribute.name
            for attribute in model.space.attributes
            if not model.scorer.reads(attribute, model.space)
        ],
        "replayed": None
        if comparison is None
        else {
            "people": comparison.rows,
            "on_table": comparison.on_table,
            "function": comparison.runtime,
            "different": comparison.different,
            "beyond_rounding": comparison.surprising,
            "largest_difference": comparison.gap,
        },
        "proxies": [
            {"column": proxy.column, "sensitive": proxy.sensitive, "cramers_v": proxy.strength}
            for proxy in examination.proxies
        ],
        "proxy_measures": None if examination.measures is None else examination.measures.as_json(),
        "rows": examination.n_rows,
        "bad_rows": examination.n_bad_rows,
    }
