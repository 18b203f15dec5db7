"""Lending: audit a network with three hidden layers on German credit data."""

import numpy as np

import feta
from feta import datasets
from feta.cli.demo import train_model

dataset = datasets.load("german")
people = dataset.space.encode(dataset.frame)
model = train_model(dataset, people, np.arange(len(people)) % 5 != 0, seed=0)
audit = feta.audit(model, dataset.frame.head(200), labels=list(dataset.labels[:200]))
print(f"CE rate {audit.ce_rate:.1%}, flip rate {audit.flip_rate:.1%}")
audit.to_html("lending.html")
