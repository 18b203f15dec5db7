"""`--on`: what `feta audit` and `feta predict` share when they run on the parts of a dataset."""

import hashlib
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from importlib.metadata import version
from pathlib import Path

from feta.auditing.certify import votes_json
from feta.cli.folder_lock import FolderLock
from feta.cli.notices import notice
from feta.cli.progress import show_progress
from feta.cli.signals import terminable
from feta.distributed.cluster import Cluster
from feta.distributed.dataset import check_columns, merged_summaries, other_columns, parts_of
from feta.distributed.dataset_run import DatasetRun
from feta.distributed.part_model import ModelFiles, SameModel, declared, libraries_of
from feta.distributed.part_work import PartWork, RowOptions, Survey
from feta.distributed.result_folder import Json, ResultFolder
from feta.errors import SchemaError
from feta.io.canonical_json import canonical
from feta.io.sanitize import plain
from feta.io.table_section import options_json
from feta.readers.check_reading import RowSample, compare_drawn
from feta.readers.comparison import Comparison
from feta.readers.load_function import ModelOrigin
from feta.readers.source import SourceOptions
from feta.scorer.counted.counted import Counted
from feta.space.attribute import Derived
from feta.vote.stored_votes import StoredVotes


@dataclass(frozen=True, slots=True)
class ModelRequest:
    """The model of a command, as its options name it."""

    origin: ModelOrigin
    schema: Path | None
    source: SourceOptions
    one_vs_rest: str | None


@dataclass(frozen=True, slots=True)
class ClusterRequest:
    """A run on a cluster: where, on which dataset, into which folder."""

    on: str
    data: Path
    out: Path
    model: ModelRequest
    rows: RowOptions
    audits: bool

    @property
    def work(self) -> str:
        """The name of the work."""
        return "audit" if self.audits else "prediction"


def check_out(out: Path | None, data: Path) -> Path:
    """Return the folder for the results; raise if there is none, or if it is among the data."""
    if out is None:
        raise SchemaError("--on needs a folder: got no --out; add --out FOLDER")
    if out.exists() and not out.is_dir():
        raise SchemaError(f"{out}: --out is a file; expected a folder for the results of the parts")
    within = data.is_dir() and out.resolve().is_relative_to(data.resolve())
    if within or any(part.path.resolve().is_relative_to(out.resolve()) for part in parts_of(data)):
        raise SchemaError(
            f"{out}: results among the data: got a folder that shares files with --data {data}; "
            "expected another one, because the next run would read results as people"
        )
    return out


