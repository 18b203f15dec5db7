"""Commands that tests run, in this process or in one of their own."""

import csv
import io
import os
import subprocess
import sys
from contextlib import redirect_stderr, redirect_stdout
from pathlib import Path

import pytest

from feta.cli import run_command

Done = subprocess.CompletedProcess[str]


def run(*arguments: str, cwd: Path | None = None) -> Done:
    """Run a command in this process, which saves the imports."""
    out, err = (io.TextIOWrapper(io.BytesIO(), "utf-8", write_through=True) for _ in range(2))
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(sys, "argv", ["feta", *arguments])
        patch.setenv("COLUMNS", "160")
        patch.chdir(cwd or Path.cwd())
        with redirect_stdout(out), redirect_stderr(err), pytest.raises(SystemExit) as exit_:
            run_command.main()
    code = int(exit_.value.code or 0)
    return checked(Done(["feta", *arguments], code, written(out), written(err)))


def written(stream: io.TextIOWrapper) -> str:
    """Return what was written to a stream, with the line ends of text files."""
    buffer = stream.buffer
    assert isinstance(buffer, io.BytesIO)
    return buffer.getvalue().decode("utf-8").replace("\r\n", "\n")


def run_process(*arguments: str, cwd: Path | None = None) -> Done:
    """Run a command in a process of its own, as users do."""
    done = subprocess.run(
        [sys.executable, "-m", "feta", *arguments],
        capture_output=True,
        text=True,
        encoding="utf-8",
        timeout=600,  # only against hanging
        check=False,
        cwd=cwd,
        env={**os.environ, "COLUMNS": "160"},
    )
    return checked(done)


def checked(done: Done) -> Done:
    assert "Traceback" not in done.stderr
    return done


def rows_of(path: Path) -> list[dict[str, str]]:
    """Return the rows of a CSV file."""
    with path.open(encoding="utf-8", newline="") as file:
        return list(csv.DictReader(file))
