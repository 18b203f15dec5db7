"""The commands of `feta`; each imports what it needs when it runs."""

from pathlib import Path
from typing import Annotated

import typer

from feta.cli.causes import causes
from feta.cli.compare_command import compare
from feta.cli.evidence_commands import bundle, keys, receipt, sign
from feta.cli.explain_command import explain
from feta.cli.load import load_model, origin_of, source_options
from feta.cli.options import (
    AsJson,
    Data,
    EngineName,
    ExactWeights,
    External,
    IdColumn,
    Jobs,
    LabelColumn,
    Layers,
    MaxRows,
    Method,
    ModelFile,
    On,
    OneClass,
    OptionalModelFile,
    OutputFormat,
    Predict,
    SchemaPath,
    Seconds,
    SkipBadRows,
    Timeout,
    TrustPickle,
    Votes,
    VotesFrom,
)
from feta.cli.plugins import CommandGroup
from feta.cli.prove_command import prove
from feta.cli.schema_commands import constraints, doctor, init
from feta.cli.train_command import train

app = typer.Typer(
    cls=CommandGroup,
    name="feta",
    help="Is there anybody whose decision would change "
    "if only their age, race or sex were different?",
    no_args_is_help=True,
    pretty_exceptions_enable=False,
    add_completion=False,
    rich_markup_mode=None,
)


def _show_version(requested: bool) -> None:
    from importlib.metadata import version

    if requested:
        typer.echo(f"feta {version('feta-fair')}")
        raise typer.Exit


@app.callback()
def options(
    _version: Annotated[
        bool,
        typer.Option("--version", callback=_show_version, is_eager=True, help="Show the version."),
    ] = False,
) -> None:
    """Verify and enforce individual fairness of neural networks."""


@app.command()
def demo(
    seed: Annotated[int, typer.Option(help="Random seed of the training.")] = 0,
    out: Annotated[
        Path | None, typer.Option(help="Folder for the model and its table, for other commands.")
    ] = None,
) -> None:
    """Train, audit and enforce fairness on bundled data.

    The data are the German credit data.
    """
    from feta.cli.demo import run_demo

    run_demo(seed=seed, out=out)


app.command()(init)


@app.command()
def audit(
    data: Data,
    model: OptionalModelFile = None,
    predict: Predict = None,
    schema: SchemaPath = None,
    label: LabelColumn = None,
    id_column: IdColumn = None,
    out: Annotated[
        Path | None,
        typer.Option(help="Folder for report.html, pairs.csv, verdicts.csv and audit.json."),
    ] = None,
    output: OutputFormat = "text",
    jobs: Jobs = 1,
    on: On = None,
    engine: EngineName = "auto",
    seconds: Seconds = None,
    skip_bad_rows: SkipBadRows = False,
    one_vs_rest: OneClass = None,
    vote_weights: Votes = None,
    method: Method = "auto",
    timeout: Timeout = 600.0,
    max_rows: MaxRows = None,
    layers: Layers = None,
    external_data: External = False,
    trust_pickle: TrustPickle = False,
    certify: Annotated[
        bool,
        typer.Option(
            "--certify",
            help="Write certificate.jsonl, schema.json and model.feta to the folder of --out: "
            "feta check re-proves every verdict from them.",
        ),
    ] = False,
    without_model: Annotated[
        bool, typer.Option("--without-model", help="Leave model.feta out of the certificate.")
    ] = False,
    sign: Annotated[
        Path | None, typer.Option(help="Private key of feta keys new: sign the certificate.")
    ] = None,
    as_json: AsJson = False,
) -> int:
    """Verify every row of a table.

    Shows verdicts, selected counterexamples, and rates by attribute.

    Exit code 0: all people proved fair, or counted as fair; 1: a counterexample; 2: bad input;
    3: some people remain undecided, or a counted model whose answers cannot be used.

    With --out, an interrupted or killed audit resumes: run the same command again. With --on, one
    report covers all tables of a folder or pattern.
    """
    from feta.cli.audit import AuditOptions, run_audit

    options = AuditOptions(
        origin_of(model, predict, method, timeout, max_rows),
        schema,
        source_options(layers, external_data, trust_pickle),
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
        certify,
        without_model,
        on,
        sign,
    )
    return run_audit(options)


