"""Tests of `feta reproduce`: interruptions, options and its journal."""

import signal
import subprocess
import sys
import time
from dataclasses import replace
from pathlib import Path

import pytest

from feta.errors import SchemaError
from feta_paper import reproduce, resumable
from feta_paper.fold import load_people
from feta_paper.protocol import protocol_of
from feta_paper.reproduce import ReproduceOptions, run_reproduce
from tests.cli.commands import run
from tests.extras import needs
from tests.paper.tiny import timeless

COMMAND = [sys.executable, "-m", "feta", "reproduce", "german", "--quick", "--folds", "1"]
TIME_LIMIT = 300.0  # enough on a busy machine


def interrupt(folder: Path, jobs: int, pattern: str, by: signal.Signals) -> tuple[int, str]:
    """Start a run, and interrupt it when a file in `models` matches a pattern."""
    process = subprocess.Popen(
        [*COMMAND, "--jobs", str(jobs), "--out", str(folder)],
        stdout=subprocess.DEVNULL,
        stderr=subprocess.PIPE,
        text=True,
        # A background job of a shell ignores the signal, and its children would inherit that.
        preexec_fn=lambda: signal.signal(signal.SIGINT, signal.SIG_DFL),  # noqa: PLW1509 - no threads
    )
    try:
        until = time.monotonic() + TIME_LIMIT
        while not list(folder.glob(f"models/{pattern}")):
            assert process.poll() is None, "it ended before it could be interrupted"
            assert time.monotonic() < until
            time.sleep(0.01)
        process.send_signal(by)
        _, errors = process.communicate(timeout=TIME_LIMIT)
    finally:
        process.kill()
    return process.returncode, errors


@needs("torch")
def test_a_run_killed_twice_and_resumed_ends_with_the_same_results(tmp_path: Path) -> None:
    undisturbed, killed = tmp_path / "whole", tmp_path / "part"
    assert interrupt(killed, 2, "*.feta", signal.SIGKILL)[0] == -signal.SIGKILL
    code, errors = interrupt(killed, 1, "default-0.feta", signal.SIGINT)
    assert code == 130
    assert "finished steps are saved in" in errors
    assert "resume with: feta reproduce german --quick --folds 1" in errors
    assert not (killed / "results.json").exists()
    for folder in (killed, undisturbed):
        command = [*COMMAND, "--jobs", "1", "--out", str(folder)]
        done = subprocess.run(command, check=False, capture_output=True, text=True)
        assert done.returncode == 0, done.stderr
        assert "CE-Fair training" in done.stdout
    assert timeless(killed / "results.json") == timeless(undisturbed / "results.json")
    assert (killed / "reproduction.md").read_text("utf-8").startswith("## German credit\n")
    assert not list(killed.glob("models/*.training"))


@needs("torch")
def test_a_missing_data_set_is_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("FETA_DATA_DIR", str(tmp_path))
    monkeypatch.setenv("http_proxy", "http://127.0.0.1:9")
    monkeypatch.setenv("https_proxy", "http://127.0.0.1:9")
    monkeypatch.setenv("HOME", str(tmp_path))
    out = tmp_path / "out"
    done = run("reproduce", "ipums", "--quick", "--out", str(out))
    assert done.returncode == 2
    assert "IPUMS Adult" in done.stderr
    assert "ipums/adult_reconstruction.csv" in done.stderr
    assert not out.exists()


@pytest.mark.parametrize(
    ("options", "expected"),
    [
        (
            ReproduceOptions("german", 7, False, 0, 1, None),
            "invalid --folds: got 7; expected an integer from 1 to 5",
        ),
        (
            ReproduceOptions("german", 0, False, 0, 1, None),
            "invalid --folds: got 0; expected an integer from 1 to 5",
        ),
        (
            ReproduceOptions("compas", None, False, 0, 1, None),
            "unknown data set to reproduce: got",
        ),
        (
            ReproduceOptions("german", None, True, 0, 1, Path(__file__)),
            "--out is a file; expected a folder",
        ),
    ],
)
def test_invalid_options_are_refused(options: ReproduceOptions, expected: str) -> None:
    with pytest.raises(SchemaError, match=expected):
        run_reproduce(options)


@needs("torch")
def test_a_folder_is_resumed_only_with_the_same_rows_and_settings(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def interrupted(*_: object, **__: object) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr(resumable, "carry_out", interrupted)
    options = ReproduceOptions("german", 1, True, 0, 1, tmp_path)
    checkpoint = tmp_path / "models" / "nn_b-0-64.training"
    checkpoint.parent.mkdir()
    # The first checkpoint is of another run, whose journal was deleted; the second of this one.
    for remains in (False, True):
        checkpoint.touch()
        with pytest.raises(KeyboardInterrupt):
            run_reproduce(options)
        assert checkpoint.exists() == remains
    with pytest.raises(SchemaError, match='the kind was "quick", and is "full" now'):
        run_reproduce(replace(options, quick=False))
    people = load_people("german", protocol_of("german", quick=True).rows, 0)
    others = replace(people, labels=~people.labels)
    monkeypatch.setattr(reproduce, "load_people", lambda *_: others)
    with pytest.raises(SchemaError, match="the checksum of the rows was"):
        run_reproduce(options)
