"""The commands `feta init`, `doctor` and `constraints`; they import what they need."""

from pathlib import Path
from typing import Annotated, Literal

import typer

from feta.cli.load import load_model, origin_of, source_options
from feta.cli.options import (
    AsJson,
    External,
    LabelColumn,
    Layers,
    Method,
    ModelFile,
    OptionalModelFile,
    Predict,
    SchemaPath,
    TableArgument,
    Timeout,
    TrustPickle,
)


def init(
    model: ModelFile,
    data: TableArgument,
    sensitive: Annotated[
        list[str] | None,
        typer.Option(help="Sensitive columns: age,sex. May be repeated."),
    ] = None,
    leave_out: Annotated[
        list[str] | None,
        typer.Option(help="Columns the network does not read: id,label. May be repeated."),
    ] = None,
    favorable: Annotated[
        str | None, typer.Option(help="The favorable outcome: one of the model's two classes.")
    ] = None,
    unfavorable: Annotated[
        str | None, typer.Option(help="The other outcome, for a model without names of classes.")
    ] = None,
    favors: Annotated[
        Literal["above", "below"] | None,
        typer.Option(help="The side of favorable scores, for a model without names of classes."),
    ] = None,
    tolerance: Annotated[
        float | None,
        typer.Option(min=0, help="By how much predictions of a number may differ."),
    ] = None,
    out: Annotated[Path, typer.Option(help="Schema file to write.")] = Path("schema.toml"),
    strip: Annotated[
        bool, typer.Option("--strip", help="Strip spaces around texts before listing values.")
    ] = False,
    layers: Layers = None,
    external_data: External = False,
    trust_pickle: TrustPickle = False,
) -> int:
    """Write a first schema, to be checked by you.

    Types, domains and units are inferred from the model and the table. Without --sensitive, a
    terminal is asked: which columns are sensitive, which outcome is favorable, and what to do about
    doubtful columns.
    """
    from feta.cli.init import InitOptions, run_init, split_names
    from feta.cli.init_decision import StatedDecision

    source = source_options(layers, external_data, trust_pickle)
    stated = StatedDecision(favorable, unfavorable, favors, tolerance)
    names = split_names(sensitive), split_names(leave_out)
    return run_init(model, data, InitOptions(*names, out, stated, strip), source)


def doctor(
    model: OptionalModelFile = None,
    predict: Predict = None,
    schema: SchemaPath = None,
    data: Annotated[
        Path | None, typer.Option("--data", help="People, to measure proxies and differences.")
    ] = None,
    label: LabelColumn = None,
    method: Method = "auto",
    timeout: Timeout = 600.0,
    layers: Layers = None,
    external_data: External = False,
    trust_pickle: TrustPickle = False,
    as_json: AsJson = False,
) -> int:
    """Check whether a model can be audited.

    If not, names the column or layer, and what to do. With --data, measures proxies: how far the
    other columns reveal the sensitive ones, and how much of their effect the score contains.
    """
    from feta.cli.doctor import run_doctor

    origin = origin_of(model, predict, method, timeout)
    loaded = load_model(origin, schema, source_options(layers, external_data, trust_pickle), data)
    return run_doctor(loaded, origin, data, label, as_json=as_json)


def constraints(
    data: Annotated[Path, typer.Argument(help="Table of people.")],
    schema: Annotated[Path, typer.Option("--schema", help="Schema of its columns.")],
    columns: Annotated[
        str,
        typer.Option(help='Columns and sums of columns, such as "marital,age,age - years".'),
    ],
    least: Annotated[int, typer.Option(min=1, help="Fewest people of a combination.")] = 20,
    out: Annotated[Path | None, typer.Option(help="File for the constraint.")] = None,
) -> int:
    """List the combinations that occur in a table, to edit them.

    Append it to the schema: then only counterparts with such a combination are compared.
    """
    from feta.cli.constraints import run_constraints

    return run_constraints(data, schema, columns, least, out)
