"""App: the command line's door; it turns errors into messages and exit codes."""

import io
import os
import sys
from importlib.metadata import version
from pathlib import Path
from typing import Annotated, Literal

import typer

from feta.auditing.interruptible import is_computing
from feta.cli.exit_code import ExitCode
from feta.cli.leave import leave_at_once, stop_listening
from feta.cli.plugins import CommandGroup
from feta.errors import CertificateError, FetaError
from feta.io.sanitize import plain, shortened

app = typer.Typer(
    cls=CommandGroup,
    name="feta",
    help="Is there anybody whose decision would change if only their age, race or sex were different?",
    no_args_is_help=True,
    pretty_exceptions_enable=False,
    add_completion=False,
    rich_markup_mode=None,
)


def _version(shown: bool) -> None:
    if shown:
        typer.echo(f"feta {version('feta-fair')}")
        raise typer.Exit


@app.callback()
def options(
    _shown: Annotated[
        bool, typer.Option("--version", callback=_version, is_eager=True, help="Show the version.")
    ] = False,
) -> None:
    """Verify and enforce individual fairness of neural networks."""


ModelFile = Annotated[
    Path,
    typer.Argument(
        help="Model: .feta, .onnx, .keras, .h5, .safetensors, .npz, .skops; a pickle with --trust-pickle."
    ),
]
SchemaPath = Annotated[
    Path | None, typer.Option("--schema", help="schema.toml; a .feta file holds its own.")
]
Data = Annotated[Path, typer.Option("--data", help="People: CSV or Parquet, in raw columns.")]
IdColumn = Annotated[str | None, typer.Option("--id", help="Column that names a person.")]
Layers = Annotated[
    str | None, typer.Option(help="Layer names in order, for .safetensors and .npz: fc1,fc2,out.")
]
External = Annotated[
    bool, typer.Option("--external-data", help="Read ONNX weights from files beside the model.")
]
TrustPickle = Annotated[
    bool,
    typer.Option(
        "--trust-pickle",
        help="Open .pkl, .joblib, .pt, which run whatever is hidden in them: only files of your own.",
    ),
]
SkipBadRows = Annotated[
    bool, typer.Option("--skip-bad-rows", help="Report bad rows instead of stopping at them.")
]
EngineName = Annotated[str, typer.Option(help="Engine; feta engines lists them.")]
Seconds = Annotated[float | None, typer.Option(help="Most seconds a person may take.")]
Chosen = Annotated[
    str | None,
    typer.Option("--one-vs-rest", metavar="CLASS", help="Ask about one of several classes only."),
]
Votes = Annotated[
    Path | None,
    typer.Option(
        "--vote-weights",
        metavar="TABLE",
        help="People whose sensitive values, as often as they occur, are the votes in fair decisions.",
    ),
]
OutputFormat = Annotated[
    Literal["text", "md", "json", "junit"],
    typer.Option("--format", help="What to write to standard output."),
]
Jobs = Annotated[int, typer.Option(min=1, help="Processes that ask at the same time.")]
AsJson = Annotated[bool, typer.Option("--json", help="Machine-readable, on standard output.")]


@app.command()
def demo(seed: Annotated[int, typer.Option(help="Seed of the training.")] = 0) -> None:
    """The whole story on the bundled German credit data."""
    from feta.cli.demo import run_demo

    run_demo(seed=seed)


@app.command()
def init(
    model: ModelFile,
    data: Annotated[Path, typer.Argument(help="People: CSV or Parquet, in raw columns.")],
    sensitive: Annotated[str, typer.Option(help="Sensitive columns: age,sex.")] = "",
    leave_out: Annotated[
        str, typer.Option(help="Columns the network does not read: id,label.")
    ] = "",
    out: Annotated[Path, typer.Option(help="The schema to write.")] = Path("schema.toml"),
    strip: Annotated[
        bool, typer.Option("--strip", help="Strip blanks around texts before values are listed.")
    ] = False,
    layers: Layers = None,
    external_data: External = False,
    trust_pickle: TrustPickle = False,
) -> int:
    """Write a first schema: types, domains and units guessed, to be read by a person."""
    from feta.cli.init import run_init, split_names
    from feta.readers.source import SourceOptions

    return run_init(
        model,
        data,
        split_names(sensitive),
        split_names(leave_out),
        out,
        SourceOptions(layers, external_data, trust_pickle),
        strip=strip,
    )


