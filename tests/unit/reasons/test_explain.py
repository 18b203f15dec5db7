"""The smallest changes, compared with all changes of small models, decided by the definition."""

from fractions import Fraction
from itertools import combinations, product
from typing import Any

import numpy as np
import pytest

import feta
from feta import (
    Categorical,
    Changeable,
    Derived,
    FairPredictor,
    FeatureSpace,
    Integer,
    Levels,
    Model,
    Network,
    Real,
    Tolerance,
    VoteWeights,
)
from feta.errors import SchemaError, Undecided
from feta.reasons.ascending import ascending
from feta.reasons.changeable import nice, read_changes
from feta.reasons.choices import choices_of, spreads
from feta.reasons.explanation import Explanation, Finding, ValueChange
from feta.reasons.words import sentences
from tests import oracle

SPACE = FeatureSpace(
    (
        Integer("age", 18, 22, sensitive=True),
        Categorical("sex", ("f", "m"), sensitive=True),
        Integer("income", 0, 6),
        Levels("term", (6.0, 12.0, 24.0, 48.0), missing=True),
        Real("rate", 0.0, 1.0),
        Derived("band", "income", (("low", 0, 2), ("high", 3, 6))),
        Categorical("town", ("a", "b", "c")),
        Derived("youth", "age", (("young", 18, 20), ("old", 21, 22))),
    )
)
CHANGE = ("income", "term:down", "rate:0.1..0.9:step=0.25:per=0.5", "town=a|c")
ALLOWED: dict[str, tuple[Any, ...]] = {
    "income": tuple(range(7)),
    "term": (6.0, 12.0, 24.0, 48.0),
    "town": ("a", "c"),
}


def make_model(seed: int) -> FairPredictor:
    """Return a network whose scores are eighths, so that ties occur."""
    rng = np.random.default_rng(seed)
    hidden = (rng.integers(-8, 9, (3, SPACE.width)) / 8, rng.integers(-8, 9, 3) / 8)
    last = (rng.integers(-8, 9, (1, 3)) / 8, np.zeros(1))
    network = Network.from_layers([hidden, last])
    people = SPACE.encode([record_of(rng) for _ in range(60)])
    threshold = float(np.quantile(network(people), 0.8))
    model = Model(SPACE, network, threshold=threshold, outcomes=("refused", "approved"))
    weights = VoteWeights.from_people(SPACE, people) if seed % 2 else None
    return FairPredictor(model, weights=weights)


def record_of(rng: np.random.Generator) -> dict[str, Any]:
    return {
        "age": int(rng.integers(18, 23)),
        "sex": str(rng.choice(["f", "m"])),
        "income": int(rng.integers(0, 7)),
        "term": (None, 6.0, 12.0, 24.0, 48.0)[rng.integers(5)],
        "rate": float(rng.integers(0, 101)) / 100,
        "town": "abc"[rng.integers(3)],
    }


def sizes_by_hand(record: dict[str, Any]) -> dict[str, dict[Any, Fraction]]:
    """Return the size of every allowed new value, written without the package."""
    own_rate = Fraction(str(record["rate"]))
    rates = [own_rate + Fraction(k, 4) for k in range(-4, 5) if k]
    allowed = [rate for rate in rates if Fraction(1, 10) <= rate <= Fraction(9, 10)]
    term = record["term"]
    return {
        "income": {
            new: Fraction(abs(new - record["income"]) * 2, 3)  # a quarter of 6 is 1.5
            for new in ALLOWED["income"]
            if new != record["income"]
        },
        "term": {
            new: Fraction(term - new) / Fraction(21, 2)
            for new in ALLOWED["term"]
            if term is not None and new < term
        },
        "rate": {float(rate): abs(rate - own_rate) * 2 for rate in allowed},
        "town": {new: Fraction(1) for new in ALLOWED["town"] if new != record["town"]},
    }


def smallest_by_hand(
    predictor: FairPredictor, record: dict[str, Any]
) -> tuple[int, Fraction] | None:
    """Decide every combination by the definition; return the fewest columns and smallest size."""
    sizes = sizes_by_hand(record)
    for number in range(1, len(sizes) + 1):
        best: Fraction | None = None
        for names in combinations(sizes, number):
            for values in product(*(sizes[name].items() for name in names)):
                total = sum((size for _, size in values), Fraction(0))
                if best is not None and total >= best:
                    continue
                changed = record | {name: new for name, (new, _) in zip(names, values, strict=True)}
                if by_definition(predictor, changed):
                    best = total
        if best is not None:
            return number, best
    return None


