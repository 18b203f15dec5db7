"""The import of torch, an extra."""

from typing import Any

from feta.errors import MissingExtra


def import_torch() -> Any:  # noqa: ANN401 - a module
    """Import torch when training needs it."""
    try:
        import torch  # noqa: PLC0415 - an extra, and slow to import
    except ImportError:
        raise MissingExtra("torch", "torch") from None
    return torch
