"""`feta export`: a model with its preprocessing inside, as ONNX or as a .feta file."""

from pathlib import Path

import numpy as np
from rich.console import Console
from rich.text import Text

from feta.cli.audit import notice
from feta.cli.exit_code import ExitCode
from feta.cli.output_path import check_file
from feta.cli.progress import watched
from feta.errors import SchemaError
from feta.io.model_file import save_model
from feta.io.onnx_writer import write_onnx
from feta.io.sanitize import plain
from feta.readers.check_reading import check_reading
from feta.readers.load import LoadedModel
from feta.readers.onnx.read import read_onnx
from feta.report.words import NOT_COMPARED
from feta.scorer.network.agreement import check_agreement
from feta.space.sampling import draw_people

# People whose scores are compared with those of the file that was written.
CHECKED_PEOPLE = 256


def run_export(loaded: LoadedModel, out: Path, inputs: tuple[Path, ...]) -> ExitCode:
    """Write the model, read it back, and list its inputs."""
    check_file(out, inputs)
    model = loaded.model
    suffix = out.suffix.lower()
    console = Console(soft_wrap=True)
    compared = check_reading(loaded, watch=watched)
    for note in loaded.notes:
        notice(note)
    console.print(Text(NOT_COMPARED if compared is None else compared.sentence()))
    if suffix == ".feta":
        save_model(model, out, table=loaded.options)
        console.print(
            Text(f"Wrote {plain(out)}: it holds its schema; feta audit takes it as it is.")
        )
        return ExitCode.DONE
    if suffix != ".onnx":
        message = f"{out}: the file to write must end in .onnx or .feta, got {out.suffix or 'no ending'!r}"
        raise SchemaError(message)
    precision = write_onnx(model, out)
    people = draw_people(model.space, np.random.default_rng(0), CHECKED_PEOPLE)
    scores = model.network(people)
    largest = check_agreement(read_onnx(out), people, scores, "those of the file written")
    console.print(
        Text(
            f"Wrote {plain(out)} ({precision}); read back, its scores differ by {largest:.2g} at most."
        )
    )
    gives = "probabilities" if model.network.sigmoid else "scores"
    console.print(Text(f"It gives {gives}. Its input is a person's row, in raw units:"))
    for attribute in model.space.attributes:
        columns = model.space.columns_of(attribute)
        which = (
            f"{columns.start}" if attribute.width == 1 else f"{columns.start}-{columns.stop - 1}"
        )
        console.print(Text(f"  {which}: {plain(attribute.name)}, {plain(attribute.domain())}"))
    return ExitCode.DONE
