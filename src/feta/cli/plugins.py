"""Commands of other packages, found by the entry-point group `feta.commands`."""

from importlib.metadata import EntryPoint, entry_points
from typing import Any

import typer.main
from typer.core import TyperCommand, TyperGroup

from feta.errors import SchemaError

GROUP = "feta.commands"

# Commands of packages that come with FETA; an incomplete installation lacks them.
BUNDLED = {"reproduce": "feta_paper"}


class CommandGroup(TyperGroup):
    """The commands of this package and of all packages that add some.

    Another package is imported only for its own command and for the list of all commands.
    """

    listing = False  # whether all commands are being listed

    def list_commands(self, ctx: Any) -> list[str]:  # noqa: ANN401 - typer's context
        """Return the names of all commands; those of this package come first."""
        builtin = super().list_commands(ctx)
        return [*builtin, *sorted(name for name in _plugins() if name not in builtin)]

    def format_help(self, ctx: Any, formatter: Any) -> None:  # noqa: ANN401 - typer's types
        """List all commands; one that cannot be loaded is listed with the reason."""
        self.listing = True
        try:
            super().format_help(ctx, formatter)
        finally:
            self.listing = False

    def get_command(self, ctx: Any, cmd_name: str) -> Any:  # noqa: ANN401 - typer's types
        """Return a command by its name, or None."""
        command = super().get_command(ctx, cmd_name)
        if command is not None:
            return command
        plugin = _plugins().get(cmd_name)
        if plugin is not None:
            return self._load(plugin)
        if cmd_name in BUNDLED:
            raise _not_installed(cmd_name)
        return None

    def _load(self, point: EntryPoint) -> Any:  # noqa: ANN401 - typer's types
        try:
            return _command(point)
        except SchemaError as error:
            if not self.listing:
                raise
            return TyperCommand(point.name, short_help=f"not available: {error}")


def _plugins() -> dict[str, EntryPoint]:
    return {point.name: point for point in entry_points(group=GROUP)}


def _command(point: EntryPoint) -> Any:  # noqa: ANN401 - typer's types
    try:
        app = point.load()
    except Exception as error:  # the code of another package may raise anything
        missing = isinstance(error, ModuleNotFoundError) and error.name
        if missing and missing == BUNDLED.get(point.name):
            raise _not_installed(point.name) from None
        raise SchemaError(
            f"the command {point.name!r} cannot be loaded from {point.value}: got "
            f"{type(error).__name__}: {error}; repair or remove the package that adds it"
        ) from error
    command = typer.main.get_command(app)
    command.name = point.name
    return command


def _not_installed(name: str) -> SchemaError:
    return SchemaError(
        f"feta {name} needs the package {BUNDLED[name]}, which is not installed; "
        "install feta-fair again"
    )
