"""The model of a run in every process: opened from the user's files, and known to be the same."""

import threading
from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path

from feta.distributed.dataset import PartFacts
from feta.errors import EngineError, ModelChanged
from feta.io.column_format import Formats
from feta.io.model_file import load_model, load_table_options
from feta.io.schema import read_schema
from feta.io.table_options import TableOptions
from feta.readers.check_reading import RowSample, compare_part
from feta.readers.comparison import Comparison
from feta.readers.load import LoadedModel, PeopleFile
from feta.readers.load_function import ModelOrigin, Opening, open_any
from feta.readers.source import SourceOptions
from feta.space.feature_space import FeatureSpace

# FETA itself: all workers must have the version of the process that started the run.
FETA = "feta-fair"

# Libraries on which the answers of a model that is executed depend.
LIBRARIES = (
    "catboost", "keras", "lightgbm", "numpy", "onnxruntime", "pandas", "scikit-learn", "scipy",
    "statsmodels", "torch", "xgboost", "xgboost-cpu",
)  # fmt: skip

# One part at a time: models are not made for several threads, and share the process's memory.
WORKING = threading.Lock()


@dataclass(frozen=True)
class ModelFiles:
    """The files of a model, and what a worker needs to open them as the first process did."""

    origin: ModelOrigin
    schema: Path | None
    source: SourceOptions
    one_vs_rest: str | None
    people: Path  # any table of the dataset
    formats: Formats
    ignore_sensitive: bool = False

    def load(self) -> LoadedModel:
        """Open the files."""
        people = PeopleFile(self.people, self.ignore_sensitive, self.formats)
        return open_any(self.origin, Opening(self.schema, self.one_vs_rest, people), self.source)


@dataclass(frozen=True)
class SameModel:
    """A model that every process opens once, and refuses if it is another one there."""

    files: ModelFiles
    fingerprint: str
    libraries: dict[str, str]
    sample: RowSample

    def __getstate__(self) -> dict[str, object]:
        """Leave out the open model: a worker sends this to others, which open and check it too."""
        return {name: value for name, value in self.__dict__.items() if name != "loaded"}

    @cached_property
    def loaded(self) -> LoadedModel:
        """The model in this process."""
        here = library_versions(list(self.libraries))
        for name, expected in self.libraries.items():
            if here.get(name) != expected:
                raise EngineError(
                    f"a worker has another version of {name}: got {here.get(name)}; expected "
                    f"{expected}, as in the process that started the run; install the same "
                    "versions everywhere"
                )
        loaded = self.files.load()
        if loaded.model.fingerprint != self.fingerprint:
            raise ModelChanged(
                "the model is another one in a worker: got another fingerprint, or other answers "
                "to the same rows; expected equal ones; give all workers the same files, and fix "
                "the random state of a function when it is imported"
            )
        return loaded

    def part(self, facts: PartFacts) -> LoadedModel:
        """Return the model with the table of a part; the table must be the one surveyed."""
        loaded = self.loaded
        return replace(loaded, table=facts.part.table(loaded.options))

    def compare(self, facts: PartFacts) -> Comparison | None:
        """Compare some rows of the part with the user's model; raise if it decides differently."""
        return compare_part(
            self.part(facts),
            replace(self.sample, before=facts.before),
            ignore_sensitive=self.files.ignore_sensitive,
        )


def declared(origin: ModelOrigin, schema: Path | None) -> tuple[FeatureSpace, TableOptions]:
    """Return the columns of a model, and how tables are read, before the model is opened."""
    if origin.path is not None and origin.path.suffix.lower() == ".feta" and schema is None:
        return load_model(origin.path).space, load_table_options(origin.path)
    if schema is None:
        return open_any(origin, Opening(None), SourceOptions()).model.space, TableOptions()
    content = read_schema(schema)
    return content.space, content.file.table


def library_versions(names: Sequence[str]) -> dict[str, str]:
    """Return the versions of installed libraries."""
    versions = {}
    for name in names:
        try:
            versions[name] = version(name)
        except PackageNotFoundError:
            continue
    return versions


def libraries_of(loaded: LoadedModel) -> dict[str, str]:
    """Return the versions on which results depend.

    A model that FETA evaluates itself depends on FETA only. If the user's own program is executed,
    to count or to replay and compare, results depend on its libraries too.
    """
    return library_versions((FETA,) if loaded.runtime is None else (FETA, *LIBRARIES))
