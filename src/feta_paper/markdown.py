"""The tables and findings of a run in Markdown."""

from feta_paper.agreement import agreement
from feta_paper.claims import claims_table
from feta_paper.findings import findings
from feta_paper.measurements import Measurements
from feta_paper.tables import Cell, Table, our_tables, paper_tables


def markdown(measured: Measurements) -> str:
    """Write the content of the page without charts, settings and times."""
    top = agreement(measured)
    parts = [
        f"## {measured.title}",
        f"**{top.headline}** {' '.join(top.sentences)}",
        "\n".join(f"- {note}" for note in measured.notes),
        *(_table(table) for table in paper_tables(measured)),
        _table(claims_table(measured)),
        *(_table(table) for table in our_tables(measured)),
        "What the run did not reproduce, with the most likely explanation:",
        "\n".join(
            f"- *{finding.title}{_mark_before(finding.words)}* {finding.words}"
            for finding in findings(measured)
        ),
    ]
    return "\n\n".join(part for part in parts if part) + "\n"


def _table(table: Table) -> str:
    rows = [table.columns, ("---",) * len(table.columns), *(map(_cell, row) for row in table.rows)]
    lines = [f"| {' | '.join(row)} |" for row in rows]
    return f"{table.title}{_mark_before(table.caption)} {table.caption}\n\n" + "\n".join(lines)


def _mark_before(text: str) -> str:
    """Return the mark between a title and a text: a colon if the text continues the title."""
    return ":" if text[:1].islower() else "."


def _cell(cell: Cell) -> str:
    return f"{cell.text} {cell.mark}".strip()
