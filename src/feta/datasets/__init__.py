"""Datasets: real tables with their spaces; only German credit's rows are in the package."""

from feta.datasets.dataset import Dataset
from feta.datasets.german import load_german
from feta.errors import SchemaError, one_of

__all__ = ["Dataset", "load"]

LOADERS = {"german": load_german}


def load(name: str) -> Dataset:
    """Load a dataset by its name: frame, labels and space."""
    if name not in LOADERS:
        raise SchemaError(f"a dataset must be {one_of(name, LOADERS)}")
    return LOADERS[name]()
