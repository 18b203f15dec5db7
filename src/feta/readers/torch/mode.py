"""Torch mode: whether a module as it stands computes something else than in evaluation mode."""

import copy
from typing import TYPE_CHECKING

from feta.errors import NetworkError
from feta.readers.torch.precision import traced

if TYPE_CHECKING:
    from torch import nn


def differs_in_training(module: "nn.Module") -> str:
    """Say which part of a module in training mode changes its outputs; empty if none does."""
    from torch.nn.modules.batchnorm import _NormBase  # noqa: PLC0415 - torch is an extra
    from torch.nn.modules.dropout import _DropoutNd  # noqa: PLC0415 - torch is an extra

    if not hasattr(module, "named_modules"):
        return ""  # no module of torch; it is refused for that
    training = [(name, one) for name, one in module.named_modules() if one.training]
    for name, one in training:
        if isinstance(one, _NormBase) or (isinstance(one, _DropoutNd) and one.p > 0):
            return f"module {name!r} ({type(one).__name__}) is in training mode"
    own = [one for _, one in training if not type(one).__module__.startswith("torch.nn.")]
    return "its forward depends on self.training" if own and _traces_differ(module) else ""


def refuse_training(module: "nn.Module") -> None:
    """Refuse a module whose outputs are others in evaluation mode."""
    found = differs_in_training(module)
    if found:
        raise NetworkError(
            f"the module must be in evaluation mode, in which trained networks decide: got one where {found}; call module.eval() before reading it"
        )


def _traces_differ(module: "nn.Module") -> bool:
    """Compare the steps of the forward in both modes."""
    try:
        still = traced(copy.deepcopy(module).cpu().eval())
    except Exception:  # a module that cannot be copied or traced is refused for that, elsewhere
        return False
    try:
        return bool(traced(copy.deepcopy(module).cpu()).code != still.code)
    except Exception:  # it is traced in one mode only
        return True
