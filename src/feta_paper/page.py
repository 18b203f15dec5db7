"""Page: a run of the protocol as one file to read: no script, no outside address, light and dark."""

from functools import cache, partial
from importlib.resources import files
from pathlib import Path
from typing import TYPE_CHECKING

from feta.io.part_file import written_whole
from feta.report.template import environment, short
from feta_paper.agreement import agreement
from feta_paper.claims import claims_table
from feta_paper.figures import figures_of
from feta_paper.findings import findings
from feta_paper.measurements import Measurements
from feta_paper.quantities import found, is_another
from feta_paper.tables import our_tables, paper_column, paper_tables, step_title
from feta_paper.wording import time_with_spread

if TYPE_CHECKING:
    from jinja2 import Template

NAME = "reproduction.html"
LONGEST = 2000  # characters of a note or setting that somebody still reads


def write_page(measured: Measurements, folder: Path) -> Path:
    """Write the page into a folder; at once or not at all."""
    target = Path(folder) / NAME
    with written_whole(target) as part:
        part.write_text(html(measured), encoding="utf-8")
    return target


def html(measured: Measurements) -> str:
    """Render the page; every name, note and setting is escaped by the template."""
    return _template().render(
        measured=measured,
        agreement=agreement(measured),
        another=is_another(measured),
        paper_column=paper_column(measured),
        claims=claims_table(measured),
        paper_tables=paper_tables(measured),
        our_tables=our_tables(measured),
        figures=figures_of(measured),
        findings=findings(measured),
        spent=_spent(measured),
        style=files("feta.report").joinpath("report.css").read_text(encoding="utf-8")
        + files("feta_paper").joinpath("reproduction.css").read_text(encoding="utf-8"),
    )


def _spent(measured: Measurements) -> list[tuple[str, str]]:
    """Give the time each step took, a fold, and the whole run."""
    steps = [key for key in measured.times if key.startswith("arm.")]
    named = [(key, key.removeprefix("arm.").removesuffix(".seconds")) for key in steps]
    spent = [(step_title(name), time_with_spread(one)) for key, name in named if (one := found(measured, key))]  # fmt: skip
    whole = found(measured, "total.seconds")
    return [*spent, ("the whole run", time_with_spread(whole))] if whole else spent


@cache
def _template() -> "Template":
    made = environment("feta_paper")
    made.filters |= {"short": partial(short, most=LONGEST)}
    return made.get_template("reproduction.html.j2")
