"""`feta predict`: fair decisions; the sensitive cells are never read, and may be missing."""

import csv
import json
import sys
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path
from typing import IO

from feta.cli.exit_code import ExitCode
from feta.cli.open_model import Opened
from feta.cli.plain import csv_cell, plain
from feta.cli.progress import progress_bar
from feta.engine.protocol import Budget
from feta.predict.fair_predictor import FairPredictor
from feta.space.attribute import Derived
from feta.space.table_file import Chunk, TableFile


@dataclass(frozen=True, slots=True)
class Options:
    """What the user asked for."""

    data: Path
    id_column: str | None
    out: Path | None
    as_json: bool
    engine: str
    seconds: float | None


def run_predict(opened: Opened, options: Options) -> ExitCode:
    """Decide each row of a table, streaming; undecided rows say so, and the exit code too."""
    model = opened.model
    space = model.space
    table = TableFile(options.data)
    needed = [
        a.name for a in space.attributes if not isinstance(a, Derived) and not space.is_sensitive(a)
    ]
    table.require([*needed, *([options.id_column] if options.id_column else [])])
    wanted = {*needed, *([options.id_column] if options.id_column else [])}
    predictor = FairPredictor(model, options.engine, Budget(seconds=options.seconds))
    undecided = False
    part = options.out and options.out.with_name(f".{options.out.name}.part")
    with ExitStack() as stack:
        stream: IO[str] = sys.stdout
        if part is not None:
            stream = stack.enter_context(part.open("w", encoding="utf-8", newline=""))
            stack.callback(part.unlink, missing_ok=True)
        writer = _Writer(stream, options)
        progress = stack.enter_context(progress_bar())
        task = progress.add_task(f"deciding {plain(options.data.name)}", total=1.0)
        for chunk in table.chunks(wanted):
            undecided |= _decide(predictor, chunk, writer, options)
            progress.update(task, completed=chunk.progress)
        if part is not None and options.out is not None:
            stream.flush()
            part.replace(options.out)
    return ExitCode.UNDECIDED if undecided else ExitCode.DONE


def _decide(predictor: FairPredictor, chunk: Chunk, writer: "_Writer", options: Options) -> bool:
    people = chunk.encode(predictor.model.space, ignore_sensitive=True)
    counts = predictor.votes(people)
    for place in range(len(chunk)):
        settled = bool(counts.settled[place])
        outcome = predictor.model.outcomes[int(counts.decision[place])] if settled else "undecided"
        name = str(chunk.columns[options.id_column][place]) if options.id_column else None
        writer.write(chunk.start + place + 1, name, outcome)
    return not bool(counts.settled.all())


class _Writer:
    """One line a person: CSV, or JSON lines."""

    def __init__(self, stream: IO[str], options: Options) -> None:
        self.stream, self.as_json = stream, options.as_json
        if not self.as_json:
            names = ["row", *([options.id_column] if options.id_column else []), "decision"]
            csv.writer(stream).writerow([csv_cell(name) for name in names])

    def write(self, row: int, name: str | None, outcome: str) -> None:
        if self.as_json:
            told: dict[str, object] = {"row": row} | ({"id": name} if name is not None else {})
            self.stream.write(json.dumps(told | {"decision": outcome}, ensure_ascii=False) + "\n")
        else:
            cells = [row, *([name] if name is not None else []), outcome]
            csv.writer(self.stream).writerow([csv_cell(cell) for cell in cells])