def by_definition(predictor: FairPredictor, record: dict[str, Any]) -> bool:
    person = SPACE.encode(record)[0]
    return bool(oracle.fair_decision(predictor.model, person, predictor.weights))


@pytest.mark.parametrize("seed", range(8))
def test_changes_are_minimal_by_the_definition(seed: int) -> None:
    rng, predictor = np.random.default_rng([seed, 1]), make_model(seed)
    refused = 0
    while refused < 3:
        record = record_of(rng)
        if by_definition(predictor, record):
            continue
        refused += 1
        got = feta.explain(predictor, SPACE.encode(record)[0], CHANGE)
        expected = smallest_by_hand(predictor, record)
        if expected is None:
            assert (got.finding, got.changes, got.minimal) == (Finding.NONE, (), True)
            continue
        assert got.finding is Finding.FOUND
        assert got.minimal
        assert len(got.changes) == expected[0]
        assert got.size == pytest.approx(float(expected[1]), rel=1e-12)
        changed = record | {one.column: one.after for one in got.changes}
        assert by_definition(predictor, changed)
        assert all(one.before == record[one.column] for one in got.changes)
        without = feta.explain(predictor, SPACE.encode(record)[0], CHANGE, max_decisions=0)
        assert not without.minimal
        if without.changes:
            changed = record | {one.column: one.after for one in without.changes}
            assert by_definition(predictor, changed)
            assert (len(without.changes), without.size) >= (expected[0], float(expected[1]) - 1e-9)


def test_sensitive_values_have_no_influence() -> None:
    rng, predictor = np.random.default_rng(5), make_model(3)
    for _ in range(5):
        record = record_of(rng)
        others = [record | {"age": age, "sex": sex} for age in (18, 22) for sex in "fm"]
        rows = [SPACE.encode(one)[0] for one in others]
        rows.append(SPACE.encode(record, sensitive="ignore")[0])
        assert len({repr(feta.explain(predictor, row, CHANGE)) for row in rows}) == 1


@pytest.mark.parametrize(
    ("change", "words"),
    [
        ("age", "'age' is no reason: got a sensitive column, or a consequence of one"),
        ("sex=f", "'sex' is no reason"),
        ("youth", "'youth' is no reason: got a sensitive column, or a consequence of one"),
        ("band", "'band' follows from 'income': .* name 'income' instead"),
        ("incom", "unknown column: got 'incom'.*did you mean 'income'"),
        (
            "income:sideways",
            "invalid change: got 'sideways' in 'income:sideways'; expected up, down",
        ),
        ("income:step=x", "invalid change: got 'step=x'"),
        ("income:step=0.5", "the step 0.5 of an integer; expected an integer"),
        ("income:step=0", "step 0.0; expected a positive number"),
        ("rate:per=0", "unit 0.0; expected a positive number"),
        ("rate:step=1e-9", "steps; expected at most 100,000"),
        ("term:step=2", "a step; expected none, because it is one of 6, 12"),
        ("income=3", "values .* of a number; expected limits"),
        ("town:up", "a direction, limits, step or unit of a category; expected values"),
        ("town=d", "got 'd'; expected values out of one of 'a', 'b', 'c'"),
        ("", "expected one column or more, each of them once"),
        ("income,income", "expected one column or more, each of them once"),
    ],
)
def test_changes_that_make_no_sense_are_refused(change: str, words: str) -> None:
    person = SPACE.encode(record_of(np.random.default_rng(0)))[0]
    with pytest.raises(SchemaError, match=words):
        feta.explain(make_model(0), person, read_changes(change))


