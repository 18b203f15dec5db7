"""Results of the examples and of the programs that the README has shown.

Fits by scikit-learn differ in their last bits between processors, so results are rounded or
discrete.
`examples/lending.py` trains a network and is compared by `scripts/compare_training` instead.
"""

import contextlib
import io
import re
import runpy
import tempfile
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pandas as pd
from sklearn.compose import make_column_transformer
from sklearn.linear_model import LogisticRegression
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import OneHotEncoder, StandardScaler

import feta
from tests.golden.api_cases import described
from tests.golden.comparison import Json

EXAMPLES = Path(__file__).parents[2] / "examples"
FIGURE = re.compile(r"-?\d+(?:\.\d+)?|'\w+'")


def example(name: str) -> Json:
    """Run an example in an empty folder; return the figures it prints and the files it writes."""
    output = io.StringIO()
    with tempfile.TemporaryDirectory() as folder:
        with contextlib.chdir(folder), contextlib.redirect_stdout(output):
            runpy.run_path(str(EXAMPLES / f"{name}.py"))
        files = sorted(path.name for path in Path(folder).iterdir())
    return {"figures": FIGURE.findall(output.getvalue()), "files": files}


def pipeline() -> Json:
    """Audit a pipeline with its preprocessing."""
    frame = pd.DataFrame(
        {"age": [23, 45, 31, 62], "sex": ["f", "m", "f", "m"], "income": [21.0, 55.5, 40.0, 62.0]}
    )
    columns = make_column_transformer(
        (StandardScaler(), ["age", "income"]), (OneHotEncoder(), ["sex"])
    )
    fitted = make_pipeline(columns, LogisticRegression()).fit(frame, ["no", "yes", "no", "yes"])
    space = feta.FeatureSpace.from_frame(frame, sensitive=["age", "sex"])
    model = feta.Model(space, feta.read_sklearn(fitted, space), outcomes=("no", "yes"))
    audit = feta.audit(model, frame, replay=feta.runtime_of(fitted, model))
    pairs = [
        [finding.row, space.decode(finding.pair.person), space.decode(finding.pair.counterpart)]
        for finding in audit.pairs
        if finding.pair is not None
    ]
    return {"pairs": pairs, "ce_rate": audit.ce_rate, "flip_rate": audit.flip_rate}


def network() -> Json:
    """Query a network with random weights about two people."""
    space = feta.FeatureSpace(
        (
            feta.Integer("age", 19, 75, sensitive=True),
            feta.Categorical("sex", ("female", "male"), sensitive=True),
            feta.Real("income", 0, 500),
        )
    )
    rng = np.random.default_rng(0)
    layers = [
        (rng.normal(size=(8, 4)) / [50, 1, 1, 300], np.zeros(8)),
        (rng.normal(size=(1, 8)), np.array([-0.2])),
    ]
    model = feta.Model(space, feta.Network.from_layers(layers, activation="relu"), threshold=0.0)
    people = space.encode(
        [{"age": 41, "sex": "male", "income": 52}, {"age": 23, "sex": "female", "income": 210}]
    )
    counts = feta.tally(model, people)
    unread = space.encode([{"income": 52}, {"income": 210}], sensitive="ignore")
    return {
        "worst": [described(model, feta.worst(model, person)) for person in people],
        "favorable": counts.favorable.tolist(),
        "unfavorable": counts.unfavorable.tolist(),
        "fair_decisions": feta.FairPredictor(model).decide(unread).tolist(),
    }


def solver() -> Json:
    """Query a solver about a real-valued age."""
    space = feta.FeatureSpace(
        (feta.Real("age", 19, 75, sensitive=True), feta.Real("income", 0, 500))
    )
    layers = [([[0.1, 0.0]], [-4.07])]
    model = feta.Model(space, feta.Network.from_layers(layers), threshold=0.0)
    person = space.encode({"age": 30, "income": 52})[0]
    return described(model, feta.worst(model, person, engine="milp"))


PROGRAM_CASES: dict[str, Callable[[], Json]] = {
    "example_hiring": lambda: example("hiring"),
    "example_insurance": lambda: example("insurance"),
    "readme_pipeline": pipeline,
    "readme_network": network,
    "readme_solver": solver,
}
