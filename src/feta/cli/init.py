"""`feta init`: a first schema guessed from model and data, to be read by a person."""

from pathlib import Path

from rich.console import Console
from rich.text import Text

from feta.cli.exit_code import ExitCode
from feta.cli.open_model import open_network
from feta.cli.plain import plain
from feta.cli.progress import progress_bar
from feta.errors import SchemaError
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
    table.require([*sensitive, *leave_out])
    names = [name for name in table.names if name not in leave_out]
    if out.exists():
        raise SchemaError(f"{out} exists already; name another file with --out, or move it away")
    if not sensitive:
        message = f"name the sensitive columns with --sensitive; the columns are {', '.join(map(repr, names[:12]))}"
        raise SchemaError(message)
    summaries = {name: ColumnSummary(name) for name in names}
    with progress_bar() as progress:
        task = progress.add_task(f"reading {plain(data.name)}", total=1.0)
        for chunk in table.chunks(set(names)):
            for name, cells in chunk.columns.items():
                summaries[name].add(
                    [parse_number(c) if isinstance(c, str) and c else c for c in cells]
                )
            progress.update(task, completed=chunk.progress)
    attributes = [summaries[name].attribute(sensitive=name in sensitive) for name in names]
    space = FeatureSpace(tuple(attributes))
    file = SchemaFile(space, {}, {}, _units(attributes), Decision(probability=0.5))
    write_schema(Schema(file), out)
    _show(space, out, network.width)
    return ExitCode.DONE


def _units(attributes: list[Attribute]) -> dict[str, str]:
    units = {}
    for attribute in attributes:
        last = attribute.name.lower().replace("-", "_").split("_")[-1]
        if not isinstance(attribute, Categorical) and last in UNITS:
            units[attribute.name] = UNITS[last]
    return units


def _show(space: FeatureSpace, out: Path, inputs: int) -> None:
    console = Console(stderr=True, soft_wrap=True)
    console.print(
        Text(f"Wrote {out}: {len(space.attributes)} columns, {space.width} network inputs.")
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
        "[decision] must name the favorable outcome and the threshold.",
    ):
        console.print(Text(f"  - {line}"))


def listed(names: str | None) -> list[str]:
    """Split a list of names given with commas."""
    return [name for name in (names or "").split(",") if name]