@app.command()
def check(
    folder: Annotated[
        Path,
        typer.Argument(help="Folder of feta audit --certify, an unpacked bundle, or a receipt."),
    ],
    model: Annotated[
        Path | None, typer.Option("--model", help="The model, if the folder does not have it.")
    ] = None,
    key: Annotated[
        list[Path] | None,
        typer.Option("--key", help="Public key of the signer. May be repeated."),
    ] = None,
    seal: Annotated[
        str | None, typer.Option(help="The seal that the auditor published; another is refused.")
    ] = None,
    seconds: Annotated[float | None, typer.Option(help="Time limit per claim (seconds).")] = None,
    sample: Annotated[
        int | None, typer.Option(min=1, help="Check only so many claims, evenly spaced.")
    ] = None,
    quiet: Annotated[
        bool, typer.Option("--quiet", help="List only what was not re-proved.")
    ] = False,
) -> int:
    """Re-prove a certificate, or one person's receipt.

    An independent program does it, which shares no code with feta: python -m feta_check.

    Exit code 0: every claim was re-proved; 1: a claim is false; 2: unreadable, changed after it was
    sealed or signed, or not signed with --key; 3: some claims were not checked, or a signature was
    not checked because no key is named.
    """
    from feta.auditing.recheck import command
    from feta.cli.check import run_check

    arguments = command(
        folder,
        model=model,
        keys=tuple(key or ()),
        seal=seal,
        seconds=seconds,
        sample=sample,
        quiet=quiet,
    )
    return run_check(arguments)


app.command()(sign)
app.command()(receipt)
app.command()(bundle)
app.add_typer(keys, name="keys")
app.add_typer(causes, name="causes")


@app.command()
def diff(
    old: Annotated[Path, typer.Argument(help="Folder of an audit, or its audit.json.")],
    new: Annotated[Path, typer.Argument(help="The same for a later audit.")],
    allow_new: Annotated[
        int, typer.Option(min=0, help="How many people may newly have a counterexample.")
    ] = 0,
    rate_only: Annotated[
        bool,
        typer.Option(
            "--rate-only", help="Compare only the CE rates, not the people: for retrained models."
        ),
    ] = False,
    other_question: Annotated[
        bool,
        typer.Option("--allow-other-question", help="Compare although the schemas differ."),
    ] = False,
    output: OutputFormat = "text",
    as_json: AsJson = False,
) -> int:
    """Compare two audits, for CI gates.

    Exit code 0: not worse; 1: a person has a new counterexample; 2: bad input; 3: verdicts are
    missing, people cannot be matched one to one, or the audits asked different questions
    (columns, domains, sensitive attributes, the decision, how far verdicts are proved).
    """
    from feta.cli.diff import run_diff
    from feta.report.gate import Gate

    gate = Gate(allow_new, rate_only, other_question)
    return run_diff(old, new, gate, output="json" if as_json else output)


@app.command()
def predict(
    data: Data,
    model: OptionalModelFile = None,
    function: Predict = None,
    schema: SchemaPath = None,
    id_column: IdColumn = None,
    out: Annotated[Path | None, typer.Option(help="File for the decisions.")] = None,
    on: On = None,
    engine: EngineName = "auto",
    seconds: Seconds = None,
    one_vs_rest: OneClass = None,
    skip_bad_rows: SkipBadRows = False,
    vote_weights: Votes = None,
    votes_from: VotesFrom = None,
    exact_weights: ExactWeights = False,
    method: Method = "auto",
    timeout: Timeout = 600.0,
    max_rows: MaxRows = None,
    layers: Layers = None,
    external_data: External = False,
    trust_pickle: TrustPickle = False,
    as_json: AsJson = False,
) -> int:
    """Make fair decisions.

    Sensitive cells are never read, so they may be invalid or missing.

    Exit code 0: all people are decided; 2: bad input, and nothing is written; 3: some people are
    undecided or were not read (--skip-bad-rows).
    """
    from feta.cli.predict import PredictOptions, run_predict

    source = source_options(layers, external_data, trust_pickle)
    origin = origin_of(model, function, method, timeout, max_rows)
    options = PredictOptions(
        data,
        id_column,
        out,
        as_json,
        engine,
        seconds,
        skip_bad_rows,
        vote_weights,
        votes_from,
        tuple(path for path in (model, data, schema, vote_weights, votes_from) if path is not None),
        exact_weights=exact_weights,
    )
    if on is not None:
        from feta.cli.on_cluster import ModelRequest
        from feta.cli.predict_on import run_predict_on

        return run_predict_on(ModelRequest(origin, schema, source, one_vs_rest), options, on)
    loaded = load_model(
        origin, schema, source, data, one_vs_rest=one_vs_rest, ignore_sensitive=True
    )
    return run_predict(loaded, options)


