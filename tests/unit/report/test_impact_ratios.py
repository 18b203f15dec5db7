import io
from fractions import Fraction

import pytest

from feta.report.impact_ratios import (
    FAIR,
    HEADER,
    MODEL,
    ImpactRow,
    impact_rows,
    is_selected,
    write_impact_rows,
)
from feta.report.person_groups import PersonGroups, groups_of, texts


def rows(
    groups: list[PersonGroups], selected: list[bool | None]
) -> dict[tuple[tuple[str, ...], str], ImpactRow]:
    return {(row.columns, row.category): row for row in impact_rows(groups, selected, MODEL)}


SEX = texts("sex", ["f", "f", "f", "f", "m", "m", "", "m"], ["x"])
RACE = texts("race", ["a", "a", "b", "x", "a", "b", "b", "b"], ["x"])
SELECTED = [True, False, True, False, True, True, True, None]


def test_ratios_are_rates_divided_by_the_highest_rate() -> None:
    found = rows([SEX, RACE], SELECTED)
    women, men = found[("sex",), "f"], found[("sex",), "m"]
    assert (women.people, women.selected) == (4, 2)
    assert women.rate == women.ratio == Fraction(1, 2)
    assert (men.people, men.share) == (2, Fraction(2, 7))
    assert men.rate == men.ratio == 1
    assert found[("sex", "race"), "f / a"].rate == Fraction(1, 2)
    assert found[("sex", "race"), "m / b"].people == 1  # the last person has no decision


def test_unknown_people_and_people_without_a_decision_are_counted_apart() -> None:
    found = rows([SEX, RACE], SELECTED)
    for columns, unknown in ((("sex",), 1), (("race",), 1), (("sex", "race"), 2)):
        row = found[columns, "unknown"]
        assert (row.people, row.rate, row.note) == (unknown, None, "not in the ratios")
        assert found[columns, "no decision"].people == 1
        people = sum(row.people for (names, _), row in found.items() if names == columns)
        assert people == len(SELECTED)


def test_categories_below_2_percent_are_marked() -> None:
    names = ["large"] * 97 + ["small"] + ["two"] * 2
    selected: list[bool | None] = [n < 40 or name != "large" for n, name in enumerate(names)]
    found = rows([texts("group", names, [])], selected)
    large, small, two = (found[("group",), name] for name in ("large", "small", "two"))
    assert small.note == "below 2 %"
    assert small.ratio == 1
    assert small.ratio_from_2_percent is None
    assert not two.note  # 2 % exactly
    assert two.ratio_from_2_percent == 1
    assert large.ratio == large.ratio_from_2_percent == Fraction(40, 97)
    without = rows([texts("group", names[:98], [])], selected[:98])
    assert without[("group",), "large"].ratio == Fraction(40, 97)
    assert without[("group",), "large"].ratio_from_2_percent == 1


def test_without_a_selected_person_there_is_no_ratio() -> None:
    found = rows([texts("group", ["a", "b"], [])], [False, False])
    assert found[("group",), "a"].rate == 0
    assert found[("group",), "a"].ratio is None
    empty = rows([PersonGroups("group", ("a", "b"), (None,))], [None])
    assert [row.rate for row in empty.values()] == [None] * 4


def test_scores_above_the_median_are_selected() -> None:
    scores: list[Fraction | int | None] = [Fraction(1), Fraction(2), None, Fraction(2), Fraction(4)]
    assert is_selected(scores, None) == [False, False, None, False, True]
    assert is_selected([Fraction(1), Fraction(2)], None) == [False, True]
    assert is_selected([], None) == []
    assert is_selected([2, None, 0], 2) == [True, None, False]


@pytest.mark.parametrize(
    ("count", "sizes"), [(1, {1}), (2, {1, 2}), (3, {1, 2, 3}), (4, {1, 2, 4})]
)
def test_columns_are_crossed_in_pairs_and_all_together(count: int, sizes: set[int]) -> None:
    groups = [texts(f"c{n}", ["a", "b"], []) for n in range(count)]
    found = rows(groups, [True, False])
    assert {len(columns) for columns, _ in found} == sizes


def test_a_table_is_safe_for_spreadsheets() -> None:
    stream = io.StringIO()
    groups = [texts("group", ["=1+1", "b"], [])]
    write_impact_rows(list(impact_rows(groups, [True, False], FAIR)), stream)
    lines = stream.getvalue().splitlines()
    assert lines[0] == ",".join(f'"{name}"' for name in HEADER)
    assert lines[1] == '"fair","group","\'=1+1",1,0.5,1,1.0,1.0,1.0,""'


NUMBER = {"kind": "integer", "name": "age", "low": 0, "high": 99}
EMPTY: dict[str, object] = {"columns": []}


def cells(*numbers: int) -> list[str]:
    return [f"{number:x}p0" if number else "0" for number in numbers]


def test_numbers_are_divided_into_quarters_of_the_people() -> None:
    groups = groups_of(EMPTY, NUMBER, cells(*range(1, 9)), [])
    assert groups.categories == ("1 to 2", "3 to 4", "5 to 6", "7 to 8")
    assert [groups.members.count(name) for name in groups.categories] == [2] * 4
    tied = groups_of(EMPTY, NUMBER, [*cells(*[5] * 90, 1, 2, 3, 7, 8), None], [])
    assert tied.categories == ("1 to 3", "5 to 8")
    assert tied.members[-1] is None
    few = groups_of(EMPTY, NUMBER, cells(3, 1, 1), [])
    assert (few.categories, few.members) == (("1", "3"), ("3", "1", "1"))
    assert groups_of(EMPTY, NUMBER, [None], []).categories == ()
    assert groups_of(EMPTY, NUMBER, ["1p-1", "-3p1", "1p-1"], []).members == ("0.5", "-6", "0.5")


def test_numbers_have_the_bands_that_the_schema_declares() -> None:
    bands = [["old", "29p0", 99], ["young", 0, 40]]
    schema = {"columns": [{"kind": "derived", "name": "band", "source": "age", "bands": bands}]}
    groups = groups_of(schema, NUMBER, cells(0, 40, 41, 99, 100), [])
    assert groups.members == ("young", "young", "old", "old", None)


def test_categories_are_those_of_the_schema() -> None:
    column = {"kind": "category", "name": "sex", "values": ["f", "m", "?"], "other": True}
    groups = groups_of(EMPTY, column, [0, 1, 2, 3, 4, None], ["?"])
    assert groups.categories == ("f", "m", "other")
    assert groups.members == ("f", "m", None, "other", None, None)
