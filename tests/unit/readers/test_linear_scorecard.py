"""Scorecards: points per bin, against a table of conditions in plain Python."""

import itertools
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest

import feta
from feta import Categorical, Derived, FeatureSpace, Integer, Levels, Model, Real, SchemaError
from feta.readers.scorecard.bins import Interval, parse_interval
from feta.space.sampling import draw_people

SPACE = FeatureSpace(
    (
        Integer("age", 18, 45, sensitive=True),
        Categorical("sex", ("f", "m"), sensitive=True),
        Categorical("job", ("none", "manual", "office", "other"), missing=True),
        Levels.spaced("rate", 0, 2, step=0.25, missing=True),
        Real("income", 0, 90, missing=True),
        Real("debt", -5, 5),
    )
)
PEOPLE = draw_people(SPACE, np.random.default_rng(0), 2000)
PEOPLE[:200, -1] = 1.5  # at an end of a bin
PEOPLE[200:400, -1] = np.nextafter(1.5, 0)
CARD: dict[str, dict[object, float]] = {
    "age": {"[-inf, 25)": 10, "[25, 33]": 22, "(33, inf)": 31},
    "sex": {"f": 3, "m": 0.5},
    "job": {"none": -7, "manual%,%office": 5, "else": 1, "missing": -2},
    "rate": {"<= 0.5": 4, "(0.5 ~ 1.25)": 8, ">= 1.25": 9, "nan": 2},
    "income": {"< 30": 0, "[30; 60)": 12, "≥ 60": 20, "Missing": 6},
    "debt": {pd.Interval(-np.inf, 1.5, closed="right"): 9, pd.Interval(1.5, np.inf): -9},
}


def points(person: Mapping[str, Any]) -> float:
    """Return the score by conditions that share no code with the reader."""
    age, job, rate, income = (person[name] for name in ("age", "job", "rate", "income"))
    score = 100.0 + (10 if age < 25 else 22 if age <= 33 else 31)
    score += 3 if person["sex"] == "f" else 0.5
    score += {None: -2, "none": -7, "manual": 5, "office": 5, "other": 1}[job]
    score += 2 if rate is None else 4 if rate <= 0.5 else 8 if rate < 1.25 else 9
    score += 6 if income is None else 0 if income < 30 else 12 if income < 60 else 20
    return score + (9 if person["debt"] <= 1.5 else -9)


RAW = [SPACE.decode(person) for person in PEOPLE]
SCORES = np.array([points(person) for person in RAW])


def rows() -> pd.DataFrame:
    listed = [(name, raw, value) for name, bins in CARD.items() for raw, value in bins.items()]
    return pd.DataFrame([*listed, ("basepoints", "", 100)], columns=["variable", "bin", "points"])


def from_csv(folder: Path) -> Any:  # noqa: ANN401 - any form of a scorecard
    path = folder / "card.csv"
    rows().rename(columns={"variable": "Attribute", "points": "Points"}).to_csv(path, index=False)
    return path


FORMS: dict[str, Callable[[Path], Any]] = {
    "dicts": lambda _: CARD | {"base": 100},
    "pairs": lambda _: {name: list(bins.items()) for name, bins in CARD.items()} | {"base": 100},
    "frame": lambda _: rows(),
    "csv": from_csv,
}


@pytest.mark.parametrize("form", FORMS)
def test_scores_and_decisions_are_those_of_the_conditions(form: str, tmp_path: Path) -> None:
    scorer = feta.read_scorecard(FORMS[form](tmp_path), SPACE)
    np.testing.assert_array_equal(scorer(PEOPLE)[:, 0], SCORES)
    level = float(np.median(SCORES))
    assert np.any(level == SCORES)  # ties
    model = Model(SPACE, scorer, threshold=level)
    assert model.decide(PEOPLE).tolist() == (level <= SCORES).tolist()
    assert scorer.provenance == "proved"
    for row in range(30):
        answers = {
            points(RAW[row] | {"age": age, "sex": sex}) >= level
            for age, sex in itertools.product(range(18, 46), ("f", "m"))
        }
        verdict = feta.verify(feta.FairAt(model, PEOPLE[row]))
        assert isinstance(verdict, feta.Fair) == (len(answers) == 1)


def test_base_points_add_up_and_unlisted_columns_get_no_points() -> None:
    scorer = feta.read_scorecard({"sex": CARD["sex"], "Base Points": 40}, SPACE, base=60)
    expected = [103.0 if person["sex"] == "f" else 100.5 for person in RAW]
    assert scorer(PEOPLE)[:, 0].tolist() == expected


def test_one_number_for_a_column_is_for_all_its_values() -> None:
    space = FeatureSpace((Integer("age", 18, 20, sensitive=True),))
    assert feta.read_scorecard({"age": 4}, space)(np.array([[18.0]])).tolist() == [[4.0]]


