"""`feta train`: a network trained on a table, then on its own counterexamples; ONNX and the curve."""

import contextlib
import sys
import warnings
from collections.abc import Iterator
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np
import typer

from feta.auditing.read_labels import read_labels
from feta.cli.audit import note_ignored
from feta.cli.exit_code import ExitCode
from feta.cli.output_path import check_file
from feta.cli.progress import progress_bar
from feta.errors import SchemaError
from feta.io.onnx_writer import write_onnx
from feta.io.sanitize import json_text, plain
from feta.io.schema import Schema, read_schema
from feta.metrics.rates import accuracy
from feta.model import Model
from feta.predict.fair_predictor import FairPredictor
from feta.readers.load import open_model
from feta.readers.onnx.read import read_onnx
from feta.readers.source import SourceOptions
from feta.rule import OneVsRest, Rule, Threshold, Tolerance
from feta.scorer.network.network import Network
from feta.train.ce_fair import CEFairTrainer
from feta.train.curve_file import import_matplotlib, write_curve
from feta.train.plain import PlainTrainer, Progress
from feta.train.run import TrainingRun
from feta.train.scaling import Scaling
from feta.train.split import Split
from feta.train.task import Task


@dataclass(frozen=True, slots=True)
class TrainOptions:
    """What the user asked for."""

    data: Path
    schema: Path
    label: str
    out: Path
    start: Path | None
    hidden: str
    plain_epochs: int
    epochs: int
    sample_fraction: float
    keep: str
    span: float | None
    learning_rate: float | None
    batch_size: int
    paper: bool
    seed: int
    as_json: bool


def run_train(options: TrainOptions) -> ExitCode:
    """Train, write the model and its curve, and say what came of it.

    A checkpoint beside the model keeps what is done: the same command goes on from there.
    """
    if options.out.suffix.lower() != ".onnx":
        raise SchemaError(f"{options.out}: --out must name an ONNX file, such as model.onnx")
    inputs = [one for one in (options.data, options.schema, options.start) if one is not None]
    check_file(options.out, inputs)
    schema = read_schema(options.schema)
    _check_rule(options.schema, schema)
    # Labels are read as the model to come will call its decisions.
    model = schema.model(_zero(schema.space.width, schema.rule))
    people, labels, ignored = read_labels(
        model, options.data, options.schema, options.label, schema.file.table
    )
    note_ignored(ignored)
    split = Split.of(
        model.space, Task(model.rule), people, labels, validation=None, seed=options.seed
    )
    import_matplotlib()  # a missing package must not be noticed only after the training
    with warnings.catch_warnings(record=True) as told:
        warnings.simplefilter("always")
        run = _trained(options, model, split)
    _write(options, schema, run)
    _show(options, schema, run, split)
    for one in told:
        typer.echo(f"feta: warning: {plain(one.message)}", err=True)
    return ExitCode.DONE


def _check_rule(path: Path, schema: Schema) -> None:
    rule = schema.rule
    if isinstance(rule, OneVsRest):
        raise SchemaError(f"{path}: training needs all classes; take one_vs_rest out of [decision]")
    if isinstance(rule, Threshold) and schema.decision.score not in (None, 0.0):
        message = f"{path}: training gives log-odds, so [decision] must have a probability, threshold = 0.5, got score = {schema.decision.score}"
        raise SchemaError(message)


def _zero(width: int, rule: Rule) -> Network:
    """Make a network that gives everybody 0."""
    layers = [(np.zeros((rule.outputs, width)), np.zeros(rule.outputs))]
    return Network.from_layers(layers, sigmoid=isinstance(rule, Threshold))


def _trained(options: TrainOptions, model: Model, split: Split) -> TrainingRun:
    checkpoint = options.out.with_suffix(".checkpoint")
    started = options.out.with_suffix(".plain.checkpoint")
    fair = CEFairTrainer(
        model.space,
        sample_fraction=options.sample_fraction,
        keep=_keep(options.keep),  # type: ignore[arg-type]  # the trainer checks it
        preset="paper" if options.paper else None,
        span_penalty=options.span,
        learning_rate=options.learning_rate,
        batch_size=options.batch_size,
        epochs=options.epochs,
        rule=model.rule,
        seed=options.seed,
    )
    try:
        with _progress("training") as tell:
            network = _start(options, model, split, started, tell)
        with _progress("training on counterexamples") as tell:
            run = fair.train(
                network,
                split.people,
                split.targets,
                validation=(split.held, split.held_targets),
                checkpoint=checkpoint,
                progress=tell,
            )
    except KeyboardInterrupt:
        typer.echo("feta: interrupted; the same command goes on from what is done", err=True)
        raise
    for one in (checkpoint, started):
        one.unlink(missing_ok=True)
    return run


