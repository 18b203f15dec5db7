"""A report as a short Markdown page for pull requests; names and values are never markup."""

import re
from collections.abc import Iterable, Iterator

from feta.auditing.report_data import ReportData
from feta.auditing.section import ReportSection, shown_sections
from feta.auditing.top_pairs import PairView
from feta.io.bad_rows import listed_kinds
from feta.io.sanitize import plain, shortened, visible
from feta.report.proxy_words import proxy_lines
from feta.report.words import (
    caveats,
    changes,
    compared,
    early_end,
    figures,
    headline,
    notes,
    source_notes,
    words_for,
)

# Characters of Markdown, embedded HTML, mathematics, mentions, issue numbers and bare links.
SPECIAL = re.compile(r"[\\`*_{}\[\]<>&|~$@#]|:(?=//)|(?<=www)\.", re.IGNORECASE)

MAX_CHARACTERS = 120


def md(value: object) -> str:
    """Return a text that is rendered literally, in a paragraph or in a cell of a table.

    A character reference means the same inside and outside a table, and no renderer takes it
    for markup, a link or a mention.
    """
    return _escape(shortened(visible(value), MAX_CHARACTERS))


def sentence(text: str) -> str:
    """Escape a sentence of a report without shortening it."""
    return _escape(plain(text))


def _escape(text: str) -> str:
    return SPECIAL.sub(lambda match: f"&#{ord(match.group())};", text)


def markdown(report: ReportData, sections: tuple[ReportSection, ...] = ()) -> str:
    """Render a report, with more sections at its end."""
    return "\n".join([*_lines(report), *_section_lines(report, sections)]) + "\n"


def _section_lines(report: ReportData, sections: tuple[ReportSection, ...]) -> Iterator[str]:
    for title, content in shown_sections(report, sections):
        yield f"\n## {md(title)}\n"
        yield from (f"{sentence(paragraph)}\n" for paragraph in content.paragraphs)
        if content.header:
            yield _table_row(content.header)
            yield _table_row(["---"] * len(content.header), raw=True)
            yield from (_table_row(row) for row in content.rows)


def _lines(report: ReportData) -> Iterator[str]:
    model, summary = report.model, report.summary
    words = words_for(model, report.source.unit)
    yield f"# Fairness audit of {md(report.source.model_file or 'a model')}\n"
    if report.partial:
        yield f"**{sentence(early_end(report))}**\n"
    answer = headline(summary, words, partial=report.partial)
    yield f"**{md(answer.strong.strip())}** {md(answer.rest.strip())}\n"
    if report.pairs:
        yield _table_row(["row", words.changes, "decision", words.margin])
        yield _table_row(["---"] * 4, raw=True)
        for view in report.pairs:
            yield _table_row(_pair_cells(report, view))
        yield ""
    lines = [
        *figures(summary, words),
        *notes(summary, report.source.runtime),
        compared(report.source),
        *caveats(model),
        *source_notes(report.source.notes),
    ]
    yield from (f"- {sentence(line)}" for line in lines)
    if report.proxies is not None:
        yield from (f"- {sentence(line)}" for line in proxy_lines(report.proxies))
    yield from (f"- Not read: {sentence(line)}" for line in listed_kinds(report.bad_rows))
    yield from (f"- Doubtful: {sentence(doubt)}" for doubt in summary.doubts)
    yield f"\nModel `{model.fingerprint}`, FETA {md(report.versions['FETA'])}."


def _table_row(cells: Iterable[str], *, raw: bool = False) -> str:
    return "| " + " | ".join(cell if raw else md(cell) for cell in cells) + " |"


def _pair_cells(report: ReportData, view: PairView) -> list[str]:
    model, pair = report.model, view.pair
    name = f" ({view.name})" if view.name else ""
    first, second = (f"{number:.4g}" for number in pair.margins(model.rule).tolist())
    return [
        f"{view.finding.row + 1}{name}",
        changes(view, arrow="→"),
        " → ".join(model.outcomes[index] for index in pair.decisions),
        f"{first} → {second}",
    ]
