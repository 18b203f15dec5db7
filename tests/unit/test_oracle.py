"""The oracle lists counterparts itself: it detects a value that the enumeration leaves out."""

from collections.abc import Iterator
from dataclasses import replace

import numpy as np
import pytest

import feta
from campaigns.core import disagreements
from feta import (
    Categorical,
    CertificateError,
    Derived,
    FeatureSpace,
    Integer,
    Levels,
    Model,
    Network,
    Real,
)
from feta.arrays import Counts, Matrix, Vector
from feta.checker.prove import prove
from feta.relation.all_sensitive_values import AllSensitiveValues
from feta.space.attribute import Attribute, Value
from feta.space.axis import Axis
from feta.space.lattice import Lattice
from tests import oracle

AGE = Integer("age", 20, 22, sensitive=True)
BAND = Derived("band", "age", (("young", 20, 21), ("old", 22, 22)))
SEX = Categorical("sex", ("female", "male"), sensitive=True)
HOURS = Levels("hours", (-1.0, 0.5, 3.0), sensitive=True)
INCOME = Real("income", 0, 100)


@pytest.mark.parametrize(
    ("attribute", "values", "columns"),
    [
        (AGE, [20, 21, 22], [[20], [21], [22]]),
        (SEX, ["female", "male"], [[1, 0], [0, 1]]),
        (HOURS, [-1.0, 0.5, 3.0], [[-1.0], [0.5], [3.0]]),
        (replace(AGE, missing=True), [20, 21, 22, None], [[20, 0], [21, 0], [22, 0], [20, 1]]),
        (replace(SEX, missing=True), ["female", "male", None], np.eye(3).tolist()),
        (
            replace(HOURS, missing=True),
            [-1.0, 0.5, 3.0, None],
            [[-1.0, 0], [0.5, 0], [3.0, 0], [-1.0, 1]],
        ),
    ],
)
def test_values_are_listed_and_encoded_by_their_definition(
    attribute: Attribute, values: list[Value], columns: list[list[float]]
) -> None:
    assert oracle.values_of(attribute) == values
    assert [oracle.columns_of_value(attribute, value) for value in values] == columns


def test_a_real_number_has_no_list_of_values() -> None:
    with pytest.raises(AssertionError, match="income has no list of values"):
        oracle.values_of(INCOME)


def test_the_first_attribute_changes_slowest_and_shared_columns_remain() -> None:
    town = Categorical("town", ("a", "b"), other=True, missing=True)
    shared = Integer("years", 0, 9, missing=True)
    space = FeatureSpace((BAND, town, AGE, shared, SEX, INCOME))
    person = space.encode({"town": "b", "age": 20, "years": 7, "sex": "male", "income": 5})[0]
    model = Model(space, Network.from_layers([(np.ones((1, space.width)), [0.0])]), threshold=0.0)
    rows = oracle.counterparts(model, person)
    young, old, common = [1.0, 0.0], [0.0, 1.0], [0.0, 1.0, 0.0, 0.0]
    assert [row.tolist() for row in rows] == [
        [*band, *common, age, 7.0, 0.0, *sex, 5.0]
        for age, band in ((20.0, young), (21.0, young), (22.0, old))
        for sex in ([1.0, 0.0], [0.0, 1.0])
    ]
    assert all(space.contains(row) for row in rows)


KINDS: list[Attribute] = [AGE, SEX, HOURS]
KINDS += [replace(AGE, missing=True), replace(SEX, missing=True), replace(HOURS, missing=True)]


def last_differs(attribute: Attribute) -> tuple[Model, Vector]:
    """Return a model in which only the last value of an attribute is unfavorable."""
    others: tuple[Attribute, ...] = tuple(
        other for other in (AGE, SEX, HOURS) if other.name != attribute.name
    )
    space = FeatureSpace((attribute, *others, INCOME))
    *rest, last = (
        np.array(oracle.columns_of_value(attribute, value)) for value in oracle.values_of(attribute)
    )
    # A direction in which the last value is beyond all others.
    direction = last - np.mean(rest, axis=0)
    if last[-1] == 1.0 and len(last) > 1:
        direction = np.eye(len(last))[-1]
    between = (max(float(direction @ row) for row in rest) + float(direction @ last)) / 2
    slopes = np.zeros((1, space.width))
    slopes[0, : len(last)] = -direction
    model = Model(space, Network.from_layers([(slopes, [between])]), threshold=0.0)
    record: dict[str, object] = {"age": 20, "sex": "female", "hours": -1.0, "income": 1.0}
    return model, space.encode(record)[0]


