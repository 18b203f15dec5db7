"""Audits that are interrupted, resumed, or stopped by a limit, a full disk or a crash."""

import json
import os
import resource
import signal
import subprocess
import sys
import time
from pathlib import Path

import numpy as np
import pytest

import feta
from feta.auditing.block import Block, UnreadRow
from feta.cli.audit_files import AuditFiles
from feta.errors import DomainError
from tests.bad_files import ROWS, Folder
from tests.cli.commands import rows_of, run
from tests.cli.test_commands import insensitive_model


def test_an_audit_is_resumed_and_refuses_another_model(folder: Folder) -> None:
    arguments = folder.table("age,sex,income\n" + "\n".join([*ROWS[3:] * 30, "17,female,1"]) + "\n")
    refused = run(*arguments)
    assert refused.returncode == 2  # the last row is bad
    assert not (folder.path / "out").exists()
    (folder.path / "data.csv").write_text(
        "age,sex,income\n" + "\n".join([*ROWS[3:] * 4400, "17,female,1"])
    )
    refused = run(*arguments)  # the second chunk is bad; the first is done
    assert refused.returncode == 2
    assert "row 4401: 'age' is invalid" in refused.stderr
    journal = folder.path / "out" / "journal.sqlite"
    assert journal.exists()
    changed = run(*folder.model(insensitive_model()))
    assert changed.returncode == 2
    assert "is the journal of another audit: the model was" in changed.stderr
    folder = Folder.filled(folder.path)
    resumed = run(*folder.table("age,sex,income\n" + "\n".join(ROWS[3:] * 4400)))
    assert resumed.returncode == 0
    assert "resuming with 1 people known from" in resumed.stderr  # equal people are one
    assert len(rows_of(folder.path / "out" / "verdicts.csv")) == 4400
    assert not journal.exists()


def slow_audit(folder: Path, bias: float = 0.0) -> list[str]:
    """Return the command of an audit in which one person takes minutes."""
    space = feta.FeatureSpace(
        (
            *(feta.Integer(f"s{n}", 0, 999, sensitive=True) for n in range(3)),
            feta.Real("income", 0, 9),
        )
    )
    rng = np.random.default_rng(0)
    layers = [
        (rng.normal(size=(16, 4)), np.zeros(16)),
        (rng.normal(size=(1, 16)), np.array([bias])),
    ]
    feta.save_model(
        feta.Model(space, feta.Network.from_layers(layers, activation="relu")), folder / "m.feta"
    )
    (folder / "d.csv").write_text("s0,s1,s2,income\n" + "1,2,3,4\n" * 3)
    files = [str(folder / "m.feta"), "--data", str(folder / "d.csv"), "--out", str(folder / "out")]
    return [sys.executable, "-m", "feta", "audit", *files, "--engine", "exhaustive"]


@pytest.mark.parametrize("jobs", ["1", "2"])
@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_a_signal_ends_an_audit_in_the_middle_of_a_person(
    tmp_path: Path, number: signal.Signals, jobs: str
) -> None:
    process = subprocess.Popen(
        [*slow_audit(tmp_path), "--jobs", jobs, "--json"],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        preexec_fn=lambda: signal.signal(signal.SIGINT, signal.SIG_DFL),  # noqa: PLW1509 - no threads here
    )
    while not (tmp_path / "out" / "journal.sqlite").exists():
        assert process.poll() is None, process.communicate()
        time.sleep(0.05)
    time.sleep(1.5)  # in the middle of the first person, who takes minutes
    process.send_signal(number)
    stdout, stderr = process.communicate(timeout=600)  # only against hanging
    assert (process.returncode, stderr) == (130, "")
    content = json.loads(stdout)
    assert (content["partial"], content["summary"]["people"]) == (True, 0)  # no person was finished
    page = (tmp_path / "out" / "report.html").read_text(encoding="utf-8")
    assert "Interrupted: these are partial results" in page


