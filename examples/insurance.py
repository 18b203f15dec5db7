"""Insurance: audit premiums of generated drivers; those of counterparts may differ by 50."""

import numpy as np
import pandas as pd
from sklearn.linear_model import LinearRegression
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

import feta

rng = np.random.default_rng(2)
X = pd.DataFrame(
    {
        "age": rng.integers(18, 80, 200),
        "mileage": rng.integers(1, 40, 200),
        "claims": rng.integers(0, 4, 200),
    }
)
premium = 300 + 8 * X.mileage + 90 * X.claims + 1.5 * (X.age - 50).abs() + rng.normal(0, 20, 200)
pipeline = make_pipeline(StandardScaler(), LinearRegression()).fit(X, premium)
space = feta.FeatureSpace.from_frame(X, sensitive=["age"])
model = feta.Model(space, feta.read_sklearn(pipeline, space), feta.Tolerance(50.0))
audit = feta.audit(model, X, labels=list(premium))
print(f"CE rate {audit.ce_rate:.1%}; spans up to {audit.summary.max_span:.0f}")
audit.to_html("insurance.html")
