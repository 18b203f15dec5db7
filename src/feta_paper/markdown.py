"""Markdown: the tables and findings of a run, to be pasted where people write."""

from feta_paper.agreement import agreement
from feta_paper.claims import claims_table
from feta_paper.findings import findings
from feta_paper.measurements import Measurements
from feta_paper.tables import Cell, Table, our_tables, paper_tables


def markdown(measured: Measurements) -> str:
    """Write what the page says, without its pictures, settings and times."""
    found = agreement(measured)
    parts = [
        f"## {measured.title}",
        f"**{found.headline}** {' '.join(found.sentences)}",
        "\n".join(f"- {note}" for note in measured.notes),
        *(_table(one) for one in paper_tables(measured)),
        _table(claims_table(measured)),
        *(_table(one) for one in our_tables(measured)),
        "What the run could not reproduce, and our best explanation:",
        "\n".join(f"- *{one.title}.* {one.words}" for one in findings(measured)),
    ]
    return "\n\n".join(part for part in parts if part) + "\n"


def _table(table: Table) -> str:
    rows = [table.columns, ("---",) * len(table.columns), *(map(_cell, row) for row in table.rows)]
    lines = [f"| {' | '.join(row)} |" for row in rows]
    return f"{table.title}. {table.caption}\n\n" + "\n".join(lines)


def _cell(cell: Cell) -> str:
    return f"{cell.text} {cell.mark}".strip()
