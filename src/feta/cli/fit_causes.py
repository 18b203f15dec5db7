"""`feta causes fit`: the equations of a structural causal model, as TOML to edit."""

import sys
from pathlib import Path

import numpy as np

from feta.cli.exit_code import ExitCode
from feta.cli.output_path import check_file
from feta.cli.progress import show_progress
from feta.errors import SchemaError
from feta.io.regular_file import atomic_write
from feta.io.relation_section import equation_lines
from feta.io.sanitize import plain
from feta.io.schema import read_schema
from feta.readers.load import PeopleFile, open_table
from feta.relation.consequences import Consequences
from feta.relation.fitting import fit_equations, read_graph, share_left_out
from feta.space.attribute import Derived


def run_fit(data: Path, schema_path: Path, graph: str, out: Path | None) -> ExitCode:
    """Fit the equations of a graph, and print them or write them to a file."""
    if out is not None:
        check_file(out, [data, schema_path])
    schema = read_schema(schema_path)
    parents = read_graph(graph, schema.space)
    table, formats = open_table(schema.space, schema.table, PeopleFile(data), show_progress)
    assert table is not None  # a file was given
    needed = [a.name for a in schema.space.attributes if not isinstance(a, Derived)]
    table.require(needed)
    parts = [
        chunk.encode_good(schema.space)[0] for chunk in table.chunks(set(needed), typed=formats)
    ]
    people = np.concatenate(parts) if parts else np.zeros((0, schema.space.width))
    if not len(people):
        raise SchemaError("no people: got a table without rows that fit the schema")
    fitted = fit_equations(schema.space, people, parents)
    relation = Consequences.of(schema.space, *(one.entry for one in fitted))
    left_out = share_left_out(relation, people)
    lines = [
        f"# Fitted to {len(people):,} people in {plain(data.name)}: {plain(graph)}",
        "# A fit describes the table. That the arrows are causes, and that no common cause is",
        "# missing, is an assumption. Effects are compared with the first value of a category.",
        f"# {left_out:.1%} of the counterparts would leave their domains, and are left out.",
    ]
    for one in fitted:
        lines += ["", *(f"# {plain(line)}" for line in one.diagnostics), *equation_lines(one.entry)]
    text = "\n".join([*lines, ""])
    if out is None:
        sys.stdout.write(text)
        return ExitCode.DONE
    with atomic_write(out) as part:
        part.write_text(text, encoding="utf-8")
    return ExitCode.DONE
