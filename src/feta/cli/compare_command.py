"""The command `feta compare`; it imports what it needs when it runs."""

from pathlib import Path
from typing import Annotated

import typer

from feta.cli.load import source_options
from feta.cli.options import AsJson, Data, External, Layers, SchemaPath, TrustPickle


def compare(
    models: Annotated[list[Path], typer.Argument(help="Models, as for feta audit.")],
    data: Data,
    label: Annotated[str, typer.Option(help="Column with the correct decision.")],
    schema: SchemaPath = None,
    out: Annotated[
        Path | None, typer.Option(help="Folder for comparison.html and comparison.json.")
    ] = None,
    epochs: Annotated[
        int | None,
        typer.Option(min=1, help="Epochs of the networks that are trained; by default enough."),
    ] = None,
    seed: Annotated[int, typer.Option(min=0, help="Seed of the split and of the trainings.")] = 0,
    layers: Layers = None,
    external_data: External = False,
    trust_pickle: TrustPickle = False,
    as_json: AsJson = False,
) -> int:
    """Compare models with fairer ways to decide.

    One half of the table is fitted to, the other half is measured. Each model is compared as it is,
    as a blind copy (scikit-learn estimators), with the votes of its counterparts, and distilled.
    Networks are trained on all columns, without the sensitive ones, and on counterexamples.

    Exit code 0: done; 2: bad input; 3: a candidate leaves people undecided and has no figures.
    An interruption (130) keeps the candidates that are measured.
    """
    from feta.cli.compare import CompareOptions, run_compare

    source = source_options(layers, external_data, trust_pickle)
    options = CompareOptions(tuple(models), schema, source, data, label, out, epochs, seed, as_json)
    return run_compare(options)