def test_lists_of_values_bands_and_booleans_are_bins() -> None:
    space = FeatureSpace(
        (
            Integer("age", 0, 9, sensitive=True),
            Derived("band", "age", (("young", 0, 4), ("old", 5, 9))),
            Categorical("own", (False, True)),
        )
    )
    card: dict[str, Any] = {
        "age": [([0, 1, 2], 5), ((3.0, 4, 5), 6), ("[6, 9]", 7)],
        "band": {"young": 10, "old": 20},
        "own": {"True": 100, False: 0},
    }
    people = space.encode([{"age": age, "own": own} for age in range(10) for own in (True, False)])
    got = feta.read_scorecard(card, space)(people)[:, 0]
    ages = [5, 5, 5, 6, 6, 6, 7, 7, 7, 7]
    expected = [
        ages[age] + (10 if age < 5 else 20) + 100 * own for age in range(10) for own in (1, 0)
    ]
    assert got.tolist() == expected


def test_a_bin_with_a_finite_end_does_not_reach_beyond_the_limits() -> None:
    space = FeatureSpace((Integer("age", 18, 20, sensitive=True), Integer("n", 0, 3)))
    open_ends = feta.read_scorecard({"n": {"< 2": 1, ">= 2": 2}}, space)
    finite = feta.read_scorecard({"n": {"[0, 2)": 1, "[2, 3]": 2}}, space)
    assert open_ends.obstacle(1, 0, 9) == ""
    assert finite.obstacle(1, 0, 9) == "the model reads this column by a table of values"


@pytest.mark.parametrize(
    ("text", "inside", "outside"),
    [
        ("[18, 25)", [18, 24.9], [25, 17.9]),
        ("(18,25]", [25, 18.1], [18, 25.1]),
        ("(-inf ~ -.5]", [-1e300, -0.5], [0]),
        ("[1e3; ∞)", [1000.0, 1e9], [999.0]),
        ("<2.", [1.9], [2.0]),
        ("≤ 2", [2.0], [2.1]),
        ("> -2", [-1.9], [-2.0]),
    ],
)
def test_intervals_are_parsed(text: str, inside: list[float], outside: list[float]) -> None:
    interval = parse_interval(text)
    assert interval is not None
    assert all(number in interval for number in inside)
    assert not any(number in interval for number in outside)


def test_the_last_number_of_an_interval() -> None:
    assert Interval(0, 2, closed_low=True, closed_high=True).last == 2
    assert Interval(0, 2, closed_low=True, closed_high=False).last == np.nextafter(2, 0)


@pytest.mark.parametrize(
    ("card", "message"),
    [
        ({"agee": {"else": 1}}, "the scorecard lists 'agee': the schema must have the column"),
        ({"sex": {"f": 1}}, r"bins of 'sex' do not fit its values: got 'm' in 0 bins; expected ev"),
        ({"sex": {"f": 1, "m%,%f": 2}}, "bins of 'sex' do not fit its values: got 'f' in 2 bins"),
        ({"sex": {"f": 1, "x": 2}}, "invalid bin of 'sex': got 'x'; expected values of the col"),
        ({"sex": {"f": "many", "else": 2}}, "invalid points of 'sex': got 'many'; expected a fin"),
        ({"sex": {"f": np.inf, "else": 2}}, "invalid points of 'sex': got inf; expected a finite"),
        ({"job": {"else": 1}}, "bins of 'job' do not fit its values: got a missing value in 0"),
        ({"rate": {"< 1": 1, ">= 1": 2}}, "bins of 'rate' do not fit its values: got a missing"),
        ({"age": {"[18, 30)": 1, "(30, 45]": 2}}, r"bins of 'age' .*: got 30\.0 in 0 bins"),
        ({"age": {"[18, 30]": 1, "[30, 45]": 2}}, r"bins of 'age' .*: got 30\.0 in 2 bins"),
        ({"age": {"18 to 45": 1}}, "invalid bin of 'age': got '18 to 45'; expected a number, or"),
        ({"debt": {"[-5, 5]": 1}}, "bins of 'debt' do not cover all numbers: got intervals with"),
        ({"debt": {"< 1": 1, "> 1": 2}}, "bins of 'debt' do not cover all numbers"),
        ({"debt": {"< 2": 1, ">= 1": 2}}, "bins of 'debt' do not cover all numbers"),
    ],
)
def test_an_invalid_scorecard_is_refused(card: dict[str, Any], message: str) -> None:
    with pytest.raises(SchemaError, match=message):
        feta.read_scorecard(card, SPACE)


def test_an_empty_scorecard_and_a_missing_column_are_refused() -> None:
    with pytest.raises(feta.NetworkError, match="the scorecard has no bins: got none; expected"):
        feta.read_scorecard({"base": 5}, SPACE)
    with pytest.raises(SchemaError, match=r"column of the scorecard is missing: .* named 'points'"):
        feta.read_scorecard(rows().drop(columns="points"), SPACE)
