"""`feta doctor`: whether a model can be audited, on what its answers would rest, and how long it takes."""

import sys
import time
from functools import partial
from pathlib import Path

import numpy as np
from rich.console import Console
from rich.text import Text

from feta.arrays import Matrix
from feta.auditing.auditor import Auditor
from feta.cli.exit_code import ExitCode
from feta.cli.progress import progress_bar, watched
from feta.engine.lattice import LatticeEngine
from feta.engine.protocol import Budget
from feta.engine.registry import choose
from feta.io.sanitize import json_text, listed, plain
from feta.metrics.proxies import NOTABLE, Proxy, proxies
from feta.model import Model
from feta.readers.check_reading import admit, compare_drawn, compare_table, draw_from_schema
from feta.readers.comparison import Comparison
from feta.readers.load import LoadedModel
from feta.report.words import NOT_COMPARED, duration, never_read
from feta.scorer.network.native_kernel import MISSING
from feta.scorer.network.unread import unread
from feta.space.attribute import Derived

# People looked at: enough for proxies, few enough to wait for.
MAX_PEOPLE = 20_000

# People asked about to tell how long an audit takes, and how long that may take, in seconds.
TIMED_PEOPLE = 32
TIMED_SECONDS = 5.0


def run_doctor(loaded: LoadedModel, path: Path, data: Path | None, *, as_json: bool) -> ExitCode:
    """Look at an opened model; whatever keeps it from being opened has been told by then."""
    model = loaded.model
    people, n_rows, n_bad = (draw_from_schema(loaded), 0, 0) if data is None else _people(loaded)
    compared = _compared(loaded)
    seconds = _seconds(model, people)
    found = (
        []
        if data is None
        else [one for one in proxies(model.space, people) if one.strength >= NOTABLE]
    )
    if as_json:
        sys.stdout.write(
            json_text(
                _content(model, compared, seconds, found, n_rows, n_bad)
                | {"notes": list(loaded.notes)},
                indent=2,
            )
        )
    else:
        _show(loaded, path, compared, seconds, found, (n_rows, n_bad, data))
    trusted = not (compared and compared.surprising)
    return ExitCode.DONE if trusted and model.space.finite else ExitCode.BAD_INPUT


def _compared(loaded: LoadedModel) -> Comparison | None:
    """Compare with the model itself, on the table if there is one, else on people drawn."""
    drawn = compare_drawn(loaded)
    if drawn is None or loaded.table is None or drawn.surprising:
        return drawn
    return compare_table(loaded, loaded.table, ignore_sensitive=False, watch=watched)


def _people(loaded: LoadedModel) -> tuple[Matrix, int, int]:
    """Read people as far as they fit the schema: rows, and how many did not."""
    model, table = loaded.model, loaded.table
    assert table is not None
    wanted = [one.name for one in model.space.attributes if not isinstance(one, Derived)]
    table.require(wanted)
    parts, n_rows, n_bad = [np.zeros((0, model.space.width))], 0, 0
    with progress_bar() as progress:
        task = progress.add_task(f"reading {plain(table.path.name)}", total=1.0)
        for chunk in table.chunks(set(wanted), typed=loaded.formats):
            people, good = chunk.encode_good(model.space, admit=partial(admit, loaded))
            n_rows, n_bad = n_rows + len(chunk), n_bad + len(chunk) - len(good)
            if sum(map(len, parts)) < MAX_PEOPLE:
                parts.append(people)
            progress.update(task, completed=chunk.progress)
    return np.concatenate(parts)[:MAX_PEOPLE], n_rows, n_bad


def _seconds(model: Model, people: Matrix) -> float | None:
    """Measure how long a person takes on average, on some people; None where nobody was settled."""
    if not model.space.finite or not len(people):
        return None
    auditor = Auditor(model, budget=Budget(seconds=TIMED_SECONDS / TIMED_PEOPLE))
    started = time.perf_counter()
    auditor.ask(people[:TIMED_PEOPLE])
    return (time.perf_counter() - started) / len(people[:TIMED_PEOPLE])


