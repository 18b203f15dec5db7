"""The user's function by its name, `module:function`, imported as `python -m` would."""

import contextlib
import functools
import importlib
import os
import sys
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from feta.errors import NetworkError, SchemaError, unknown_choice
from feta.scorer.counted.options import CountingOptions

# Maximum characters of an error of the user's module.
MAX_CHARACTERS = 300


@dataclass(frozen=True, slots=True)
class FunctionSource:
    """A function by name, and how it is evaluated."""

    name: str  # module:function
    timeout: float | None = 600.0  # seconds per call
    max_rows: int | None = None  # that the function may evaluate
    batch: int | None = None  # rows per call; None: chosen when it is read

    def __post_init__(self) -> None:
        module, _, function = self.name.partition(":")
        if not module.strip() or not function.strip():
            raise SchemaError(
                f"invalid function: got {self.name!r}; expected module:function, such as "
                "scoring:predict for the function predict in scoring.py"
            )

    @property
    def options(self) -> CountingOptions:
        """The options of the counted model."""
        return CountingOptions(batch=self.batch, timeout=self.timeout, max_rows=self.max_rows)

    def load(self) -> Any:  # noqa: ANN401 - a function, or an object with predict
        """Import the function; modules of the current folder come first.

        What the module and the function print goes to standard error: standard output is FETA's.
        """
        module_name, _, path = self.name.partition(":")
        found = _import(module_name.strip())
        for part in path.strip().split("."):
            if not hasattr(found, part):
                public = [name for name in vars(found) if not name.startswith("_")]
                raise NetworkError(
                    f"{self.name}: the function does not exist: {unknown_choice(part, public)}"
                )
            found = getattr(found, part)
        if hasattr(found, "predict"):
            return found
        if not callable(found):
            raise NetworkError(
                f"{self.name} is not a function: got {type(found).__name__}; expected a function "
                "that takes a frame of raw columns and returns one answer per row, or an object "
                "with predict"
            )
        return _printing_to_stderr(found)


def _import(name: str) -> Any:  # noqa: ANN401 - a module
    folder = os.getcwd()  # noqa: PTH109 - as sys.path has it
    if folder not in sys.path:
        sys.path.insert(0, folder)
    try:
        with contextlib.redirect_stdout(sys.stderr):
            return importlib.import_module(name)
    except ModuleNotFoundError as error:
        if error.name is not None and (name == error.name or name.startswith(f"{error.name}.")):
            raise NetworkError(
                f"the module {name!r} does not exist: got no file {name.replace('.', '/')}.py in "
                f"{folder}; expected a module that Python can import; run the command in its folder"
            ) from None
        raise _failed(name, error) from error
    except KeyboardInterrupt:
        raise
    except BaseException as error:  # the user's code may raise anything, and may exit
        raise _failed(name, error) from error


def _failed(name: str, error: BaseException) -> NetworkError:
    reason = " ".join(str(error).split())[:MAX_CHARACTERS]
    return NetworkError(
        f"the module {name!r} cannot be imported: got {type(error).__name__}: {reason}; expected "
        "an import without errors; run python -c 'import …' to see where it fails"
    )


def _printing_to_stderr(function: Callable[[Any], Any]) -> Callable[[Any], Any]:
    @functools.wraps(function)
    def call(rows: Any) -> Any:  # noqa: ANN401 - anything
        with contextlib.redirect_stdout(sys.stderr):
            return function(rows)

    if not hasattr(function, "__qualname__"):  # an object that can be called
        call.__qualname__ = type(function).__qualname__
    return call
