"""Sections that other code adds to a report: sentences and one table, computed from the results."""

from dataclasses import dataclass
from typing import Protocol

from feta.auditing.report_data import ReportData


@dataclass(frozen=True, slots=True)
class SectionContent:
    """Plain texts; each format of a report escapes them."""

    paragraphs: tuple[str, ...] = ()
    header: tuple[str, ...] = ()  # of the table, if there is one
    rows: tuple[tuple[str, ...], ...] = ()


class ReportSection(Protocol):
    """A section of a report."""

    @property
    def title(self) -> str:
        """The heading."""
        ...

    def content(self, report: ReportData) -> SectionContent | None:
        """Return what to show; None to leave the section out."""
        ...


def shown_sections(
    report: ReportData, sections: "tuple[ReportSection, ...]"
) -> list[tuple[str, SectionContent]]:
    """Return the title and the content of each section that has something to show."""
    contents = [(section.title, section.content(report)) for section in sections]
    return [(title, content) for title, content in contents if content is not None]
