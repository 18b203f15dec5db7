"""Types of the command-line options that several commands share."""

from pathlib import Path
from typing import Annotated, Literal

import typer

ModelFile = Annotated[
    Path,
    typer.Argument(
        help="Model: .feta, .onnx, .keras, .h5, .safetensors, .npz, .skops; "
        "a pickle with --trust-pickle."
    ),
]
OptionalModelFile = Annotated[
    Path | None,
    typer.Argument(
        help="Model: .feta, .onnx, .keras, .h5, .safetensors, .npz, .skops; "
        "a pickle with --trust-pickle. With --predict there is none."
    ),
]
Predict = Annotated[
    str | None,
    typer.Option(
        "--predict",
        metavar="MODULE:FUNCTION",
        help="A function that takes a frame of raw columns and returns labels, probabilities or "
        "scores; it is counted, not proved.",
    ),
]
Method = Annotated[
    Literal["auto", "exact", "counted", "labels"],
    typer.Option(
        help="exact refuses a model that can only be counted; counted evaluates it; labels counts "
        "what predict decides, without scores."
    ),
]
Timeout = Annotated[
    float, typer.Option(min=0.001, help="Time limit of one call of a counted model (seconds).")
]
MaxRows = Annotated[
    int | None,
    typer.Option("--max-rows", min=1, help="Rows that a counted model may evaluate."),
]
TableArgument = Annotated[Path, typer.Argument(help="People: CSV or Parquet, in raw columns.")]
SchemaPath = Annotated[
    Path | None, typer.Option("--schema", help="schema.toml; a .feta file contains its schema.")
]
Data = Annotated[Path, typer.Option("--data", help="People: CSV or Parquet, in raw columns.")]
On = Annotated[
    str | None,
    typer.Option(
        "--on",
        metavar="CLUSTER",
        help="Run on a cluster: local:N for N processes, or dask://host:port. --data may then be a "
        "folder or a pattern in quotes, and --out is a folder.",
    ),
]
IdColumn = Annotated[str | None, typer.Option("--id", help="Column that identifies a person.")]
Layers = Annotated[
    str | None, typer.Option(help="Layer names in order, for .safetensors and .npz: fc1,fc2,out.")
]
External = Annotated[
    bool, typer.Option("--external-data", help="Read ONNX weights from files next to the model.")
]
TrustPickle = Annotated[
    bool,
    typer.Option(
        "--trust-pickle",
        help="Open .pkl, .joblib, .pt; such a file can run any code, so open only your own files.",
    ),
]
SkipBadRows = Annotated[
    bool, typer.Option("--skip-bad-rows", help="Report invalid rows instead of stopping.")
]
EngineName = Annotated[str, typer.Option(help="Engine; feta engines lists them.")]
Seconds = Annotated[float | None, typer.Option(help="Time limit per person (seconds).")]
OneClass = Annotated[
    str | None,
    typer.Option(
        "--one-vs-rest", metavar="CLASS", help="Compare one class with all others together."
    ),
]
Votes = Annotated[
    Path | None,
    typer.Option(
        "--vote-weights",
        metavar="TABLE",
        help="People whose sensitive values vote in fair decisions, as often as they occur.",
    ),
]
VotesFrom = Annotated[
    Path | None,
    typer.Option(
        "--votes-from",
        metavar="TABLE",
        help="Other people, to whom weights and level of the fair decisions are fitted; without "
        "it, all counterparts have one vote, as in the paper.",
    ),
]
ExactWeights = Annotated[
    bool,
    typer.Option(
        "--exact-weights",
        help="Keep combinations of sensitive values that fewer than 5 people have.",
    ),
]
OutputFormat = Annotated[
    Literal["text", "md", "json", "junit"],
    typer.Option("--format", help="Format of standard output."),
]
Jobs = Annotated[int, typer.Option(min=1, help="Worker processes.")]
AsJson = Annotated[bool, typer.Option("--json", help="Write JSON to standard output.")]
LabelColumn = Annotated[
    str | None, typer.Option(help="Column with the correct decision, class or score.")
]
