"""`feta prove`: everybody whom the schema allows, or a table, or a condition describes."""

import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import typer
from rich.console import Console
from rich.live import Live
from rich.text import Text

from feta.cli.exit_code import ExitCode
from feta.cli.init import split_names
from feta.cli.load import load_model
from feta.cli.notices import notice
from feta.cli.output_path import check_file
from feta.cli.progress import show_progress
from feta.cli.prove_state import read_state, write_state
from feta.cli.signals import terminable, uninterrupted
from feta.engine.protocol import Budget
from feta.errors import SchemaError
from feta.everybody import population as populations
from feta.everybody.population import Population
from feta.everybody.prove import proving
from feta.everybody.proving import Proving
from feta.everybody.result import Everybody, down, up
from feta.everybody.where import Where
from feta.io.model_file import model_bytes
from feta.io.regular_file import atomic_write
from feta.io.sanitize import json_text, plain
from feta.io.table_file import TableFile
from feta.model import Model
from feta.readers.check_reading import check_reading
from feta.readers.load import LoadedModel
from feta.readers.load_function import ModelOrigin
from feta.readers.source import SourceOptions

MARGINALS = "marginals:"

SHOWN_REGIONS = 5


@dataclass(frozen=True, slots=True)
class ProveOptions:
    """The options of `feta prove`."""

    origin: ModelOrigin
    schema: Path | None
    source: SourceOptions
    one_vs_rest: str | None
    where: str | None
    population: str | None
    protect: tuple[str, ...]
    seconds: float
    out: Path | None
    resume: Path | None
    exit_above: float | None
    certify: Path | None
    alpha: float
    seed: int
    as_json: bool


def run_prove(options: ProveOptions) -> ExitCode:
    """Ask about everybody; an interruption keeps the answer so far."""
    table, marginal = _table(options.population)
    files = (options.origin.path, options.schema, table, options.resume)
    inputs = [path for path in files if path is not None]
    check_file(options.out, inputs)
    check_file(options.certify, inputs)
    loaded = load_model(
        options.origin, options.schema, options.source, table, one_vs_rest=options.one_vs_rest
    )
    for note in loaded.notes:
        notice(note)
    check_reading(loaded, watch=show_progress)
    model = loaded.model
    if options.protect:
        model = model.with_sensitive(split_names(list(options.protect)))
    population = _population(loaded, model, options, table, marginal=marginal)
    state = None if options.resume is None else read_state(options.resume)
    run = proving(model, population, alpha=options.alpha, seed=options.seed, resume=state)
    with terminable():
        interrupted = _run(run, options.seconds)
        with uninterrupted():
            answer = run.result()
            if options.resume is not None:
                write_state(options.resume, run.state)
            if options.out is not None:
                answer.to_html(options.out, name=options.origin.name)
            if options.certify is not None:
                _certify(run, model, options.certify)
    if interrupted:
        notice(f"interrupted after {answer.seconds:.0f} s; this is the answer so far")
    _show(model, answer, options)
    return _exit_code(answer, options.exit_above)


def _certify(run: Proving, model: Model, path: Path) -> None:
    """Write a certificate, and next to it the model that it belongs to."""
    try:
        content = run.certificate()
    except SchemaError as refused:  # the answer counts without a certificate, too
        notice(str(refused))
        return
    stored = path.with_name(path.name + ".feta")
    for target, data in ((path, content), (stored, model_bytes(model))):
        with atomic_write(target) as part:
            part.write_bytes(data)
    notice(
        f"wrote {path} and {stored}; check them with: python -m feta_people_check {stored} {path}"
    )


def _table(population: str | None) -> tuple[Path | None, bool]:
    """Return the table of a population, and whether only its frequencies count."""
    if population is None:
        return None, False
    name = population.removeprefix(MARGINALS)
    if not name or name == "marginals":
        raise SchemaError(
            f"invalid population: got {population!r}; expected a table, or {MARGINALS}TABLE"
        )
    return Path(name), name != population


def _population(
    loaded: LoadedModel, model: Model, options: ProveOptions, table: Path | None, *, marginal: bool
) -> Population:
    where = Where.of(options.where, model.space)
    if table is None:
        return populations.uniform(model.space, where)
    people = _people(loaded, model, loaded.table or TableFile(table, loaded.options))
    if marginal:
        return populations.marginals(model.space, people, where)
    return populations.rows(model.space, people, where)


