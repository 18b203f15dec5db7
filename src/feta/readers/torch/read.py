"""Reader of torch modules, by tracing their forward; the module itself replays people."""

import copy
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Literal

import numpy as np

from feta.arrays import Matrix
from feta.errors import FetaError, MissingExtra, NetworkError
from feta.readers.torch.branches import TorchBranchReader
from feta.readers.torch.check import (
    check_double_scores,
    check_source_scores,
    check_unmodified,
    quote_error,
)
from feta.readers.torch.graph import NO_OP_MODULES, Graph, TorchGraphReader
from feta.readers.torch.mode import check_evaluation_mode
from feta.readers.torch.precision import check_global_precision, trace_module
from feta.readers.torch.steps import kind_of
from feta.scorer.network.agreement import Squash
from feta.scorer.network.branches import BranchesError
from feta.scorer.network.network import Network

if TYPE_CHECKING:
    import torch
    from torch import nn

# Numbers of input columns that are probed if the module does not show how many it takes.
MAX_COLUMNS = 1024


def read_torch(module: "nn.Module", *, columns: int | Sequence[int] | None = None) -> Network:
    """Read a trained torch module whose steps are piecewise-linear.

    Its forward is traced: Linear, the activations, BatchNorm1d, Embedding (by the numbers in a
    column), slices and `cat` of the input before the first layer, Dropout, shapes. A last Sigmoid,
    Softmax or LogSoftmax is removed: scores are its inputs. `columns` is the number of columns of
    each argument, if it does not follow from the layers; the network reads all arguments as one
    row. The network's scores are compared with the module's, in float64 and in its own format.

    A module that computes something else in training mode must be in evaluation mode. A module
    that computes in reduced precision, such as under `torch.autocast`, is rejected.
    """
    return read_module(module, columns)[0]


def read_module(
    module: "nn.Module",
    columns: int | Sequence[int] | None = None,
    *,
    any_mode: bool = False,
) -> tuple[Network, Squash | None]:
    """Read a module like `read_torch`; also return the function removed from its end.

    `any_mode` is for sources that put the module into evaluation mode before it decides.
    """
    if not _torch_is_installed():
        raise MissingExtra("torch", "torch")
    try:
        return _read(module, columns, any_mode=any_mode)
    except FetaError:
        raise
    except Exception as error:  # a module with unknown code may hold anything
        raise NetworkError(
            f"the module cannot be read ({type(error).__name__}: {quote_error(error)}); "
            "export it as ONNX and read that"
        ) from error


def _read(
    module: "nn.Module", columns: int | Sequence[int] | None, *, any_mode: bool
) -> tuple[Network, Squash | None]:
    import torch  # noqa: PLC0415 - torch is an extra

    check_global_precision()
    source = _source_format(module)
    check_unmodified(module)
    evaluated = _copy_for_evaluation(module)
    if not any_mode:
        check_evaluation_mode(module)
    graph = trace_module(evaluated)
    widths = _widths(evaluated, graph, columns)
    reader = TorchGraphReader(graph, widths, source)
    try:
        network = reader.network()
    except BranchesError:
        reader = TorchBranchReader(graph, widths, source)
        network = reader.network()
    double = _copy_for_evaluation(evaluated).double()
    in_double = _outputs(double, torch.float64, widths)
    check_double_scores(network, in_double, reader.squash, hidden=reader.hidden)
    dtype = torch.float64 if source == "float64" else torch.float32
    check_source_scores(network, _outputs(evaluated, dtype, widths), hidden=reader.hidden)
    return network, reader.squash


def torch_outputs(module: "nn.Module") -> Callable[[Matrix], Matrix]:
    """Return a function that runs the module itself, in evaluation mode, on rows of its inputs."""
    import torch  # noqa: PLC0415 - torch is an extra

    evaluated = _copy_for_evaluation(module)
    tensors = [*evaluated.parameters(), *evaluated.buffers()]
    dtypes = {tensor.dtype for tensor in tensors if tensor.is_floating_point()}
    dtype = torch.float64 if dtypes == {torch.float64} else torch.float32
    return _outputs(evaluated, dtype)


