"""Commands of other packages, found by the entry-point group `feta.commands`."""

from importlib.metadata import EntryPoint, entry_points
from typing import Any

import typer.main
from typer.core import TyperGroup

from feta.errors import SchemaError

GROUP = "feta.commands"

# Commands of packages that come with FETA; an incomplete installation lacks them.
BUNDLED = {"reproduce": "feta_paper"}


class CommandGroup(TyperGroup):
    """The commands of this package and of all others that add some.

    Another package is imported only if its command or the list of all commands is asked for.
    """

    def list_commands(self, ctx: Any) -> list[str]:  # noqa: ANN401 - typer's own context
        """Return the names of all commands, ours first."""
        own = super().list_commands(ctx)
        return [*own, *sorted(name for name in _found() if name not in own)]

    def get_command(self, ctx: Any, cmd_name: str) -> Any:  # noqa: ANN401 - typer's own types
        """Return a command by its name, or None."""
        command = super().get_command(ctx, cmd_name)
        if command is not None:
            return command
        found = _found().get(cmd_name)
        if found is not None:
            return _loaded(found)
        if cmd_name in BUNDLED:
            raise _not_installed(cmd_name)
        return None


def _found() -> dict[str, EntryPoint]:
    return {point.name: point for point in entry_points(group=GROUP)}


def _loaded(point: EntryPoint) -> Any:  # noqa: ANN401 - typer's own types
    try:
        app = point.load()
    except ModuleNotFoundError as error:
        if error.name == BUNDLED.get(point.name):
            raise _not_installed(point.name) from None
        raise
    command = typer.main.get_command(app)
    command.name = point.name
    return command


def _not_installed(name: str) -> SchemaError:
    return SchemaError(
        f"feta {name} needs the package {BUNDLED[name]}, which is not installed; "
        "install feta-fair again"
    )