class OpenRun:
    """A run whose parts are surveyed and whose model is open."""

    def __init__(self, request: ClusterRequest, run: DatasetRun) -> None:
        self.request, self.run = request, run
        model = request.model
        if model.origin.max_rows is not None:
            raise SchemaError(
                "a budget of rows is for one process: got --max-rows with --on; expected one of "
                "them; remove --max-rows"
            )
        model = replace(
            model,
            origin=replace(model.origin, path=_absolute(model.origin.path)),
            schema=_absolute(model.schema),
        )
        space, options = declared(model.origin, model.schema)
        read = [a.name for a in space.attributes if not isinstance(a, Derived)]
        if not request.audits:
            read = [name for name in read if not space.is_sensitive(space.attribute(name))]
        extra = [name for name in (request.rows.label, request.rows.id_column) if name]
        derived = {a.name for a in space.attributes if isinstance(a, Derived)}
        with show_progress(f"reading {plain(request.data.name)}", total=1.0) as advance:
            run.survey(Survey(frozenset(read), options), advance)
        if run.empty:
            notice(f"{run.empty:,} of {run.empty + len(run.parts):,} parts have no rows")
        first = run.surveyed[0]
        check_columns(run.surveyed, [*read, *extra], sorted(derived))
        others = other_columns(run.surveyed)
        if others:
            notice(others)
        known = {attribute.name for attribute in space.attributes}
        self.ignored = [name for name in first.names if name not in {*known, *extra}]
        present = derived & set(first.names) if request.audits else set()
        self.names = frozenset({*read, *extra, *present})
        formats = {
            name: summary.format(of_text=first.of_text)
            for name, summary in merged_summaries(run.surveyed).items()
        }
        self.files = ModelFiles(
            model.origin,
            model.schema,
            model.source,
            model.one_vs_rest,
            first.part.path,
            formats,
            not request.audits,
        )
        self.loaded = self.files.load()
        scorer = self.loaded.model.scorer
        if isinstance(scorer, Counted):  # workers use the batches that were chosen here
            origin = model.origin.for_worker(scorer.evaluator.batch, max_rows=None)
            self.files = replace(self.files, origin=origin)
        compared = compare_drawn(self.loaded)
        if compared is not None:
            compared.check()

    def results(self, votes: StoredVotes) -> ResultFolder:
        """Return the folder of the results."""
        return ResultFolder(self.request.out, self._question(votes))

    def part_work(self, votes: StoredVotes) -> PartWork:
        """Return what the workers do."""
        loaded, request = self.loaded, self.request
        model = SameModel(
            self.files,
            loaded.model.fingerprint,
            libraries_of(loaded),
            RowSample.of(self.run.rows),
        )
        results = ResultFolder(request.out.absolute(), self._question(votes))
        return PartWork(model, results, request.rows, votes, self.names, request.audits)

    def _question(self, votes: StoredVotes) -> Json:
        """Return everything on which results depend, except the rows."""
        loaded, request = self.loaded, self.request
        rows = request.rows
        formats = {name: repr(one) for name, one in sorted(self.files.formats.items())}
        return {
            "work": request.work,
            "model": loaded.model.fingerprint,
            "schema": loaded.model.space.fingerprint,
            "votes": hashlib.sha256(canonical(votes_json(votes))).hexdigest(),
            "engine": rows.engine,
            "limit": rows.seconds,
            "label": rows.label,
            "id column": rows.id_column,
            "treatment of bad rows": rows.skip_bad_rows,
            "format": rows.as_json,
            "certificate": rows.certify,
            "options of [table]": options_json(loaded.options),
            "types of columns": hashlib.sha256(repr(formats).encode()).hexdigest(),
            "runtime": loaded.runtime_name,
            "versions of libraries": libraries_of(loaded),
            "version of FETA": version("feta-fair"),
        }

    def work(self, votes: StoredVotes) -> ResultFolder:
        """Do the work on all parts; return the folder with their results."""
        work, results = self.part_work(votes), self.results(votes)
        name = plain(self.request.data.name)
        verb = "auditing" if self.request.audits else "deciding"
        try:
            with show_progress(f"{verb} {name}", total=1.0) as advance:
                self.run.work(work, results, advance)
        except KeyboardInterrupt:
            notice(self.run.progress(results))
            raise
        results.remove_unfinished()
        if self.run.kept:
            notice(f"{self.run.kept:,} of {len(self.run.parts):,} parts were finished before")
        return results


def _absolute(path: Path | None) -> Path | None:
    """Return the path by which workers find a file, whatever folder they work in."""
    return None if path is None else path.absolute()


@contextmanager
def opened(request: ClusterRequest) -> Iterator[OpenRun]:
    """Lock the folder, connect, survey the parts and open the model."""
    parts = parts_of(request.data)
    with (
        FolderLock(request.out, work=request.work),
        terminable(),
        Cluster(request.on) as cluster,
    ):
        yield OpenRun(request, DatasetRun(cluster, parts))


def summed(total: Comparison | None, content: dict[str, object] | None) -> Comparison | None:
    """Add the comparison of a part with the user's model."""
    if content is None:
        return total
    more = Comparison(**content)  # type: ignore[arg-type]  # as stored by `asdict`
    return more if total is None else total + more
