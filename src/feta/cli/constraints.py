"""`feta constraints`: which combinations of columns occur in a table, as TOML to edit."""

import sys
from pathlib import Path

import numpy as np

from feta.arrays import Matrix
from feta.cli.exit_code import ExitCode
from feta.cli.output_path import check_file
from feta.cli.progress import show_progress
from feta.errors import SchemaError
from feta.io.regular_file import atomic_write
from feta.io.relation_section import constraint_lines
from feta.io.schema import read_schema
from feta.readers.load import PeopleFile, open_table
from feta.relation.learning import learn_support
from feta.space.attribute import Derived


def run_constraints(
    data: Path, schema_path: Path, columns: str, least: int, out: Path | None
) -> ExitCode:
    """Learn the support of some columns, and print it or write it to a file."""
    if out is not None:
        check_file(out, [data, schema_path])
    schema = read_schema(schema_path)
    names = [name.strip() for name in columns.split(",") if name.strip()]
    table, formats = open_table(schema.space, schema.table, PeopleFile(data), show_progress)
    assert table is not None  # a file was given
    needed = [a.name for a in schema.space.attributes if not isinstance(a, Derived)]
    table.require(needed)
    parts = [
        chunk.encode_good(schema.space)[0] for chunk in table.chunks(set(needed), typed=formats)
    ]
    people = _joined(parts)
    entry = learn_support(schema.space, people, names, least)
    text = "\n".join(
        [
            f"# Combinations that {least} or more of {len(people):,} people in {data.name} have.",
            "# Remove what is not plausible, and add what is plausible but rare.",
            *constraint_lines(entry),
            "",
        ]
    )
    if out is None:
        sys.stdout.write(text)
        return ExitCode.DONE
    with atomic_write(out) as part:
        part.write_text(text, encoding="utf-8")
    return ExitCode.DONE


def _joined(parts: list[Matrix]) -> Matrix:
    if not parts or not sum(map(len, parts)):
        raise SchemaError("no people: got a table without rows that fit the schema")
    return np.concatenate(parts)
