"""Markdown: a report in a screenful, for a pull request; names and values are never markup."""

import re
from collections.abc import Iterable, Iterator

from feta.auditing.top_pairs import PairView
from feta.io.bad_rows import listed_kinds
from feta.io.sanitize import plain, shortened, visible
from feta.report.report import Report
from feta.report.words import (
    caveats,
    cell,
    compared,
    figures,
    headline,
    notes,
    source_notes,
    words_for,
)

# What Markdown, HTML inside of it, mathematics, mentions, issue numbers and bare links are made of.
SPECIAL = re.compile(r"[\\`*_{}\[\]<>&|~$@#]|:(?=//)|(?<=www)\.", re.IGNORECASE)


def md(value: object) -> str:
    """Make a text that shows as it is, in a paragraph or in a table's cell.

    A character reference means the same inside and outside of a table, and no renderer takes one
    for markup, a link or a mention.
    """
    text = shortened(visible(value), 120)
    return SPECIAL.sub(lambda found: f"&#{ord(found.group())};", text)


def markdown(report: Report) -> str:
    """Render a report."""
    return "\n".join(_lines(report)) + "\n"


def _lines(report: Report) -> Iterator[str]:
    model, summary = report.model, report.summary
    words = words_for(model, report.source.unit)
    yield f"# Fairness audit of {md(report.source.model_file or 'a model')}\n"
    if report.partial:
        yield "**Interrupted: these are partial results.**\n"
    answer = headline(summary, words, partial=report.partial)
    yield f"**{md(answer.strong.strip())}** {md(answer.rest.strip())}\n"
    if report.pairs:
        yield _row(["row", words.same, "decision", words.lead])
        yield _row(["---"] * 4, raw=True)
        for shown in report.pairs:
            yield _row(_pair(report, shown))
        yield ""
    told = [
        *figures(summary, words),
        *notes(summary, report.source.runtime),
        compared(report.source),
        *caveats(model),
        *source_notes(report.source.notes),
    ]
    yield from (f"- {sentence(line)}" for line in told)
    yield from (f"- Not read: {sentence(line)}" for line in listed_kinds(report.bad_rows))
    yield from (f"- Doubtful: {sentence(doubt)}" for doubt in summary.doubts)
    yield f"\nModel `{model.fingerprint}`, FETA {md(report.versions['FETA'])}."


def sentence(text: str) -> str:
    """Do the same for a sentence of ours, which is not shortened."""
    return SPECIAL.sub(lambda found: f"&#{ord(found.group())};", plain(text))


def _row(cells: Iterable[str], *, raw: bool = False) -> str:
    return "| " + " | ".join(cell if raw else md(cell) for cell in cells) + " |"


def _pair(report: Report, shown: PairView) -> list[str]:
    model, pair = report.model, shown.pair
    before, after = model.space.decode(pair.person), model.space.decode(pair.counterpart)
    changes = [
        f"{one} {cell(before[one])} → {cell(after[one])}"
        for one in before
        if before[one] != after[one]
    ]
    name = f" ({shown.name})" if shown.name else ""
    one, other = (f"{number:.4g}" for number in pair.margins(model.rule).tolist())
    return [
        f"{shown.finding.row + 1}{name}",
        ", ".join(changes),
        " → ".join(model.outcomes[index] for index in pair.decisions),
        f"{one} → {other}",
    ]