app.command()(compare)
app.command()(prove)
app.command()(explain)
app.command()(train)
app.command()(doctor)
app.command()(constraints)


@app.command()
def export(
    model: ModelFile,
    out: Annotated[Path | None, typer.Option(help="File to write: .onnx or .feta.")] = None,
    schema: SchemaPath = None,
    data: Annotated[
        Path | None, typer.Option("--data", help="People, to compare the reading with the model.")
    ] = None,
    fair: Annotated[
        bool,
        typer.Option("--fair", help="Write the fair decision, with its votes, as one ONNX graph."),
    ] = False,
    precision: Annotated[
        str, typer.Option(help="Numbers of the graph of --fair: float64 or float32.")
    ] = "float64",
    mlflow: Annotated[
        Path | None, typer.Option(help="Folder for an MLflow model that decides fairly.")
    ] = None,
    votes_from: VotesFrom = None,
    exact_weights: ExactWeights = False,
    layers: Layers = None,
    external_data: External = False,
    trust_pickle: TrustPickle = False,
) -> int:
    """Write a model with preprocessing, or its fair decision.

    The file is ONNX with raw columns, or a .feta file. With --fair, it is an ONNX graph that needs
    no sensitive column and says whether its decision is sure.
    """
    from feta.cli.export import ExportTarget, run_export
    from feta.cli.votes import VotesRequest

    origin = origin_of(model, None, "exact")
    loaded = load_model(origin, schema, source_options(layers, external_data, trust_pickle), data)
    inputs = tuple(path for path in (model, schema, data, votes_from) if path is not None)
    target = ExportTarget(out, mlflow, fair=fair, precision=precision)
    return run_export(loaded, target, inputs, VotesRequest(votes_from, exact_weights=exact_weights))


@app.command()
def serve(
    model: Annotated[Path, typer.Argument(help="Model: a .feta file, with its votes.")],
    port: Annotated[int, typer.Option(min=0, max=65535, help="Port; 0 picks one.")] = 8080,
    host: Annotated[str, typer.Option(help="Address to listen on.")] = "127.0.0.1",
    jobs: Annotated[int, typer.Option(min=1, max=256, help="Processes that answer.")] = 1,
    name: Annotated[str | None, typer.Option(help="Name of the model in /v2/models/NAME.")] = None,
    key_file: Annotated[
        Path | None, typer.Option(help="API keys: one name and one sha256 per line.")
    ] = None,
    log: Annotated[Path | None, typer.Option(help="Folder for the log of decisions.")] = None,
) -> int:
    """Serve fair decisions over HTTP, with a what-if page.

    Sensitive columns are never read by a decision. The file is watched: a new model replaces the
    old one as a whole, and every answer names its model's sha256.
    """
    from feta.cli.serve import ServeRequest, run_serve

    return run_serve(ServeRequest(model, host, port, jobs, name, key_file, log))


@app.command()
def engines(as_json: AsJson = False) -> int:
    """List engines, solvers and optional packages.

    Shows what is installed and what each engine can prove.
    """
    from feta.cli.engines import run_engines

    return run_engines(as_json=as_json)
