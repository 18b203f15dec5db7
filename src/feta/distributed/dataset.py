"""Datasets: the tables of a folder or a pattern, in parts, each a file or some row groups."""

import glob
import hashlib
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from urllib.parse import quote

from feta.distributed.arrow_columns import arrow
from feta.errors import DomainError, missing
from feta.io.column_format import FormatSummary
from feta.io.table_file import TableFile
from feta.io.table_options import TableOptions

PARQUET, TEXT = (".parquet", ".pq"), (".csv", ".tsv")

# Characters of the name of a part's results; file systems allow 255, and endings are added.
LONGEST_NAME = 128

# Row groups of one Parquet file are joined until a part has this many rows.
ROWS_PER_PART = 100_000

# Kinds of columns whose values are the same in every part that stores one of them.
FAMILIES = {"integer": "numbers", "number": "numbers", "text": "texts", "boolean": "booleans"}


@dataclass(frozen=True, slots=True)
class Part:
    """A unit of work: a file, or some row groups of a Parquet file."""

    path: Path
    name: str  # of the part in its dataset; the names of its results follow from it
    groups: range | None = None

    def table(self, options: TableOptions) -> TableFile:
        """Open the part."""
        return TableFile(self.path, options, groups=self.groups)

    def sha256(self) -> str:
        """Return the digest of the part's bytes."""
        if self.groups is None:
            with self.path.open("rb") as file:
                return hashlib.file_digest(file, "sha256").hexdigest()
        return _digest_of_groups(self.path, self.groups)


@dataclass(frozen=True, slots=True)
class PartFacts:
    """What is known about a part before its rows are used."""

    part: Part
    sha256: str
    rows: int
    names: tuple[str, ...]
    summaries: dict[str, FormatSummary]
    of_text: bool  # whether it is a CSV file
    before: int = 0  # rows of the dataset in files before this one


def survey_part(part: Part, names: Collection[str], options: TableOptions) -> PartFacts:
    """Read a part once: its digest, its number of rows, and how pandas reads its columns."""
    sha256, table = part.sha256(), part.table(options)
    of_text = table.delimiter is not None
    rows = sum(map(len, table.chunks(()))) if of_text else _n_rows(part)
    summaries = table.summaries(names) if rows else {}  # engines write Parquet files without rows
    return PartFacts(part, sha256, rows, tuple(table.names), summaries, of_text)


def parts_of(data: Path) -> list[Part]:
    """Return the parts of a file, a folder or a pattern, in the order of their names."""
    if data.is_file():
        return _parts_of_file(data.absolute())
    root, paths = (data, _files_in(data)) if data.is_dir() else (_root(data), _matching(data))
    if not paths:
        raise DomainError(
            f"{data}: no tables: got no {'such file' if not data.is_dir() else 'table'}; expected "
            "a .parquet or .csv file, a folder with such files, or a pattern in quotes"
        )
    if len({path.suffix.lower() in PARQUET for path in paths}) > 1:
        raise DomainError(
            f"{data}: tables of two formats: got Parquet and CSV files; expected one of them; name "
            f"them with a pattern, such as '{data}/*.parquet'"
        )
    named = sorted((path.relative_to(root).as_posix(), path) for path in paths)
    return [Part(path.absolute(), name) for name, path in named]


def result_name(part: Part) -> str:
    """Return the name of a part as one component of a path; different parts have other names."""
    name = quote(part.name, safe=" =+,()")
    if len(name) <= LONGEST_NAME:
        return name
    return f"{name[:LONGEST_NAME]}~{hashlib.sha256(part.name.encode()).hexdigest()}"


def _parts_of_file(path: Path) -> list[Part]:
    if path.suffix.lower() not in PARQUET:
        return [Part(path, path.name)]
    sizes = [group.num_rows for group in _row_groups(path)]
    parts: list[Part] = []
    start, rows = 0, 0
    for group, size in enumerate(sizes):
        rows += size
        if rows >= ROWS_PER_PART or group + 1 == len(sizes):
            groups = range(start, group + 1)
            parts.append(Part(path, f"{path.name}.groups-{start:06d}", groups))
            start, rows = group + 1, 0
    return parts or [Part(path, path.name)]


def _files_in(folder: Path) -> list[Path]:
    """Return all tables in a folder and its folders, except hidden ones and those of engines."""
    return [
        path
        for path in folder.rglob("*")
        if path.suffix.lower() in PARQUET + TEXT
        and path.is_file()
        and not any(name.startswith((".", "_")) for name in path.relative_to(folder).parts)
    ]


