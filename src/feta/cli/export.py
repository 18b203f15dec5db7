"""`feta export`: a model including its preprocessing, as ONNX, a .feta file or for MLflow."""

from dataclasses import dataclass
from pathlib import Path

import numpy as np
from rich.console import Console
from rich.text import Text

from feta.cli.exit_code import ExitCode
from feta.cli.export_fair import export_fair
from feta.cli.notices import notice
from feta.cli.output_path import check_file
from feta.cli.progress import show_progress
from feta.cli.votes import VotesRequest, votes_of
from feta.errors import SchemaError
from feta.io.mlflow_folder import write_mlflow
from feta.io.model_file import save_model
from feta.io.onnx_writer import write_onnx
from feta.io.sanitize import plain
from feta.model import Model
from feta.predict.fair_predictor import FairPredictor
from feta.readers.check_reading import check_reading
from feta.readers.load import LoadedModel
from feta.readers.onnx.read import read_onnx
from feta.report.words import NOT_COMPARED
from feta.scorer.network.agreement import check_agreement
from feta.space.sampling import draw_people

# People whose scores are compared with those of the written file.
CHECKED_PEOPLE = 256


@dataclass(frozen=True, slots=True)
class ExportTarget:
    """What is written where."""

    out: Path | None
    mlflow: Path | None = None
    fair: bool = False
    precision: str = "float64"

    def check(self, inputs: tuple[Path, ...], *, with_votes: bool) -> None:
        """Raise unless something is written, and can be."""
        if self.out is None and self.mlflow is None:
            raise SchemaError("nothing to write: expected --out FILE, --mlflow FOLDER, or both")
        if self.fair and (self.out is None or self.out.suffix.lower() != ".onnx"):
            raise SchemaError("--fair writes an ONNX graph; expected --out fair.onnx")
        check_file(self.out, inputs)
        if self.mlflow is not None and self.mlflow.exists():
            raise SchemaError(f"{self.mlflow}: --mlflow exists; expected the name of a new folder")
        if self.out is not None and with_votes and not self.fair:
            self._check_stores_votes(self.out)

    def _check_stores_votes(self, out: Path) -> None:
        if out.suffix.lower() != ".feta":
            raise SchemaError(
                f"{out}: only a .feta file stores votes: got --votes-from; expected --out "
                "model.feta, or --fair for a graph of the fair decision"
            )


def run_export(
    loaded: LoadedModel, target: ExportTarget, inputs: tuple[Path, ...], request: VotesRequest
) -> ExitCode:
    """Write the model; compare what a written graph computes with what was written."""
    target.check(inputs, with_votes=request.votes_from is not None)
    console = Console(soft_wrap=True)
    comparison = check_reading(loaded, watch=show_progress)
    for note in loaded.notes:
        notice(note)
    console.print(Text(NOT_COMPARED if comparison is None else comparison.sentence()))
    if target.out is not None:
        _export_file(loaded, target, target.out, request, console)
    if target.mlflow is not None:
        predictor = FairPredictor.voting(loaded.model, votes_of(loaded, request))
        write_mlflow(predictor, target.mlflow, table=loaded.options)
        console.print(
            Text(f"Wrote {plain(target.mlflow)}: mlflow.pyfunc.load_model reads this folder.")
        )
    return ExitCode.DONE


def _export_file(
    loaded: LoadedModel, target: ExportTarget, out: Path, request: VotesRequest, console: Console
) -> None:
    if target.fair:
        predictor = FairPredictor.voting(loaded.model, votes_of(loaded, request))
        export_fair(predictor, out, target.precision, console)
        return
    suffix = out.suffix.lower()
    if suffix == ".onnx":
        _export_onnx(loaded.model, out, console)
        return
    if suffix != ".feta":
        raise SchemaError(
            f"{out}: unknown file type: got {out.suffix or 'no suffix'!r}; expected .onnx or .feta"
        )
    predictor = FairPredictor.voting(loaded.model, votes_of(loaded, request))
    save_model(predictor, out, table=loaded.options)
    console.print(
        Text(f"Wrote {plain(out)}: it contains its schema; feta audit reads it without one.")
    )


def _export_onnx(model: Model, out: Path, console: Console) -> None:
    precision = write_onnx(model, out)
    people = draw_people(model.space, np.random.default_rng(0), CHECKED_PEOPLE)
    scores = model.scorer(people)
    largest = check_agreement(read_onnx(out), people, scores, "those of the written file")
    console.print(
        Text(
            f"Wrote {plain(out)} ({precision}); read back, "
            f"its scores differ by at most {largest:.2g}."
        )
    )
    outputs = "probabilities" if model.scorer.link == "logit" else "scores"
    console.print(Text(f"It returns {outputs}. Its input is a person's row, in raw units:"))
    for attribute in model.space.attributes:
        columns = model.space.columns_of(attribute)
        span = f"{columns.start}" if attribute.width == 1 else f"{columns.start}-{columns.stop - 1}"
        console.print(Text(f"  {span}: {plain(attribute.name)}, {plain(attribute.domain())}"))
