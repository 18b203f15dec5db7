"""fairlearn's measures, against the same rates counted by hand."""

import pytest

pytest.importorskip("fairlearn", reason="fairlearn is not installed")

import random
from importlib.metadata import PackageNotFoundError

import feta
from feta.auditing.audit import audit
from feta.auditing.finding import Finding
from feta.report import metric_frame
from feta.report.groups import Group
from feta.report.html import html
from feta.report.metric_frame import disparities
from feta.report.report import ReportBuilder, ReportSource

Case = tuple[bool | None, bool, bool]  # label, own, fair


def group_of(cases: list[Case]) -> Group:
    group = Group()
    for row, (label, own, fair) in enumerate(cases):
        group.add(Finding(row, "fair", own, fair), label, None)
    return group


def rate(cases: list[Case], side: int) -> float:
    return sum(one[side] is True for one in cases) / len(cases)


def test_differences_and_ratios_are_those_of_the_rates() -> None:
    dice = random.Random(3)
    drawn: list[list[Case]] = [
        [
            (dice.random() < 0.5, dice.random() < share, dice.random() < 1 - share)
            for _ in range(60 + index)
        ]
        for index, share in enumerate((0.3, 0.5, 0.8))
    ]
    found = disparities([group_of(cases) for cases in drawn], enough=10)
    assert len(found) == 3
    for one, label in zip(found, (None, True, False), strict=True):
        kept = [[case for case in cases if label in (None, case[0])] for cases in drawn]
        for side in (0, 1):
            rates = [rate(cases, side + 1) for cases in kept]
            assert one.differences[side] == pytest.approx(max(rates) - min(rates))
            assert one.ratios[side] == pytest.approx(min(rates) / max(rates))


def test_groups_with_too_few_people_are_left_out() -> None:
    large = group_of([(True, True, True)] * 10)
    small = group_of([(True, False, False)] * 9)
    assert disparities([large, small], enough=10) == []
    (only, of_those_labeled) = disparities([large, large, small], enough=10)
    assert (only.differences, only.ratios) == ((0.0, 0.0), (1.0, 1.0))
    assert of_those_labeled.measure == "favorable, of those labeled so"


def test_without_labels_only_the_selection_rate_is_compared() -> None:
    half: list[Case] = [(None, n % 2 == 0, True) for n in range(10)]
    everybody: list[Case] = [(None, True, True)] * 10
    (only,) = disparities([group_of(half), group_of(everybody)], enough=10)
    assert (only.differences, only.ratios) == ((0.5, 0.0), (0.5, 1.0))


def page() -> str:
    space = feta.FeatureSpace(
        (feta.Categorical("sex", ("f", "m"), sensitive=True), feta.Real("income", 0, 9))
    )
    model = feta.Model(space, feta.Network.from_layers([([[0.0, 2.0, 1.0]], [-6.0])]))
    rows = [{"sex": "fm"[n % 2], "income": n % 9} for n in range(80)]
    found = audit(model, rows)
    builder = ReportBuilder(found.auditor)
    for finding in found.findings:
        builder.take(finding, found.people[finding.row], label=bool(finding.row % 3))
    return html(builder.report(ReportSource()))


def test_the_annex_has_the_measures_or_says_how_to_get_them(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    assert f"by fairlearn {metric_frame.installed()}" in page()
    assert "favorable, of those labeled otherwise" in page()

    def absent(_: str) -> str:
        raise PackageNotFoundError

    monkeypatch.setattr(metric_frame, "version", absent)
    without = page()
    assert "favorable, of those labeled otherwise" not in without
    assert "pip install 'feta-fair[fairlearn]'" in without
