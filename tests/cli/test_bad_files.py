import os
import resource
import subprocess
import sys
from pathlib import Path

import pytest

from feta.cli import run_command
from tests.bad_files import KINDS, ROWS, BadFile, Folder
from tests.extras import skip_if_missing

# Kinds that could need much memory run in a separate process, where it is limited.
SEPARATE = (
    "field_of_20_mb",
    "line_of_20_mb",
    "bad_cell_among_100_000_columns",
    "huge_dimensions_without_data",
    "sparse_file_of_64_gb",
    "device_as_model",
    "zip_bomb",
    "endless_lattice",
)
OTHERS = [kind for kind in KINDS if kind.name not in SEPARATE]

# Limit of the address space (bytes); a good audit needs less than 600 MB (measured).
MAX_MEMORY = 2**30


@pytest.fixture
def folder(tmp_path: Path) -> Folder:
    return Folder.filled(tmp_path / "files")


def run(arguments: list[str]) -> subprocess.CompletedProcess[str]:
    limit = lambda: resource.setrlimit(resource.RLIMIT_AS, (MAX_MEMORY, MAX_MEMORY))  # noqa: E731 - short
    return subprocess.run(
        [sys.executable, "-m", "feta", *arguments],
        capture_output=True,
        text=True,
        encoding="utf-8",
        timeout=600,  # only against hanging
        check=False,
        preexec_fn=limit,
        env={**os.environ, "OPENBLAS_NUM_THREADS": "1", "COLUMNS": "200"},
    )


def contents(folder: Folder) -> dict[str, tuple[int, int]]:
    files = [path for path in folder.path.rglob("*") if path.is_file() or path.is_dir()]
    return {str(path): (path.stat().st_mtime_ns, path.stat().st_size) for path in files}


def check(kind: BadFile, folder: Folder, stderr: str, stdout: str) -> None:
    lines = [line for line in stderr.splitlines() if line.strip() and "note: " not in line]
    messages = [line for line in lines if not line.startswith("    ")]  # without scripts to copy
    assert len(messages) == 1, stderr
    assert messages[0].startswith("feta: ")
    assert "internal error" not in messages[0]
    assert len(messages[0]) < 2500
    assert messages[0].isprintable()
    for part in kind.says:
        assert part in messages[0]
    assert stdout == ""
    assert not (folder.path / "out").exists()
    assert not (folder.path / "canary").exists()
    assert not list(folder.path.rglob("*.part"))


def test_kinds_are_many_and_have_different_names() -> None:
    assert len(KINDS) >= 45
    assert len({kind.name for kind in KINDS}) == len(KINDS)
    assert {kind.name for kind in KINDS} > set(SEPARATE)


@pytest.mark.parametrize("kind", OTHERS, ids=lambda kind: kind.name)
def test_a_bad_file_gives_one_message(
    kind: BadFile,
    folder: Folder,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    monkeypatch.setattr(sys, "argv", ["feta", *kind.make(folder)])
    monkeypatch.setenv("COLUMNS", "200")
    before = contents(folder)
    with pytest.raises(SystemExit) as exit_:
        run_command.main()
    captured = capsys.readouterr()
    skip_if_missing(captured.err)
    assert (exit_.value.code, captured.err[:6]) == (2, "feta: ")
    check(kind, folder, captured.err, captured.out)
    assert contents(folder) == before


@pytest.mark.parametrize(
    "kind", [kind for kind in KINDS if kind.name in SEPARATE], ids=lambda kind: kind.name
)
def test_a_bad_file_is_refused_with_limited_memory(kind: BadFile, folder: Folder) -> None:
    arguments = kind.make(folder)
    done = run(arguments)
    skip_if_missing(done.stderr)
    assert done.returncode == 2, done.stderr
    assert "Traceback" not in done.stderr
    check(kind, folder, done.stderr, done.stdout)


def test_100_000_unknown_columns_are_ignored_with_one_note(folder: Folder) -> None:
    names = ",".join(f"c{n}" for n in range(100_000))
    rest = "," + ",".join("0" * 100_000) + "\n"
    arguments = folder.table(
        f"age,sex,income,{names}\n" + "".join(row + rest for row in ROWS for _ in range(2))
    )
    done = run(arguments)
    assert done.returncode in (0, 1)
    note = (
        "note: 100,000 columns are not in the schema and ignored: c0, c1, c2, c3, c4, c5, c6, c7, …"
    )
    assert done.stderr.strip() == note