@app.command()
def audit(
    model: ModelFile,
    data: Data,
    schema: SchemaPath = None,
    label: Annotated[
        str | None, typer.Option(help="Column with the right decision, class or score.")
    ] = None,
    id_column: IdColumn = None,
    out: Annotated[
        Path | None,
        typer.Option(help="Folder for report.html, pairs.csv, verdicts.csv and audit.json."),
    ] = None,
    output: OutputFormat = "text",
    jobs: Jobs = 1,
    engine: EngineName = "auto",
    seconds: Seconds = None,
    skip_bad_rows: SkipBadRows = False,
    one_vs_rest: Chosen = None,
    vote_weights: Votes = None,
    layers: Layers = None,
    external_data: External = False,
    trust_pickle: TrustPickle = False,
    as_json: AsJson = False,
) -> int:
    """Ask about every row: verdicts, the clearest pairs in plain words, rates by attribute.

    Exit code 0: everyone proved fair; 1: a counterexample; 2: bad input; 3: undecided people remain.
    With --out, an audit that was interrupted or killed resumes: give the same command again.
    """
    from feta.cli.audit import AuditOptions, run_audit
    from feta.readers.source import SourceOptions

    source = SourceOptions(layers, external_data, trust_pickle)
    options = AuditOptions(
        model,
        schema,
        source,
        one_vs_rest,
        data,
        label,
        id_column,
        out,
        "json" if as_json else output,
        engine,
        seconds,
        skip_bad_rows,
        vote_weights,
        jobs,
    )
    return run_audit(options)


@app.command()
def diff(
    old: Annotated[Path, typer.Argument(help="An audit's folder, or its audit.json.")],
    new: Annotated[Path, typer.Argument(help="A later one.")],
    allow_new: Annotated[
        int, typer.Option(min=0, help="People who may newly have a counterexample.")
    ] = 0,
    rate_only: Annotated[
        bool,
        typer.Option(
            "--rate-only",
            help="Compare the CE rates alone, not who is unfair: for retrained models.",
        ),
    ] = False,
    other_question: Annotated[
        bool,
        typer.Option("--allow-other-question", help="Compare though the schemas differ."),
    ] = False,
    output: OutputFormat = "text",
    as_json: AsJson = False,
) -> int:
    """What changed between two audits, for CI gates.

    Exit code 0: not worse; 1: somebody has a counterexample who had none; 2: bad input; 3: answers are
    missing, people cannot be matched one to one, or the two asked different questions (columns, domains,
    what is sensitive, the decision, how far answers are proved).
    """
    from feta.cli.diff import run_diff
    from feta.report.gate import Gate

    gate = Gate(allow_new, rate_only, other_question)
    return run_diff(old, new, gate, output="json" if as_json else output)


@app.command()
def predict(
    model: ModelFile,
    data: Data,
    schema: SchemaPath = None,
    id_column: IdColumn = None,
    out: Annotated[Path | None, typer.Option(help="File for the decisions.")] = None,
    engine: EngineName = "auto",
    seconds: Seconds = None,
    one_vs_rest: Chosen = None,
    skip_bad_rows: SkipBadRows = False,
    vote_weights: Votes = None,
    layers: Layers = None,
    external_data: External = False,
    trust_pickle: TrustPickle = False,
    as_json: AsJson = False,
) -> int:
    """Fair decisions; the sensitive cells are never read, however broken, and may be missing.

    Exit code 0: everybody is decided; 2: bad input, and nothing is written; 3: some are undecided, or
    were not read (--skip-bad-rows).
    """
    from feta.cli.predict import PredictOptions, run_predict
    from feta.cli.progress import watched
    from feta.readers.load import PeopleFile, open_model
    from feta.readers.source import SourceOptions

    source = SourceOptions(layers, external_data, trust_pickle)
    people = PeopleFile(data, ignore_sensitive=True)
    loaded = open_model(
        model, schema, source, one_vs_rest=one_vs_rest, people=people, watch=watched
    )
    options = PredictOptions(
        data,
        id_column,
        out,
        as_json,
        engine,
        seconds,
        skip_bad_rows,
        vote_weights,
        tuple(one for one in (model, data, schema, vote_weights) if one is not None),
    )
    return run_predict(loaded, options)


@app.command()
def train(
    data: Annotated[Path, typer.Argument(help="People: CSV or Parquet, in raw columns.")],
    schema: Annotated[Path, typer.Option("--schema", help="schema.toml.")],
    label: Annotated[str, typer.Option(help="Column with the right decision, class or score.")],
    out: Annotated[Path, typer.Option(help="The model to write.")] = Path("model.onnx"),
    start: Annotated[
        Path | None, typer.Option(help="A trained model to go on from; else one is trained.")
    ] = None,
    hidden: Annotated[str, typer.Option(help="Widths of the hidden layers.")] = "16,16,16",
    plain_epochs: Annotated[int, typer.Option(help="Epochs of the first training.")] = 100,
    epochs: Annotated[int, typer.Option(help="Epochs of training on counterexamples.")] = 50,
    sample_fraction: Annotated[
        float, typer.Option(help="Share of the people an epoch goes over.")
    ] = 1.0,
    keep: Annotated[
        str, typer.Option(help="Who is kept in a batch: all, counterexamples, or a share.")
    ] = "all",
    span: Annotated[
        float | None,
        typer.Option(help="Penalty on the span of counterparts' scores, instead; 0.1 is usual."),
    ] = None,
    learning_rate: Annotated[float | None, typer.Option(help="Of the second training.")] = None,
    batch_size: Annotated[int, typer.Option(help="People a step.")] = 128,
    paper: Annotated[bool, typer.Option("--paper", help="The paper's settings.")] = False,
    seed: Annotated[int, typer.Option(help="Seed of everything random.")] = 0,
    as_json: AsJson = False,
) -> int:
    """Train a network to be fairer by itself; writes an ONNX model and the curve."""
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