def _outputs(
    module: "nn.Module", dtype: "torch.dtype", widths: Sequence[int] = ()
) -> Callable[[Matrix], Matrix]:
    """Return a function that runs a module on rows; `widths` splits them into arguments."""
    import torch  # noqa: PLC0415 - torch is an extra

    def outputs(rows: Matrix) -> Matrix:
        check_global_precision()
        tensor = torch.from_numpy(np.ascontiguousarray(rows)).to(dtype)
        parts = torch.split(tensor, list(widths), 1) if len(widths) > 1 else [tensor]
        with torch.no_grad():
            return np.asarray(module(*parts).double().numpy().reshape(len(rows), -1))

    return outputs


def _copy_for_evaluation(module: "nn.Module") -> "nn.Module":
    """Return a copy of a module in evaluation mode."""
    try:
        return copy.deepcopy(module).cpu().eval()
    except Exception as error:  # a module may hold anything
        raise NetworkError(
            f"the module cannot be copied: got {quote_error(error)}; expected one that "
            "copy.deepcopy can copy; store only parameters, buffers and modules in it"
        ) from None


def _torch_is_installed() -> bool:
    try:
        import torch  # noqa: F401, PLC0415 - torch is an extra
    except ImportError:
        return False
    return True


def _source_format(module: "nn.Module") -> Literal["float32", "float64"]:
    """Return the format in which the module computes."""
    import torch  # noqa: PLC0415 - torch is an extra

    supported = {torch.float32, torch.float64}
    dtypes = {parameter.dtype for parameter in module.parameters()}
    if dtypes == {torch.float64}:
        return "float64"
    in_buffers = {buffer.dtype for buffer in module.buffers() if buffer.is_floating_point()}
    dtypes |= in_buffers - supported
    if dtypes <= supported:
        return "float32"
    names = ", ".join(sorted(str(dtype) for dtype in dtypes))
    raise NetworkError(
        f"the module computes in an unsupported format: got {names}; "
        "expected float32 or float64; use module.float()"
    )


def _widths(
    module: "nn.Module", graph: Graph, columns: int | Sequence[int] | None
) -> tuple[int, ...]:
    """Return the number of columns of each argument: `columns`, or the fewest that run."""
    arguments = [node for node in graph.graph.nodes if node.op == "placeholder"]
    if columns is not None:
        widths = (columns,) if isinstance(columns, int) else tuple(columns)
        if len(widths) != len(arguments):
            raise NetworkError(
                f"columns has the wrong length: got {columns}; "
                f"expected one number for each of {len(arguments)} arguments"
            )
        return widths
    if len(arguments) != 1:
        names = ", ".join(repr(node.name) for node in arguments)
        raise NetworkError(
            f"the module takes {len(arguments)} arguments ({names}), and their numbers of columns "
            "are unknown; call read_torch(module, columns=(…))"
        )
    first = _first_width(graph)
    if first:
        return (first,)  # if it does not run, a later check names the wrong layer
    outputs = torch_outputs(module)
    width = next((count for count in range(1, MAX_COLUMNS + 1) if _runs(outputs, count)), None)
    if width is None:
        raise NetworkError(
            f"the module runs with no number of columns up to {MAX_COLUMNS}; "
            "call read_torch(module, columns=…)"
        )
    return (width if width > 1 else _width_without_broadcast(outputs),)


def _width_without_broadcast(outputs: Callable[[Matrix], Matrix]) -> int:
    """Distinguish a module of one column from one that broadcasts one column to several constants.

    The latter also runs with exactly those several columns. A module that only selects its column
    runs with any number.
    """
    several = next((count for count in range(2, MAX_COLUMNS + 1) if _runs(outputs, count)), None)
    return 1 if several is None or _runs(outputs, several + 1) else several


def _first_width(graph: Graph) -> int | None:
    """Return the number of inputs of the first layer, if it reads the input unchanged."""
    entry, *rest = graph.graph.nodes
    for node in rest:
        if node.op == "call_module" and node.args[:1] == (entry,):
            step = graph.get_submodule(node.target)
            width = getattr(step, "in_features", None) or getattr(step, "num_features", None)
            if width or kind_of(step) not in NO_OP_MODULES:
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