@pytest.fixture(params=["axis", "lattice", "relation"])
def planted(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> str:
    """Leave out the last value of the first sensitive attribute, in one of three places."""
    if request.param == "axis":
        monkeypatch.setattr(Axis, "__len__", _shorter_first_axis)
    elif request.param == "lattice":
        monkeypatch.setattr(Lattice, "size", property(_shorter_size))
    else:
        monkeypatch.setattr(AllSensitiveValues, "size", property(_shorter_relation))
        monkeypatch.setattr(AllSensitiveValues, "counterparts", _fewer_counterparts)
    return str(request.param)


def _shorter_first_axis(axis: Axis) -> int:
    return axis.attribute.n_values - (axis.columns[0] == 0)  # type: ignore[union-attr]


def _shorter_size(lattice: Lattice) -> int:
    first, *rest = (len(axis) for axis in lattice.axes)
    return (first - 1) * int(np.prod(rest))


def _shorter_relation(relation: AllSensitiveValues) -> int:
    return _shorter_size(relation.space.lattice)


def _fewer_counterparts(relation: AllSensitiveValues, person: Vector) -> Iterator[Matrix]:
    everybody = np.concatenate(list(relation.space.lattice.counterparts(person)))
    yield everybody[: relation.size]


@pytest.mark.parametrize("attribute", KINDS, ids=lambda kind: f"{kind.kind} {kind.missing}")
def test_without_a_mistake_nothing_differs(attribute: Attribute) -> None:
    model, person = last_differs(attribute)
    assert not oracle.is_fair(model, person)
    assert disagreements(model, person, "exhaustive") == []


@pytest.mark.parametrize("attribute", KINDS, ids=lambda kind: f"{kind.kind} {kind.missing}")
def test_a_value_that_is_left_out_is_detected(attribute: Attribute, planted: str) -> None:
    model, person = last_differs(attribute)
    wrong = disagreements(model, person, "exhaustive")
    assert wrong[:2] == ["verdict: fair", "worst, verdict: fair"], planted
    assert "tally" in wrong


@pytest.mark.parametrize("attribute", KINDS, ids=lambda kind: f"{kind.kind} {kind.missing}")
def test_the_checker_also_lists_the_value_that_is_left_out(
    attribute: Attribute, planted: str
) -> None:
    model, person = last_differs(attribute)
    query = feta.FairAt(model, person)
    verdict = feta.verify(query, engine="exhaustive")
    assert isinstance(verdict, feta.Fair), planted
    with pytest.raises(CertificateError, match="got a counterpart with a different decision"):
        prove(verdict, query)


def test_bands_that_do_not_follow_their_source_are_detected(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    right = Axis.codes

    def wrong(axis: Axis, coordinates: Counts | Vector) -> Matrix:
        codes = np.array(right(axis, coordinates))
        codes[:, 1:] = [1.0, 0.0]  # always the first band
        return codes

    monkeypatch.setattr(Axis, "codes", wrong)
    space = FeatureSpace((AGE, BAND, INCOME))
    slopes = np.array([[0.0, 1.0, -1.0, 0.0]])
    model = Model(space, Network.from_layers([(slopes, [0.0])]), threshold=0.0)
    person = space.encode({"age": 20, "income": 1})[0]
    query = feta.FairAt(model, person)
    verdict = feta.verify(query, engine="exhaustive")
    assert isinstance(verdict, feta.Fair)
    assert not oracle.is_fair(model, person)
    assert feta.tally(model, person[None, :]).by_class[0].tolist() != oracle.tally(model, person)
    with pytest.raises(CertificateError, match="got a counterpart with a different decision"):
        prove(verdict, query)
