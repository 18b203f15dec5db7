"""Fixtures of several tests: a folder of good files, and commands run in this process."""

import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from feta.cli import run_command
from tests.bad_files import Folder


@pytest.fixture
def folder(tmp_path: Path) -> Folder:
    """Return a folder with a good model, schema and table."""
    return Folder.filled(tmp_path)


@pytest.fixture
def feta_(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> Callable[..., tuple[int, str, str]]:
    """Return a function that runs a command and returns its exit code and both outputs."""

    def run(*arguments: str) -> tuple[int, str, str]:
        monkeypatch.setattr(sys, "argv", ["feta", *arguments])
        with pytest.raises(SystemExit) as exit_:
            run_command.main()
        captured = capsys.readouterr()
        return int(exit_.value.code or 0), captured.out, captured.err

    return run
