"""Sphinx extension: the directive `command-line`, a reference of every command and option.

The text comes from the commands themselves, so it cannot differ from `feta COMMAND --help`.
"""

import inspect
import re
from collections.abc import Iterator
from typing import Any

import typer.main
from docutils import nodes
from sphinx.application import Sphinx
from sphinx.util.docutils import SphinxDirective

from feta.cli.app import app as feta_app

MARKUP = re.compile(r"([\\`*<>])")


class CommandLine(SphinxDirective):
    """One section per command, with its usage, arguments and options."""

    def run(self) -> list[nodes.Node]:
        """Return the sections of all commands."""
        text = "\n".join(command_line_reference())
        return self.parse_text_to_nodes(text, allow_section_headings=True)


def command_line_reference() -> Iterator[str]:
    """Yield the lines of the reference in Markdown."""
    group = typer.main.get_group(feta_app)
    context = group.make_context("feta", [], resilient_parsing=True)
    yield from _section("feta", group)
    for name in group.list_commands(context):
        command = group.get_command(context, name)
        yield from _section(f"feta {name}", command)
        for part, inner in getattr(command, "commands", {}).items():  # feta keys new
            yield from _section(f"feta {name} {part}", inner)


def _section(title: str, command: Any) -> Iterator[str]:  # noqa: ANN401 - typer has no public type
    context = command.make_context(title, [], resilient_parsing=True)
    usage = " ".join([title, *command.collect_usage_pieces(context)])
    yield from (f"## {title}", "", _escaped(inspect.cleandoc(command.help or "")), "")
    yield from ("```text", usage, "```", "", f"```{{program}} {title}", "```", "")
    for parameter in command.get_params(context):
        record = parameter.get_help_record(context)
        if record is not None:  # None: a hidden option
            signature, text = record
            yield from (f"```{{option}} {signature}", _escaped(text), "```", "")


def _escaped(text: str) -> str:
    return MARKUP.sub(r"\\\1", text)


def setup(app: Sphinx) -> dict[str, bool]:
    """Register the directive."""
    app.add_directive("command-line", CommandLine)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
