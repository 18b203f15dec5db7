"""Open model: a model from the files a user names, and their own runtime if it is installed."""

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np

from feta.arrays import Answers, Matrix
from feta.cli.open_source import Source, SourceOptions, open_source
from feta.errors import NetworkError, SchemaError
from feta.model import Model
from feta.model_file import load_model
from feta.network.network import Network
from feta.network.readers.onnx_runtime import onnx_scores
from feta.network.readers.sklearn import read_sklearn, taken_apart
from feta.network.readers.torch import torch_outputs
from feta.rule import Argmax, Threshold
from feta.runtime import Replay, estimator_gap, graph_gap, graph_runtime, runtime_of
from feta.schema import Schema, read_schema

# Counts of counterparts are 64-bit numbers.
MOST_COUNTERPARTS = 2**62


@dataclass(frozen=True, slots=True)
class Opened:
    """A model, a way to replay people in the runtime it came from, and the unit of its scores."""

    model: Model
    replay: Replay | None = None
    unit: str = ""
    runtime: str = ""  # what that runtime is called
    gap: Callable[[Matrix], float] | None = None  # how far its outputs are from FETA's
    notes: tuple[str, ...] = ()  # what a user should know about how the model was read


Runtime = tuple[Replay | None, str, Callable[[Matrix], float] | None]


def open_model(
    path: Path,
    schema: Path | None,
    options: SourceOptions,
    *,
    one_vs_rest: str | None = None,
) -> Opened:
    """Open a model by the kind of its file, perhaps to ask about one of its classes only."""
    if path.suffix.lower() == ".feta":
        if schema is not None:
            raise SchemaError(f"{path} holds its own schema; leave --schema out")
        return Opened(_answerable(path, load_model(path), one_vs_rest))
    source = open_source(path, options)
    if schema is None:
        raise SchemaError(f"{path} needs a schema: feta init {path} DATA --sensitive … writes one")
    told = read_schema(schema)
    try:
        network = source.network or _read_estimator(source.estimator, told)
        model = _answerable(schema, told.model(network), one_vs_rest)
    except NetworkError as error:
        raise NetworkError(f"{path} with {schema}: {error}") from None
    except SchemaError as error:
        raise SchemaError(f"{schema}: {str(error).removeprefix(f'{schema}: ')}") from None
    replay, runtime, gap = _replay(path, source, told, model)
    notes = (*source.notes, told.score_note(network) if source.network else "")
    shown = tuple(note for note in notes if note)
    return Opened(model, replay, told.decision.unit, runtime, gap, shown)


def _answerable(path: Path, model: Model, one_vs_rest: str | None) -> Model:
    """Take the view asked for; refuse what no command here can answer for, and say what would do."""
    if one_vs_rest is not None:
        if not isinstance(model.rule, Argmax):
            message = f"{path}: --one-vs-rest needs several classes, got {type(model.rule).__name__}; list them in [decision], classes = [...]"
            raise SchemaError(message)
        model = model.one_vs_rest(one_vs_rest)
    if model.space.finite and model.space.lattice.size > MOST_COUNTERPARTS:
        message = f"{path}: a person must have at most 2^62 counterparts, got {model.space.lattice.size:.2g}; narrow the sensitive columns' min and max"
        raise SchemaError(message)
    return model


def _read_estimator(estimator: Any, schema: Schema) -> Network:  # noqa: ANN401 - scikit-learn ships no types
    """Read an estimator by the schema's columns; what the schema says must fit it."""
    steps, last = taken_apart(estimator)
    if steps is not None and schema.scaled:
        message = "the pipeline scales its columns itself; remove center and scale from the schema"
        raise SchemaError(message)
    told = schema.decision
    if not hasattr(last, "classes_") and isinstance(schema.rule, Threshold) and told.score is None:
        message = "a regressor gives no probability: write tolerance = … in [decision], or score = … for a decision by its value"
        raise SchemaError(message)
    schema.check_classes([str(one) for one in getattr(last, "classes_", [])])
    return read_sklearn(estimator, schema.space)


def _replay(path: Path, source: Source, schema: Schema, model: Model) -> Runtime:
    """Find the user's own runtime: how it decides, what it is called, how far its outputs are off."""
    if source.estimator is not None:
        own = runtime_of(source.estimator, model)
        if taken_apart(source.estimator)[0] is None:
            return _scaled(own, schema), "the estimator's own predict", None
        gap = partial(estimator_gap, source.estimator, model)
        return own, "the pipeline's own predict", gap
    network = source.network
    assert network is not None
    if source.module is not None:
        outputs_of: Callable[[Matrix], Matrix] | None = torch_outputs(source.module)
        name = "torch"
    else:
        outputs_of = onnx_scores(path) if path.suffix.lower() == ".onnx" else None
        name = "onnxruntime"
    if outputs_of is None:
        return None, "", None
    gap = partial(graph_gap, outputs_of, model, network, schema=schema)
    return graph_runtime(outputs_of, model, network, schema=schema), name, gap


def _scaled(own: Replay, schema: Schema) -> Replay:
    centers, scales = np.array(schema.centers), np.array(schema.scales)

    def replay(people: Matrix) -> Answers:
        return own((people - centers) / scales)

    return replay
