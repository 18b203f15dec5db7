"""Groups of an audit: people who are alike are counted together, with the same result."""

import numpy as np
import pytest

import feta
from feta.auditing.finding import Finding
from feta.auditing.groups import Group, Groups
from feta.model import Model
from feta.rule import Outcome

SPACE = feta.FeatureSpace(
    (
        feta.Integer("age", 18, 90, sensitive=True),
        feta.Categorical("sex", ("f", "m"), sensitive=True),
        feta.Real("income", 0, 99),
    )
)
NETWORK = feta.Network.from_layers([([[0.1, 1.0, 0.0, 1.0]], [-9.0])])


@pytest.mark.parametrize("tolerance", [None, 1.0])
def test_a_block_is_counted_as_its_people_one_by_one(tolerance: float | None) -> None:
    rule = None if tolerance is None else feta.Tolerance(tolerance)
    model = Model(SPACE, NETWORK, rule)  # type: ignore[arg-type]  # None is the default
    random = np.random.default_rng(0)
    people = SPACE.encode(
        [
            {"age": int(random.integers(18, 91)), "sex": "fm"[random.integers(2)], "income": n}
            for n in range(90)
        ]
    )
    outcomes: list[Outcome | None] = [True, False, None] if tolerance is None else [0.5, 2.0, None]
    findings = [
        Finding(row, None, outcomes[random.integers(3)], outcomes[random.integers(3)])
        for row in range(90)
    ]
    labels = [outcomes[random.integers(3)] for _ in range(90)]
    together, alone = Groups.of(model), Groups.of(model)
    together.add(people, findings, labels)
    for row in range(90):
        alone.add(people[row : row + 1], findings[row : row + 1], labels[row : row + 1])
    assert together.by_attribute == alone.by_attribute
    assert together.by_intersection == alone.by_intersection
    assert list(together.by_intersection) == list(alone.by_intersection)
    assert sum(group.people for group in together.by_intersection.values()) == 90


def test_several_people_count_as_often_as_one_by_one() -> None:
    finding, many, few = Finding(0, None, True, False), Group(), Group()
    many.add(finding, True, None, people=3)
    for _ in range(3):
        few.add(finding, True, None)
    assert many == few
    assert (many.people, many.flips, many.right) == (3, 3, 3)
