"""`feta train`: a network trained on a table, then on its own counterexamples."""

import sys
import warnings
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np
import typer

from feta.auditing.read_labels import read_labels
from feta.cli.exit_code import ExitCode
from feta.cli.notices import note_ignored
from feta.cli.output_path import check_file
from feta.cli.progress import show_progress
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
from feta.rule import Rule
from feta.scorer.network.network import Network, network_of
from feta.train.ce_fair import CEFairTrainer
from feta.train.curve_file import import_matplotlib, write_curve
from feta.train.plain import PlainTrainer, Progress
from feta.train.run import TrainingRun
from feta.train.scaling import Scaling
from feta.train.split import Split
from feta.train.task import Task


@dataclass(frozen=True, slots=True)
class TrainOptions:
    """The options of `feta train`."""

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
    """Train, write the model and its curve, and print the results.

    A checkpoint next to the model stores finished epochs, so the same command resumes.
    """
    if options.out.suffix.lower() != ".onnx":
        raise SchemaError(
            f"{options.out}: unknown file type: got {options.out.suffix or 'no suffix'!r}; "
            "expected .onnx, such as --out model.onnx"
        )
    inputs = [path for path in (options.data, options.schema, options.start) if path is not None]
    check_file(options.out, inputs)
    schema = read_schema(options.schema)
    _check_rule(options.schema, schema)
    # Labels need the names of the decisions, so a model must exist before the training.
    model = schema.model(_zero_network(schema.space.width, schema.rule))
    people, labels, ignored = read_labels(
        model, options.data, options.schema, options.label, schema.file.table
    )
    note_ignored(ignored)
    split = Split.of(
        model.space, Task(model.rule), people, labels, validation=None, seed=options.seed
    )
    import_matplotlib()  # report a missing package before the training, not after it
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        run = _train(options, model, split)
    _write(options, schema, run)
    _show(options, schema, run, split)
    for warning in caught:
        typer.echo(f"feta: warning: {plain(warning.message)}", err=True)
    return ExitCode.DONE


def _check_rule(path: Path, schema: Schema) -> None:
    rule = schema.rule
    if schema.file.relation is not None:
        raise SchemaError(
            f"{path}: training compares all combinations of sensitive values: got a schema with "
            "another relation; train with a schema without it, and audit with this one"
        )
    if rule.merges_classes:
        raise SchemaError(f"{path}: training needs all classes; remove one_vs_rest from [decision]")
    if rule.threshold is not None and schema.decision.score not in (None, 0.0):
        raise SchemaError(
            f"{path}: training returns log-odds: got score = {schema.decision.score} in "
            "[decision]; expected a probability, such as threshold = 0.5"
        )


def _zero_network(width: int, rule: Rule) -> Network:
    """Return a network whose scores are all 0."""
    layers = [(np.zeros((rule.outputs, width)), np.zeros(rule.outputs))]
    return Network.from_layers(layers, sigmoid=rule.threshold is not None)


def _train(options: TrainOptions, model: Model, split: Split) -> TrainingRun:
    checkpoint = options.out.with_suffix(".checkpoint")
    plain_checkpoint = options.out.with_suffix(".plain.checkpoint")
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
        with show_progress("training", total=1.0) as progress:
            network = _start_network(options, model, split, plain_checkpoint, progress)
        with show_progress("training on counterexamples", total=1.0) as progress:
            run = fair.train(
                network,
                split.people,
                split.targets,
                validation=(split.held, split.held_targets),
                checkpoint=checkpoint,
                progress=progress,
            )
    except KeyboardInterrupt:
        typer.echo("feta: interrupted; the same command resumes the training", err=True)
        raise
    for path in (checkpoint, plain_checkpoint):
        path.unlink(missing_ok=True)
    return run


def _start_network(
    options: TrainOptions, model: Model, split: Split, checkpoint: Path, progress: Progress
) -> Network:
    """Read the network of --start, or train one up to its epoch with the lowest loss."""
    if options.start is not None:
        return network_of(open_model(options.start, options.schema, SourceOptions()).model.scorer)
    trainer = PlainTrainer(
        model.space,
        hidden=_widths(options.hidden),
        rule=model.rule,
        learning_rates=(1e-2, 1e-3),
        batch_sizes=(options.batch_size,),
        epochs=options.plain_epochs,
        seed=options.seed,
    )
    return trainer.train_folds([split], checkpoint=checkpoint, progress=progress)[0].network


def _keep(text: str) -> str | float:
    try:
        return float(text)
    except ValueError:
        return text


def _widths(text: str) -> tuple[int, ...]:
    try:
        return tuple(int(width) for width in text.split(",") if width.strip())
    except ValueError:
        raise SchemaError(
            f"invalid --hidden: got {text!r}; expected integers, such as 16,16"
        ) from None


def _with_scaled_inputs(schema: Schema, network: Network) -> Network:
    """Rewrite a network in raw units for inputs scaled as the schema declares."""
    scaling = Scaling(np.array(schema.centers), np.array(schema.scales))
    return scaling.inside(network)


def _write(options: TrainOptions, schema: Schema, run: TrainingRun) -> None:
    network = _with_scaled_inputs(schema, run.network)
    if schema.rule.threshold is not None and schema.decision.score is None:
        network = replace(network, sigmoid=True)  # the threshold is a probability
    write_onnx(network, options.out)
    write_curve(run, options.out.with_suffix(".svg"))
    write_curve(run, options.out.with_suffix(".json"))


def _show(options: TrainOptions, schema: Schema, run: TrainingRun, split: Split) -> None:
    model = schema.model(read_onnx(options.out))  # the written file, as a user will open it
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
    if model.rule.tolerance is None:
        content["fair_accuracy"] = accuracy(np.asarray(fair).astype(float), split.held_targets)
    if options.as_json:
        sys.stdout.write(json_text(content))
        return
    measure = "accuracy" if model.rule.tolerance is None else "variance explained"
    lines = [
        f"trained on {len(split.people)} people; "
        f"epoch {run.chosen} chosen by {content['chosen_by']}",
        f"{measure}: {before.accuracy:.1%} before, "
        f"{after.accuracy:.1%} after training on counterexamples",
        f"people with a counterexample: {before.ce_rate:.1%} before, {after.ce_rate:.1%} after",
    ]
    if "fair_accuracy" in content:
        lines.append(f"accuracy of fair decisions (feta predict): {content['fair_accuracy']:.1%}")
    lines += [
        f"wrote {plain(options.out)}, and the curve as .svg and .json next to it",
        f"next: feta audit {plain(options.out)} --schema {plain(options.schema)} "
        f"--data {plain(options.data)}",
    ]
    typer.echo("\n".join(lines))
