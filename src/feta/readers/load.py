"""Models loaded from the user's files, with their runtime if it is installed."""

import warnings
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from feta.absorb.absorb import UnseenValueWarning
from feta.errors import NetworkError, SchemaError
from feta.io.column_format import Formats
from feta.io.model_file import load_table_options, load_votes
from feta.io.sanitize import plain
from feta.io.schema import Schema, read_schema
from feta.io.table_file import TableFile
from feta.io.table_options import TableOptions
from feta.model import Model
from feta.progress import Watch, unwatched
from feta.readers.booster_runtime import tree_file_runtime
from feta.readers.onnx.runtime import onnx_scores
from feta.readers.read_model import read_exactly
from feta.readers.runtime import Runtime, graph_runtime, runtime_of
from feta.readers.sklearn.pipeline import raw_table, split_pipeline
from feta.readers.source import ModelSource, SourceOptions, open_source
from feta.readers.torch.read import torch_outputs
from feta.relation.protocol import Relation
from feta.rule import Rule, rule_kind
from feta.scorer.protocol import Scorer
from feta.space.attribute import Categorical, Derived
from feta.space.feature_space import FeatureSpace
from feta.vote.settings import VoteSettings
from feta.vote.stored_votes import StoredVotes

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from feta.arrays import Matrix

# Counts of counterparts are 64-bit integers.
MAX_COUNTERPARTS = 2**62


@dataclass(frozen=True, slots=True)
class LoadedModel:
    """A model, its original runtime, the table of people, and the formats of its columns."""

    model: Model
    runtime: Runtime | None = None
    unit: str = ""  # of the scores
    table: TableFile | None = None
    formats: Formats = field(default_factory=dict)
    notes: tuple[str, ...] = ()  # remarks for the user about how the model was read
    options: TableOptions = field(default_factory=TableOptions)  # how pandas reads a table
    outcome_classes: tuple[tuple[str, str], ...] = ()  # outcomes with other names than classes
    votes: StoredVotes = field(default_factory=StoredVotes)  # of a .feta file
    settings: VoteSettings | None = None  # of a schema's [votes]

    @property
    def runtime_name(self) -> str:
        """The name of the runtime; empty if there is none."""
        return "" if self.runtime is None else self.runtime.name


@dataclass(frozen=True, slots=True)
class PeopleFile:
    """The user's table, and whether its sensitive columns are ignored."""

    path: Path
    ignore_sensitive: bool = False
    formats: Formats | None = None  # if they are already known


def open_model(
    path: Path,
    schema: Path | None,
    options: SourceOptions,
    *,
    one_vs_rest: str | None = None,
    people: PeopleFile | None = None,
    watch: Watch = unwatched,
) -> LoadedModel:
    """Open a model by the type of its file; `one_vs_rest` selects one of its classes.

    A pipeline is evaluated on values of the types that pandas infers from the table of people.
    """
    if path.suffix.lower() == ".feta":
        if schema is not None:
            raise SchemaError(f"{path} contains its schema; remove --schema")
        stored, votes = load_votes(path)
        model = select_view(path, stored, one_vs_rest)
        table_options = load_table_options(path)
        people = _with_noise(people, model.relation)
        table, formats = open_table(model.space, table_options, people, watch)
        return LoadedModel(model, table=table, formats=formats, options=table_options, votes=votes)
    source = open_source(path, options)
    if schema is None:
        raise SchemaError(f"{path} needs a schema: feta init {path} DATA --sensitive … writes one")
    declared = read_schema(schema)
    people = _with_noise(people, declared.relation)
    table, formats = open_table(declared.space, declared.file.table, people, watch)
    try:
        with warnings.catch_warnings(record=True) as recorded:
            warnings.simplefilter("always", UnseenValueWarning)
            scorer = _read_source(source, declared, formats)
        model = select_view(schema, declared.model(scorer), one_vs_rest)
    except NetworkError as error:
        raise type(error)(f"{path} with {schema}: {error}") from None
    except SchemaError as error:
        raise SchemaError(f"{schema}: {str(error).removeprefix(f'{schema}: ')}") from None
    runtime = _find_runtime(path, source, declared, model, formats)
    notes = [*source.notes, declared.score_note(source.network) if source.network else ""]
    notes += [
        str(warning.message) for warning in recorded if warning.category is UnseenValueWarning
    ]
    nonempty = tuple(note for note in notes if note)
    unit, table_options = declared.decision.unit, declared.file.table
    return LoadedModel(
        model,
        runtime,
        unit,
        table,
        formats,
        nonempty,
        table_options,
        declared.outcome_classes(_classes(source.estimator)),
        settings=declared.file.votes,
    )


def _classes(estimator: Any) -> "Sequence[object]":  # noqa: ANN401 - scikit-learn ships no types
    """Return the classes of an estimator; none for a regressor or no estimator."""
    if estimator is None:
        return ()
    classes: Sequence[object] = getattr(split_pipeline(estimator)[1], "classes_", ())
    return classes


def _with_noise(people: PeopleFile | None, relation: Relation) -> PeopleFile | None:
    """Return the table with its sensitive columns, if the relation needs them."""
    if people is None or not relation.reads_sensitive:
        return people
    return replace(people, ignore_sensitive=False)


