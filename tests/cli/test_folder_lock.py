import re
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from feta.cli.folder_lock import NAME, FolderLock
from feta.errors import SchemaError
from feta.io.regular_file import atomic_write, part_path
from tests.cli.commands import run
from tests.cli.test_interruptions import slow_audit

HOLD = """
import sys
from pathlib import Path
from feta.cli.folder_lock import FolderLock
with FolderLock(Path(sys.argv[1]), work="audit"):
    print("held", flush=True)
    sys.stdin.read()
"""


def test_a_folder_is_locked_once_and_restored(tmp_path: Path) -> None:
    folder = tmp_path / "a" / "b"
    with FolderLock(folder, work="audit"):
        assert (folder / NAME).exists()
        with (
            pytest.raises(SchemaError, match=r"another audit is writing to this folder \(process"),
            FolderLock(folder, work="audit"),
        ):
            pass
        assert (folder / NAME).exists()  # the refused lock removed nothing
    assert not (tmp_path / "a").exists()
    with FolderLock(tmp_path, work="audit"):
        (tmp_path / "result").write_text("kept")
    assert [path.name for path in tmp_path.iterdir()] == ["result"]


def test_a_lock_ends_when_its_process_is_killed(tmp_path: Path) -> None:
    holder = subprocess.Popen(
        [sys.executable, "-c", HOLD, str(tmp_path)],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    )
    with holder:
        assert holder.stdout is not None
        assert holder.stdout.readline() == "held\n"
        with (
            pytest.raises(SchemaError, match=rf"process {holder.pid}, since \d{{4}}-"),
            FolderLock(tmp_path, work="audit"),
        ):
            pass
        holder.kill()
        holder.wait(timeout=60)
    assert (tmp_path / NAME).exists()  # a killed process leaves the file, but not the lock
    with FolderLock(tmp_path, work="audit"):
        pass
    assert not (tmp_path / NAME).exists()


def test_a_second_audit_is_refused_and_changes_nothing(tmp_path: Path) -> None:
    command = slow_audit(tmp_path)
    out = tmp_path / "out"
    quiet = subprocess.DEVNULL
    with subprocess.Popen(command, stdout=quiet, stderr=quiet) as first:
        deadline = time.monotonic() + 60
        while not (out / "journal.sqlite").exists() and time.monotonic() < deadline:
            time.sleep(0.05)
        before = {path.name for path in out.iterdir() if path.suffix == ".part"}
        second = run(*command[3:])
        assert second.returncode == 2
        message = rf"another audit is writing to this folder \(process {first.pid}, since "
        assert re.search(message, second.stderr)
        assert before
        assert before <= {path.name for path in out.iterdir()}
        first.send_signal(signal.SIGKILL)
    assert before <= {path.name for path in out.iterdir()}
    third = run(*command[3:], "--seconds", "0")  # stopped by the journal, not by the lock
    assert "is the journal of another audit" in third.stderr
    assert not [path for path in out.iterdir() if path.suffix == ".part"]


def test_a_file_is_written_completely_or_not_at_all(tmp_path: Path) -> None:
    target = tmp_path / "file"
    assert part_path(target) != part_path(target)
    with atomic_write(target) as part:
        part.write_text("new")
        assert not target.exists()

    def fail() -> None:
        with atomic_write(target) as part:
            part.write_text("half")
            raise OSError("full")

    with pytest.raises(OSError, match="full"):
        fail()
    assert [path.read_text() for path in tmp_path.iterdir()] == ["new"]
