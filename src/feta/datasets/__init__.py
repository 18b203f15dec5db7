"""Real tables with their feature spaces; the package contains the rows of German credit only."""

from feta.datasets.adult import load_ipums_adult, load_uci_adult
from feta.datasets.dataset import Dataset
from feta.datasets.german import load_german
from feta.datasets.law import load_law
from feta.errors import SchemaError, unknown_choice

__all__ = ["Dataset", "load"]

LOADERS = {
    "german": load_german,
    "adult": load_uci_adult,
    "ipums": load_ipums_adult,
    "law": load_law,
}


def load(name: str) -> Dataset:
    """Load a dataset by its name: frame, labels and space.

    German credit is part of the package. The files of the others are read from the folder
    `FETA_DATA_DIR` (an environment variable) or from the user's cache; a file that is in neither
    is downloaded once into the cache.
    """
    if name not in LOADERS:
        raise SchemaError(f"unknown dataset: {unknown_choice(name, LOADERS)}")
    return LOADERS[name]()
