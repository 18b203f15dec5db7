"""Open model: a model from the files a user names, and their own runtime if it is installed."""

import warnings
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from feta.absorb.absorb import UnseenValueWarning
from feta.errors import NetworkError, SchemaError
from feta.io.column_format import Formats
from feta.io.model_file import load_model, load_table_options
from feta.io.sanitize import plain
from feta.io.schema import Schema, read_schema
from feta.io.table_file import TableFile
from feta.io.table_options import TableOptions
from feta.model import Model
from feta.progress import Watch, unwatched
from feta.readers.onnx.runtime import onnx_scores
from feta.readers.runtime import Runtime, graph_runtime, runtime_of
from feta.readers.sklearn.pipeline import raw_table, split_pipeline
from feta.readers.sklearn.read import read_sklearn
from feta.readers.source import ModelSource, SourceOptions, open_source
from feta.readers.torch.read import torch_outputs
from feta.rule import Argmax, Threshold
from feta.scorer.network.network import Network
from feta.space.attribute import Categorical, Derived
from feta.space.feature_space import FeatureSpace

if TYPE_CHECKING:
    from collections.abc import Callable

    from feta.arrays import Matrix

# Counts of counterparts are 64-bit numbers.
MAX_COUNTERPARTS = 2**62


@dataclass(frozen=True, slots=True)
class LoadedModel:
    """A model, the runtime it came from, the table of people, and how pandas reads its columns."""

    model: Model
    runtime: Runtime | None = None
    unit: str = ""  # of the scores
    table: TableFile | None = None
    formats: Formats = field(default_factory=dict)
    notes: tuple[str, ...] = ()  # what a user should know about how the model was read
    options: TableOptions = field(default_factory=TableOptions)  # how pandas reads a table

    @property
    def runtime_name(self) -> str:
        """The name of the runtime, or nothing."""
        return "" if self.runtime is None else self.runtime.name


@dataclass(frozen=True, slots=True)
class PeopleFile:
    """The user's table, and whether its sensitive columns are never read."""

    path: Path
    ignore_sensitive: bool = False
    formats: Formats | None = None  # if they are known already


def open_model(
    path: Path,
    schema: Path | None,
    options: SourceOptions,
    *,
    one_vs_rest: str | None = None,
    people: PeopleFile | None = None,
    watch: Watch = unwatched,
) -> LoadedModel:
    """Open a model by the kind of its file, perhaps to ask about one of its classes only.

    A pipeline is asked about values of the types that pandas finds in the table of people.
    """
    if path.suffix.lower() == ".feta":
        if schema is not None:
            raise SchemaError(f"{path} holds its own schema; leave --schema out")
        model = _answerable(path, load_model(path), one_vs_rest)
        options_kept = load_table_options(path)
        table, formats = _table(model.space, options_kept, people, watch)
        return LoadedModel(model, table=table, formats=formats, options=options_kept)
    source = open_source(path, options)
    if schema is None:
        raise SchemaError(f"{path} needs a schema: feta init {path} DATA --sensitive … writes one")
    declared = read_schema(schema)
    table, formats = _table(declared.space, declared.file.table, people, watch)
    try:
        with warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always", UnseenValueWarning)
            network = source.network or _read_estimator(source.estimator, declared, formats)
        model = _answerable(schema, declared.model(network), one_vs_rest)
    except NetworkError as error:
        raise NetworkError(f"{path} with {schema}: {error}") from None
    except SchemaError as error:
        raise SchemaError(f"{schema}: {str(error).removeprefix(f'{schema}: ')}") from None
    runtime = _runtime(path, source, declared, model, formats)
    notes = [*source.notes, declared.score_note(network) if source.network else ""]
    notes += [str(one.message) for one in caught if one.category is UnseenValueWarning]
    shown = tuple(note for note in notes if note)
    unit, options_declared = declared.decision.unit, declared.file.table
    return LoadedModel(model, runtime, unit, table, formats, shown, options_declared)


