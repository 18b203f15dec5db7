"""Models that the commands open, from their options; imports happen when a command runs."""

from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from feta.readers.load import LoadedModel
    from feta.readers.load_function import ModelOrigin
    from feta.readers.source import SourceOptions


def source_options(layers: str | None, external_data: bool, trust_pickle: bool) -> "SourceOptions":
    """Return the options of a model file."""
    from feta.readers.source import SourceOptions

    return SourceOptions(layers, external_data, trust_pickle)


def origin_of(
    model: Path | None,
    predict: str | None,
    method: str,
    timeout: float | None = None,
    max_rows: int | None = None,
) -> "ModelOrigin":
    """Return where the model comes from: a file, or a function."""
    from feta.readers.callable.function_source import FunctionSource
    from feta.readers.load_function import ModelOrigin
    from feta.scorer.counted.options import CountingOptions

    function = None if predict is None else FunctionSource(predict, timeout, max_rows)
    limits = CountingOptions(timeout=timeout, max_rows=max_rows)
    return ModelOrigin(model, function, method, limits)


def load_model(
    origin: "ModelOrigin",
    schema: Path | None,
    source: "SourceOptions",
    data: Path | None,
    *,
    one_vs_rest: str | None = None,
    ignore_sensitive: bool = False,
) -> "LoadedModel":
    """Open a model and, if given, the table of people."""
    from feta.cli.progress import show_progress
    from feta.readers.load import PeopleFile
    from feta.readers.load_function import Opening, open_any

    people = None if data is None else PeopleFile(data, ignore_sensitive=ignore_sensitive)
    return open_any(origin, Opening(schema, one_vs_rest, people, show_progress), source)
