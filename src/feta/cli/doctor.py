"""`feta doctor`: whether a model can be audited, on what its answers would rest, and how long it takes."""

import sys
import time
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from rich.console import Console
from rich.text import Text

from feta.arrays import Flags, Matrix
from feta.audit.auditor import Auditor
from feta.audit.proxies import NOTABLE, Proxy, proxies
from feta.cli.exit_code import ExitCode
from feta.cli.open_model import Opened
from feta.cli.progress import progress_bar
from feta.engine.protocol import Budget
from feta.engine.registry import choose
from feta.model import Model
from feta.network.points import Rows
from feta.network.unread import unread
from feta.plain import json_text, listed, plain
from feta.report.words import duration, never_read
from feta.rule import Tolerance
from feta.space.attribute import Derived
from feta.space.draw import draw_people
from feta.space.table_file import TableFile

# People looked at: enough for proxies, few enough to wait for.
MOST_PEOPLE = 20_000

# People asked about to tell how long an audit takes, and how long that may take, in seconds.
TIMED_PEOPLE = 32
TIMED_SECONDS = 5.0

# People put to the model's own runtime.
REPLAYED_PEOPLE = 1000


@dataclass(frozen=True, slots=True, eq=False)
class Replayed:
    """People put to the user's own model: how many, how many decided otherwise, how many surely so."""

    people: int
    different: int
    surprising: int  # different, though FETA is sure that rounding cannot explain it
    gap: float | None = None  # how far its scores or probabilities are from FETA's at most


def run_doctor(opened: Opened, path: Path, data: Path | None, *, as_json: bool) -> ExitCode:
    """Look at an opened model; whatever keeps it from being opened has been told by then."""
    model = opened.model
    drawn = draw_people(model.space, np.random.default_rng(0), REPLAYED_PEOPLE)
    people, n_rows, n_bad = (drawn, 0, 0) if data is None else _people(model, data)
    both = np.concatenate([drawn, people[:REPLAYED_PEOPLE]])
    replayed = None if opened.replay is None else _replayed(opened, both)
    seconds = _seconds(model, people)
    found = (
        []
        if data is None
        else [one for one in proxies(model.space, people) if one.strength >= NOTABLE]
    )
    if as_json:
        sys.stdout.write(
            json_text(_content(model, replayed, seconds, found, n_rows, n_bad), indent=2)
        )
    else:
        _show(opened, path, replayed, seconds, found, (n_rows, n_bad, data))
    trusted = not (replayed and replayed.surprising)
    return ExitCode.DONE if trusted and model.space.finite else ExitCode.BAD_INPUT


def _people(model: Model, data: Path) -> tuple[Matrix, int, int]:
    """Read people as far as they fit the schema: rows, and how many did not."""
    table = TableFile(data)
    wanted = [one.name for one in model.space.attributes if not isinstance(one, Derived)]
    table.require(wanted)
    parts, n_rows, n_bad = [np.zeros((0, model.space.width))], 0, 0
    with progress_bar() as progress:
        task = progress.add_task(f"reading {plain(data.name)}", total=1.0)
        for chunk in table.chunks(set(wanted)):
            good, bad = chunk.encode_good(model.space)
            n_rows, n_bad = n_rows + len(chunk), n_bad + bad
            if sum(map(len, parts)) < MOST_PEOPLE:
                parts.append(good)
            progress.update(task, completed=chunk.progress)
    return np.concatenate(parts)[:MOST_PEOPLE], n_rows, n_bad


def _replayed(opened: Opened, people: Matrix) -> Replayed:
    """Put people to the user's own model, and compare decisions, or scores for regression."""
    assert opened.replay is not None
    model = opened.model
    theirs = np.asarray(opened.replay(people))
    gap = None if opened.gap is None else opened.gap(people)
    points = Rows(model.exact, people)
    if isinstance(model.rule, Tolerance):
        scores = model.runtime_scores(points)
        off = np.abs(scores.values[:, 0] - theirs)
        far: Flags = off > scores.errors[:, 0]
        return Replayed(len(people), int(far.sum()), int(far.sum()), gap)
    settled = model.settle(points, model.rule)
    different = settled.decisions != theirs.astype(settled.decisions.dtype)
    surprising = int((different & settled.safe).sum())
    return Replayed(len(people), int(different.sum()), surprising, gap)


def _seconds(model: Model, people: Matrix) -> float | None:
    """Measure how long a person takes on average, on some people; None where nobody was settled."""
    if not model.space.finite or not len(people):
        return None
    auditor = Auditor(model, budget=Budget(seconds=TIMED_SECONDS / TIMED_PEOPLE))
    started = time.perf_counter()
    auditor.ask(people[:TIMED_PEOPLE])
    return (time.perf_counter() - started) / len(people[:TIMED_PEOPLE])


def _show(
    opened: Opened,
    path: Path,
    replayed: Replayed | None,
    seconds: float | None,
    found: list[Proxy],
    table: tuple[int, int, Path | None],
) -> None:
    model, space = opened.model, opened.model.space
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
    lines += _columns(model)
    lines.append(_lattice(model, seconds, table[0]))
    lines.append(_comparison(opened, replayed))
    lines += _proxy_lines(found, table[2])
    if table[1]:
        lines.append(
            f"{table[1]:,} of {table[0]:,} rows do not fit the schema; feta audit names the first, or take --skip-bad-rows."
        )
    for line in lines:
        console.print(Text(f"  - {plain(line)}"))


def _reading(model: Model) -> str:
    if model.network.reading == "sampled":
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


def _comparison(opened: Opened, replayed: Replayed | None) -> str:
    if replayed is None:
        return "The model's own runtime is not at hand, so nothing was replayed there."
    if replayed.surprising:
        return f"WRONG: {opened.runtime} decides {replayed.surprising:,} of {replayed.people:,} people otherwise than FETA, beyond rounding; do the columns' order, center, scale and threshold fit the model?"
    text = f"{replayed.people:,} people put to {opened.runtime}: "
    gap = (
        ""
        if replayed.gap is None
        else f" Its outputs differ from FETA's by {replayed.gap:.2g} at most."
    )
    if not replayed.different:
        return text + f"all decided as FETA says.{gap}"
    return (
        text
        + f"{replayed.different:,} decided otherwise, all within the model's own rounding.{gap}"
    )


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
    replayed: Replayed | None,
    seconds: float | None,
    found: list[Proxy],
    n_rows: int,
    n_bad: int,
) -> dict[str, object]:
    return {
        "auditable": model.space.finite,
        "reading": model.network.reading,
        "counterparts": model.space.lattice.size if model.space.finite else None,
        "engine": choose(model, "auto").name if model.space.finite else None,
        "seconds_a_person": seconds,
        "sensitive_never_read": list(never_read(model)),
        "never_read": list(unread(model.network.first, model.space)),
        "replayed": None
        if replayed is None
        else {
            "people": replayed.people,
            "different": replayed.different,
            "beyond_rounding": replayed.surprising,
            "largest_difference": replayed.gap,
        },
        "proxies": [
            {"column": one.column, "sensitive": one.sensitive, "cramers_v": one.strength}
            for one in found
        ],
        "rows": n_rows,
        "bad_rows": n_bad,
    }
