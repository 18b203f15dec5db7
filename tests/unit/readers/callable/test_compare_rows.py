"""Comparison of the user's rows with those that FETA builds, for functions that fail or change."""

import numpy as np
import pandas as pd

import feta
from feta import Model
from feta.readers.callable.read import read_callable
from feta.readers.callable.runtime import counted_runtime
from feta.readers.comparison import compare
from tests.counted import OPTIONS, SPACE, approve, people

FRAME = pd.DataFrame(people(20, seed=5))
PEOPLE = SPACE.encode(FRAME)


def test_rows_that_the_function_refuses_are_not_compared() -> None:
    def fails_on_the_table(frame: pd.DataFrame) -> np.ndarray:
        if frame.index.name == "the table":
            raise ValueError("no such row")
        return approve(frame)

    model = Model(SPACE, read_callable(fails_on_the_table, SPACE, options=OPTIONS))
    own = FRAME.rename_axis(index="the table")
    done = compare(model, counted_runtime(model), PEOPLE, own)
    assert (done.rows, done.failed, done.different) == (0, 20, 0)
    assert done.sentence().startswith("No row of the table could be compared with the function")
    both = done + compare(model, counted_runtime(model), PEOPLE, FRAME)
    assert (both.rows, both.failed) == (20, 20)
    assert "the same decisions; 20 more could not be compared: it failed." in both.sentence()


def test_a_function_that_changes_its_rows_changes_only_its_own() -> None:
    class Shifts:
        n_features_in_ = SPACE.width
        classes_ = np.array([0, 1])

        def predict(self, rows: np.ndarray) -> np.ndarray:
            rows[:, 0] -= 18
            return (rows[:, 3] + rows[:, 0] > 24).astype(int)

    model = Model(SPACE, read_callable(Shifts(), SPACE, options=OPTIONS))
    expected = Shifts().predict(PEOPLE.copy()) == 1
    assert model.decide(PEOPLE).tolist() == expected.tolist()
    income, before = FRAME["income"].copy(), FRAME.copy()

    def clears(frame: pd.DataFrame) -> np.ndarray:
        decided = (frame["income"] > 20).to_numpy()
        frame["income"] = 0
        return decided

    model = Model(SPACE, read_callable(clears, SPACE, options=OPTIONS))
    done = compare(model, counted_runtime(model), PEOPLE, FRAME)
    assert (done.rows, done.different) == (20, 0)
    pd.testing.assert_frame_equal(FRAME, before)
    audit = feta.audit(model, FRAME, replay=counted_runtime(model))
    assert audit.ce_rate == 0.0
    assert income.nunique() > 1
