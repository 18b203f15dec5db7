"""Torch check: a module refused where its graph cannot show what it does, then run beside what was read."""

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

# Rows scored by both, to see that the reading is right: enough to reach every neuron's two sides.
CHECKED_ROWS = 256

# How far from 0 they are drawn: scaled inputs, years, and amounts; what is cut off far out shows there.
SCALES = (1.0, 10.0, 1e3)

# What to do about hooks that torch puts there itself, by the module they are from.
REMEDIES = {
    "torch.nn.utils.": "make its weights permanent: torch.nn.utils.prune.remove, remove_weight_norm or remove_spectral_norm",
    "torch.nn.modules.lazy": "run the module once on some rows first",
}


def refuse_changed(module: "nn.Module") -> None:
    """Refuse a module with parts that do something besides their class's forward."""
    from torch import fx, nn  # noqa: PLC0415 - torch is an extra
    from torch.nn.utils.parametrize import is_parametrized  # noqa: PLC0415 - torch is an extra

    for name, one in module.named_modules():
        where = f"module {name!r} ({type(one).__name__})"
        if "forward" in vars(one):
            raise NetworkError(
                f"{where} must run the forward of its class, but another was put in its place, by hand, torch.compile or torch.jit; give the module without it"
            )
        if type(one).__call__ is not nn.Module.__call__ and not isinstance(one, fx.GraphModule):
            raise NetworkError(
                f"{where} must be called as torch calls modules, but has a __call__ of its own; write what it does into the forward"
            )
        if is_parametrized(one):
            raise NetworkError(
                f"{where} must keep its weights as they are, but makes them anew in each run; make them permanent: torch.nn.utils.parametrize.remove_parametrizations"
            )
        for hook in (*one._forward_pre_hooks.values(), *one._forward_hooks.values()):  # noqa: SLF001 - torch has no other way
            raise NetworkError(_hooked(where, hook))


def _hooked(where: str, hook: Any) -> str:  # noqa: ANN401 - anything that can be called
    home = str(getattr(hook, "__module__", ""))
    known = [told for prefix, told in REMEDIES.items() if home.startswith(prefix)]
    remedy = known[0] if known else "remove it, or write what it does into the forward"
    name = getattr(hook, "__qualname__", type(hook).__qualname__)
    return f"{where} must do nothing besides its forward, but has the hook {name}; {remedy}"


def check_scores(network: Network, theirs: Outputs, squashed: Squash | None) -> None:
    """Compare scores in float64 on random rows; without a last sigmoid, which hides large ones."""
    what, rng = "the module's own", np.random.default_rng(0)
    in_double = replace(network, source="float64")
    for scale in SCALES:
        rows = drawn_rows(network, scale, rng)
        if squashed is not None and scale == 1:
            with _running(network):
                given = run(theirs, rows)
            check_agreement(network, rows, given, what, squash=squashed)
        with _running(network, squash=squashed is None):
            given = run(theirs, rows)
        # Far out, what cancels in an inner layer may round by more than the last one's terms say.
        check_agreement(in_double, rows, given, what, rounded=scale > 1)


def check_own_scores(network: Network, theirs: Outputs) -> None:
    """Compare scores in the module's own format; what computes with fewer digits shows here."""
    what, rng = "the module's own", np.random.default_rng(0)
    for scale in SCALES:
        rows = drawn_rows(network, scale, rng).astype(network.source).astype(np.float64)
        with _running(network, squash=False, double=False):
            given = run(theirs, rows)
        check_agreement(network, rows, given, what, rounded=True)


def drawn_rows(network: Network, scale: float, rng: np.random.Generator) -> Matrix:
    """Draw rows; numbers to look up are drawn from their table."""
    rows = scale * rng.normal(size=(CHECKED_ROWS, network.width))
    for table in network.first.tables:
        rows[:, table.column] = rng.choice(table.numbers, CHECKED_ROWS)
    return rows


def run(theirs: Outputs, rows: Matrix) -> Matrix:
    """Run a module that may raise anything."""
    try:
        return theirs(rows)
    except Exception as error:  # torch's errors share no other class
        raise NetworkError(
            f"the module must run on rows of {rows.shape[1]} columns: {in_short(error)}"
        ) from None


def in_short(error: Exception) -> str:
    """Give the beginning of an error's message on one line."""
    return " ".join(str(error).split())[:200]


def _running(network: Network, *, squash: bool = True, double: bool = True) -> "TorchFunctionMode":
    """Make forwards that ask for float32 take float64, and with or without their sigmoids."""
    import torch  # noqa: PLC0415 - torch is an extra
    from torch.overrides import TorchFunctionMode  # noqa: PLC0415 - torch is an extra

    class Running(TorchFunctionMode):
        def __torch_function__(
            self,
            func: Any,  # noqa: ANN401 - torch's own types
            types: Any,  # noqa: ANN401
            args: Any = (),  # noqa: ANN401
            kwargs: Any = None,  # noqa: ANN401
        ) -> Any:  # noqa: ANN401
            name = getattr(func, "__name__", "")
            if name.strip("_") in ("sigmoid", "softmax", "log_softmax") and not squash:
                return args[0] if args else kwargs["input"]
            options = kwargs or {}
            if double and network.source == "float32":
                if name == "float":
                    return torch.Tensor.double(args[0])
                args = [_wide(one) for one in args]
                options = {key: _wide(one) for key, one in options.items()}
            return func(*args, **options)

    return Running()


def _wide(argument: Any) -> Any:  # noqa: ANN401 - an argument of a call
    import torch  # noqa: PLC0415 - torch is an extra

    return torch.float64 if argument is torch.float32 else argument
