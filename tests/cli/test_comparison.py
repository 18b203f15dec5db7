from collections.abc import Callable
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

from feta.arrays import Answers, Matrix
from feta.errors import NetworkError
from feta.io.table_file import TableFile
from feta.readers.check_reading import DRAWN_PEOPLE, check_reading
from feta.readers.load import LoadedModel
from feta.readers.runtime import Runtime, SourceAnswers
from feta.space.sampling import draw_people
from tests.examples import linear

MODEL = linear(age=1.0, bias=-50.5)
NAMES = [attribute.name for attribute in MODEL.space.attributes]


def runtime(decide: Callable[[Matrix], Answers]) -> Runtime:
    return Runtime(
        "its own predict", lambda people: SourceAnswers(decide(people)), lambda rows: rows
    )


def opposite_decisions(people: Matrix) -> Answers:
    return ~np.asarray(MODEL.decide(people), dtype=bool)


def test_a_model_with_the_same_decisions_is_accepted() -> None:
    compared = check_reading(LoadedModel(MODEL, runtime(MODEL.decide)))
    assert compared is not None
    assert (compared.rows, compared.different, compared.on_table) == (DRAWN_PEOPLE, 0, False)
    assert check_reading(LoadedModel(MODEL)) is None  # nothing to compare with


def test_a_model_with_other_decisions_is_refused() -> None:
    message = f"its own predict differs from FETA's reading of the model for {DRAWN_PEOPLE:,} of"
    with pytest.raises(NetworkError, match=message):
        check_reading(LoadedModel(MODEL, runtime(opposite_decisions)))


def test_compared_rows_are_spread_over_a_long_table(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("feta.readers.check_reading.MAX_ROWS", 100)
    people = draw_people(MODEL.space, np.random.default_rng(0), 1001)
    pd.DataFrame([MODEL.space.decode(row) for row in people]).to_csv(tmp_path / "p.csv")
    table = TableFile(tmp_path / "p.csv")
    loaded = LoadedModel(MODEL, runtime(MODEL.decide), table=table, formats=table.formats(NAMES))
    compared = check_reading(loaded)
    assert compared is not None
    assert compared.on_table
    assert 50 <= compared.rows <= 100
