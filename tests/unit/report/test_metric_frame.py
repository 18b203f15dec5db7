"""fairlearn's metrics, compared with the same rates counted by hand."""

import pytest

pytest.importorskip("fairlearn", reason="fairlearn is not installed")

import random
from importlib.metadata import PackageNotFoundError

import feta
from feta.auditing.audit import audit
from feta.auditing.finding import Finding
from feta.auditing.groups import Group
from feta.auditing.report_data import ReportSource, report_data
from feta.report import metric_frame
from feta.report.html import html
from feta.report.metric_frame import disparities

Case = tuple[bool | None, bool, bool]  # label, decision, fair decision


def group_of(cases: list[Case]) -> Group:
    group = Group()
    for row, (label, decision, fair) in enumerate(cases):
        group.add(Finding(row, None, decision, fair), label, None)
    return group


def rate(cases: list[Case], side: int) -> float:
    return sum(case[side] is True for case in cases) / len(cases)


def test_differences_and_ratios_are_those_of_the_rates() -> None:
    generator = random.Random(3)
    drawn: list[list[Case]] = [
        [
            (generator.random() < 0.5, generator.random() < share, generator.random() < 1 - share)
            for _ in range(60 + index)
        ]
        for index, share in enumerate((0.3, 0.5, 0.8))
    ]
    results = disparities([group_of(cases) for cases in drawn], min_people=10)
    assert len(results) == 3
    for disparity, label in zip(results, (None, True, False), strict=True):
        selected = [[case for case in cases if label in (None, case[0])] for cases in drawn]
        for side in (0, 1):
            rates = [rate(cases, side + 1) for cases in selected]
            assert disparity.differences[side] == pytest.approx(max(rates) - min(rates))
            assert disparity.ratios[side] == pytest.approx(min(rates) / max(rates))


def test_groups_with_too_few_people_are_left_out() -> None:
    large = group_of([(True, True, True)] * 10)
    small = group_of([(True, False, False)] * 9)
    assert disparities([large, small], min_people=10) == []
    (selection, labeled) = disparities([large, large, small], min_people=10)
    assert (selection.differences, selection.ratios) == ((0.0, 0.0), (1.0, 1.0))
    assert labeled.measure == "true positive rate"


def test_without_labels_only_the_selection_rate_is_compared() -> None:
    half: list[Case] = [(None, n % 2 == 0, True) for n in range(10)]
    all_selected: list[Case] = [(None, True, True)] * 10
    (selection,) = disparities([group_of(half), group_of(all_selected)], min_people=10)
    assert (selection.differences, selection.ratios) == ((0.5, 0.0), (0.5, 1.0))


def page() -> str:
    space = feta.FeatureSpace(
        (feta.Categorical("sex", ("f", "m"), sensitive=True), feta.Real("income", 0, 9))
    )
    model = feta.Model(space, feta.Network.from_layers([([[0.0, 2.0, 1.0]], [-6.0])]))
    rows = [{"sex": "fm"[n % 2], "income": n % 9} for n in range(80)]
    result = audit(model, rows, labels=[bool(row % 3) for row in range(len(rows))])
    return html(report_data(result.auditor, result.results, ReportSource()))


def test_the_annex_has_the_metrics_or_the_command_to_install_them(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    assert f"by fairlearn {metric_frame.installed()}" in page()
    assert "false positive rate" in page()

    def absent(_: str) -> str:
        raise PackageNotFoundError

    monkeypatch.setattr(metric_frame, "version", absent)
    page_without_extra = page()
    assert "false positive rate" not in page_without_extra
    assert "pip install 'feta-fair[fairlearn]'" in page_without_extra