def _start(
    options: TrainOptions, model: Model, split: Split, file: Path, tell: Progress
) -> Network:
    """Take the network that the user names, or train one; the epoch with the least loss is taken."""
    if options.start is not None:
        return open_model(options.start, options.schema, SourceOptions()).model.network
    trainer = PlainTrainer(
        model.space,
        hidden=_widths(options.hidden),
        rule=model.rule,
        learning_rates=(1e-2, 1e-3),
        batch_sizes=(options.batch_size,),
        epochs=options.plain_epochs,
        seed=options.seed,
    )
    return trainer.train_folds([split], checkpoint=file, progress=tell)[0].network


def _keep(text: str) -> str | float:
    try:
        return float(text)
    except ValueError:
        return text


def _widths(text: str) -> tuple[int, ...]:
    try:
        return tuple(int(one) for one in text.split(",") if one.strip())
    except ValueError:
        raise SchemaError(
            f"--hidden must list whole numbers, such as 16,16, got {text!r}"
        ) from None


@contextlib.contextmanager
def _progress(what: str) -> Iterator[Progress]:
    with progress_bar() as bar:
        task = bar.add_task(what, total=1.0)
        yield lambda share: bar.update(task, completed=share)


def _fitting(schema: Schema, network: Network) -> Network:
    """Rewrite a network of people's own units for inputs scaled as the schema says."""
    scaling = Scaling(np.array(schema.centers), np.array(schema.scales))
    return scaling.inside(network)


def _write(options: TrainOptions, schema: Schema, run: TrainingRun) -> None:
    network = _fitting(schema, run.network)
    if isinstance(schema.rule, Threshold) and schema.decision.score is None:
        network = replace(network, sigmoid=True)  # or the file's outputs would be no probabilities
    write_onnx(network, options.out)
    write_curve(run, options.out.with_suffix(".svg"))
    write_curve(run, options.out.with_suffix(".json"))


def _show(options: TrainOptions, schema: Schema, run: TrainingRun, split: Split) -> None:
    model = schema.model(read_onnx(options.out))  # what was written, as a user will open it
    before, after = run.start, run.best.chosen_by
    content = {
        "model": str(options.out),
        "curve": [str(options.out.with_suffix(end)) for end in (".svg", ".json")],
        "people": len(split.people),
        "chosen_by": f"{len(split.held)} people held out"
        if run.select_on == "validation"
        else "training people",
        "epoch": run.chosen,
        "accuracy": [before.accuracy, after.accuracy],
        "ce_rate": [before.ce_rate, after.ce_rate],
    }
    fair = FairPredictor(model).decide(split.held)
    if not isinstance(model.rule, Tolerance):
        content["fair_accuracy"] = accuracy(np.asarray(fair).astype(float), split.held_targets)
    if options.as_json:
        sys.stdout.write(json_text(content))
        return
    typer.echo(
        f"trained on {len(split.people)} people; epoch {run.chosen} chosen by {content['chosen_by']}"
    )
    right = "variance explained" if isinstance(model.rule, Tolerance) else "accuracy"
    typer.echo(
        f"{right}: {before.accuracy:.1%} before, {after.accuracy:.1%} after training on counterexamples"
    )
    typer.echo(
        f"people with a counterexample: {before.ce_rate:.1%} before, {after.ce_rate:.1%} after"
    )
    if "fair_accuracy" in content:
        typer.echo(f"accuracy of fair decisions (feta predict): {content['fair_accuracy']:.1%}")
    typer.echo(f"wrote {plain(options.out)}, and the curve as .svg and .json beside it")
    typer.echo(
        f"next: feta audit {plain(options.out)} --schema {plain(options.schema)} --data {plain(options.data)}"
    )
