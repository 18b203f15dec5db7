"""Jinja templates with all texts escaped and invisible characters spelled out."""

import re
from typing import TYPE_CHECKING

from markupsafe import Markup, escape

from feta.io.sanitize import plain, shortened, visible

if TYPE_CHECKING:
    from jinja2 import Environment

# Positions at which a long word may be broken: after an underscore, and every 24 characters.
BREAKS = re.compile(r"(?<=_)|(\S{24})")


def environment(package: str) -> "Environment":
    """Return the environment for a package's templates; all texts in them are untrusted input."""
    # Imported on call: only pages need jinja2.
    from jinja2 import Environment, PackageLoader, StrictUndefined  # noqa: PLC0415

    jinja = Environment(
        loader=PackageLoader(package, ""),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
        finalize=_printable,
    )
    jinja.filters["count"] = "{:,}".format
    return jinja


def short(value: object, most: int) -> Markup:
    """Escape a text, shorten it to `most` characters, and allow breaks in long words."""
    pieces = BREAKS.split(shortened(visible(value), most))
    return Markup("<wbr>").join(escape(piece) for piece in pieces if piece)


def _printable(value: object) -> object:
    """Spell out invisible characters; direction marks would reorder the words of a line."""
    return plain(value) if type(value) is str else value
