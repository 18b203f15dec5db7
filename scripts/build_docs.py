"""Build docs: Markdown pages and references made from the code, to static HTML.

python scripts/build_docs.py SITE
"""

import argparse
import html
import inspect
import re
from pathlib import Path

import typer.main
from markdown_it import MarkdownIt

import feta
from feta.cli.app import app

ROOT = Path(__file__).parents[1]
STYLE = (ROOT / "src" / "feta" / "report" / "report.css").read_text(encoding="utf-8")
PAGE = '<!doctype html>\n<html lang="en"><head><meta charset="utf-8"><meta name="viewport" content="width=device-width, initial-scale=1"><title>{title}</title><style>{style} a {{ color: var(--accent); }}</style></head><body><main><p class="eyebrow"><a href="index.html">FETA</a></p>{body}</main></body></html>\n'


def cli_reference() -> str:
    """List every command with its arguments and options, from the commands themselves."""
    group = typer.main.get_command(app)
    parts = ["# The command line\n"]
    for name, command in group.commands.items():  # type: ignore[attr-defined]  # a group has them
        parts += [f"## feta {name}\n", f"{inspect.cleandoc(command.help or '')}\n"]
        parts += ["| | |", "|---|---|"]
        for one in command.params:
            shown = ", ".join(f"`{option}`" for option in one.opts)
            if one.param_type_name == "argument":
                shown = f"`{one.name.upper()}`"
            told = (getattr(one, "help", "") or "").replace("|", "\\|")
            parts.append(f"| {shown} | {told} |")
        parts.append("")
    return "\n".join(parts)


def api_reference() -> str:
    """List every public name with its signature and docstring."""
    parts = ["# The Python names\n"]
    for name in feta.__all__:
        thing = getattr(feta, name)
        try:
            signature = str(inspect.signature(thing))
        except (TypeError, ValueError):
            signature = ""
        parts += [f"## {name}\n", f"```text\nfeta.{name}{signature}\n```\n"]
        parts.append(f"```text\n{inspect.getdoc(thing) or ''}\n```\n")
    return "\n".join(parts)


def pages() -> dict[str, str]:
    """Give all pages in Markdown, by name."""
    found = {path.stem: path.read_text(encoding="utf-8") for path in (ROOT / "docs").glob("*.md")}
    found["contributing"] = (ROOT / "CONTRIBUTING.md").read_text(encoding="utf-8")
    return found | {"cli": cli_reference(), "api": api_reference()}


def build(site: Path) -> None:
    """Write a page of HTML for each."""
    site.mkdir(parents=True, exist_ok=True)
    markdown = MarkdownIt("commonmark").enable("table")
    for name, text in pages().items():
        title = html.escape(text.splitlines()[0].lstrip("# "))
        body = re.sub(r'href="(\w+)\.md"', r'href="\1.html"', markdown.render(text))
        page = PAGE.format(title=title, style=STYLE, body=body)
        (site / f"{name}.html").write_text(page, encoding="utf-8")


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("site", type=Path)
    build(parser.parse_args().site)