def _matching(pattern: Path) -> list[Path]:
    """Return the files that match a pattern, which may be absolute."""
    names = glob.glob(str(pattern), recursive=True)  # noqa: PTH207 - Path.glob takes no absolute one
    return [Path(name) for name in names if Path(name).is_file()]


def _root(pattern: Path) -> Path:
    """Return the folder above the first component that is a pattern."""
    for parent in reversed([pattern, *pattern.parents]):
        if glob.has_magic(str(parent)):
            return parent.parent
    return pattern.parent


def _parquet(path: Path) -> Any:  # noqa: ANN401 - pyarrow ships no types
    arrow()  # raises if it is not installed
    import pyarrow.parquet as pq  # noqa: PLC0415 - an extra

    TableFile(path)  # words the error of a damaged file
    return pq.ParquetFile(path)


def _row_groups(path: Path) -> list[Any]:
    metadata = _parquet(path).metadata
    return [metadata.row_group(group) for group in range(metadata.num_row_groups)]


def _n_rows(part: Part) -> int:
    groups = _row_groups(part.path)
    chosen = groups if part.groups is None else [groups[group] for group in part.groups]
    return sum(group.num_rows for group in chosen)


def _digest_of_groups(path: Path, groups: range) -> str:
    """Return the digest of the schema and of the bytes of some row groups."""
    digest = hashlib.sha256(str(_parquet(path).schema_arrow).encode())
    row_groups = _row_groups(path)
    with path.open("rb") as file:
        for group in groups:
            columns = [row_groups[group].column(i) for i in range(row_groups[group].num_columns)]
            for column in columns:
                start = column.dictionary_page_offset or column.data_page_offset
                file.seek(min(start, column.data_page_offset))
                digest.update(file.read(column.total_compressed_size))
    return digest.hexdigest()


def check_columns(
    surveyed: Sequence[PartFacts], required: Collection[str], optional: Collection[str]
) -> None:
    """Raise unless all parts have the columns that are read, with the same kinds of values."""
    first, usual = surveyed[0], _usual_kinds(surveyed)
    for facts in surveyed:
        where = facts.part.path
        for name in required:
            if name not in facts.names:
                raise DomainError(f"{where}: {missing(name, facts.names)}", column=name)
        for name in optional:
            if (name in facts.names) != (name in first.names):
                has = "has the column" if name in facts.names else "lacks the column"
                raise DomainError(
                    f"{where}: another schema: it {has} {name!r}, unlike {first.part.name}; "
                    "expected the same columns in all parts; rewrite the part, or move it away",
                    column=name,
                )
        if not facts.of_text:
            _check_kinds(facts, usual)


def _kind(summary: FormatSummary) -> str:
    return FAMILIES.get(summary.kind, summary.kind)


def _usual_kinds(surveyed: Sequence[PartFacts]) -> dict[str, tuple[str, str]]:
    """Return the kind that most parts have of each column, and the first part that has it."""
    parts: dict[str, dict[str, list[str]]] = {}
    for facts in surveyed:
        for name, summary in facts.summaries.items():
            if summary.kind != "empty":
                found = parts.setdefault(name, {}).setdefault(_kind(summary), [])
                found.append(facts.part.name)
    usual = {}
    for name, by_kind in parts.items():
        kind = max(by_kind, key=lambda kind: len(by_kind[kind]))
        usual[name] = kind, by_kind[kind][0]
    return usual


def _check_kinds(facts: PartFacts, usual: Mapping[str, tuple[str, str]]) -> None:
    for name, summary in facts.summaries.items():
        if summary.kind != "empty" and _kind(summary) != usual[name][0]:
            expected, where = usual[name]
            raise DomainError(
                f"{facts.part.path}: another schema: the column {name!r} has {_kind(summary)}; "
                f"expected {expected}, as in {where}; rewrite the part with the same types",
                column=name,
            )


def other_columns(surveyed: Sequence[PartFacts]) -> str:
    """Describe the first part with other columns than the first; empty if there is none."""
    first = surveyed[0]
    for facts in surveyed:
        extra = sorted(set(facts.names) - set(first.names))
        lacking = sorted(set(first.names) - set(facts.names))
        if extra or lacking:
            name, verb = (extra[0], "has") if extra else (lacking[0], "lacks")
            return (
                f"{facts.part.name} {verb} the column {name!r}, unlike {first.part.name}; it is "
                "not read"
            )
    return ""


def merged_summaries(surveyed: Sequence[PartFacts]) -> dict[str, FormatSummary]:
    """Return how pandas reads the columns of all parts together."""
    merged: dict[str, FormatSummary] = {}
    for facts in surveyed:
        for name, summary in facts.summaries.items():
            merged[name] = merged[name].merged(summary) if name in merged else summary
    return merged
