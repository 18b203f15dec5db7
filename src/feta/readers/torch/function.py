"""Torch modules that are counted: the module's own forward on encoded rows."""

from typing import TYPE_CHECKING, Any

from feta.errors import NetworkError
from feta.readers.network_function import End, NetworkFunction
from feta.readers.torch.mode import check_evaluation_mode
from feta.readers.torch.precision import trace_module
from feta.readers.torch.read import torch_outputs

if TYPE_CHECKING:
    from torch import nn

# The last steps of a forward, by the names of modules, functions and methods.
ENDS: dict[str, End] = {"linear": "scores", "sigmoid": "sigmoid", "softmax": "softmax"}
SHAPES = ("flatten", "reshape", "squeeze", "unsqueeze", "view")


def is_module(source: object) -> bool:
    """Return whether an object is a torch module."""
    return hasattr(source, "forward") and hasattr(source, "state_dict")


def torch_function(module: "nn.Module") -> NetworkFunction:
    """Return the module's forward, in evaluation mode, as a function of encoded rows.

    Raises
    ------
    NetworkError
        If the module computes something else in training mode and is in that mode.
    """
    import torch  # noqa: PLC0415 - torch is an extra

    check_evaluation_mode(module)
    tensors = [*module.parameters(), *module.buffers()]
    dtypes = {tensor.dtype for tensor in tensors if tensor.is_floating_point()}
    label = f"the forward of the module {type(module).__name__}"
    single = dtypes != {torch.float64}
    return NetworkFunction(label, torch_outputs(module), _end(module), single)


def _end(module: "nn.Module") -> End:
    """Return what the outputs are; a forward that cannot be traced may end in anything."""
    try:
        graph = trace_module(module)
    except NetworkError:
        return "unknown"
    step = next(node for node in reversed(graph.graph.nodes) if node.op == "output").args[0]
    while getattr(step, "op", "") in ("call_module", "call_function", "call_method"):
        name = _name(graph, step)
        if name not in SHAPES:
            return ENDS.get(name, "unknown")
        step = step.args[0]
    return "unknown"


def _name(graph: Any, step: Any) -> str:  # noqa: ANN401 - of torch.fx
    if step.op == "call_module":
        return type(graph.get_submodule(step.target)).__name__.lower()
    return str(getattr(step.target, "__name__", step.target)).lower()
