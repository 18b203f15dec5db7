"""Detection of reduced precision: parts of a forward that compute in less than float32.

A float64 copy of a module cannot reveal them, because autocast ignores float64 numbers.
"""

import sys
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from types import FrameType
from typing import TYPE_CHECKING, Any, Literal

from feta.errors import FetaError, NetworkError
from feta.readers.torch.check import quote_error

if TYPE_CHECKING:
    from torch import nn

Source = Literal["float32", "float64"]
Graph = Any  # a GraphModule of torch.fx

# Devices for which torch has an autocast, each with its own switch.
DEVICES = ("cpu", "cuda", "xpu", "mps", "hpu", "ipu", "xla", "mtia", "maia", "privateuseone")

# Formats that a forward may convert to. Integers serve lookups; `Signal` checks how they are used.
WIDE = ("torch.float64", "torch.int32", "torch.int64")


def reduced_precision() -> str:
    """Return the setting that makes torch compute in reduced precision now; empty if none does."""
    import torch  # noqa: PLC0415 - torch is an extra

    for device in DEVICES:
        if torch.is_autocast_enabled(device):
            return f"torch.autocast for {device!r}"
    precision = torch.get_float32_matmul_precision()
    return "" if precision == "highest" else f"float32_matmul_precision {precision!r}"


def check_global_precision() -> None:
    """Raise if torch is set to reduced precision while a module is read or run."""
    setting = reduced_precision()
    if setting:
        remedy = (
            "leave it before the module is read"
            if "autocast" in setting
            else "call torch.set_float32_matmul_precision('highest')"
        )
        raise NetworkError(
            f"torch computes in reduced precision: got {setting}; "
            f"expected float32 or float64 throughout; {remedy}"
        )


def _check_forward_precision(setting: str) -> None:
    if setting:
        raise NetworkError(
            f"the module's forward computes in reduced precision: got {setting}; "
            "expected float32 or float64 throughout; remove it from the forward"
        )


def check_dtypes(arguments: Iterable[object], source: Source, where: str) -> None:
    """Reject a call that converts to a format with less precision than the module's."""
    import torch  # noqa: PLC0415 - torch is an extra

    allowed = (*WIDE, "torch.float32") if source == "float32" else WIDE
    for argument in arguments:
        if isinstance(argument, torch.dtype) and str(argument) not in allowed:
            raise NetworkError(
                f"{where} converts to an unsupported format: got {argument}; "
                f"expected one of {', '.join(allowed)}; remove the conversion"
            )


def trace_module(module: "nn.Module") -> Graph:
    """Trace a module's forward; reject it if a step runs in reduced precision."""
    from torch import fx  # noqa: PLC0415 - torch is an extra

    class Tracer(fx.Tracer):
        def create_node(self, *arguments: Any, **options: Any) -> fx.Node:  # noqa: ANN401 - torch's own types
            _check_forward_precision(reduced_precision())
            return super().create_node(*arguments, **options)

    autocasts: list[str] = []
    try:
        with _record_autocasts(autocasts):
            tracer = Tracer()
            graph = tracer.trace(module)
    except FetaError:
        raise
    except Exception as error:  # the user's forward may raise anything
        raise NetworkError(
            f"the module's forward cannot be traced: got {quote_error(error)}; expected one that "
            "runs the same steps for every row, without if or for on its values; "
            "export it as ONNX and read that"
        ) from None
    _check_forward_precision(autocasts[0] if autocasts else "")
    return fx.GraphModule(tracer.root, graph, type(module).__name__)


@contextmanager
def _record_autocasts(autocasts: list[str]) -> Iterator[None]:
    """Record every autocast that this thread enters for another device than the processor.

    Torch disables an autocast if its device is missing, so its switch does not show what the
    forward does on a machine with the device. A profiler sees the calls and changes nothing in
    torch.
    """
    import torch  # noqa: PLC0415 - torch is an extra

    created, entered = torch.autocast.__init__.__code__, torch.autocast.__enter__.__code__
    requested: dict[int, bool] = {}

    def watch(frame: FrameType, event: str, _: object) -> None:
        if event != "call" or frame.f_code not in (created, entered):
            return
        autocast = frame.f_locals["self"]
        if frame.f_code is created:
            requested[id(autocast)] = bool(frame.f_locals["enabled"])
        elif autocast.device != "cpu" and requested.get(id(autocast), _may_be_enabled(autocast)):
            autocasts.append(f"torch.autocast for {autocast.device!r}")

    before = sys.getprofile()
    sys.setprofile(watch)
    try:
        yield
    finally:
        sys.setprofile(before)


def _may_be_enabled(autocast: Any) -> bool:  # noqa: ANN401 - torch's autocast
    """Return whether an autocast created earlier is on, or off only for lack of its device."""
    import torch  # noqa: PLC0415 - torch is an extra

    without_device = autocast.device == "cuda" and not torch.cuda.is_available()
    return bool(autocast._enabled) or without_device  # noqa: SLF001 - torch has no other way
