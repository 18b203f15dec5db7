"""Commands of other packages, found by entry points."""

import subprocess
import sys
import types
from importlib.abc import MetaPathFinder
from importlib.metadata import EntryPoint

import pytest
import typer

from feta.cli import plugins
from feta.cli.app import app
from feta.cli.run_command import run_command

# Prints the exit code, and whether the package of `feta reproduce` was imported.
IMPORTED = """
import sys
from feta.cli.run_command import run_command
code = run_command(sys.argv[1:])
print("feta_paper" in sys.modules, code, file=sys.stderr)
"""

NOT_INSTALLED = (
    "feta reproduce needs the package feta_paper, which is not installed; install feta-fair again"
)


@pytest.mark.parametrize(
    ("arguments", "imported"),
    [(["engines"], False), (["reproduce", "--help"], True), (["--help"], True)],
    ids=["engines", "reproduce", "full help"],
)
def test_feta_paper_is_imported_only_when_needed(arguments: list[str], imported: bool) -> None:
    done = subprocess.run(
        [sys.executable, "-c", IMPORTED, *arguments],
        capture_output=True,
        text=True,
        encoding="utf-8",
        timeout=600,  # only against hanging
        check=False,
    )
    assert done.stderr.splitlines()[-1] == f"{imported} 0"


def install(monkeypatch: pytest.MonkeyPatch, **targets: str) -> None:
    """Replace the installed entry points."""
    points = {name: EntryPoint(name, target, plugins.GROUP) for name, target in targets.items()}
    monkeypatch.setattr(plugins, "_plugins", lambda: points)
    monkeypatch.setattr(sys, "argv", ["feta", "reproduce", "german"])


def test_a_plugin_adds_a_command_after_those_of_feta(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    other = typer.Typer()

    @other.command()
    def greet(name: str) -> int:
        """Greet somebody."""
        typer.echo(f"hello {name}")
        return 3

    module = types.ModuleType("another_package")
    module.app = other  # type: ignore[attr-defined]  # made here
    monkeypatch.setitem(sys.modules, "another_package", module)
    install(monkeypatch, greet="another_package:app", audit="another_package:app")
    assert run_command(["greet", "Ada"]) == 3
    assert capsys.readouterr().out == "hello Ada\n"
    group = typer.main.get_group(app)
    context = group.make_context("feta", [], resilient_parsing=True)
    names = group.list_commands(context)
    assert names[-1] == "greet"
    assert names.count("audit") == 1
    assert group.get_command(context, "audit").callback is not greet  # type: ignore[union-attr]  # it exists


class Absent(MetaPathFinder):
    """Finder for which feta_paper is not installed."""

    def find_spec(self, fullname: str, *_: object) -> None:
        if fullname == "feta_paper":
            raise ModuleNotFoundError(f"No module named {fullname!r}", name=fullname)


@pytest.mark.parametrize(
    "targets", [{}, {"reproduce": "feta_paper.command:app"}], ids=["no entry point", "no package"]
)
def test_a_missing_feta_paper_is_reported_with_exit_code_2(
    targets: dict[str, str], monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    install(monkeypatch, **targets)
    for name in [name for name in sys.modules if name.partition(".")[0] == "feta_paper"]:
        monkeypatch.delitem(sys.modules, name)
    monkeypatch.setattr(sys, "meta_path", [Absent(), *sys.meta_path])
    assert run_command(["reproduce", "german"]) == 2
    captured = capsys.readouterr()
    assert (captured.out, captured.err) == ("", f"feta: {NOT_INSTALLED}\n")


def test_a_plugin_that_cannot_be_loaded_is_reported_and_listed(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    install(monkeypatch, broken="no_such_package:app")
    message = (
        "the command 'broken' cannot be loaded from no_such_package:app: got ModuleNotFoundError: "
        "No module named 'no_such_package'; repair or remove the package that adds it"
    )
    assert run_command(["broken"]) == 2
    assert capsys.readouterr().err == f"feta: {message}\n"
    assert run_command(["--help"]) == 0
    listing = capsys.readouterr().out
    assert "not available: the command 'broken'" in listing
    assert "audit" in listing
