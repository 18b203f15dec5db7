"""Datasets: real tables with their spaces; only German credit's rows are in the package."""

from feta.datasets.adult import load_ipums_adult, load_uci_adult
from feta.datasets.dataset import Dataset
from feta.datasets.german import load_german
from feta.datasets.law import load_law
from feta.errors import SchemaError, one_of

__all__ = ["Dataset", "load"]

LOADERS = {
    "german": load_german,
    "adult": load_uci_adult,
    "ipums": load_ipums_adult,
    "law": load_law,
}


def load(name: str) -> Dataset:
    """Load a dataset by its name: frame, labels and space.

    German credit is in the package. The others are looked for in the folder that the environment variable
    FETA_DATA_DIR names, then in the user's cache, into which they are downloaded once.
    """
    if name not in LOADERS:
        raise SchemaError(f"a dataset must be {one_of(name, LOADERS)}")
    return LOADERS[name]()
