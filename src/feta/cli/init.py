"""`feta init`: a first schema guessed from model and data, to be read by a person."""

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from rich.console import Console
from rich.text import Text

from feta.cli.exit_code import ExitCode
from feta.cli.open_model import open_network
from feta.cli.plain import listed, plain
from feta.cli.progress import progress_bar
from feta.errors import DomainError, SchemaError
from feta.schema import Schema, write_schema
from feta.space.attribute import Attribute, Categorical
from feta.space.feature_space import FeatureSpace
from feta.space.guess import ColumnSummary
from feta.space.schema_file import Decision, SchemaFile
from feta.space.table_file import TableFile, parse_number

# Units that a column's name gives away.
UNITS = {
    "age": "years",
    "years": "years",
    "months": "months",
    "days": "days",
    "hours": "hours",
    "eur": "EUR",
    "usd": "USD",
    "dm": "DM",
    "percent": "%",
}


def run_init(
    model: Path,
    data: Path,
    sensitive: list[str],
    leave_out: list[str],
    out: Path,
    *,
    layers: str | None,
    external: bool,
) -> ExitCode:
    """Guess types, domains and units; say what a person has to check."""
    network = open_network(model, layers, external=external)
    table = TableFile(data)
    sensitive, leave_out = (_stripped(names, table.names) for names in (sensitive, leave_out))
    table.require([*sensitive, *leave_out])
    names = [name for name in table.names if name and name not in leave_out]
    if out.exists():
        raise SchemaError(f"{out} exists already; name another file with --out, or move it away")
    if not sensitive:
        message = f"{data}: name the sensitive columns with --sensitive a,b; the columns are {listed(names, 12)}"
        raise SchemaError(message)
    if both := [name for name in sensitive if name in leave_out]:
        raise SchemaError(f"{both[0]!r} must be sensitive or left out, not both")
    space = _guessed(table, names, sensitive)
    decision = _guessed_decision(network.outputs)
    schema = Schema(SchemaFile(space, {}, {}, _units(space.attributes), decision))
    _ = schema.rule  # more classes than a rule can have are told before anything is written
    write_schema(schema, out)
    _show(schema, out, network.width)
    return ExitCode.DONE


def _guessed_decision(n_outputs: int) -> Decision:
    if n_outputs <= 2:
        return Decision(probability=0.5)
    return Decision(classes=tuple(f"class {number}" for number in range(n_outputs)))


def _stripped(told: list[str], known: list[str]) -> list[str]:
    """Take names as they are, or without the spaces around them: age, sex."""
    return [name if name in known else name.strip() for name in told]


def _guessed(table: TableFile, names: list[str], sensitive: list[str]) -> FeatureSpace:
    summaries = {name: ColumnSummary(name) for name in names}
    with progress_bar() as progress:
        task = progress.add_task(f"reading {plain(table.path.name)}", total=1.0)
        for chunk in table.chunks(set(names)):
            chunk.check()
            for name, cells in chunk.columns.items():
                with _located(name, table.path):
                    summaries[name].add([_read(cell) for cell in cells])
            progress.update(task, completed=chunk.progress)
    found = []
    for name in names:
        with _located(name, table.path):
            found.append(summaries[name].attribute(sensitive=name in sensitive))
    return FeatureSpace(tuple(found))


@contextmanager
def _located(name: str, path: Path) -> Iterator[None]:
    """Name file and row in what is said about a column, and the way out."""
    advice = "correct it, or leave the column out (--leave-out)"
    try:
        yield
    except DomainError as error:
        if error.row is None:
            raise DomainError(f"{path}: {error}; {advice}", column=name) from None
        what = error.what.replace("got None", "got an empty cell")
        message = f"{path}, row {error.row + 1}: {name!r} {what}; {advice}"
        raise DomainError(message, column=name, row=error.row) from None
    except SchemaError as error:
        raise SchemaError(f"{path}: {error}; {advice}") from None


def _read(cell: object) -> object:
    """Read a cell as a number where it is one."""
    return parse_number(cell) if isinstance(cell, str) else cell


def _units(attributes: tuple[Attribute, ...]) -> dict[str, str]:
    units = {}
    for attribute in attributes:
        last = attribute.name.lower().replace("-", "_").split("_")[-1]
        if not isinstance(attribute, Categorical) and last in UNITS:
            units[attribute.name] = UNITS[last]
    return units


def _show(schema: Schema, out: Path, inputs: int) -> None:
    space = schema.space
    console = Console(stderr=True, soft_wrap=True)
    console.print(
        Text(f"Wrote {plain(out)}: {len(space.attributes)} columns, {space.width} network inputs.")
    )
    if space.width != inputs:
        message = f"The network has {inputs} inputs, not {space.width}: a category takes one input a value. Leave out what the network does not read (--leave-out a,b), add values that the data lack, or change types."
        console.print(Text(message, style="bold yellow"))
    if space.finite:
        console.print(Text(f"Everybody has {space.lattice.size:,} counterparts."))
    console.print(Text("Check it before you trust an answer:"))
    for line in (
        "the columns must stand in the network's input order, and values in the order of its one-hot inputs;",
        "min and max are what this table holds: widen them to what may occur;",
        "add center and scale to numbers that the network expects scaled: (x - center) / scale;",
        "[decision] must name the classes, in the order of the network's outputs."
        if schema.decision.classes
        else "[decision] must name the favorable outcome and the threshold; a regression has tolerance = … instead.",
    ):
        console.print(Text(f"  - {line}"))


def split_names(names: str | None) -> list[str]:
    """Split a list of names given with commas."""
    return [name for name in (names or "").split(",") if name]
