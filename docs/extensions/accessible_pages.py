"""Sphinx extension: corrects, in the finished pages, what screen readers cannot use.

The theme and the writer of pages leave names out, or use lists whose parts do not belong together.
`python -m campaigns.accessibility` checks the result.
"""

import re
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from sphinx.application import Sphinx

# The wide button shows "Search" and a shortcut; another name would hide the shortcut.
SEARCH = re.compile(r'(navbar-persistent--container">\s*<button[^>]*?) aria-label="Search"')

# The arrow that shows the pages below another one has no text.
SUMMARY = re.compile(r"<summary>(?=<span class=\"toctree-toggle\")")

# Parameters on lines of their own: definitions without terms.
PARAMETERS = re.compile(
    r'<dl>\s*((?:<dd><em class="sig-param">(?:(?!<dl>).)*?</dd>\s*)+)</dl>', re.DOTALL
)

# A described parameter without a description.
NO_DEFINITION = re.compile(r"</dt>(?=\s*</dl>)")

# The corner of a table whose first column names its rows.
CORNER = re.compile(r'<th class="head">(<p></p>)?</th>')


def corrected(page: str) -> str:
    """Return a page with names and lists that screen readers understand."""
    page = SEARCH.sub(r"\1", page)
    page = SUMMARY.sub('<summary aria-label="Pages below">', page)
    page = PARAMETERS.sub(_parameter_lines, page)
    page = CORNER.sub("<td></td>", page)
    return NO_DEFINITION.sub("</dt><dd></dd>", page)


def _parameter_lines(match: re.Match[str]) -> str:
    lines = match[1].replace("<dd>", '<span class="parameter">').replace("</dd>", "</span>")
    return f'<span class="parameters">{lines}</span>'


def correct_pages(app: "Sphinx", exception: Exception | None) -> None:
    """Rewrite the pages of a finished build."""
    if exception is None and app.builder.format == "html":
        for path in Path(app.outdir).rglob("*.html"):
            path.write_text(corrected(path.read_text(encoding="utf-8")), encoding="utf-8")


def setup(app: "Sphinx") -> dict[str, bool]:
    """Register the correction at the end of a build."""
    app.connect("build-finished", correct_pages)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
