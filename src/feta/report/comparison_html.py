"""A comparison as one HTML page: no script, no external address."""

from datetime import UTC, datetime
from functools import partial
from importlib.resources import files

from markupsafe import Markup

from feta.comparing.model_comparison import ModelComparison
from feta.report.compared_figures import measure_groups, remarks
from feta.report.comparison_picture import is_drawn, panel
from feta.report.proxy_words import extrapolations
from feta.report.template import environment, short

# Characters of a name.
MAX_CHARACTERS = 120


def comparison_html(comparison: ModelComparison) -> str:
    """Render a comparison; the template escapes every name."""
    jinja = environment("feta.report")
    jinja.filters["short"] = partial(short, most=MAX_CHARACTERS)
    jinja.filters["unbroken"] = _unbroken
    jinja.filters["drawn"] = is_drawn
    jinja.filters["panel"] = partial(panel, comparison)
    return jinja.get_template("comparison.html.j2").render(
        comparison=comparison,
        groups=measure_groups(comparison),
        remarks=remarks(comparison),
        warnings=list(extrapolations(comparison.overlaps)),
        now=datetime.now(UTC).strftime("%Y-%m-%d %H:%M UTC"),
        style=files("feta.report").joinpath("report.css").read_text(encoding="utf-8"),
    )


def _unbroken(figure: str) -> Markup:
    """Allow a line break before the interval of a figure, but not inside it."""
    value, bracket, interval = figure.partition("[")
    return Markup('{}<span class="unbroken">{}</span>').format(value, bracket + interval)
