"""Results of the Python interface on the golden models and on hand-made estimators."""

from collections.abc import Callable
from typing import Any

import numpy as np
import pandas as pd
from sklearn.frozen import FrozenEstimator
from sklearn.linear_model import LinearRegression, LogisticRegression

import feta
from tests.golden.comparison import Json
from tests.golden.make_models import CELLS, MODELS

# Imported on first use, so their types are not known.
Classifier: Any = feta.FairClassifier
Regressor: Any = feta.FairRegressor

N_PEOPLE = 12  # people in every query


def table() -> pd.DataFrame:
    """Return the people without faults, as pandas reads them."""
    return pd.read_csv(MODELS / "good.csv")


def encoded(model: feta.Model, frame: pd.DataFrame) -> Any:  # noqa: ANN401 - an array
    """Encode the people who are inside the limits of every column."""
    inside = frame[frame["amount"].between(0, 16000)].head(N_PEOPLE)
    return model.space.encode(inside[CELLS])


def stored_model(name: str) -> feta.Model:
    """Read a golden model from its file."""
    if name in ("threshold", "real"):
        return feta.load_model(MODELS / f"{name}.feta")
    if name == "below":
        network = feta.read_onnx(MODELS / "below.onnx")
    elif name == "classes":
        network = feta.read_weights(MODELS / "classes.npz", ["fc1", "fc2"])
    else:
        network = feta.read_weights(MODELS / "limit.safetensors", ["fc1", "fc2", "fc3"])
    return feta.read_schema(MODELS / f"{name}.toml").model(network)


def described(model: feta.Model, verdict: object) -> Json:
    """Return the content of a verdict: kind, runtime, pair and optimality."""
    match verdict:
        case feta.Fair():
            return {"verdict": "fair", "runtime": verdict.runtime}
        case feta.Unfair():
            pair = verdict.counterexample
            return {
                "verdict": "unfair",
                "runtime": verdict.runtime,
                "optimal": verdict.optimal,
                "person": model.space.decode(pair.person),
                "counterpart": model.space.decode(pair.counterpart),
                "scores": pair.scores.tolist(),
                "decisions": [int(decision) for decision in pair.decisions],
                "gap": pair.gap,
            }
        case feta.Unknown():
            return {"verdict": "unknown", "runtime": verdict.runtime}
    raise TypeError(f"not a verdict: got {verdict!r}; expected Fair, Unfair or Unknown")


def verdicts(model: feta.Model, people: Any, *, engine: str = "auto") -> Json:  # noqa: ANN401
    """Return the answers of `worst`, and those of `verify` without the pair, which is any pair."""
    answers = []
    for person in people:
        verdict = feta.verify(feta.FairAt(model, person), engine=engine)
        kind = type(verdict).__name__
        answers.append(
            {
                "fair_at": [kind, None if kind == "Unfair" else verdict.runtime],
                "worst_at": described(model, feta.worst(model, person, engine=engine)),
            }
        )
    return answers


def decisions_of(name: str) -> Json:
    """Return verdicts, counts and fair decisions of a model that decides."""
    model = stored_model(name)
    people = encoded(model, table())
    counts = feta.tally(model, people)
    weights = feta.VoteWeights.from_people(model.space, people)
    return {
        "verdicts": verdicts(model, people),
        "by_class": counts.by_class.tolist(),
        "undecided": counts.undecided.tolist(),
        "fair_decisions": feta.FairPredictor(model).decide(people).tolist(),
        "weighted_decisions": feta.FairPredictor(model, weights=weights).decide(people).tolist(),
    }


def regression() -> Json:
    """Return verdicts, ranges of scores and fair scores of a regression model."""
    model = stored_model("limit")
    people = encoded(model, table())
    ranges = feta.spread(model, people)
    return {
        "verdicts": verdicts(model, people),
        "median": ranges.median.tolist(),
        "lowest": ranges.lowest.tolist(),
        "highest": ranges.highest.tolist(),
        "span": ranges.span.tolist(),
        "fair_scores": feta.FairPredictor(model).decide(people).tolist(),
    }


def real_valued() -> Json:
    """Return verdicts of the MILP engine for a real-valued sensitive attribute."""
    model = stored_model("real")
    rows = [{"age": 0.5, "sex": "female", "income": half / 2} for half in range(-8, 3)]
    return {"verdicts": verdicts(model, model.space.encode(rows), engine="milp")}


def audits() -> Json:
    """Return the results of `feta.audit` for the complete table and three rules."""
    frame = table()
    results = {}
    for name, label in (("threshold", "approved"), ("classes", "tier"), ("limit", "limit")):
        model = stored_model(name)
        result = feta.audit(model, frame[CELLS], labels=list(frame[label]))
        results[name] = {
            "ce_rate": result.ce_rate,
            "flip_rate": result.flip_rate,
            "undecided": len(result.undecided),
            "pairs": [[finding.row, finding.pair.gap] for finding in result.pairs if finding.pair],
        }
    return results


def estimators() -> Json:
    """Return the fair predictions of linear estimators with explicit weights."""
    space = feta.read_schema(MODELS / "threshold.toml").space
    frame = table()
    frame = frame[frame["amount"].between(0, 16000)]
    people = frame[CELLS]
    weights = np.array([[8, -24, 24, -4, 0, 0, 8, -8, 0, 2, -8, 1]]) / 8
    weights[0, 4:6] = [-1 / 1024, 1 / 256]
    classifier = LogisticRegression()
    classifier.coef_, classifier.intercept_ = weights, np.array([-30.0])
    classifier.classes_ = np.array(["granted", "refused"])
    classifier.n_features_in_ = weights.shape[1]
    equal = {"vote": "majority", "weights": None, "level": None}  # as in the paper
    fair = Classifier(FrozenEstimator(classifier), space, **equal).fit(people, frame["approved"])
    regressor = LinearRegression()
    regressor.coef_, regressor.intercept_ = weights[0], -30.0
    regressor.n_features_in_ = weights.shape[1]
    scores = Regressor(FrozenEstimator(regressor), space).fit(people, frame["limit"])
    return {
        "counterparts": int(fair.n_counterparts_),
        "own_predictions": classifier.predict(space.encode(people)).tolist(),
        "fair_predictions": fair.predict(people).tolist(),
        "fair_scores": scores.predict(people).tolist(),
    }


API_CASES: dict[str, Callable[[], Json]] = {
    "api_threshold": lambda: decisions_of("threshold"),
    "api_below": lambda: decisions_of("below"),
    "api_classes": lambda: decisions_of("classes"),
    "api_limit": regression,
    "api_real": real_valued,
    "api_audit": audits,
    "api_estimators": estimators,
}
