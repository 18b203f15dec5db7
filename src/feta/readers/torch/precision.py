"""Torch precision: regions of a forward that compute with fewer digits than float32, found and refused.

A float64 copy of a module cannot show them: autocast leaves float64 numbers alone.
"""

import sys
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from types import FrameType
from typing import TYPE_CHECKING, Any, Literal

from feta.errors import FetaError, NetworkError
from feta.readers.torch.check import in_short

if TYPE_CHECKING:
    from torch import nn

Source = Literal["float32", "float64"]
Graph = Any  # a GraphModule of torch.fx

# Devices that torch has an autocast for; each has its own switch.
DEVICES = ("cpu", "cuda", "xpu", "mps", "hpu", "ipu", "xla", "mtia", "maia", "privateuseone")

# Formats that a forward may convert to. Integers are for lookups; `Signal` checks what follows.
WIDE = ("torch.float64", "torch.int32", "torch.int64")


def reduced_precision() -> str:
    """Name what makes torch compute with fewer digits at this moment; empty if nothing does."""
    import torch  # noqa: PLC0415 - torch is an extra

    for device in DEVICES:
        if torch.is_autocast_enabled(device):
            return f"torch.autocast for {device!r}"
    precision = torch.get_float32_matmul_precision()
    return "" if precision == "highest" else f"float32_matmul_precision {precision!r}"


def refuse_around() -> None:
    """Refuse to read or run a module where torch is set to reduced precision."""
    found = reduced_precision()
    if found:
        remedy = (
            "leave it before the module is read"
            if "autocast" in found
            else "call torch.set_float32_matmul_precision('highest')"
        )
        raise NetworkError(
            f"torch computes in reduced precision: got {found}; expected float32 or float64 throughout; {remedy}"
        )


def _refuse_inside(found: str) -> None:
    if found:
        raise NetworkError(
            f"the module's forward computes in reduced precision: got {found}; expected float32 or float64 throughout; remove it from the forward"
        )


def refuse_dtypes(arguments: Iterable[object], source: Source, where: str) -> None:
    """Refuse a call that converts to a format with fewer digits than the module's."""
    import torch  # noqa: PLC0415 - torch is an extra

    allowed = (*WIDE, "torch.float32") if source == "float32" else WIDE
    for one in arguments:
        if isinstance(one, torch.dtype) and str(one) not in allowed:
            raise NetworkError(
                f"{where} must not convert to {one}: expected one of {', '.join(allowed)}; leave the conversion out"
            )


def traced(module: "nn.Module") -> Graph:
    """Trace a module's forward, and refuse it where a step runs in reduced precision."""
    from torch import fx  # noqa: PLC0415 - torch is an extra

    class Tracer(fx.Tracer):
        def create_node(self, *arguments: Any, **options: Any) -> fx.Node:  # noqa: ANN401 - torch's own types
            _refuse_inside(reduced_precision())
            return super().create_node(*arguments, **options)

    found: list[str] = []
    try:
        with _watched(found):
            tracer = Tracer()
            graph = tracer.trace(module)
    except FetaError:
        raise
    except Exception as error:  # whatever a user's forward raises
        message = f"the module's forward must run the same way for every row, without if or for on its values, but cannot be traced ({in_short(error)}); export it as ONNX and read that"
        raise NetworkError(message) from None
    _refuse_inside(found[0] if found else "")
    return fx.GraphModule(tracer.root, graph, type(module).__name__)


@contextmanager
def _watched(found: list[str]) -> Iterator[None]:
    """Note every autocast for another device than the processor that is entered in this thread.

    Torch turns an autocast off where its device is missing, so its switch does not show what the
    forward does where the device exists. The profiler sees the calls, and changes nothing in torch.
    """
    import torch  # noqa: PLC0415 - torch is an extra

    made, entered = torch.autocast.__init__.__code__, torch.autocast.__enter__.__code__
    wanted: dict[int, bool] = {}

    def watch(frame: FrameType, event: str, _: object) -> None:
        if event != "call" or frame.f_code not in (made, entered):
            return
        own = frame.f_locals["self"]
        if frame.f_code is made:
            wanted[id(own)] = bool(frame.f_locals["enabled"])
        elif own.device != "cpu" and wanted.get(id(own), _may_be_on(own)):
            found.append(f"torch.autocast for {own.device!r}")

    before = sys.getprofile()
    sys.setprofile(watch)
    try:
        yield
    finally:
        sys.setprofile(before)


def _may_be_on(own: Any) -> bool:  # noqa: ANN401 - torch's autocast
    """Say whether an autocast made earlier is on, or was turned off because its device is missing."""
    import torch  # noqa: PLC0415 - torch is an extra

    return bool(own._enabled) or (own.device == "cuda" and not torch.cuda.is_available())  # noqa: SLF001 - torch has no other way