def test_a_full_disk_ends_an_audit_and_keeps_its_results(folder: Folder) -> None:
    rows = [f"{18 + n % 73},{('female', 'male')[n % 2]},{n / 100}" for n in range(1500)]
    arguments = folder.table("age,sex,income\n" + "\n".join(rows))

    def small_files() -> None:
        signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
        resource.setrlimit(resource.RLIMIT_FSIZE, (150_000, 150_000))

    full = subprocess.run(
        [sys.executable, "-m", "feta", *arguments],
        capture_output=True,
        text=True,
        check=False,
        timeout=600,
        preexec_fn=small_files,
        env={**os.environ, "COLUMNS": "160"},
    )
    assert full.returncode == 2
    assert "Traceback" not in full.stderr
    assert "the journal cannot be written" in full.stderr
    assert "what is done is kept: make room, and run the same command again" in full.stderr
    out = folder.path / "out"
    assert not list(out.glob("*.part"))
    assert not (out / "verdicts.csv").exists()
    resumed = run(*arguments)
    assert resumed.returncode == 1
    assert "people known from" in resumed.stderr
    assert len(rows_of(out / "verdicts.csv")) == 1500


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="Linux has a file that is always full")
def test_a_disk_that_fills_between_two_rows_is_reported_and_leaves_no_parts(tmp_path: Path) -> None:
    space = feta.FeatureSpace((feta.Integer("age", 18, 90, sensitive=True), feta.Real("pay", 0, 9)))
    model = feta.Model(space, feta.Network.from_layers([([[0.1, 1.0]], [-5.0])]))
    files = AuditFiles(tmp_path, model)

    def fill_up() -> None:
        with files:
            files.streams["verdicts.csv"].close()
            files.streams["verdicts.csv"] = Path("/dev/full").open("w", encoding="utf-8")  # noqa: SIM115 - the files close it
            unread = {row: UnreadRow(DomainError("late")) for row in range(10_000)}
            labels, names = (None,) * len(unread), ("",) * len(unread)
            block = Block(0, np.zeros((0, space.width)), labels, names, unread)
            files.write(block.audited([]))

    with pytest.raises(
        OSError, match="No space left on device; finished rows are kept: free some"
    ) as raised:
        fill_up()
    assert raised.value.filename == str(tmp_path)
    assert list(tmp_path.iterdir()) == []


def test_a_person_gets_no_more_time_than_the_limit(tmp_path: Path) -> None:
    command = [*slow_audit(tmp_path, bias=1e9), "--seconds", "0.5"]  # everybody is fair, slowly
    done = subprocess.run(command, capture_output=True, text=True, check=False, timeout=600)
    assert done.returncode == 3  # without a limit: minutes per person, then 0
    verdicts = rows_of(tmp_path / "out" / "verdicts.csv")
    assert [row["verdict"] for row in verdicts] == ["undecided"] * 3
    assert all(row["reason"] for row in verdicts)


def children(process: int) -> list[int]:
    """Return a process's children, which Linux lists in /proc."""
    content = Path(f"/proc/{process}/task/{process}/children").read_text(encoding="ascii")
    return [int(child) for child in content.split()]


def is_spawned(process: int) -> bool:
    try:
        return "spawn_main" in Path(f"/proc/{process}/cmdline").read_text(encoding="utf-8")
    except FileNotFoundError:
        return False


def has_journal_entries(out: Path) -> bool:
    """Return whether the journal contains answers; its first write is only its header."""
    return sum(path.stat().st_size for path in out.glob("journal.sqlite*")) > 60_000


@pytest.mark.skipif(not Path("/proc/self/task").exists(), reason="children are found in /proc")
def test_an_audit_survives_a_worker_s_death(folder: Folder) -> None:
    rows = [f"{18 + n % 73},{('female', 'male')[n % 2]},{n / 100}" for n in range(1500)]
    arguments = [*folder.table("age,sex,income\n" + "\n".join(rows)), "--engine", "exhaustive"]
    run(*arguments)
    out, expected = folder.path / "out", folder.path / "due"
    out.rename(expected)
    command = [sys.executable, "-m", "feta", *arguments, "--jobs", "2"]
    process = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
    killed = False
    while process.poll() is None and not killed:
        workers = [child for child in children(process.pid) if is_spawned(child)]
        if workers and has_journal_entries(out):
            os.kill(workers[-1], signal.SIGKILL)
            killed = True
        time.sleep(0.02)
    output, _ = process.communicate(timeout=600)
    assert (process.returncode, killed) == (1, True), output
    for name in ("verdicts.csv", "pairs.csv"):
        assert (out / name).read_text() == (expected / name).read_text()


@pytest.mark.parametrize("engine", ["exhaustive", "lattice"])
def test_a_second_interruption_ends_the_process_with_130(tmp_path: Path, engine: str) -> None:
    process = subprocess.Popen(
        [*slow_audit(tmp_path)[:-1], engine],
        stdout=subprocess.DEVNULL,
        stderr=subprocess.PIPE,
        text=True,
        preexec_fn=lambda: signal.signal(signal.SIGINT, signal.SIG_DFL),  # noqa: PLW1509 - no threads here
    )
    deadline = time.monotonic() + 60
    while not (tmp_path / "out" / "journal.sqlite").exists() and time.monotonic() < deadline:
        time.sleep(0.05)
    while process.poll() is None:  # signals arrive at every stage of the exit
        process.send_signal(signal.SIGINT)
        time.sleep(0.003)
    assert process.stderr is not None
    with process.stderr as stderr:
        assert "Traceback" not in stderr.read()
    assert process.returncode == 130
