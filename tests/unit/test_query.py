import numpy as np
import pytest

from feta import DomainError, FairAt, WorstAt
from tests.examples import PERSON, linear

MODEL = linear(age=1.0)


@pytest.mark.parametrize("query", [FairAt, WorstAt])
@pytest.mark.parametrize(
    ("person", "message"),
    [
        (
            PERSON[:3],
            r"invalid people: got an array of shape \(1, 3\); expected a matrix with 4 columns",
        ),
        (np.array(1.0), r"invalid person: got the shape \(\); expected one row"),
        (PERSON[None, :], r"invalid person: got the shape \(1, 4\); expected one row"),
        (
            np.array([30.0, 1.0, 0.0, np.nan]),
            "'income' is invalid: got nan; expected a number from 0 to 100",
        ),
        (np.array([30.0, 1.0, 1.0, 0.0]), r"'sex' is invalid: got \[1\.0, 1\.0\]"),
    ],
)
def test_an_invalid_person_is_refused(
    query: type[FairAt], person: np.ndarray, message: str
) -> None:
    with pytest.raises(DomainError, match=message):
        query(MODEL, person)


def test_a_query_copies_the_person() -> None:
    person = np.array(PERSON)
    query = FairAt(MODEL, person)
    person[0] = 90.0
    assert query.person[0] == 30.0
    assert not query.person.flags.writeable


def test_any_two_queries_have_different_digests() -> None:
    older = np.array(PERSON)
    older[0] = 31.0
    richer = np.array(PERSON)
    richer[3] = np.nextafter(50.0, 51)
    queries = [
        FairAt(MODEL, PERSON),
        WorstAt(MODEL, PERSON),
        FairAt(MODEL, older),
        FairAt(MODEL, richer),
        FairAt(linear(age=2.0), PERSON),
    ]
    assert len({query_.digest for query_ in queries}) == len(queries)
    assert FairAt(linear(age=1.0), np.array(PERSON)).digest == FairAt(MODEL, PERSON).digest


def test_negative_zero_gives_the_same_digest() -> None:
    poor, negative = (np.array([30.0, 1.0, 0.0, zero]) for zero in (0.0, -0.0))
    assert FairAt(MODEL, poor).digest == FairAt(MODEL, negative).digest
