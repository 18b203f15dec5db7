"""Functions of the command line, tested without a separate process."""

import os
import signal
from collections.abc import Iterator
from pathlib import Path

import pytest

from feta.cli.output_path import check_file, check_folder
from feta.cli.signals import uninterrupted
from feta.errors import SchemaError


@pytest.fixture(autouse=True)
def _handle_interrupts() -> Iterator[None]:
    """Handle SIGINT, which children of a background job ignore."""
    previous = signal.signal(signal.SIGINT, signal.default_int_handler)
    yield
    signal.signal(signal.SIGINT, previous)


def test_an_interruption_is_raised_after_the_block() -> None:
    steps: list[str] = []

    def interrupt() -> None:
        with uninterrupted():
            os.kill(os.getpid(), signal.SIGINT)
            steps.append("done")

    with pytest.raises(KeyboardInterrupt):
        interrupt()
    assert steps == ["done"]


def test_an_input_is_not_overwritten(tmp_path: Path) -> None:
    table = tmp_path / "people.csv"
    table.write_text("age")
    with pytest.raises(SchemaError, match="--out is an input of this command"):
        check_file(tmp_path / "." / "people.csv", [table])
    check_file(tmp_path / "new.csv", [table])


def test_output_needs_an_existing_folder(tmp_path: Path) -> None:
    with pytest.raises(SchemaError, match=r"the folder .*missing does not exist; create it first"):
        check_file(tmp_path / "missing" / "out.csv", [])
    with pytest.raises(SchemaError, match="--out is a folder; expected a file"):
        check_file(tmp_path, [])
    (tmp_path / "file").write_text("x")
    with pytest.raises(SchemaError, match="--out is a file; expected a folder"):
        check_folder(tmp_path / "file")
