"""The answer about everybody as a section of an audit's report."""

from dataclasses import dataclass

from feta.auditing.report_data import ReportData
from feta.auditing.section import SectionContent
from feta.everybody.result import Everybody, down, up

HEADER = ("condition", "of all people", "unfair among these", "of all unfair")

MAX_REGIONS = 5


@dataclass(frozen=True, slots=True)
class EverybodySection:
    """What is known about everybody whom the schema allows, next to the people of the table."""

    answer: Everybody

    @property
    def title(self) -> str:
        """The heading."""
        return "Everybody"

    def content(self, report: ReportData) -> SectionContent:
        """Return the sentences, and the regions as a table."""
        del report
        regions = self.answer.regions[:MAX_REGIONS]
        rows = tuple(
            (
                region.where,
                f"{100 * region.share_of_people:.2f} %",
                f"{down(region.share_unfair.low)} to {up(region.share_unfair.high)}",
                f"{100 * region.share_of_unfair:.0f} %",
            )
            for region in regions
        )
        audited = (
            "The audit above is about the people of the table. This section is about everybody "
            f"in {self.answer.population}."
        )
        paragraphs = [audited, *self.answer.sentences()]
        if rows:
            paragraphs.append(
                "Where unfairness is frequent (sampled; each condition can be given to "
                "feta prove --where):"
            )
        return SectionContent(tuple(paragraphs), HEADER if rows else (), rows)
