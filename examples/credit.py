"""Credit: audit LightGBM on German credit data, with savings that are not known."""

import numpy as np
import pandas as pd
from lightgbm import LGBMClassifier

import feta
from feta import datasets

dataset = datasets.load("german")
frame = dataset.frame.replace({"savings": {"unknown or none": None}})
space = feta.FeatureSpace.from_frame(frame, sensitive=["age", "personal_status"], missing=True)
kinds = {
    attribute.name: pd.CategoricalDtype(attribute.values)
    for attribute in space.attributes
    if isinstance(attribute, feta.Categorical)
}
X, y = frame.astype(kinds), dataset.labels
train = np.arange(len(X)) % 5 != 0
classifier = LGBMClassifier(n_estimators=40, num_leaves=15, n_jobs=1, random_state=0, verbose=-1)
classifier.fit(X[train], y[train])

scorer = feta.read_model(classifier, space)
model = feta.Model(space, scorer, outcomes=(dataset.unfavorable, dataset.favorable))
applicants = frame[~train]
audit = feta.audit(
    model, applicants, labels=list(y[~train]), replay=feta.runtime_of(classifier, model)
)
print(f"{len(audit.pairs)} of {len(applicants)} applicants have a counterexample")

pair = audit.pairs[0].pair
assert pair is not None
person, counterpart = space.decode(pair.person), space.decode(pair.counterpart)
changes = {name: (value, counterpart[name]) for name, value in person.items()}
changes = {name: values for name, values in changes.items() if values[0] != values[1]}
print(f"the decision changes with {changes}")

hidden = applicants.drop(columns=["age", "personal_status"])
fair = feta.FairPredictor(model).decide(space.encode(hidden, sensitive="ignore"))
print(f"{fair.mean():.0%} are approved, whatever their age and personal status")
audit.to_html("credit.html")
