"""The answer about everybody as one HTML page: no script, no external address."""

from dataclasses import dataclass
from datetime import UTC, datetime
from functools import partial
from importlib.metadata import version
from importlib.resources import files

from feta.everybody.regions import Region
from feta.everybody.result import Everybody, down, up
from feta.report.everybody_picture import proved_picture, sampled_picture
from feta.report.template import environment, short
from feta.report.words import cell

# Characters of a name or value.
MAX_CHARACTERS = 120


@dataclass(frozen=True, slots=True)
class TreeLine:
    """One line of the tree of regions: a condition, and the people of a leaf."""

    depth: int
    condition: str
    leaf: Region | None


@dataclass(frozen=True, slots=True)
class PairLines:
    """The two people of a counterexample: what differs, and what both have in common."""

    changed: tuple[tuple[str, str, str], ...]
    shared: tuple[tuple[str, str], ...]
    outcomes: tuple[str, str]


def everybody_html(answer: Everybody, *, name: str = "") -> str:
    """Render an answer; the template escapes every name and value."""
    jinja = environment("feta.report")
    jinja.filters |= {
        "short": partial(short, most=MAX_CHARACTERS),
        "long": partial(short, most=5 * MAX_CHARACTERS),
        "down": down,
        "up": up,
    }
    return jinja.get_template("everybody.html.j2").render(
        answer=answer,
        model=answer.model,
        name=name,
        headline=headline(answer),
        verdict=verdict(answer),
        pair=pair_lines(answer),
        tree=tree_lines(answer.leaves),
        proved=proved_picture(answer.history),
        sampled=sampled_picture(answer.history),
        version=version("feta-fair"),
        now=datetime.now(UTC).strftime("%Y-%m-%d %H:%M UTC"),
        style=files("feta.report").joinpath("report.css").read_text(encoding="utf-8"),
    )


def verdict(answer: Everybody) -> str:
    """Return the class of the answer, as in the report of an audit."""
    if answer.somebody or answer.unfair > 0:
        return "unfair"
    return "fair" if answer.nobody else "undecided"


def headline(answer: Everybody) -> str:
    """Answer the question in one sentence, which names the population."""
    people, estimate = answer.population, answer.estimate
    if answer.nobody:
        return f"Nobody among {people} is treated unfairly. This is proved."
    if not (answer.somebody or answer.unfair > 0):
        return f"Not known: among {people}, nobody who is treated unfairly was found."
    if answer.undecided == 0:
        return f"Of {people}, {down(answer.unfair)} are treated unfairly. This is proved."
    if answer.draws.people:
        confidence = f"{100 * estimate.confidence:g} % confidence"
        share = f"between {down(estimate.low)} and {up(estimate.high)} ({confidence})"
        return f"Of {people}, {share} are treated unfairly."
    return f"Of {people}, somebody is treated unfairly."


def pair_lines(answer: Everybody) -> PairLines | None:
    """Return the counterexample in raw columns."""
    model, pair = answer.model, answer.counterexample
    if pair is None:
        return None
    person, other = model.space.decode(pair.person), model.space.decode(pair.counterpart)
    if pair.decisions:
        outcomes = model.outcomes[pair.decisions[0]], model.outcomes[pair.decisions[1]]
    else:
        outcomes = f"{float(pair.scores[0]):.6g}", f"{float(pair.scores[1]):.6g}"
    changed = {key for key, value in person.items() if other[key] != value}
    return PairLines(
        tuple((key, cell(person[key]), cell(other[key])) for key in person if key in changed),
        tuple((key, cell(value)) for key, value in person.items() if key not in changed),
        outcomes,
    )


def tree_lines(leaves: tuple[Region, ...]) -> list[TreeLine]:
    """Return the tree as indented lines; conditions that leaves have in common occur once."""
    lines: list[TreeLine] = []
    before: tuple[str, ...] = ()
    for leaf in leaves:
        same = 0
        while leaf.path[: same + 1] == before[: same + 1] and same < len(before):
            same += 1
        for depth in range(same, len(leaf.path)):
            last = leaf if depth == len(leaf.path) - 1 else None
            lines.append(TreeLine(depth, leaf.path[depth], last))
        before = leaf.path
    return lines