def _people(loaded: LoadedModel, model: Model, table: TableFile) -> np.ndarray:
    names = [a.name for a in model.space.attributes if a.name in table.names]
    formats = loaded.formats or table.formats(names)
    rows = [chunk.encode(model.space) for chunk in table.chunks(set(names), typed=formats)]
    return np.concatenate([np.zeros((0, model.space.width)), *rows])


def _run(run: Proving, seconds: float) -> bool:
    """Work with a line of progress; return whether it was interrupted."""
    console = Console(stderr=True)
    started = time.monotonic()
    budget = Budget(seconds=seconds)
    try:
        if not console.is_terminal:
            run.run(budget)
            return False
        with Live(console=console, transient=True, auto_refresh=False) as live:
            run.run(budget, _line(live, started, seconds))
    except KeyboardInterrupt:
        return True
    return False


def _line(live: Live, started: float, seconds: float) -> Callable[[Everybody], None]:
    def show(answer: Everybody) -> None:
        live.update(Text(progress_line(answer, time.monotonic() - started, seconds)), refresh=True)

    return show


def progress_line(answer: Everybody, elapsed: float, seconds: float) -> str:
    """Return the answer so far in one line."""
    estimate = answer.estimate
    return (
        f"{elapsed:.0f} of {seconds:.0f} s: proved fair {down(answer.fair)}, proved unfair "
        f"{down(answer.unfair)}, undecided {up(answer.undecided)}; sampled: "
        f"{down(estimate.low)} to {up(estimate.high)} unfair"
    )


def _show(model: Model, answer: Everybody, options: ProveOptions) -> None:
    if options.as_json:
        typer.echo(json_text(answer_json(model, answer)))
        return
    for sentence in answer.sentences():
        typer.echo(plain(sentence))
    if answer.counterexample is not None:
        _show_pair(model, answer)
    if answer.regions:
        typer.echo("Where unfairness is frequent (sampled; each line can be given to --where):")
    for region in answer.regions[:SHOWN_REGIONS]:
        low, high = down(region.share_unfair.low), up(region.share_unfair.high)
        typer.echo(
            f"  {plain(region.where)}: {100 * region.share_of_people:.2f} % of people, {low} to "
            f"{high} of them unfair, {100 * region.share_of_unfair:.0f} % of all unfair"
        )


def _show_pair(model: Model, answer: Everybody) -> None:
    pair = answer.counterexample
    assert pair is not None
    person, other = model.space.decode(pair.person), model.space.decode(pair.counterpart)
    shared = {name: value for name, value in person.items() if other[name] == value}
    typer.echo(plain(f"One of them: {_record(shared)}"))
    for row, index in ((person, 0), (other, 1)):
        own = _record({name: value for name, value in row.items() if name not in shared})
        if pair.decisions:
            outcome = model.outcomes[pair.decisions[index]]
        else:
            outcome = f"{float(np.asarray(pair.scores[index])):.6g}"
        typer.echo(plain(f"  {own}: {outcome}"))


def _record(values: Mapping[str, object]) -> str:
    return ", ".join(f"{name} {value}" for name, value in values.items())


def answer_json(model: Model, answer: Everybody) -> dict[str, object]:
    """Return the answer for programs; shares are exact fractions as texts."""
    pair = answer.counterexample
    return {
        "format": "feta-prove",
        "version": 1,
        "population": answer.population,
        "proved": {
            "fair": str(answer.fair),
            "unfair": str(answer.unfair),
            "undecided": str(answer.undecided),
            "method": answer.method,
            "why_not": answer.unproved,
        },
        "sampled": {
            "low": answer.estimate.low,
            "high": answer.estimate.high,
            "confidence": answer.estimate.confidence,
            "people": answer.draws.people,
            "unfair": answer.draws.unfair,
            "undecided": answer.draws.undecided,
        },
        "counterexample": None
        if pair is None
        else [model.space.decode(pair.person), model.space.decode(pair.counterpart)],
        "regions": [
            {
                "where": region.where,
                "share_of_people": region.share_of_people,
                "unfair_low": region.share_unfair.low,
                "unfair_high": region.share_unfair.high,
                "confidence": region.share_unfair.confidence,
            }
            for region in answer.regions
        ],
        "seconds": answer.seconds,
        "provenance": answer.provenance,
    }


def _exit_code(answer: Everybody, bar: float | None) -> ExitCode:
    if bar is None:
        found = answer.somebody or answer.unfair > 0
        below = True if answer.nobody else (False if found else None)
    else:
        below = answer.is_below(bar)
    if below is None:
        return ExitCode.UNDECIDED
    return ExitCode.DONE if below else ExitCode.COUNTEREXAMPLE
