"""Lending: German credit data, a network of three hidden layers, its report, and what fairness costs."""

import numpy as np

import feta
from feta import datasets
from feta.cli.demo import train_model

dataset = datasets.load("german")
people = dataset.space.encode(dataset.frame)
model = train_model(dataset, people, np.arange(len(people)) % 5 != 0, seed=0)
found = feta.audit(model, dataset.frame.head(200), labels=list(dataset.labels[:200]))
print(f"CE rate {found.ce_rate:.1%}, flip rate {found.flip_rate:.1%}")
found.to_html("lending.html")
