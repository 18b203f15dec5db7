"""The page of a run: one HTML file without scripts or external addresses, light and dark."""

from functools import cache, partial
from importlib.resources import files
from pathlib import Path
from typing import TYPE_CHECKING

from feta.io.regular_file import atomic_write
from feta.report.template import environment, short
from feta_paper.agreement import agreement
from feta_paper.claims import claims_table
from feta_paper.figures import figures_of
from feta_paper.findings import findings
from feta_paper.labels import step_title
from feta_paper.measurements import Measurements
from feta_paper.quantities import other_dataset, summary_of
from feta_paper.tables import our_tables, paper_column, paper_tables
from feta_paper.wording import time_with_spread

if TYPE_CHECKING:
    from jinja2 import Template

NAME = "reproduction.html"
MAX_TEXT = 2000  # characters of a note or setting


def write_page(measured: Measurements, folder: Path) -> Path:
    """Write the page into a folder, atomically."""
    target = Path(folder) / NAME
    with atomic_write(target) as part:
        part.write_text(html(measured), encoding="utf-8")
    return target


def html(measured: Measurements) -> str:
    """Render the page; the template escapes every name, note and setting."""
    return _template().render(
        measured=measured,
        agreement=agreement(measured),
        other_dataset=other_dataset(measured),
        paper_column=paper_column(measured),
        claims=claims_table(measured),
        paper_tables=paper_tables(measured),
        our_tables=our_tables(measured),
        figures=figures_of(measured),
        findings=findings(measured),
        step_times=_step_times(measured),
        style=files("feta.report").joinpath("report.css").read_text(encoding="utf-8")
        + files("feta_paper").joinpath("reproduction.css").read_text(encoding="utf-8"),
    )


def _step_times(measured: Measurements) -> list[tuple[str, str]]:
    """Return the time of each step per fold, and that of the whole run last."""
    times = []
    for key in measured.times:
        summary = summary_of(measured, key)
        if key.startswith("arm.") and summary:
            name = key.removeprefix("arm.").removesuffix(".seconds")
            times.append((step_title(name), time_with_spread(summary)))
    total = summary_of(measured, "total.seconds")
    return [*times, ("the whole run", time_with_spread(total))] if total else times


@cache
def _template() -> "Template":
    templates = environment("feta_paper")
    templates.filters |= {"short": partial(short, most=MAX_TEXT)}
    return templates.get_template("reproduction.html.j2")