def test_a_consequence_of_a_sensitive_column_is_refused() -> None:
    """The income follows from the sex, so it moves along; the debt does not."""
    space = FeatureSpace(
        (
            Categorical("sex", ("f", "m"), sensitive=True),
            Integer("income", 0, 60),
            Integer("debt", 0, 20),
        )
    )
    relation = feta.Consequences.of(space, {"column": "income", "shifts": {"sex": {"m": 10}}})
    network = Network.from_layers([([[0.0, 0.0, 1.0, -2.0]], [-20.0])])
    model = Model(space, network, threshold=0.0, relation=relation)
    predictor = FairPredictor(model)
    person = space.encode({"sex": "f", "income": 30, "debt": 12})[0]
    for change in ("income", "sex"):
        with pytest.raises(SchemaError, match=f"'{change}' is no reason"):
            feta.explain(predictor, person, ["debt", change])
    got = feta.explain(predictor, person, ["debt"])
    rows = [space.encode({"sex": "f", "income": 30, "debt": debt})[0] for debt in range(21)]
    approved = [debt for debt, row in enumerate(rows) if predictor.decide(row[None, :])[0]]
    assert [one.after for one in got.changes] == [max(approved)]
    assert got.minimal


def test_several_classes_need_a_name() -> None:
    space = FeatureSpace((Integer("age", 18, 22, sensitive=True), Integer("income", 0, 60)))
    scores = Network.from_layers([([[0.0, 0.0], [0.0, 1.0], [0.0, 2.0]], [0.0, -20.0, -60.0])])
    model = Model(space, scores, feta.Argmax(("none", "silver", "gold")))
    predictor, person = FairPredictor(model), space.encode({"income": 10}, sensitive="ignore")[0]
    with pytest.raises(SchemaError, match="no favorable decision"):
        feta.explain(predictor, person, ["income"])
    with pytest.raises(SchemaError, match="unknown decision: got 'golden'"):
        feta.explain(predictor, person, ["income"], favorable="golden")
    by_name = {
        name: feta.explain(predictor, person, ["income:step=1"], favorable=name).changes
        for name in ("silver", "gold")
    }
    assert [(one[0].before, one[0].after) for one in by_name.values()] == [(10, 21), (10, 41)]
    regression = FairPredictor(
        Model(space, Network.from_layers([([[0.0, 1.0]], [0.0])]), Tolerance(1))
    )
    with pytest.raises(SchemaError, match="no reasons for scores"):
        feta.explain(regression, person, ["income"])


def test_an_undecided_candidate_takes_the_proof_away(monkeypatch: pytest.MonkeyPatch) -> None:
    predictor, rng = make_model(1), np.random.default_rng(3)
    decide = FairPredictor.decide
    income = SPACE.columns_of(SPACE.attribute("income")).start

    def doubt(self: FairPredictor, people: Any) -> Any:  # noqa: ANN401 - as decide
        rows = np.flatnonzero(people[:, income] == 6)
        if rows.size:
            raise Undecided(tuple(rows.tolist()), "a test")
        return decide(self, people)

    found: list[tuple[Any, Explanation]] = []
    while len(found) < 5:
        record = record_of(rng) | {"income": 1}
        person = SPACE.encode(record)[0]
        before = feta.explain(predictor, person, CHANGE)
        if before.finding in (Finding.FOUND, Finding.NONE):
            found.append((person, before))
    monkeypatch.setattr(FairPredictor, "decide", doubt)
    for person, before in found:
        after = feta.explain(predictor, person, CHANGE)
        assert not after.minimal
        assert after.finding in (Finding.FOUND, Finding.NOT_FOUND)
        assert all(one.after != 6 for one in after.changes)
        assert after.size >= before.size or len(after.changes) > len(before.changes)
    own = feta.explain(predictor, SPACE.encode(record_of(rng) | {"income": 6})[0], CHANGE)
    assert own.finding is Finding.UNDECIDED


@pytest.mark.parametrize("n_columns", [1, 2, 3])
def test_combinations_come_in_order_and_once(n_columns: int) -> None:
    rng = np.random.default_rng(n_columns)
    sizes = [sorted(rng.integers(1, 5, number) / 4) for number in (3, 0, 5, 2)]
    got = list(ascending(sizes, n_columns))
    expected = [
        (columns, picks)
        for columns in combinations((0, 2, 3), n_columns)
        for picks in product(*(range(len(sizes[column])) for column in columns))
    ]
    assert sorted(one[1:] for one in got) == sorted(expected)
    totals = [sum(sizes[c][i] for c, i in zip(*one[1:], strict=True)) for one in got]
    assert totals == sorted(totals) == [one[0] for one in got]


