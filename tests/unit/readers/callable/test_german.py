"""Counted answers equal exact ones: German credit, a model that is read and counted."""

from typing import Any

import numpy as np
import pytest

import feta
from feta import Fair, Model, Unfair
from feta.datasets.german import load_german
from feta.io.raw_table import RawTable
from feta.readers.callable.read import read_callable
from feta.scorer.counted.options import CountingOptions

pytest.importorskip("sklearn")

from sklearn.compose import make_column_selector, make_column_transformer
from sklearn.ensemble import RandomForestClassifier
from sklearn.linear_model import LogisticRegression
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import OneHotEncoder, StandardScaler

from feta.readers.sklearn.trees import read_sklearn_trees

GERMAN = load_german()
ROWS = [3, 58, 211, 420, 777, 999]
OPTIONS = CountingOptions(batch=512, timeout=None)


def fitted(estimator: Any) -> Any:  # noqa: ANN401 - scikit-learn ships no types
    texts = make_column_selector(dtype_exclude="number")
    numbers = make_column_selector(dtype_include="number")
    columns = make_column_transformer(
        (OneHotEncoder(handle_unknown="ignore"), texts), (StandardScaler(), numbers)
    )
    return make_pipeline(columns, estimator).fit(GERMAN.frame, GERMAN.labels)


@pytest.mark.parametrize("kind", ["linear", "forest"])
def test_counts_verdicts_and_decisions_are_those_of_the_exact_reader(kind: str) -> None:
    space, linear = GERMAN.space, kind == "linear"
    estimator = (
        LogisticRegression(max_iter=2000)
        if linear
        else RandomForestClassifier(6, max_depth=5, random_state=0)
    )
    pipeline = fitted(estimator)
    table = RawTable.like(space, GERMAN.frame)
    read = feta.read_sklearn if linear else read_sklearn_trees
    exact = Model(space, read(pipeline, space, table=table))
    counted = Model(space, read_callable(pipeline, space, table=table, options=OPTIONS))
    assert (exact.scorer.provenance, counted.scorer.provenance) == ("proved", "counted")
    people = space.encode(GERMAN.frame.iloc[ROWS])
    tallies = [feta.tally(model, people) for model in (exact, counted)]
    np.testing.assert_array_equal(tallies[0].by_class, tallies[1].by_class)
    assert tallies[1].by_class.sum(axis=1).tolist() == [456] * len(ROWS)
    kinds = set()
    for person in people:
        proved, other = (
            feta.worst(model, person, engine="exhaustive") for model in (exact, counted)
        )
        assert type(proved) is type(other)
        kinds.add(type(proved))
        if isinstance(proved, Unfair) and isinstance(other, Unfair):
            assert other.optimal or linear  # products may round differently in other batches
            gaps = (proved.counterexample.gap, other.counterexample.gap)
            np.testing.assert_allclose(*gaps, rtol=1e-9)
    assert kinds <= {Fair, Unfair}
    assert kinds
    decisions = [feta.FairPredictor(model).decide(people) for model in (exact, counted)]
    np.testing.assert_array_equal(decisions[0], decisions[1])
