"""Sphinx configuration of the documentation site.

The build uses no network, and the pages load nothing from outside: they work from `file://`.
"""

import re
import shutil
import sys
from importlib import metadata
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from sphinx.application import Sphinx

HERE = Path(__file__).parent
sys.path.insert(0, str(HERE / "extensions"))

# Stubs of names that left the public API would be pages that no other page links to.
shutil.rmtree(HERE / "reference" / "generated", ignore_errors=True)

project = "FETA"
release = metadata.version("feta-fair")
extensions = [
    "myst_parser",
    "sphinx.ext.autodoc",
    "sphinx.ext.autosummary",
    "numpydoc",
    "command_line",
    "accessible_pages",
]
templates_path = ["_templates"]
default_role = "literal"  # docstrings write code in single backquotes, as Markdown does
smartquotes = False  # `--data` is an option, not a dash

myst_heading_anchors = 3

autosummary_generate = True
# The file names of `audit` and `Audit` would be one where the case of letters does not count.
autosummary_filename_map = {
    f"feta.{name}": f"feta.{name}-function" for name in ("audit", "spread", "tally")
}
# scikit-learn adds the first three to estimators, and their docstrings link to its site; the
# template of classes excludes its inherited methods. The others are constants of the estimators.
EXCLUDED = (
    "set_fit_request, set_predict_request, set_score_request, kind, example, promise, takes_rows"
)
autodoc_default_options = {
    "members": True,
    "undoc-members": True,  # the fields of dataclasses
    "member-order": "bysource",
    "exclude-members": EXCLUDED,
}
autodoc_typehints_format = "short"
autodoc_preserve_defaults = True
python_use_unqualified_type_names = True
python_maximum_signature_line_length = 88
numpydoc_show_class_members = False  # autodoc lists them, with their docstrings
numpydoc_class_members_toctree = False

html_theme = "pydata_sphinx_theme"
html_title = "FETA"
html_static_path = ["_static"]
html_css_files = ["site.css"]
html_copy_source = False
html_show_search_summary = False  # the script would fetch pages, which browsers refuse on file://
html_show_sourcelink = False
html_show_copyright = False
html_theme_options = {
    "logo": {"text": "FETA"},
    "navbar_end": ["theme-switcher"],
    "secondary_sidebar_items": ["page-toc"],
    "footer_start": [],
    "footer_end": ["theme-version"],
    "show_prev_next": True,
}
html_sidebars: dict[str, list[str]] = {"index": [], "contributing": []}

# The full types of numpy fill lines, and say no more than these words.
SHORT_TYPES = {
    re.compile(r"~numpy\.ndarray\[.*?~numpy\.dtype\[[\w.~]+\]\]"): "array",
    re.compile(r"~[\w.]+\._Buffer \|.*?_NestedSequence\[complex \| bytes \| str\]"): "ArrayLike",
}


def short_types(text: str | None) -> str | None:
    """Replace the types of numpy in a signature by words."""
    for pattern, word in SHORT_TYPES.items():
        text = text and pattern.sub(word, text)
    return text


def shorten(*event: object) -> tuple[str | None, str | None]:
    """Shorten the last two arguments of the event: the signature and what it returns."""
    signature, returns = event[-2:]
    assert isinstance(signature, str | None)
    assert isinstance(returns, str | None)
    return short_types(signature), short_types(returns)


def setup(app: "Sphinx") -> None:
    """Register the hook that shortens signatures."""
    app.connect("autodoc-process-signature", shorten)