@app.command()
def doctor(
    model: ModelFile,
    schema: SchemaPath = None,
    data: Annotated[
        Path | None, typer.Option("--data", help="People, to measure proxies and differences on.")
    ] = None,
    layers: Layers = None,
    external_data: External = False,
    trust_pickle: TrustPickle = False,
    as_json: AsJson = False,
) -> int:
    """Can this model be audited; if not, which column or layer is in the way, and what to do."""
    from feta.cli.doctor import run_doctor
    from feta.cli.progress import watched
    from feta.readers.load import PeopleFile, open_model
    from feta.readers.source import SourceOptions

    source = SourceOptions(layers, external_data, trust_pickle)
    loaded = open_model(
        model, schema, source, people=None if data is None else PeopleFile(data), watch=watched
    )
    return run_doctor(loaded, model, data, as_json=as_json)


@app.command()
def export(
    model: ModelFile,
    out: Annotated[Path, typer.Option(help="File to write: .onnx, or .feta.")],
    schema: SchemaPath = None,
    data: Annotated[
        Path | None, typer.Option("--data", help="People, to compare with the model itself on.")
    ] = None,
    layers: Layers = None,
    external_data: External = False,
    trust_pickle: TrustPickle = False,
) -> int:
    """Write the model with its preprocessing inside: ONNX that takes raw columns, or a .feta file."""
    from feta.cli.export import run_export
    from feta.cli.progress import watched
    from feta.readers.load import PeopleFile, open_model
    from feta.readers.source import SourceOptions

    source = SourceOptions(layers, external_data, trust_pickle)
    loaded = open_model(
        model, schema, source, people=None if data is None else PeopleFile(data), watch=watched
    )
    inputs = tuple(one for one in (model, schema, data) if one is not None)
    return run_export(loaded, out, inputs)


@app.command()
def engines(as_json: AsJson = False) -> int:
    """Engines and optional packages, which are installed, what each can prove."""
    from feta.cli.engines import run_engines

    return run_engines(as_json=as_json)


def main() -> None:
    """Run a command; no traceback reaches a user, unless FETA_TRACEBACK is set."""
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, io.TextIOWrapper):  # what an old terminal cannot show is spelled out
            stream.reconfigure(errors="backslashreplace")
    code = exit_code_of()
    if code == ExitCode.INTERRUPTED or is_computing():
        leave_at_once(code)
    stop_listening()
    sys.exit(code)


def exit_code_of(arguments: list[str] | None = None) -> int:
    """Run a command, by default the one of this process; return its exit code."""
    try:
        code = int(app(arguments, prog_name="feta", standalone_mode=False) or ExitCode.DONE)
        sys.stdout.flush()
    except typer.Exit as done:
        return done.exit_code
    except (KeyboardInterrupt, typer.Abort):
        _complain("interrupted")
        return ExitCode.INTERRUPTED
    except (BrokenPipeError, SystemExit):
        # Whoever read our output has left; nobody is there to be told. The command-line library
        # makes that SystemExit(1), but 1 is a counterexample here.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.__stdout__.fileno())  # type: ignore[union-attr]  # it was written to
        return ExitCode.BROKEN_PIPE
    except CertificateError as error:
        return _internal(error)
    except (FetaError, OSError, MemoryError, typer.TyperException) as error:
        if len(sys.argv) == 1:  # the message is the help itself
            typer.echo(str(error), err=True)
            return ExitCode.BAD_INPUT
        _complain(_explained(error))
        for line in getattr(error, "__notes__", []):  # a script to copy
            typer.echo(f"    {plain(line)}", err=True)
        return ExitCode.BAD_INPUT
    except Exception as error:
        return _internal(error)
    return code


def _explained(error: Exception) -> str:
    if isinstance(error, typer.TyperException):
        context = getattr(error, "ctx", None)
        command = context.command_path if context is not None else "feta"
        first = error.format_message().rstrip(".")
        return f"{first}; {command} --help says what there is"
    if isinstance(error, OSError):
        return f"{error.filename or 'a file'}: {error.strerror or error}"
    if isinstance(error, MemoryError):
        return "there is not enough memory for these files; are they what you meant?"
    return str(error)


def _internal(error: Exception) -> ExitCode:
    if "FETA_TRACEBACK" in os.environ:
        raise error
    _complain(f"internal error: {type(error).__name__}: {error}; FETA_TRACEBACK=1 shows where")
    return ExitCode.INTERNAL


def _complain(message: str) -> None:
    typer.echo(f"feta: {plain(shortened(message))}", err=True)
