"""The command `feta prove`; it imports what it needs when it runs."""

from pathlib import Path
from typing import Annotated

import typer

from feta.cli.load import origin_of, source_options
from feta.cli.options import (
    AsJson,
    External,
    Layers,
    MaxRows,
    Method,
    OneClass,
    OptionalModelFile,
    Predict,
    SchemaPath,
    Timeout,
    TrustPickle,
)


def prove(
    model: OptionalModelFile = None,
    predict: Predict = None,
    schema: SchemaPath = None,
    where: Annotated[
        str | None,
        typer.Option(help='Condition on columns that are not sensitive: "age >= 18".'),
    ] = None,
    population: Annotated[
        str | None,
        typer.Option(
            metavar="[marginals:]TABLE",
            help="The rows of a table, or people with the frequencies of its columns. Without it, "
            "all values of a column count equally.",
        ),
    ] = None,
    protect: Annotated[
        list[str] | None,
        typer.Option(help="Sensitive columns, instead of the schema's: sex,race. May be repeated."),
    ] = None,
    seconds: Annotated[float, typer.Option(min=0, help="Time limit (seconds).")] = 60.0,
    out: Annotated[
        Path | None, typer.Option(help="HTML page for the answer: everybody.html.")
    ] = None,
    resume: Annotated[
        Path | None,
        typer.Option(help="File for the state of the draws; an earlier one is continued."),
    ] = None,
    exit_above: Annotated[
        float | None,
        typer.Option(min=0, max=1, help="Exit code 1 only if more people than this are unfair."),
    ] = None,
    certify: Annotated[
        Path | None,
        typer.Option(
            help="Write a certificate of the proved shares to this file, and the model next to it."
        ),
    ] = None,
    alpha: Annotated[
        float, typer.Option(help="The estimate holds with the probability 1 - alpha.")
    ] = 0.05,
    seed: Annotated[int, typer.Option(min=0, help="Seed of the draws.")] = 0,
    one_vs_rest: OneClass = None,
    method: Method = "auto",
    timeout: Timeout = 600.0,
    max_rows: MaxRows = None,
    layers: Layers = None,
    external_data: External = False,
    trust_pickle: TrustPickle = False,
    as_json: AsJson = False,
) -> int:
    """Ask about everybody whom the schema allows.

    Shows which share of them is proved to be treated fairly or unfairly, an estimate from people
    who are drawn and decided exactly, one counterexample, and conditions under which unfairness is
    frequent.

    Exit code 0: nobody is treated unfairly (proved), or with --exit-above not more than that; 1:
    somebody, or more than that; 2: bad input; 3: not known. Ctrl-C keeps the answer so far.
    """
    from feta.cli.prove import ProveOptions, run_prove

    options = ProveOptions(
        origin_of(model, predict, method, timeout, max_rows),
        schema,
        source_options(layers, external_data, trust_pickle),
        one_vs_rest,
        where,
        population,
        tuple(protect or ()),
        seconds,
        out,
        resume,
        exit_above,
        certify,
        alpha,
        seed,
        as_json,
    )
    return run_prove(options)
