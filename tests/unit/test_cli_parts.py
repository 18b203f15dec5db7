"""Small parts of the command line that a process would be too slow to test one by one."""

import os
import signal
from collections.abc import Iterator
from pathlib import Path

import pytest

from feta.cli.output_path import check_file, check_folder
from feta.cli.signals import uninterrupted
from feta.errors import SchemaError


@pytest.fixture(autouse=True)
def heard() -> Iterator[None]:
    """A background job's children ignore the signal; here it is heard."""
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    yield
    signal.signal(signal.SIGINT, before)


def test_an_interruption_waits_for_the_block() -> None:
    steps: list[str] = []

    def interrupted_in_the_middle() -> None:
        with uninterrupted():
            os.kill(os.getpid(), signal.SIGINT)
            steps.append("done")

    with pytest.raises(KeyboardInterrupt):
        interrupted_in_the_middle()
    assert steps == ["done"]


def test_results_do_not_write_over_what_is_read(tmp_path: Path) -> None:
    table = tmp_path / "people.csv"
    table.write_text("age")
    with pytest.raises(SchemaError, match="--out is an input of this command"):
        check_file(tmp_path / "." / "people.csv", [table])
    check_file(tmp_path / "new.csv", [table])


def test_results_need_a_folder_that_is_there(tmp_path: Path) -> None:
    with pytest.raises(SchemaError, match=r"the folder .*missing does not exist; create it first"):
        check_file(tmp_path / "missing" / "out.csv", [])
    with pytest.raises(SchemaError, match="--out is a folder; expected a file"):
        check_file(tmp_path, [])
    (tmp_path / "file").write_text("x")
    with pytest.raises(SchemaError, match="--out is a file; expected a folder"):
        check_folder(tmp_path / "file")
