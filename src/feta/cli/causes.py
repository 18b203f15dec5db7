"""The command `feta causes`; it imports what it needs."""

from pathlib import Path
from typing import Annotated

import typer

causes = typer.Typer(
    help="Columns that follow from the sensitive ones, as equations.",
    no_args_is_help=True,
    rich_markup_mode=None,
)


@causes.callback()
def group() -> None:
    """Columns that follow from the sensitive ones, as equations."""


@causes.command()
def fit(
    data: Annotated[Path, typer.Argument(help="Table of people.")],
    schema: Annotated[Path, typer.Option("--schema", help="Schema of its columns.")],
    graph: Annotated[
        str, typer.Option(help='Causes and consequences: "sex -> income; age -> income".')
    ],
    out: Annotated[Path | None, typer.Option(help="File for the equations.")] = None,
) -> int:
    """Fit linear equations to a table, to edit them.

    Append them to the schema: then these columns move along when sensitive values change. Fits
    describe the table; that the arrows are causes is your assumption.
    """
    from feta.cli.fit_causes import run_fit

    return run_fit(data, schema, graph, out)
