"""`feta export --fair`: the fair decision as one ONNX graph, replayed before it is announced."""

from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
from rich.console import Console
from rich.text import Text

from feta.arrays import Answers, Array, Flags, Matrix
from feta.errors import NetworkError, unknown_choice
from feta.io.fair_onnx.graph import Precision
from feta.io.fair_onnx.write import write_fair_onnx
from feta.io.regular_file import part_path
from feta.io.sanitize import plain
from feta.predict.fair_predictor import FairPredictor
from feta.space.sampling import draw_people

# People whose decisions by the graph are compared, and scores that are in memory at a time.
REPLAYED_PEOPLE = 1000
SCORES = 2**18

PRECISIONS: dict[str, Precision] = {"float32": "float32", "float64": "float64"}


def export_fair(predictor: FairPredictor, out: Path, precision: str, console: Console) -> None:
    """Write the graph, and evaluate it on random people before it replaces an existing file."""
    if precision not in PRECISIONS:
        raise NetworkError(f"invalid --precision: {unknown_choice(precision, PRECISIONS)}")
    part = part_path(out)
    try:
        columns = write_fair_onnx(predictor, part, precision=PRECISIONS[precision])
        people = draw_people(predictor.model.space, np.random.default_rng(0), REPLAYED_PEOPLE)
        n_people = max(1, SCORES // max(1, predictor.model.relation.size))
        decisions, sure = _replay(part, people[:, columns.columns], precision, n_people)
        wrong = int((decisions != predictor.decide(people))[sure].sum())
        if wrong:
            raise NetworkError(
                f"{out}: the graph is wrong about {wrong} of {len(people)} random people; please "
                "report this, with the model"
            )
        part.replace(out)
    finally:
        part.unlink(missing_ok=True)
    console.print(
        Text(
            f"Wrote {plain(out)} ({precision}); evaluated on {len(people):,} random people: sure "
            f"about {int(sure.sum()):,}, all decided as by feta predict."
        )
    )
    console.print(
        Text("Use `decision` only where `sure` is true. Its input `people` has the columns:")
    )
    for index, name in enumerate(columns.names):
        console.print(Text(f"  {index}: {plain(name)}"))


def _replay(path: Path, rows: Matrix, precision: str, n_people: int) -> tuple[Answers, Flags]:
    """Return the outputs of the written file."""
    run = _runtime(path)
    parts = [
        run({"people": rows[start : start + n_people].astype(precision)})
        for start in range(0, len(rows), n_people)
    ]
    decisions, sure = (np.concatenate([part[index] for part in parts]) for index in (0, 1))
    return decisions, sure


def _runtime(path: Path) -> Callable[[dict[str, Array]], Any]:
    """Return onnxruntime, which optimizes the graph, if it is installed, or ONNX's reference."""
    try:
        import onnxruntime  # an extra
    except ImportError:
        from onnx.reference import ReferenceEvaluator

        return partial(ReferenceEvaluator(str(path)).run, None)
    session = onnxruntime.InferenceSession(str(path), providers=["CPUExecutionProvider"])
    return partial(session.run, None)
