"""One suite for all relations: keys, counterparts and ids agree with each other."""

import numpy as np
import pytest

from feta.errors import DomainError
from feta.relation.protocol import Relation
from tests.contract.test_scorers import PEOPLE, RELATIONS, SPACE


@pytest.mark.parametrize("relation", RELATIONS)
def test_counterparts_are_the_admitted_people_with_the_same_key(relation: Relation) -> None:
    keys = relation.keys(PEOPLE)
    admitted = relation.admits(PEOPLE)
    for row, person in enumerate(PEOPLE):
        for other_row, other in enumerate(PEOPLE):
            related = keys[row] == keys[other_row] and admitted[other_row] and admitted[row]
            assert relation.related(person, other) is bool(related)


@pytest.mark.parametrize("relation", RELATIONS)
def test_all_ways_to_list_counterparts_agree(relation: Relation) -> None:
    for person in PEOPLE:
        rows = np.concatenate(list(relation.counterparts(person)))
        ids = relation.assignment_ids(person)
        ids = np.arange(relation.size) if ids is None else ids
        assert len(rows) == len(ids) == relation.count(person)
        assert (np.diff(ids) > 0).all()
        np.testing.assert_array_equal(rows, [relation.counterpart(person, int(n)) for n in ids])
        np.testing.assert_array_equal(rows, relation.moved(person, ids))
        np.testing.assert_array_equal(
            relation.combinations(ids), SPACE.lattice.assignment_ids(rows)
        )
        assert relation.admits(rows).all()
        assert len(np.unique(rows, axis=0)) == len(rows)
        assert set(relation.keys(rows)) == set(relation.keys(person[None, :]))


@pytest.mark.parametrize("relation", RELATIONS)
def test_a_key_reads_sensitive_columns_only_if_it_says_so(relation: Relation) -> None:
    hidden = np.array(PEOPLE)
    hidden[:, SPACE.sensitive_columns] = np.nan
    assert relation.has_key
    if relation.reads_sensitive:
        with pytest.raises(DomainError, match="the noise cannot be recovered: got rows without"):
            relation.keys(hidden)
    else:
        assert relation.keys(hidden) == relation.keys(PEOPLE)


@pytest.mark.parametrize("relation", RELATIONS)
def test_a_relation_has_the_axes_of_its_space_and_a_fingerprint(relation: Relation) -> None:
    assert [axis.attribute.name for axis in relation.axes] == ["age", "sex"]
    assert relation.finite
    assert relation.over(SPACE).fingerprint == relation.fingerprint
    assert relation.size == 16
