import numpy as np
import pytest

from feta import Categorical, Derived, FeatureSpace, Integer, Levels, Real
from feta.space.lattice import BLOCK

SPACE = FeatureSpace(
    (
        Derived("band", "age", (("young", 1, 2), ("old", 3, 3))),
        Real("income", 0, 9),
        Integer("age", 1, 3, sensitive=True),
        Categorical("sex", ("f", "m"), sensitive=True),
        Levels("hours", (-0.5, 2.0), sensitive=True),
    )
)
PERSON = SPACE.encode({"income": 4, "age": 2, "sex": "m", "hours": -0.5})[0]


def test_the_first_axis_varies_slowest() -> None:
    decoded = [
        SPACE.decode(SPACE.lattice.counterpart(PERSON, n)) for n in range(SPACE.lattice.size)
    ]
    assert [(record["age"], record["sex"], record["hours"]) for record in decoded] == [
        (age, sex, hours) for age in (1, 2, 3) for sex in "fm" for hours in (-0.5, 2.0)
    ]


def test_a_derived_attribute_changes_with_its_source() -> None:
    for number in range(SPACE.lattice.size):
        record = SPACE.decode(SPACE.lattice.counterpart(PERSON, number))
        assert record["band"] == ("old" if record["age"] == 3 else "young")


def test_counterparts_include_the_person_once_and_share_the_rest() -> None:
    (block,) = SPACE.lattice.counterparts(PERSON)
    assert len(block) == len(SPACE.lattice) == SPACE.lattice.size == 12
    assert len(np.unique(block, axis=0)) == 12
    assert (block == PERSON).all(axis=1).sum() == 1
    assert (block[:, 2] == 4.0).all()
    SPACE.check(block)


def test_assignment_ids_identify_assignments() -> None:
    lattice = SPACE.lattice
    (block,) = lattice.counterparts(PERSON)
    assert lattice.assignment_ids(block).tolist() == list(range(lattice.size))
    assignment_id = int(lattice.assignment_ids(PERSON[None, :])[0])
    assert (lattice.counterpart(PERSON, assignment_id) == PERSON).all()
    assert lattice.assignment_ids(block[:0]).shape == (0,)


def test_a_counterpart_is_a_copy() -> None:
    before = PERSON.tobytes()
    SPACE.lattice.counterpart(PERSON, 0)[:] = 0.0
    assert PERSON.tobytes() == before


def test_each_person_may_get_another_assignment() -> None:
    people = np.stack([PERSON, PERSON])
    people[1, 2] = 7.0  # income
    moved = SPACE.lattice.moved(people, np.array([0, 11]))
    assert SPACE.lattice.assignment_ids(moved).tolist() == [0, 11]
    assert [SPACE.decode(person)["income"] for person in moved] == [4, 7]
    SPACE.check(moved)


@pytest.mark.parametrize(("start", "stop"), [(0, 0), (5, 5), (0, 1), (3, 11), (11, 12)])
def test_codes_are_a_slice_of_all_codes(start: int, stop: int) -> None:
    lattice = SPACE.lattice
    np.testing.assert_array_equal(
        lattice.codes(start, stop), lattice.codes(0, lattice.size)[start:stop]
    )
    assert lattice.codes(start, stop).shape == (stop - start, len(lattice.columns))


@pytest.mark.parametrize("size", [BLOCK - 1, BLOCK, BLOCK + 1])
def test_counterparts_are_returned_in_blocks(size: int) -> None:
    space = FeatureSpace((Integer("n", 1, size, sensitive=True),))
    blocks = list(space.lattice.counterparts(np.array([1.0])))
    assert max(len(block) for block in blocks) <= BLOCK
    np.testing.assert_array_equal(np.concatenate(blocks)[:, 0], np.arange(1, size + 1))


def test_a_size_beyond_64_bits_is_exact() -> None:
    wide = FeatureSpace(tuple(Integer(f"n{i}", 1, 2**40, sensitive=True) for i in range(2)))
    assert wide.lattice.size == 2**80
