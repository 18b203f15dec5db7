"""Deprecated names of attributes."""

import warnings
from typing import Any


def renamed(old: str, new: str) -> Any:  # noqa: ANN401 - it has the type of the new attribute
    """Return a property for `old` that warns and returns the attribute `new`."""

    def read(self: object) -> object:
        warnings.warn(f"{old} is deprecated: use {new}", DeprecationWarning, stacklevel=2)
        return getattr(self, new)

    return property(read, doc=f"Deprecated name of `{new}`.")