def _show(
    loaded: LoadedModel,
    path: Path,
    compared: Comparison | None,
    seconds: float | None,
    found: list[Proxy],
    table: tuple[int, int, Path | None],
) -> None:
    model, space = loaded.model, loaded.model.space
    console = Console(soft_wrap=True)
    if space.finite:
        console.print(Text(f"{plain(path.name)} can be audited.", style="bold green"))
    else:
        message = f"{plain(path.name)} can be verified in Python, person by person, but not audited: declare its real-valued sensitive attributes integer, or give them a step."
        console.print(Text(message, style="bold yellow"))
    first = model.network.first
    shape = " - ".join(
        str(one)
        for one in (
            space.width,
            first.outputs,
            *(len(layer.bias) for layer in model.network.layers),
        )
    )
    lines = [f"Network: {shape} neurons; its source computes in {model.network.source}."]
    lines.append(_reading(model))
    lines += [f"Note: {note}." for note in loaded.notes]
    lines += _columns(model)
    lines.append(_lattice(model, seconds, table[0]))
    if not LatticeEngine.available():
        lines.append(MISSING)
    lines.append(_comparison(compared))
    lines += _proxy_lines(found, table[2])
    if table[1]:
        lines.append(
            f"{table[1]:,} of {table[0]:,} rows do not fit the schema; feta audit names the first, or take --skip-bad-rows."
        )
    for line in lines:
        console.print(Text(f"  - {plain(line)}"))


def _reading(model: Model) -> str:
    if model.network.provenance == "sampled":
        return "Preprocessing: sampled, not proved. A step of unknown code was tried out column by column and on people drawn at random; verdicts hold as far as that tells."
    return "Every number is read from the model's own structure: verdicts are proofs about it."


def _columns(model: Model) -> list[str]:
    lines = []
    names = never_read(model)
    if names:
        every = len(names) == len(model.space.sensitive)
        trivial = (
            "so every decision is fair in this sense, trivially"
            if every
            else "so no decision can hang on them directly"
        )
        lines.append(
            f"Never read, though sensitive: {listed(list(names))}; {trivial}. Look at proxies instead (--data)."
        )
    others = [
        name
        for name in unread(model.network.first, model.space)
        if name not in names and not isinstance(model.space.attribute(name), Derived)
    ]
    if others:
        lines.append(f"Never read: {listed(others)}.")
    return lines


def _lattice(model: Model, seconds: float | None, n_rows: int) -> str:
    space = model.space
    names = " x ".join(one.name for one in space.sensitive)
    if not space.finite:
        return f"Sensitive: {names}; uncountably many counterparts."
    engine = choose(model, "auto").name
    text = f"Sensitive: {names}; {space.lattice.size:,} counterparts each; engine {engine}"
    if seconds is None:
        return text + "."
    text += f", about {duration(seconds)} a person"
    return text + (f", {duration(seconds * n_rows)} for {n_rows:,} rows." if n_rows else ".")


def _comparison(compared: Comparison | None) -> str:
    if compared is None:
        return NOT_COMPARED
    return f"WRONG: {compared.contradiction()}" if compared.surprising else compared.sentence()


def _proxy_lines(found: list[Proxy], data: Path | None) -> list[str]:
    if data is None:
        return ["Proxies: not measured; give people with --data."]
    if not found:
        return [
            f"Proxies: no column tells much about a sensitive one (Cramér's V below {NOTABLE} everywhere)."
        ]
    shown = [f"{one.column} tells {one.sensitive} (V = {one.strength:.2f})" for one in found[:8]]
    more = f", and {len(found) - 8} more" if len(found) > 8 else ""
    return [
        f"Possible proxies, Cramér's V from 0 to 1: {'; '.join(shown)}{more}. Fairness towards counterparts says nothing about them."
    ]


def _content(
    model: Model,
    compared: Comparison | None,
    seconds: float | None,
    found: list[Proxy],
    n_rows: int,
    n_bad: int,
) -> dict[str, object]:
    return {
        "auditable": model.space.finite,
        "reading": model.network.provenance,
        "counterparts": model.space.lattice.size if model.space.finite else None,
        "engine": choose(model, "auto").name if model.space.finite else None,
        "kernel": LatticeEngine.available(),
        "seconds_a_person": seconds,
        "sensitive_never_read": list(never_read(model)),
        "never_read": list(unread(model.network.first, model.space)),
        "replayed": None
        if compared is None
        else {
            "people": compared.rows,
            "on_table": compared.on_table,
            "function": compared.runtime,
            "different": compared.different,
            "beyond_rounding": compared.surprising,
            "largest_difference": compared.gap,
        },
        "proxies": [
            {"column": one.column, "sensitive": one.sensitive, "cramers_v": one.strength}
            for one in found
        ],
        "rows": n_rows,
        "bad_rows": n_bad,
    }
