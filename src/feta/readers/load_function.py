"""Models of any origin for the command line: a file, or a function that is counted."""

from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np

from feta.absorb.check_encoders import check_encoders
from feta.errors import MissingExtra, NetworkError, SchemaError, ValueMismatch
from feta.io.column_format import Formats
from feta.io.raw_table import RawTable
from feta.io.schema import Schema, read_schema
from feta.io.table_file import TableFile
from feta.model import Model
from feta.progress import Watch, unwatched
from feta.readers.callable.function_source import FunctionSource
from feta.readers.callable.runtime import counted_runtime
from feta.readers.callable.schema_model import counted_model
from feta.readers.load import LoadedModel, PeopleFile, open_model, open_table, select_view
from feta.readers.onnx.function import onnx_function
from feta.readers.pickled import TORCH_PICKLES, load_pickle
from feta.readers.sklearn.pipeline import raw_table, split_pipeline
from feta.readers.source import SourceOptions, open_source
from feta.readers.torch.function import is_module, torch_function
from feta.scorer.counted.options import CountingOptions
from feta.space.attribute import Derived

# Opens a model; the parameters are those of `open_any`.
Make = Callable[[Schema, Formats, TableFile | None], Model]


@dataclass(frozen=True, slots=True)
class ModelOrigin:
    """Where the model comes from: a file or a function, and how it may be read."""

    path: Path | None = None
    function: FunctionSource | None = None
    # "exact" refuses a model that can only be counted, "counted" counts, "labels" without scores
    method: str = "auto"
    limits: CountingOptions = CountingOptions()  # noqa: RUF009 - frozen; of a file that is counted

    def __post_init__(self) -> None:
        if (self.path is None) == (self.function is None):
            got = "neither" if self.path is None else "both"
            raise SchemaError(
                f"no single model: got {got} of a model file and --predict; expected one of them: "
                "feta audit MODEL …, or feta audit --predict module:function …"
            )
        if self.function is not None and self.method == "exact":
            raise SchemaError(
                "a function can only be counted: got --predict and --method exact; expected "
                "--method auto; nothing is proved about the code of a function"
            )

    @property
    def max_rows(self) -> int | None:
        """The number of rows that a counted model may evaluate."""
        return (self.limits if self.function is None else self.function.options).max_rows

    def for_worker(self, batch: int, *, max_rows: int | None) -> "ModelOrigin":
        """Return the origin for another process: a counted model gets the same batches there."""
        function = self.function
        if function is not None:
            function = replace(function, batch=batch, max_rows=max_rows)
        limits = self.limits if self.function is None else self.function.options
        limits = replace(limits, batch=batch, max_rows=max_rows)
        return replace(self, function=function, limits=limits)

    @property
    def name(self) -> str:
        """The name of the file, or of the function."""
        if self.function is not None:
            return self.function.name
        assert self.path is not None
        return self.path.name


@dataclass(frozen=True, slots=True)
class Opening:
    """The schema, the view and the people with which a model is opened."""

    schema: Path | None
    one_vs_rest: str | None = None
    people: PeopleFile | None = None
    watch: Watch = unwatched

    def counted(self, make: Make, notes: tuple[str, ...]) -> LoadedModel:
        """Open the table, make the model with its types, and select the view."""
        schema = self.schema
        assert schema is not None  # checked by the callers
        declared = read_schema(schema)
        options = declared.file.table
        table, formats = open_table(declared.space, options, self.people, self.watch)
        try:
            model = select_view(schema, make(declared, formats, table), self.one_vs_rest)
        except SchemaError as error:
            raise SchemaError(f"{schema}: {str(error).removeprefix(f'{schema}: ')}") from None
        runtime, unit = counted_runtime(model), declared.decision.unit
        return LoadedModel(
            model, runtime, unit, table, formats, notes, options, settings=declared.file.votes
        )