def test_spreads_ignore_missing_and_constant_numbers() -> None:
    records = [
        {"age": 20, "sex": "f", "income": income, "term": term, "rate": 0.5, "town": "a"}
        for income, term in ((1, 6.0), (3, None), (5, 12.0))
    ]
    got = spreads(make_model(0).model, SPACE.encode(records))
    assert got == pytest.approx({"income": np.std([1, 3, 5]), "term": 3.0})


@pytest.mark.parametrize(
    ("number", "expected"), [(0.07, 0.1), (1.0, 1.0), (1.01, 2.0), (3.0, 5.0), (182.0, 200.0)]
)
def test_default_steps_are_round(number: float, expected: float) -> None:
    assert nice(number) == expected


@pytest.mark.parametrize(
    ("explanation", "expected"),
    [
        (
            Explanation(
                Finding.FOUND,
                "refused",
                "approved",
                (ValueChange("term", 48, 36, 1.0),),
                minimal=True,
            ),
            "The decision is refused. The principal reason: term is too high (48; 36 would have "
            "been approved). Proved: of the allowed changes, none of fewer columns suffices, and "
            "no smaller one.",
        ),
        (
            Explanation(
                Finding.FOUND,
                "refused",
                "approved",
                (ValueChange("rate", 0.5, 0.75, 1.0), ValueChange("town", "a", "b", 1.0)),
            ),
            "The decision is refused. The principal reasons: rate is too low (0.5; 0.75); town "
            "does not suffice (a; b). With the second value of each, the decision would have been "
            "approved. Found, not proved minimal: a smaller change may suffice.",
        ),
        (
            Explanation(Finding.NONE, "refused", "approved", minimal=True),
            "The decision is refused. No allowed change of these columns makes it approved: all "
            "were decided.",
        ),
        (
            Explanation(Finding.NOT_FOUND, "refused", "approved"),
            "The decision is refused. No change that makes it approved was found; not all could be "
            "decided.",
        ),
        (
            Explanation(Finding.FAVORABLE, "approved", "approved", minimal=True),
            "The decision is approved already.",
        ),
        (
            Explanation(Finding.UNDECIDED, "", "approved"),
            "The fair decision about this person is not known, so neither are reasons.",
        ),
    ],
)
def test_words(explanation: Explanation, expected: str) -> None:
    assert " ".join(sentences(explanation)) == expected


def test_numbers_move_by_exact_decimals_up_to_the_limits() -> None:
    """0.35 − 0.25 is 0.1, and 0.1 + 0.2 is 0.3, although sums of float64 are not."""
    model = make_model(0).model
    for rate, change, expected in (
        (0.35, "rate:0.1..0.9:step=0.25", [0.1, 0.6, 0.85]),
        (0.1, "rate:0.1..0.3:step=0.1", [0.2, 0.3]),
        (0.3, "rate:down:step=0.1", [0.2, 0.1, 0.0]),
        (0.5, "rate:0.8..0.2", []),
    ):
        record = {"age": 20, "sex": "f", "income": 1, "term": None, "rate": rate, "town": "a"}
        one = Changeable.read(change).checked(model)
        got = choices_of(model, SPACE.encode(record)[0], one, None)
        assert set(got.values) == set(expected)


def test_many_columns_are_searched_without_a_proof() -> None:
    names = [f"c{number}" for number in range(40)]
    columns = (Integer("age", 0, 4, sensitive=True), *(Integer(name, 0, 1) for name in names))
    network = Network.from_layers([(np.ones((1, 41)), np.array([-3.5]))])
    predictor = FairPredictor(Model(FeatureSpace(columns), network, threshold=2.0))
    row = predictor.model.space.encode(dict.fromkeys(names, 0), sensitive="ignore")[0]
    got = feta.explain(predictor, row, names)
    assert (got.finding, len(got.changes), got.minimal) == (Finding.FOUND, 4, False)
    timed = feta.explain(predictor, row, names, seconds=0.0)
    assert (timed.finding, timed.minimal) == (Finding.NOT_FOUND, False)


def test_read_changes() -> None:
    assert read_changes("a, b:down:..4:per=2 ,c=x|y,d:1..5:up:step=.5") == (
        Changeable("a"),
        Changeable("b", "down", high=4.0, unit=2.0),
        Changeable("c", values=("x", "y")),
        Changeable("d", "up", low=1.0, high=5.0, step=0.5),
    )
