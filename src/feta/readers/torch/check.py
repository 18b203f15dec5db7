"""Checks of a torch module: that its graph shows all it does, and that its scores agree."""

from collections.abc import Callable
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import numpy as np

from feta.arrays import Matrix
from feta.errors import NetworkError
from feta.scorer.network.agreement import Squash, check_agreement
from feta.scorer.network.network import Network

if TYPE_CHECKING:
    from torch import nn
    from torch.overrides import TorchFunctionMode

Outputs = Callable[[Matrix], Matrix]

# Rows on which both are scored: enough to reach both sides of every neuron.
CHECKED_ROWS = 256

# Standard deviations of these rows: scaled inputs, years, amounts. The largest reveals clipping.
SCALES = (1.0, 10.0, 1e3)

# What to do about hooks that torch itself registers, by the start of their module's name.
REMEDIES = {
    "torch.nn.utils.": (
        "make its weights permanent: "
        "torch.nn.utils.prune.remove, remove_weight_norm or remove_spectral_norm"
    ),
    "torch.nn.modules.lazy": "run the module once on some rows first",
}

# Characters of an exception that a message quotes.
MAX_QUOTED = 200


def check_unmodified(module: "nn.Module") -> None:
    """Reject a module with parts that do more than the forward of their class."""
    from torch import fx, nn  # noqa: PLC0415 - torch is an extra
    from torch.nn.utils.parametrize import is_parametrized  # noqa: PLC0415 - torch is an extra

    for name, part in module.named_modules():
        where = f"module {name!r} ({type(part).__name__})"
        if "forward" in vars(part):
            raise NetworkError(
                f"{where} has a replaced forward: got one set by hand, torch.compile or torch.jit; "
                "expected the forward of its class; pass the module without it"
            )
        if type(part).__call__ is not nn.Module.__call__ and not isinstance(part, fx.GraphModule):
            raise NetworkError(
                f"{where} overrides __call__; expected that of nn.Module; "
                "move its code into the forward"
            )
        if is_parametrized(part):
            raise NetworkError(
                f"{where} is parametrized: got weights that each run computes; expected fixed "
                "ones; make them permanent: torch.nn.utils.parametrize.remove_parametrizations"
            )
        for hook in (*part._forward_pre_hooks.values(), *part._forward_hooks.values()):  # noqa: SLF001 - torch has no other way
            raise NetworkError(_hook_message(where, hook))


def _hook_message(where: str, hook: Any) -> str:  # noqa: ANN401 - anything that can be called
    origin = str(getattr(hook, "__module__", ""))
    remedies = [remedy for prefix, remedy in REMEDIES.items() if origin.startswith(prefix)]
    remedy = remedies[0] if remedies else "remove it, or move its code into the forward"
    name = getattr(hook, "__qualname__", type(hook).__qualname__)
    return f"{where} has a hook: got {name}; expected nothing but its forward; {remedy}"


def check_double_scores(
    network: Network, outputs: Outputs, squash: Squash | None, *, hidden: int = 0
) -> None:
    """Compare scores in float64 on random rows, before a last sigmoid, which hides differences.

    `hidden` is the number of sigmoids before that.
    """
    what, rng = "the module's own", np.random.default_rng(0)
    in_double = replace(network, source="float64")
    for scale in SCALES:
        rows = draw_rows(network, scale, rng)
        if squash is not None and scale == 1:
            with _overrides(network, hidden):
                scores = run_module(outputs, rows)
            check_agreement(network, rows, scores, what, squash=squash)
        with _overrides(network, hidden, squash=squash is None):
            scores = run_module(outputs, rows)
        # At large scales, terms that cancel in an inner layer may cause larger rounding errors than
        # the last layer's terms show.
        check_agreement(in_double, rows, scores, what, rounded=scale > 1)


def check_source_scores(network: Network, outputs: Outputs, *, hidden: int = 0) -> None:
    """Compare scores in the module's own format, which reveals reduced precision."""
    what, rng = "the module's own", np.random.default_rng(0)
    for scale in SCALES:
        rows = draw_rows(network, scale, rng).astype(network.source).astype(np.float64)
        with _overrides(network, hidden, squash=False, double=False):
            scores = run_module(outputs, rows)
        check_agreement(network, rows, scores, what, rounded=True)


def draw_rows(network: Network, scale: float, rng: np.random.Generator) -> Matrix:
    """Draw random rows; columns with a lookup table take values from it."""
    rows = scale * rng.normal(size=(CHECKED_ROWS, network.width))
    for table in network.first.tables:
        rows[:, table.column] = rng.choice(table.numbers, CHECKED_ROWS)
    return rows


def run_module(outputs: Outputs, rows: Matrix) -> Matrix:
    """Run a module; turn any exception into a NetworkError."""
    try:
        return outputs(rows)
    except Exception as error:  # torch's errors share no other class
        raise NetworkError(
            f"the module fails on rows of {rows.shape[1]} columns: got {quote_error(error)}"
        ) from None


def quote_error(error: Exception) -> str:
    """Return the beginning of an exception's message on one line."""
    return " ".join(str(error).split())[:MAX_QUOTED]


def _overrides(
    network: Network, hidden: int, *, squash: bool = True, double: bool = True
) -> "TorchFunctionMode":
    """Return a mode that replaces float32 by float64 in a forward, and can skip a last sigmoid."""
    import torch  # noqa: PLC0415 - torch is an extra
    from torch.overrides import TorchFunctionMode  # noqa: PLC0415 - torch is an extra

    passed = 0

    class Overrides(TorchFunctionMode):
        def __torch_function__(
            self,
            func: Any,  # noqa: ANN401 - torch's own types
            types: Any,  # noqa: ANN401
            args: Any = (),  # noqa: ANN401
            kwargs: Any = None,  # noqa: ANN401
        ) -> Any:  # noqa: ANN401
            nonlocal passed
            name = getattr(func, "__name__", "")
            if name.strip("_") in ("sigmoid", "softmax", "log_softmax"):
                passed += 1
                if not squash and passed > hidden:
                    return args[0] if args else kwargs["input"]
            options = kwargs or {}
            if double and network.source == "float32":
                if name == "float":
                    return torch.Tensor.double(args[0])
                args = [_widen(argument) for argument in args]
                options = {key: _widen(argument) for key, argument in options.items()}
            return func(*args, **options)

    return Overrides()


def _widen(argument: Any) -> Any:  # noqa: ANN401 - an argument of a call
    import torch  # noqa: PLC0415 - torch is an extra

    return torch.float64 if argument is torch.float32 else argument