def open_any(origin: ModelOrigin, opening: Opening, source: SourceOptions) -> LoadedModel:
    """Open a model file, or a function; a file that cannot be read exactly is counted."""
    if origin.function is not None:
        return _open_function(origin, origin.function, opening)
    path = origin.path
    assert path is not None
    if origin.method in ("counted", "labels"):
        return _open_counted(origin, opening, source, None)
    try:
        return open_model(
            path,
            opening.schema,
            source,
            one_vs_rest=opening.one_vs_rest,
            people=opening.people,
            watch=opening.watch,
        )
    except ValueMismatch:  # the model and the schema contradict each other
        raise
    except NetworkError as error:
        if origin.method == "exact":
            raise
        return _open_counted(origin, opening, source, error)


def _open_function(origin: ModelOrigin, function: FunctionSource, opening: Opening) -> LoadedModel:
    if opening.schema is None:
        raise SchemaError(
            f"{function.name} needs a schema: got no --schema; expected a file that names the "
            "columns, which of them are sensitive, and the decision"
        )
    source = function.load()

    def make(schema: Schema, formats: Formats, table: TableFile | None) -> Model:
        made = _table(source, schema, formats, table)
        labels_only = origin.method == "labels"
        return counted_model(
            source, schema, table=made, options=function.options, labels_only=labels_only
        )

    note = (
        f"{function.name} is counted: every counterpart is evaluated by the function itself, and "
        "nothing is proved about its code"
    )
    return opening.counted(make, (note,))


def _open_counted(
    origin: ModelOrigin, opening: Opening, source: SourceOptions, obstacle: NetworkError | None
) -> LoadedModel:
    """Count an estimator that cannot be read; raise the obstacle of its reader if that fails."""
    path = origin.path
    assert path is not None
    try:
        estimator = _function_in(path, source)
        if opening.schema is None or estimator is None:
            raise NetworkError(
                f"{path} cannot be counted: got a file without predict; expected a fitted "
                "estimator, or --predict module:function"
            )
        reason = (
            f"as --method {origin.method} asks" if obstacle is None else f"not proved: {obstacle}"
        )
        note = f"{path.name} is counted, {reason}"
        return opening.counted(partial(_counted_estimator, origin, estimator), (note,))
    except ValueMismatch:
        raise
    except MissingExtra as error:
        raise NetworkError(f"{obstacle or path}; and it cannot be counted: {error}") from None
    except NetworkError as error:
        raise (obstacle or error) from None


def _function_in(path: Path, options: SourceOptions) -> Any:  # noqa: ANN401 - any model
    """Return the model of a file that predicts by itself; None if it does not."""
    suffix = path.suffix.lower()
    if suffix == ".onnx":
        return onnx_function(path)
    if suffix in TORCH_PICKLES and options.trust_pickle:
        content = load_pickle(path)
        if is_module(content):
            return torch_function(content.eval())
    return open_source(path, options).estimator


def _counted_estimator(
    origin: ModelOrigin,
    estimator: Any,  # noqa: ANN401 - scikit-learn ships no types
    schema: Schema,
    formats: Formats,
    table: TableFile | None,
) -> Model:
    del table
    count = partial(
        counted_model,
        schema=schema,
        options=origin.limits,
        labels_only=origin.method == "labels",
    )
    if getattr(estimator, "reads_encoded_rows", False):
        function = estimator
        if schema.scaled:
            function = estimator.scaled(np.array(schema.centers), np.array(schema.scales))
        return count(function)
    steps = split_pipeline(estimator)[0]
    if steps is None:
        return count(estimator)
    made = raw_table(estimator, schema.space, formats)
    check_encoders(steps, schema.space, made)
    return count(estimator, table=made)


def _table(
    source: Any,  # noqa: ANN401 - a function, or an object with predict
    schema: Schema,
    formats: Formats,
    table: TableFile | None,
) -> RawTable | None:
    """Return the frames of a function, with the types of the user's table; None: an estimator's."""
    if hasattr(source, "predict"):
        return None
    present = set() if table is None else set(table.names)
    names = [
        attribute.name
        for attribute in schema.space.attributes
        if not isinstance(attribute, Derived) or attribute.name in present
    ]
    return RawTable(schema.space, tuple(names), formats=formats)
