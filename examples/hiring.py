"""Hiring: audit a pipeline on generated applicants, then wrap it so that it cannot discriminate."""

import numpy as np
import pandas as pd
from sklearn.compose import make_column_transformer
from sklearn.frozen import FrozenEstimator
from sklearn.linear_model import LogisticRegression
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import OneHotEncoder, StandardScaler

import feta

rng = np.random.default_rng(1)
X = pd.DataFrame(
    {
        "sex": rng.choice(["female", "male"], 300),
        "origin": rng.choice(["here", "abroad"], 300),
        "years": rng.integers(0, 30, 300),
        "degree": rng.choice(["none", "bachelor", "master"], 300),
    }
)
merit = X.years + 5 * (X.degree == "master") + 3 * (X.origin == "here")
y = np.where(merit + rng.normal(0, 3, 300) > 16, "invited", "rejected")
columns = make_column_transformer(
    (StandardScaler(), ["years"]), (OneHotEncoder(), ["sex", "origin", "degree"])
)
pipeline = make_pipeline(columns, LogisticRegression()).fit(X, y)
space = feta.FeatureSpace.from_frame(X, sensitive=["sex", "origin"])
rule = feta.Threshold(0.0, favors="below")  # the first class, invited, has low scores
model = feta.Model(
    space, feta.read_sklearn(pipeline, space), rule, outcomes=("rejected", "invited")
)
audit = feta.audit(model, X, labels=list(y), replay=feta.runtime_of(pipeline, model))
print(f"{len(audit.pairs)} of {len(X)} applicants have a counterexample")
audit.to_html("hiring.html")

fair = feta.FairClassifier(FrozenEstimator(pipeline), space).fit(X, y)
print(fair.predict(X[["years", "degree"]])[:5])
