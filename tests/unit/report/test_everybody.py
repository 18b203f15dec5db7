"""The page about everybody: its headline, its pictures, the tree, and the section of a report."""

import re
from dataclasses import replace
from fractions import Fraction
from pathlib import Path

import pandas as pd
import pytest

import feta
from feta.everybody.regions import Region
from feta.everybody.result import Draws, Everybody, Moment
from feta.everybody.sequence import interval_of
from feta.report.everybody_html import headline, tree_lines, verdict
from feta.report.everybody_picture import MAX_POINTS, proved_picture, sampled_picture
from feta.report.everybody_section import EverybodySection

SPACE = feta.FeatureSpace(
    (feta.Integer("age", 18, 27, sensitive=True), feta.Integer("<b>income", 0, 99))
)
MODEL = feta.Model(
    SPACE,
    feta.Network.from_layers([([[1.0, 1.0]], [-50.5])]),
    threshold=0.0,
    outcomes=("<no>", "yes"),
)
ANSWER = feta.prove(MODEL, budget=feta.Budget(evaluations=4000))
ESTIMATE = interval_of(1000, 0, 0, alpha=0.05)


def changed(**values: object) -> Everybody:
    """Return an answer in which nobody unfair is known, with other values."""
    nothing = replace(
        ANSWER,
        fair=Fraction(0),
        unfair=Fraction(0),
        counterexample=None,
        draws=Draws(1000, 0, 0),
        estimate=ESTIMATE,
        leaves=(),
    )
    return replace(nothing, **values)  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("answer", "kind", "words"),
    [
        (changed(fair=Fraction(1)), "fair", "Nobody among all people .* This is proved.$"),
        (changed(fair=Fraction(1, 2)), "undecided", "^Not known: among all people .* was found.$"),
        (changed(unfair=Fraction(1, 3)), "unfair", "between .* are treated unfairly.$"),
        (changed(unfair=Fraction(1, 3), draws=Draws()), "unfair", "somebody is treated unfairly"),
        (ANSWER, "unfair", "9 % are treated unfairly. This is proved.$"),
    ],
)
def test_the_headline_claims_what_is_known(answer: Everybody, kind: str, words: str) -> None:
    assert verdict(answer) == kind
    assert re.search(words, headline(answer))


def test_the_page_escapes_every_name(tmp_path: Path) -> None:
    ANSWER.to_html(tmp_path / "page.html", name="<i>model")
    page = (tmp_path / "page.html").read_text()
    assert "<b>income" not in page
    assert "<no>" not in page
    assert "<i>model" not in page
    assert "&lt;no&gt;" in page


def test_the_tree_repeats_no_condition() -> None:
    share = interval_of(10, 1, 1, alpha=0.05)

    def leaf(*path: str) -> Region:
        return Region(" and ".join(path), path, 10, 1, 30, 3, share)

    lines = tree_lines((leaf("a", "b"), leaf("a", "not b"), leaf("not a")))
    shown = [(line.depth, line.condition, line.leaf is not None) for line in lines]
    assert shown == [(0, "a", False), (1, "b", True), (1, "not b", True), (0, "not a", True)]


def test_the_leaves_partition_the_measured_draws() -> None:
    assert sum(leaf.people for leaf in ANSWER.leaves) == ANSWER.leaves[0].drawn
    assert sum(leaf.unfair for leaf in ANSWER.leaves) == ANSWER.leaves[0].drawn_unfair
    assert {leaf.where for leaf in ANSWER.regions} < {leaf.where for leaf in ANSWER.leaves}


def test_pictures_need_two_moments_and_stay_small() -> None:
    def moment(seconds: int) -> Moment:
        return Moment(seconds, Fraction(1, 4), Fraction(1, 8), 0.1, 0.9 / (1 + seconds))

    assert proved_picture([moment(0)]) == sampled_picture([moment(0)]) == ""
    long = [moment(second) for second in range(10_000)]
    for picture in (proved_picture(long), sampled_picture(long)):
        longest = max(len(points.split()) for points in re.findall(r'points="([^"]*)"', picture))
        assert longest <= 2 * MAX_POINTS + 2
        assert "9999 s" in picture
        assert min(float(number) for number in re.findall(r",(-?[\d.]+)", picture)) >= 0


def test_the_picture_shows_the_shares() -> None:
    """At the end, a quarter is fair: 25 % of the height from the top; an eighth is unfair."""
    history = [
        Moment(0, Fraction(0), Fraction(0), 0.0, 1.0),
        Moment(4, Fraction(1, 4), Fraction(1, 8), 0.1, 0.2),
    ]
    areas = re.findall(r'class="share-(\w+)" points="([^"]*)"', proved_picture(history))
    ends = {kind: [float(p.split(",")[1]) for p in points.split()] for kind, points in areas}
    height = max(ends["unfair"]) - min(ends["fair"])
    assert (ends["fair"][1] - min(ends["fair"])) / height == pytest.approx(1 / 4, abs=0.01)
    assert (max(ends["unfair"]) - ends["unfair"][1]) / height == pytest.approx(1 / 8, abs=0.01)


def test_the_section_of_a_report(tmp_path: Path) -> None:
    people = pd.DataFrame({"age": [18, 20], "<b>income": [30, 90]})
    audit = feta.audit(MODEL, people)
    audit.to_html(tmp_path / "report.html", (EverybodySection(ANSWER),))
    page = (tmp_path / "report.html").read_text()
    assert "<h2>Everybody</h2>" in page
    assert "about the people of the table" in page
    assert "of all unfair" in page
    assert "<b>income" not in page
