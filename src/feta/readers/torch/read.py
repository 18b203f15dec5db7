"""Torch: a module read into a Network by tracing its forward, and run itself to replay people."""

import copy
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Literal

import numpy as np

from feta.arrays import Matrix
from feta.errors import FetaError, MissingExtra, NetworkError
from feta.readers.torch.check import (
    check_own_scores,
    check_scores,
    in_short,
    refuse_changed,
)
from feta.readers.torch.graph import SAME_MODULES, Graph, TorchGraphReader
from feta.readers.torch.mode import refuse_training
from feta.readers.torch.precision import refuse_around, traced
from feta.readers.torch.steps import kind_of
from feta.scorer.network.agreement import Squash
from feta.scorer.network.network import Network

if TYPE_CHECKING:
    import torch
    from torch import nn

# Input columns that are tried where a module does not say how many it takes.
MAX_COLUMNS = 1024


def read_torch(module: "nn.Module", *, columns: int | Sequence[int] | None = None) -> Network:
    """Read a trained torch module whose steps are piecewise-linear.

    Its forward is traced: Linear, the activations, BatchNorm1d, Embedding (by the numbers in a
    column), slices and `cat` of the input before the first layer, Dropout, shapes. A last Sigmoid,
    Softmax or LogSoftmax is taken off: scores are what goes into it. `columns` says how many columns
    each argument takes, where that does not follow from the layers; arguments stand side by side.
    The reading is checked against the module's own forward pass, in float64 and in its own format.
    A module that computes something else in training mode must be in evaluation mode, and one that
    computes in reduced precision, as under `torch.autocast`, is refused.
    """
    return read_module(module, columns)[0]


def read_module(
    module: "nn.Module",
    columns: int | Sequence[int] | None = None,
    *,
    any_mode: bool = False,
) -> tuple[Network, Squash | None]:
    """Read a module as `read_torch` does, and say what was taken off its end.

    `any_mode` is for sources that put the module into evaluation mode themselves before it decides.
    """
    if not _installed():
        raise MissingExtra("torch", "torch")
    try:
        return _read(module, columns, any_mode=any_mode)
    except FetaError:
        raise
    except Exception as error:  # what a module of unknown code holds may be anything
        message = f"the module cannot be read ({type(error).__name__}: {in_short(error)}); export it as ONNX and read that"
        raise NetworkError(message) from error


def _read(
    module: "nn.Module", columns: int | Sequence[int] | None, *, any_mode: bool
) -> tuple[Network, Squash | None]:
    import torch  # noqa: PLC0415 - torch is an extra

    refuse_around()
    source = _source(module)
    refuse_changed(module)
    still = _still(module)
    if not any_mode:
        refuse_training(module)
    graph = traced(still)
    widths = _widths(still, graph, columns)
    reading = TorchGraphReader(graph, widths, source)
    network = reading.network()
    check_scores(network, _outputs(_still(still).double(), torch.float64, widths), reading.squashed)
    own = torch.float64 if source == "float64" else torch.float32
    check_own_scores(network, _outputs(still, own, widths))
    return network, reading.squashed


def torch_outputs(module: "nn.Module") -> Callable[[Matrix], Matrix]:
    """Give a function that runs the module itself, in evaluation mode, on rows of its inputs."""
    import torch  # noqa: PLC0415 - torch is an extra

    still = _still(module)
    held = [*still.parameters(), *still.buffers()]
    kinds = {tensor.dtype for tensor in held if tensor.is_floating_point()}
    kind = torch.float64 if kinds == {torch.float64} else torch.float32
    return _outputs(still, kind)


