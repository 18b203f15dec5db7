"""The command `feta train`; it imports what it needs when it runs."""

from pathlib import Path
from typing import Annotated

import typer

from feta.cli.options import AsJson, TableArgument


def train(
    data: TableArgument,
    schema: Annotated[Path, typer.Option("--schema", help="schema.toml.")],
    label: Annotated[str, typer.Option(help="Column with the correct decision, class or score.")],
    out: Annotated[Path, typer.Option(help="Model file to write.")] = Path("model.onnx"),
    start: Annotated[
        Path | None,
        typer.Option(help="Trained model to continue from; without it, one is trained."),
    ] = None,
    hidden: Annotated[str, typer.Option(help="Widths of the hidden layers.")] = "16,16,16",
    plain_epochs: Annotated[int, typer.Option(help="Epochs of the first training.")] = 100,
    epochs: Annotated[int, typer.Option(help="Epochs of training on counterexamples.")] = 50,
    sample_fraction: Annotated[
        float, typer.Option(help="Fraction of the people used per epoch.")
    ] = 1.0,
    keep: Annotated[
        str,
        typer.Option(
            help="People of a batch to train on: all, counterexamples, or the fraction of "
            "people without a counterexample."
        ),
    ] = "all",
    span: Annotated[
        float | None,
        typer.Option(
            help="Weight of a penalty on the span of counterparts' scores, "
            "instead of counterexamples; 0.1 is usual."
        ),
    ] = None,
    learning_rate: Annotated[
        float | None, typer.Option(help="Learning rate of the second training.")
    ] = None,
    batch_size: Annotated[int, typer.Option(help="People per step.")] = 128,
    paper: Annotated[bool, typer.Option("--paper", help="Use the paper's settings.")] = False,
    seed: Annotated[int, typer.Option(help="Random seed.")] = 0,
    as_json: AsJson = False,
) -> int:
    """Train a network that is fairer by itself.

    Writes it as ONNX, with the training curve.
    """
    from feta.cli.train import TrainOptions, run_train

    options = TrainOptions(
        data,
        schema,
        label,
        out,
        start,
        hidden,
        plain_epochs,
        epochs,
        sample_fraction,
        keep,
        span,
        learning_rate,
        batch_size,
        paper,
        seed,
        as_json,
    )
    return run_train(options)
