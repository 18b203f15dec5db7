"""Template: how pages are made from templates: everything escaped, what cannot be seen spelled out."""

import re
from typing import TYPE_CHECKING

from markupsafe import Markup, escape

from feta.io.sanitize import plain, shortened, visible

if TYPE_CHECKING:
    from jinja2 import Environment

LONG_RUN = re.compile(r"(?<=_)|(\S{24})")  # where a long word may be broken


def environment(package: str) -> "Environment":
    """Open a package's templates; every text that comes into them is a stranger's."""
    from jinja2 import Environment, PackageLoader, StrictUndefined  # noqa: PLC0415 - only pages need it

    made = Environment(
        loader=PackageLoader(package, ""),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
        finalize=_harmless,
    )
    made.filters["count"] = "{:,}".format
    return made


def short(value: object, most: int) -> Markup:
    """Escape a text, shorten what is longer, and say where a long word may be broken."""
    pieces = LONG_RUN.split(shortened(visible(value), most))
    return Markup("<wbr>").join(escape(piece) for piece in pieces if piece)


def _harmless(value: object) -> object:
    """Spell out what cannot be seen; direction marks would turn a line's words around."""
    return plain(value) if type(value) is str else value