def _table(
    space: FeatureSpace, options: TableOptions, people: PeopleFile | None, watch: Watch
) -> tuple[TableFile | None, Formats]:
    """Open the table of people, and find how pandas reads the space's columns."""
    if people is None:
        return None, {}
    table = TableFile(people.path, options)
    if people.formats is not None:
        return table, people.formats
    names = [
        one.name
        for one in space.attributes
        if not isinstance(one, Derived)
        and not (people.ignore_sensitive and space.is_sensitive(one))
    ]
    with watch(f"finding the types of {plain(table.path.name)}"):
        formats = table.formats(names)
    _refuse_texts(space, table, formats)
    return table, formats


def _refuse_texts(space: FeatureSpace, table: TableFile, formats: Formats) -> None:
    """Refuse columns of numbers that the user's program reads as texts, whatever the cells hold."""
    for name, one in formats.items():
        numbers = not isinstance(space.attribute(name), Categorical)
        chosen = table.delimiter is None or name in table.options.dtype
        if one.kind == "text" and numbers and chosen:
            message = f"column {name!r} holds texts in the table ({one.dtype}), but numbers in the schema; declare it as a category with its texts, or read it as numbers"
            raise SchemaError(message)


def _answerable(path: Path, model: Model, one_vs_rest: str | None) -> Model:
    """Take the view asked for; refuse what no command here can answer for, and say what would do."""
    if one_vs_rest is not None:
        if not isinstance(model.rule, Argmax):
            message = f"{path}: --one-vs-rest needs several classes, got {type(model.rule).__name__}; list them in [decision], classes = [...]"
            raise SchemaError(message)
        model = model.one_vs_rest(one_vs_rest)
    if model.space.finite and model.space.lattice.size > MAX_COUNTERPARTS:
        message = f"{path}: a person must have at most 2^62 counterparts, got {model.space.lattice.size:.2g}; narrow the sensitive columns' min and max"
        raise SchemaError(message)
    return model


def _read_estimator(estimator: Any, schema: Schema, formats: Formats) -> Network:  # noqa: ANN401 - scikit-learn ships no types
    """Read an estimator by the schema's columns; the schema must fit it."""
    steps, last = split_pipeline(estimator)
    if steps is not None and schema.scaled:
        message = "the pipeline scales its columns itself; remove center and scale from the schema"
        raise SchemaError(message)
    decision = schema.decision
    regressor = not hasattr(last, "classes_")
    if regressor and isinstance(schema.rule, Threshold) and decision.score is None:
        message = "a regressor gives no probability: write tolerance = … in [decision], or score = … for a decision by its value"
        raise SchemaError(message)
    schema.check_classes([str(one) for one in getattr(last, "classes_", [])])
    if steps is None:
        return read_sklearn(estimator, schema.space)
    return read_sklearn(estimator, schema.space, table=raw_table(estimator, schema.space, formats))


def _runtime(
    path: Path, source: ModelSource, schema: Schema, model: Model, formats: Formats
) -> Runtime | None:
    """Find the user's own runtime; None where it is not installed or the file has none."""
    if source.estimator is not None:
        if split_pipeline(source.estimator)[0] is None:
            return _scaled(runtime_of(source.estimator, model), schema)
        table = raw_table(source.estimator, model.space, formats)
        return runtime_of(source.estimator, model, table=table)
    network = source.network
    assert network is not None
    if source.module is not None:
        outputs_of: Callable[[Matrix], Matrix] | None = torch_outputs(source.module)
        name = "torch"
    else:
        outputs_of = onnx_scores(path) if path.suffix.lower() == ".onnx" else None
        name = "onnxruntime"
    if outputs_of is None:
        return None
    return graph_runtime(outputs_of, model, network, name=name, schema=schema)


def _scaled(runtime: Runtime, schema: Schema) -> Runtime:
    """Scale rows as a bare estimator expects them."""
    if not schema.scaled:
        return runtime
    centers, scales = np.array(schema.centers), np.array(schema.scales)
    made = runtime.table
    return replace(runtime, table=lambda people: made((people - centers) / scales), columns=None)