def open_table(
    space: FeatureSpace, options: TableOptions, people: PeopleFile | None, watch: Watch
) -> tuple[TableFile | None, Formats]:
    """Open the table of people, and infer the formats of the space's columns with pandas."""
    if people is None:
        return None, {}
    table = TableFile(people.path, options)
    if people.formats is not None:
        return table, people.formats
    names = [
        attribute.name
        for attribute in space.attributes
        if not isinstance(attribute, Derived)
        and not (people.ignore_sensitive and space.is_sensitive(attribute))
    ]
    with watch(f"finding the types of {plain(table.path.name)}"):
        formats = table.formats(names)
    _check_number_columns(space, table, formats)
    return table, formats


def _check_number_columns(space: FeatureSpace, table: TableFile, formats: Formats) -> None:
    """Reject columns of numbers that the user's program reads as texts, whatever they hold."""
    for name, column_format in formats.items():
        numbers = not isinstance(space.attribute(name), Categorical)
        explicit = table.delimiter is None or name in table.options.dtype
        if column_format.kind == "text" and numbers and explicit:
            raise SchemaError(
                f"column {name!r} has different types in table and schema: got texts in the table "
                f"({column_format.dtype}); expected numbers; declare it as a category with its "
                "texts, or read it as numbers"
            )


def select_view(path: Path, model: Model, one_vs_rest: str | None) -> Model:
    """Return the model, or its view of one class; reject models that no command supports."""
    if one_vs_rest is not None:
        if not model.rule.classes or model.rule.merges_classes:
            raise SchemaError(
                f"{path}: --one-vs-rest needs several classes: got {rule_kind(model.rule)}; "
                "expected Argmax; list the classes in [decision], classes = [...]"
            )
        model = model.one_vs_rest(one_vs_rest)
    if model.relation.finite and model.relation.size > MAX_COUNTERPARTS:
        raise SchemaError(
            f"{path}: a person has too many counterparts: got {model.relation.size:.2g}; "
            "expected at most 2^62; narrow the sensitive columns' min and max"
        )
    return model


def _read_source(source: ModelSource, schema: Schema, formats: Formats) -> Scorer:
    """Read a model exactly with the schema's columns; reject a schema that does not fit it."""
    if source.network is not None:
        return source.network
    if source.trees is not None:
        scorer: Scorer = source.trees.read(schema.space)
    else:
        scorer = _read_estimator(source.estimator, schema, formats)
    obstacle = _unsuited(scorer, schema.rule)
    if obstacle:
        raise NetworkError(obstacle)
    return scorer


def _read_estimator(estimator: Any, schema: Schema, formats: Formats) -> Scorer:  # noqa: ANN401 - scikit-learn ships no types
    steps, last = split_pipeline(estimator)
    if steps is not None and schema.scaled:
        message = "the pipeline scales its columns itself; remove center and scale from the schema"
        raise SchemaError(message)
    regressor = not hasattr(last, "classes_")
    if regressor and schema.rule.threshold is not None and schema.decision.score is None:
        raise SchemaError(
            "a regressor gives no probability; write tolerance = … in [decision], "
            "or score = … for a decision by its value"
        )
    schema.check_classes(_classes(estimator))
    table = None if steps is None else raw_table(estimator, schema.space, formats)
    return read_exactly(estimator, schema.space, table=table)


def _unsuited(scorer: Scorer, rule: Rule) -> str:
    """Return why a rule about predictions cannot use the scores of a model; empty if it can."""
    if scorer.link not in ("log", "probit") or rule.tolerance is None:
        return ""
    return (
        f"a tolerance applies to predictions, and the model has the link {scorer.link!r}: equal "
        "distances of predictions are different distances of its scores"
    )


def _find_runtime(
    path: Path, source: ModelSource, schema: Schema, model: Model, formats: Formats
) -> Runtime | None:
    """Return the user's runtime; None if it is not installed or the file has none."""
    if source.estimator is not None:
        if split_pipeline(source.estimator)[0] is None:
            return _scale_rows(runtime_of(source.estimator, model), schema)
        table = raw_table(source.estimator, model.space, formats)
        return runtime_of(source.estimator, model, table=table)
    if source.trees is not None:
        return tree_file_runtime(source.trees, model)
    network = source.network
    assert network is not None
    if source.module is not None:
        outputs: Callable[[Matrix], Matrix] | None = torch_outputs(source.module)
        name = "torch"
    else:
        outputs = onnx_scores(path) if path.suffix.lower() == ".onnx" else None
        name = "onnxruntime"
    if outputs is None:
        return None
    return graph_runtime(outputs, model, network, name=name, schema=schema)


def _scale_rows(runtime: Runtime, schema: Schema) -> Runtime:
    """Return a runtime that scales rows as a bare estimator expects them."""
    if not schema.scaled:
        return runtime
    centers, scales = np.array(schema.centers), np.array(schema.scales)
    table = runtime.table
    return replace(runtime, table=lambda people: table((people - centers) / scales), columns=None)
