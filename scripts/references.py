"""References: the command line's and Python's, in Markdown, from the code itself."""

import inspect
import math
import re
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Literal, Protocol, get_args, get_origin, get_type_hints

import typer.main

import feta
from feta.cli.app import app

SECTION = re.compile(r"^(\w+)\n-{3,}\n", re.MULTILINE)
MODULES = re.compile(r"\b(?:[a-z_]+\.)+(?=[A-Za-z_])")
ARRAY = re.compile(r"ndarray\[.*?dtype\[\w+\]\]")
ARRAY_LIKE = re.compile(r"_Buffer, .*?_NestedSequence\[complex \| bytes \| str\]")
UNION = re.compile(r"Union\[([^\[\]]*)\]")
OPTIONAL = re.compile(r"Optional\[(\w+\[[^\[\]]*\]|\w+)\]")
LONG_LINE = 88


# What a parameter takes, in words.
KINDS = {Path: "path", str: "text", int: "whole number", float: "number", bool: ""}


class Parameter(Protocol):
    """What typer tells about an argument or option."""

    name: str
    opts: list[str]
    param_type_name: str
    required: bool
    default: object
    help: str | None


def cli_reference() -> str:
    """List every command with its arguments and options."""
    commands = typer.main.get_command(app).commands  # type: ignore[attr-defined]  # a group has them
    hints = {one.callback.__name__: get_type_hints(one.callback) for one in app.registered_commands if one.callback}  # fmt: skip
    parts = ["# The command line\n", _contents([f"feta {name}" for name in commands])]
    for name, command in commands.items():
        parts += [f"## feta {name}\n", f"{inspect.cleandoc(command.help or '')}\n"]
        if command.params:
            kinds = hints[command.callback.__name__]
            parts += ["| | | |", "|---|---|---|"]
            parts += [_parameter(one, kinds[one.name]) for one in command.params]
        parts.append("")
    return "\n".join(parts)


def _parameter(one: Parameter, hint: object) -> str:
    """Say a parameter's name, what it is for, and what it takes."""
    shown = ", ".join(f"`{option}`" for option in one.opts)
    if one.param_type_name == "argument":
        shown = f"`{one.name.upper()}`"
    takes = [_kind(hint)]
    if one.required:
        takes.append("required")
    elif one.default is not None and one.default is not False and one.default != "":
        takes.append(f"`{one.default}` unless given")
    return f"| {shown} | {_cell(one.help or '')} | {', '.join(filter(None, takes))} |"


def _kind(hint: object) -> str:
    if get_origin(hint) is Literal:
        return " or ".join(f"`{one}`" for one in get_args(hint))
    options = [one for one in get_args(hint) or (hint,) if one is not type(None)]
    return " or ".join(KINDS.get(one, str(one)) for one in options)


def api_reference() -> str:
    """List every public name: signature, docstring, and what a class offers."""
    names = sorted(feta.__all__, key=str.lower)
    parts = ["# The Python names\n", "All are taken from `feta`.\n", _contents(names)]
    for name in names:
        thing = getattr(feta, name)
        parts += [f"## {name}\n", *_signature(name, thing), *_told(inspect.getdoc(thing) or "")]
        members = list(_members(thing)) if inspect.isclass(thing) else []
        if members:
            parts += ["| | |", "|---|---|", *members, ""]
    return "\n".join(parts)


def _contents(names: list[str]) -> str:
    return " · ".join(f"[{name}](#{anchor(name)})" for name in names) + "\n"


def anchor(heading: str) -> str:
    """Name a heading for links."""
    return re.sub(r"\W+", "-", heading).strip("-")


class _Shown:
    """An annotation that is written as people say it."""

    def __init__(self, text: str) -> None:
        self.text = text

    def __repr__(self) -> str:
        return self.text


def _plain_type(annotation: object) -> _Shown:
    text = annotation if isinstance(annotation, str) else inspect.formatannotation(annotation)
    text = ARRAY_LIKE.sub("array-like", ARRAY.sub("array", MODULES.sub("", text)))
    text = UNION.sub(lambda one: one[1].replace(", ", " | ").replace("NoneType", "None"), text)
    return _Shown(OPTIONAL.sub(r"\1 | None", text).replace("'", '"'))


def _written(thing: Callable[..., object], *, most: float = LONG_LINE, drop: int = 0) -> str:
    """Write a signature without module names, a parameter a line where it is long."""
    found = inspect.signature(thing)
    parameters = [
        one if one.annotation is one.empty else one.replace(annotation=_plain_type(one.annotation))
        for one in list(found.parameters.values())[drop:]
    ]
    back = found.return_annotation
    gives = "" if back in (found.empty, None, "None") else f" -> {_plain_type(back)}"
    shown = str(inspect.Signature(parameters))
    if len(shown) > most:
        lines = [f"    {one}," for one in _each(parameters)]
        shown = "\n".join(["(", *lines, ")"])
    return shown + gives


def _each(parameters: list[inspect.Parameter]) -> Iterator[str]:
    starred = False
    for one in parameters:
        if one.kind is one.KEYWORD_ONLY and not starred:
            starred = True
            yield "*"
        yield str(one)


def _signature(name: str, thing: object) -> list[str]:
    if not callable(thing):
        return []
    try:
        shown = _written(thing)
    except (TypeError, ValueError):  # a built-in, a protocol
        return []
    return [f"```text\nfeta.{name}{shown}\n```\n"]


def _told(docstring: str) -> Iterator[str]:
    """Turn a docstring's sections into prose, tables and examples."""
    prose, *sections = SECTION.split(docstring)
    yield f"{prose.strip()}\n"
    for heading, body in zip(sections[::2], sections[1::2], strict=True):
        if heading == "Examples":
            yield f"```text\n{body.strip()}\n```\n"
            continue
        yield f"| {heading.lower()} | |\n|---|---|"
        for item in re.split(r"\n(?=\S)", body.strip()):
            name, _, what = item.partition("\n")
            yield f"| `{name}` | {_cell(what)} |"
        yield ""


def _cell(text: str) -> str:
    return " ".join(text.split()).replace("|", "\\|")


def _members(cls: type) -> Iterator[str]:
    """Give the methods and properties that a class of ours says something about."""
    for name, one in inspect.getmembers(cls):
        held = inspect.getattr_static(cls, name)
        ours = any(
            name in vars(base) and base.__module__.startswith("feta") for base in cls.__mro__
        )
        said = inspect.getdoc(one) if ours else None
        if name.startswith("_") or not said:
            continue
        first = _cell(said.split("\n\n")[0])
        if isinstance(held, property):
            yield f"| `.{name}` | {first} |"
        elif callable(one) and one.__module__.startswith("feta"):  # scikit-learn adds its own
            shown = _written(one, most=math.inf, drop=int(inspect.isfunction(held)))
            yield f"| `.{name}{_cell(shown)}` | {first} |"
