"""A comparison as one HTML page: no script, no external address."""

from datetime import UTC, datetime
from functools import partial
from importlib.resources import files

from feta.comparing.model_comparison import ModelComparison
from feta.report.compared_figures import measures, remarks
from feta.report.comparison_picture import comparison_svg
from feta.report.proxy_words import extrapolations
from feta.report.template import environment, short

# Characters of a name.
MAX_CHARACTERS = 120


def comparison_html(comparison: ModelComparison) -> str:
    """Render a comparison; the template escapes every name."""
    jinja = environment("feta.report")
    jinja.filters["short"] = partial(short, most=MAX_CHARACTERS)
    return jinja.get_template("comparison.html.j2").render(
        comparison=comparison,
        columns=measures(comparison),
        picture=comparison_svg(comparison),
        remarks=remarks(comparison),
        warnings=list(extrapolations(comparison.overlaps)),
        now=datetime.now(UTC).strftime("%Y-%m-%d %H:%M UTC"),
        style=files("feta.report").joinpath("report.css").read_text(encoding="utf-8"),
    )
