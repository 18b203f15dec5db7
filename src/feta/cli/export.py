"""`feta export`: a model including its preprocessing, as ONNX or as a .feta file."""

from pathlib import Path

import numpy as np
from rich.console import Console
from rich.text import Text

from feta.cli.exit_code import ExitCode
from feta.cli.notices import notice
from feta.cli.output_path import check_file
from feta.cli.progress import show_progress
from feta.cli.votes import VotesRequest, votes_of
from feta.errors import SchemaError
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


def run_export(
    loaded: LoadedModel, out: Path, inputs: tuple[Path, ...], request: VotesRequest
) -> ExitCode:
    """Write the model; read an ONNX file back and list its inputs."""
    check_file(out, inputs)
    if request.votes_from is not None and out.suffix.lower() != ".feta":
        raise SchemaError(
            f"{out}: only a .feta file stores votes: got --votes-from; expected --out model.feta"
        )
    model = loaded.model
    suffix = out.suffix.lower()
    console = Console(soft_wrap=True)
    comparison = check_reading(loaded, watch=show_progress)
    for note in loaded.notes:
        notice(note)
    console.print(Text(NOT_COMPARED if comparison is None else comparison.sentence()))
    if suffix == ".feta":
        votes = votes_of(loaded, request)
        save_model(FairPredictor.voting(model, votes), out, table=loaded.options)
        console.print(
            Text(f"Wrote {plain(out)}: it contains its schema; feta audit reads it without one.")
        )
        return ExitCode.DONE
    if suffix != ".onnx":
        message = (
            f"{out}: unknown file type: got {out.suffix or 'no suffix'!r}; expected .onnx or .feta"
        )
        raise SchemaError(message)
    _export_onnx(model, out, console)
    return ExitCode.DONE


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
