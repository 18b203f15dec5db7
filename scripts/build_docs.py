"""Build docs: Markdown pages and references made from the code, to static HTML.

python scripts/build_docs.py SITE
"""

import argparse
import html
import re
from pathlib import Path

from markdown_it import MarkdownIt
from references import anchor, api_reference, cli_reference

ROOT = Path(__file__).parents[1]
STYLE = (ROOT / "src" / "feta" / "report" / "report.css").read_text(encoding="utf-8")
MORE_STYLE = """
a { color: var(--accent); }
nav { display: flex; flex-wrap: wrap; gap: .25rem 1rem; padding-bottom: .75rem; border-bottom: 1px solid var(--line); font-size: .875rem; }
nav a { text-decoration: none; } nav a:first-child { font-weight: 700; }
h1 { margin-top: 1.5rem; } .cli td:first-child { white-space: nowrap; }
"""
PAGE = """<!doctype html>
<html lang="en"><head><meta charset="utf-8"><meta name="viewport" content="width=device-width, initial-scale=1">
<title>{title}</title><style>{style}</style></head>
<body class="{name}"><main><nav>{nav}</nav>
{body}</main></body></html>
"""

# The way around, on every page.
NAV = {
    "index": "FETA", "tutorial": "Tutorial", "models": "Your model", "deploying": "Deploying", "guarantee": "Guarantee", "maths": "Maths", "long_runs": "Long audits",
    "reproduction": "The paper again", "formats": "Files", "cli": "Command line", "api": "Python", "contributing": "Contributing",
}  # fmt: skip


def pages() -> dict[str, str]:
    """Give all pages in Markdown, by name."""
    found = {path.stem: path.read_text(encoding="utf-8") for path in (ROOT / "docs").glob("*.md")}
    found["contributing"] = (ROOT / "CONTRIBUTING.md").read_text(encoding="utf-8")
    return found | {"cli": cli_reference(), "api": api_reference()}


def render(text: str) -> str:
    """Turn Markdown into HTML; headings get names, links to pages lead to the built ones."""
    body = MarkdownIt("commonmark").enable("table").render(text)
    body = re.sub(r'href="(\w+)\.md"', r'href="\1.html"', body)
    return re.sub(r"<h2>(.*?)</h2>", lambda one: f'<h2 id="{anchor(one[1])}">{one[1]}</h2>', body)


def build(site: Path) -> None:
    """Write a page of HTML for each."""
    site.mkdir(parents=True, exist_ok=True)
    nav = "".join(f'<a href="{name}.html">{words}</a>' for name, words in NAV.items())
    for name, text in pages().items():
        title = html.escape(text.splitlines()[0].lstrip("# "))
        page = PAGE.format(
            name=name, title=title, style=STYLE + MORE_STYLE, nav=nav, body=render(text)
        )
        (site / f"{name}.html").write_text(page, encoding="utf-8")


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("site", type=Path)
    build(parser.parse_args().site)
