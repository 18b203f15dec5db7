"""Income: audit XGBoost on Adult, with native categories and 212,380 counterparts per person."""

import numpy as np
import pandas as pd
from xgboost import XGBClassifier

import feta
from feta import datasets

dataset = datasets.load("adult")  # downloaded once, unless FETA_DATA_DIR has it
space = dataset.space
kinds = {
    attribute.name: pd.CategoricalDtype(attribute.values)
    for attribute in space.attributes
    if isinstance(attribute, feta.Categorical)
}
X, y = dataset.frame.astype(kinds), dataset.labels
train = np.arange(len(X)) % 5 != 0
classifier = XGBClassifier(
    n_estimators=30, max_depth=4, enable_categorical=True, n_jobs=1, random_state=0
).fit(X[train], y[train])

scorer = feta.read_model(classifier, space)
model = feta.Model(space, scorer, outcomes=(dataset.unfavorable, dataset.favorable))
people = dataset.frame[~train].head(200)
audit = feta.audit(
    model, people, labels=list(y[~train][:200]), replay=feta.runtime_of(classifier, model)
)
print(f"{len(audit.pairs)} of {len(people)} people have a counterexample")

pair = audit.pairs[0].pair
assert pair is not None
person, counterpart = space.decode(pair.person), space.decode(pair.counterpart)
changes = {name: (value, counterpart[name]) for name, value in person.items()}
changes = {name: values for name, values in changes.items() if values[0] != values[1]}
print(f"the decision changes with {changes}")

hidden = people.drop(columns=[attribute.name for attribute in space.sensitive])
fair = feta.FairPredictor(model).decide(space.encode(hidden, sensitive="ignore"))
print(f"{fair.mean():.0%} get the favorable decision, whatever their sensitive columns are")
audit.to_html("income.html")