def _outputs(
    still: "nn.Module", kind: "torch.dtype", widths: Sequence[int] = ()
) -> Callable[[Matrix], Matrix]:
    """Give a function that runs a module on rows of this type, cut apart where it takes several."""
    import torch  # noqa: PLC0415 - torch is an extra

    def outputs(rows: Matrix) -> Matrix:
        refuse_around()
        entry = torch.from_numpy(np.ascontiguousarray(rows)).to(kind)
        parts = torch.split(entry, list(widths), 1) if len(widths) > 1 else [entry]
        with torch.no_grad():
            return np.asarray(still(*parts).double().numpy().reshape(len(rows), -1))

    return outputs


def _still(module: "nn.Module") -> "nn.Module":
    """Copy a module, in evaluation mode."""
    try:
        return copy.deepcopy(module).cpu().eval()
    except Exception as error:  # a module may hold anything
        message = f"the module must be one that copy.deepcopy can copy, but is not ({in_short(error)}); keep only parameters, buffers and modules in it"
        raise NetworkError(message) from None


def _installed() -> bool:
    try:
        import torch  # noqa: F401, PLC0415 - torch is an extra
    except ImportError:
        return False
    return True


def _source(module: "nn.Module") -> Literal["float32", "float64"]:
    """Tell what the module computes with."""
    import torch  # noqa: PLC0415 - torch is an extra

    wide = {torch.float32, torch.float64}
    kinds = {parameter.dtype for parameter in module.parameters()}
    if kinds == {torch.float64}:
        return "float64"
    held = {buffer.dtype for buffer in module.buffers() if buffer.is_floating_point()}
    kinds |= held - wide
    if kinds <= wide:
        return "float32"
    shown = ", ".join(sorted(str(kind) for kind in kinds))
    raise NetworkError(
        f"the module must compute in float32 or float64, got {shown}; use module.float()"
    )


def _widths(module: "nn.Module", graph: Graph, told: int | Sequence[int] | None) -> tuple[int, ...]:
    """Tell how many columns each argument takes: as told, or the fewest with which it runs."""
    entries = [node for node in graph.graph.nodes if node.op == "placeholder"]
    if told is not None:
        widths = (told,) if isinstance(told, int) else tuple(told)
        if len(widths) != len(entries):
            message = f"columns must give a number for each of {len(entries)} arguments, got {told}"
            raise NetworkError(message)
        return widths
    if len(entries) != 1:
        names = ", ".join(repr(node.name) for node in entries)
        message = f"the module takes {len(entries)} arguments ({names}), so say how many columns each has: read_torch(module, columns=(…))"
        raise NetworkError(message)
    first = _first_width(graph)
    if first:
        return (first,)  # where it does not run, the layer that is wrong is told
    outputs = torch_outputs(module)
    width = next((one for one in range(1, MAX_COLUMNS + 1) if _runs(outputs, one)), None)
    if width is None:
        raise NetworkError(
            f"the module must take rows of up to {MAX_COLUMNS} columns, but runs with none; say how many: read_torch(module, columns=…)"
        )
    return (width if width > 1 else _unless_spread(outputs),)


def _unless_spread(outputs: Callable[[Matrix], Matrix]) -> int:
    """Tell a module of one column from one that spreads one column over constants for several.

    The latter runs with just those several, too; one that only cuts out its column runs with any.
    """
    several = next((one for one in range(2, MAX_COLUMNS + 1) if _runs(outputs, one)), None)
    return 1 if several is None or _runs(outputs, several + 1) else several


def _first_width(graph: Graph) -> int | None:
    """Tell how many values the first layer takes, if nothing stands before it."""
    entry, *rest = graph.graph.nodes
    for node in rest:
        if node.op == "call_module" and node.args[:1] == (entry,):
            step = graph.get_submodule(node.target)
            width = getattr(step, "in_features", None) or getattr(step, "num_features", None)
            if width or kind_of(step) not in SAME_MODULES:
                return width
            entry = node
        else:
            return None
    return None


def _runs(outputs: Callable[[Matrix], Matrix], width: int) -> bool:
    try:
        outputs(np.zeros((2, width)))
    except Exception:  # torch's errors share no other class
        return False
    return True
