"""Training mode: whether a module computes something else than in evaluation mode."""

import copy
from typing import TYPE_CHECKING

from feta.errors import NetworkError
from feta.readers.torch.precision import trace_module

if TYPE_CHECKING:
    from torch import nn


def differs_in_training(module: "nn.Module") -> str:
    """Return why a module in training mode gives other outputs; empty if it does not."""
    from torch.nn.modules.batchnorm import _NormBase  # noqa: PLC0415 - torch is an extra
    from torch.nn.modules.dropout import _DropoutNd  # noqa: PLC0415 - torch is an extra

    if not hasattr(module, "named_modules"):
        return ""  # not a torch module; rejected elsewhere
    training = [(name, part) for name, part in module.named_modules() if part.training]
    for name, part in training:
        if isinstance(part, _NormBase) or (isinstance(part, _DropoutNd) and part.p > 0):
            return f"module {name!r} ({type(part).__name__}) is in training mode"
    custom = [part for _, part in training if not type(part).__module__.startswith("torch.nn.")]
    return "its forward depends on self.training" if custom and _traces_differ(module) else ""


def check_evaluation_mode(module: "nn.Module") -> None:
    """Reject a module whose outputs differ from those in evaluation mode."""
    reason = differs_in_training(module)
    if reason:
        raise NetworkError(
            f"the module is not in evaluation mode: got one in which {reason}; expected the mode "
            "in which trained networks decide; call module.eval() before reading it"
        )


def _traces_differ(module: "nn.Module") -> bool:
    """Return whether the traced forwards differ between the modes."""
    try:
        evaluation = trace_module(copy.deepcopy(module).cpu().eval())
    except Exception:  # a module that cannot be copied or traced is rejected elsewhere
        return False
    try:
        return bool(trace_module(copy.deepcopy(module).cpu()).code != evaluation.code)
    except Exception:  # it can be traced in one mode only
        return True
