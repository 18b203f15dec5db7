"""Files of boosters on the command line: their rounds, and what they do not state."""

import json
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

from tests.cli.commands import run
from tests.extras import needs

pytestmark = needs("xgboost")

SCHEMA = """
[decision]
threshold = 0.5
favorable = "yes"
unfavorable = "no"
[columns]
age = { type = "integer", min = 20, max = 29, sensitive = true }
income = { type = "integer", min = 0, max = 99 }
"""


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """Return a folder with files of a classifier whose training stopped early."""
    import xgboost  # noqa: PLC0415 - an extra

    rng = np.random.default_rng(0)
    people = pd.DataFrame({"age": rng.integers(20, 30, 300), "income": rng.integers(0, 100, 300)})
    y = (people["age"] * 3 + people["income"] + rng.normal(0, 40, 300) > 125).astype(int)
    model = xgboost.XGBClassifier(
        n_estimators=60, learning_rate=0.7, early_stopping_rounds=5, n_jobs=1
    )
    model.fit(people[:150], y[:150], eval_set=[(people[150:], y[150:])], verbose=False)
    assert model.best_iteration + 1 < model.get_booster().num_boosted_rounds()
    model.save_model(tmp_path / "wrapper.json")
    model.get_booster().save_model(tmp_path / "booster.json")
    (tmp_path / "schema.toml").write_text(SCHEMA)
    people.head(30).to_csv(tmp_path / "people.csv", index=False)
    return tmp_path


@pytest.mark.parametrize(
    ("name", "note"),
    [
        ("wrapper.json", "a wrapper saved the file: FETA uses the"),
        ("booster.json", "a Booster saved the file: FETA uses all"),
    ],
)
def test_an_early_stopped_file_is_audited_with_the_rounds_of_its_runtime(
    folder: Path, name: str, note: str
) -> None:
    options = ("--schema", "schema.toml", "--data", "people.csv")
    done = run("audit", name, *options, "--out", "audit", cwd=folder)
    assert done.returncode in (0, 1), done.stderr
    assert "compared with XGBoost's own predict: the same decisions" in done.stdout
    assert note in done.stderr + done.stdout
    done = run("doctor", name, *options, "--json", cwd=folder)
    rounds, cells = json.loads(done.stdout)["notes"]
    assert note in rounds
    assert cells.startswith("a file of XGBoost does not state which cells were missing")
