"""FETA: is there anybody whose decision would change if only their age, race or sex were different?

It verifies, enforces and explains the individual fairness of neural networks. Results are exact.
"""

import importlib.metadata

import lazy_loader

# The names are listed in __init__.pyi and imported on first use, so that commands start fast.
__getattr__, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)

try:
    __version__ = importlib.metadata.version("feta-fair")
except importlib.metadata.PackageNotFoundError:  # imported from a source folder, not installed
    __version__ = "0+unknown"
